"""Directories of pods on disk.

   pods/                                      of one kubelet at a time, which holds `lock`
     <uid of the pod>/
       volumes/…                              volumes
       containers/<name>/
         0.log, 1.log, 1.log.1                logs of the current and the previous run
         run.json                             the process of this run, to find it after a crash
         work/                                the default working directory
         tmp/, var-tmp/, dev-shm/             temporary files, of pods with users of their own
         termination-log                      the termination message

1. A second kubelet on the same directory is an error.
2. A temporary directory of a killed kubelet is removed by the next one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mooring.kit.temporary_directory import take_lock

LOCK = "lock"
PRIVATE_MODE = 0o700
TEMPORARY_MODE = 0o1777
_TEMPORARY = "pods-"


class DirectoryTakenError(Exception):
    """Another kubelet uses the directory."""


class PodDirectories:
    """The directory of all pods of one kubelet, from `open` to `close`."""

    def __init__(self, root: Path, lock: int, *, is_temporary: bool) -> None:
        self.root = root
        self._lock = lock
        self._is_temporary = is_temporary

    @classmethod
    def open(cls, root: Path) -> PodDirectories:
        """Raises `DirectoryTakenError`."""
        root.mkdir(parents=True, exist_ok=True, mode=PRIVATE_MODE)
        # Resolved, because names of cgroups and markers of processes are derived from it.
        root = root.resolve()
        root.chmod(PRIVATE_MODE)  # pods must not reach the volumes of others
        lock = take_lock(root / LOCK)
        if lock is None:
            raise DirectoryTakenError(
                f"{root} is in use by another mooring process: stop it, or choose another directory"
            )
        return cls(root, lock, is_temporary=False)

    @classmethod
    def temporary(cls) -> PodDirectories:
        root = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=_temporary_parent())).resolve()
        lock = take_lock(root / LOCK)
        assert lock is not None, f"{root} was created just now and is locked"
        return cls(root, lock, is_temporary=True)

    def close(self) -> None:
        if self._is_temporary:
            shutil.rmtree(self.root, ignore_errors=True)
        os.close(self._lock)

    # Paths

    def pods(self) -> list[str]:
        """UIDs of all pods with a directory."""
        return sorted(path.name for path in self.root.iterdir() if path.is_dir())

    def pod(self, uid: str) -> Path:
        return self.root / uid

    def container(self, uid: str, name: str) -> Path:
        return self.pod(uid) / "containers" / name

    def log(self, uid: str, name: str, attempt: int) -> Path:
        return self.container(uid, name) / f"{attempt}.log"

    def record(self, uid: str, name: str) -> Path:
        return self.container(uid, name) / "run.json"

    def records(self) -> Iterator[Path]:
        return self.root.glob("*/containers/*/run.json")

    def work(self, uid: str, name: str) -> Path:
        return self.container(uid, name) / "work"

    def termination_log(self, uid: str, name: str) -> Path:
        return self.container(uid, name) / "termination-log"

    def temporary_files(self, uid: str, name: str, target: str) -> Path:
        """The directory that a container has at `target`; it is created."""
        path = self.container(uid, name) / target.strip("/").replace("/", "-")
        if not path.exists():
            path.mkdir()
            path.chmod(TEMPORARY_MODE)
        return path

    # Create and remove

    def make_container(self, uid: str, name: str, attempt: int, owner: tuple[int, int] | None = None) -> None:
        """Prepare for a run. Removes logs of runs before the previous one. Files of the container get the `owner`."""
        self.work(uid, name).mkdir(parents=True, exist_ok=True)
        current = {str(attempt), str(attempt - 1)}
        for path in self.container(uid, name).glob("*.log*"):
            if path.name.partition(".")[0] not in current and path != self.termination_log(uid, name):
                path.unlink(missing_ok=True)
        self.termination_log(uid, name).unlink(missing_ok=True)  # the container may have put a link there
        self.termination_log(uid, name).write_bytes(b"")
        if owner is not None:
            for path in (self.work(uid, name), self.termination_log(uid, name)):
                os.chown(path, *owner)

    def remove_pod(self, uid: str) -> None:
        shutil.rmtree(self.pod(uid), ignore_errors=True)


def abandoned_directories() -> Sequence[PodDirectories]:
    """Temporary directories of killed kubelets, locked by this process. The caller clears and closes them."""
    found = []
    for root in sorted(_temporary_parent().glob(f"{_TEMPORARY}*")):
        lock = take_lock(root / LOCK) if (root / LOCK).exists() else None
        if lock is not None:
            found.append(PodDirectories(root.resolve(), lock, is_temporary=True))
    return found


def _temporary_parent() -> Path:
    parent = Path(tempfile.gettempdir()) / f"mooring-{os.getuid()}"
    with suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    return parent
