"""Writing volumes: files and directories on disk.

Comes in   what is to be there
Goes out   it is there; or an `OSError`, or the refusal of a host path

 1. A file is there whole or not at all: it is written beside its place and then put there.
 2. A path never leads out of its volume; the API server has seen to that, and it is checked again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from mooring.kubelet.full_views import HostPathVolume
from mooring.kubelet.volumes.projected_files import File

EMPTY_MODE = 0o777
"""Of an empty directory: whoever the containers run as may write there."""
DIRECTORY_MODE = 0o755
FILE_MODE = 0o644


class HostPathError(Exception):
    """What is at a path of the host is not what the pod says."""


def write_files(directory: Path, files: Mapping[str, File]) -> None:
    """Fill a volume. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, file in files.items():
        inside = os.path.normpath(path)
        if inside.startswith(("/", "..")):
            raise OSError(f"{path} leads out of the volume")
        place = directory / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.new")
        beside.write_bytes(file.data)
        beside.chmod(file.mode)
        beside.replace(place)


def make_empty(directory: Path) -> None:
    """An empty directory for everybody; if it is there, it stays as it is. Raises `OSError`."""
    if not directory.exists():
        directory.mkdir(parents=True)
        directory.chmod(EMPTY_MODE)


def link_directory(link: Path, path: Path) -> None:
    """A directory of the host under another name; it is made if it is not there. Raises `OSError`."""
    path.mkdir(parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(path)


def check_host_path(volume: HostPathVolume) -> None:
    """What the pod says of a path of the host must be so; what it may make is made. Raises `HostPathError`."""
    path = Path(volume.path)
    if volume.type in ("", "DirectoryOrCreate") and not path.exists():
        path.mkdir(mode=DIRECTORY_MODE, parents=True)
    elif volume.type == "FileOrCreate" and not path.exists():
        path.touch(mode=FILE_MODE)
    is_so, what = _WANTED.get(volume.type, (Path.exists, ""))
    if not is_so(path):
        raise HostPathError(f"hostPath type check failed: {path} is not a {what}")


_WANTED: Mapping[str, tuple[Callable[[Path], bool], str]] = {
    "Directory": (Path.is_dir, "directory"),
    "DirectoryOrCreate": (Path.is_dir, "directory"),
    "File": (Path.is_file, "file"),
    "FileOrCreate": (Path.is_file, "file"),
    "Socket": (Path.is_socket, "socket file"),
    "CharDevice": (Path.is_char_device, "character device"),
    "BlockDevice": (Path.is_block_device, "block device"),
}
