"""The entrypoint program: mounts the volumes of a container and then becomes its process.

Input: on the command line options as JSON, then the command. Output: the command in a mount namespace of its own; or
one line with an error, on a pipe.

    fork ──> this program ── unshare ── bind mounts ── chdir ── exec ──> the container's process, with the same pid

It is started by its path and imports the standard library only: every container waits for it.

 1. Nothing outside the namespace changes. A missing mount point is created in a mirror: a tmpfs over its parent
    directory, in which all entries of that directory are mounted again.
 2. Sources are opened before anything is mounted: a volume over /tmp must not hide the others.
 3. A successful exec closes the pipe without a line.
 4. A command that joins a process sees the mounts of that process and mounts nothing.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import stat
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

EXIT_CODE = 128
MIRRORED_ENTRIES_MAX = 4096
NONE, ROOT, USER_NAMESPACE = "none", "root", "user namespace"

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_MOVE, _MS_REC = 1, 32, 4096, 8192, 16384
_MS_UNBINDABLE, _MS_PRIVATE = 1 << 17, 1 << 18
_MS_INHERITED = 2 | 4 | 8 | 1024 | 2048
"""Mount flags that a user namespace must keep: nosuid, nodev, noexec, noatime, nodiratime."""
_RELATIME_SEEN, _RELATIME = 4096, 1 << 21
_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG = 1, 2
_STAGING_DIRECTORIES = ("/tmp", "/usr", "/var", "/etc")

_libc = ctypes.CDLL(None, use_errno=True)


class EntrypointError(Exception):
    """Why the command cannot run."""


def main(arguments: Sequence[str]) -> NoReturn:
    options, command = json.loads(arguments[0]), list(arguments[1:])
    try:
        os.set_inheritable(options["errors"], False)
        enter(options)
        become(command)
    except (EntrypointError, OSError) as error:
        os.write(options["errors"], f"{error}\n".encode("utf-8", "surrogateescape"))
        os._exit(EXIT_CODE)


def enter(options: dict[str, Any]) -> None:
    """Set up namespaces, mounts and working directory."""
    directory, mounts = options["directory"], options["mounts"]
    before = _opened(directory)
    death_signal = _death_signal()
    view: MountNamespace | None = None
    if options["joins"]:
        _join(options["joins"])
    elif options["ability"] != NONE and (mounts or before is None):
        _unshare(options["ability"])
        view = MountNamespace()
        view.show(mounts)
    # The kernel resets it when a process changes its credentials.
    _libc.prctl(_PR_SET_PDEATHSIG, death_signal)
    try:
        os.chdir(directory)
    except FileNotFoundError:
        if before is not None:
            os.fchdir(before)
        elif view is not None:
            os.chdir(view.mount_point(directory, is_directory=True))
        else:
            raise EntrypointError(f'chdir to cwd ("{directory}") failed: no such file or directory') from None


def become(command: list[str]) -> NoReturn:
    """Exec the command."""
    # Python ignores these two signals, and exec would pass that on.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _take_back_locale()
    name = command[0]
    path = name if "/" in name else _executable_in_path(name)
    try:
        os.execv(path, command)
    except FileNotFoundError:
        if os.path.exists(path):
            raise EntrypointError(f'exec: "{name}": its interpreter does not exist') from None
        raise EntrypointError(f'exec: "{name}": stat {name}: no such file or directory') from None
    except PermissionError:
        what = "is a directory" if os.path.isdir(path) else "permission denied"
        raise EntrypointError(f'exec: "{name}": {what}') from None
    except OSError as error:
        what = "exec format error" if error.errno == errno.ENOEXEC else str(error.strerror).lower()
        raise EntrypointError(f"exec {path}: {what}") from None


class MountNamespace:
    """The mounts of this process."""

    def __init__(self) -> None:
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        self._mirrors: set[int] = set()
        """Devices of the file systems that this process mounted."""
        self._volumes: list[str] = []

    def show(self, mounts: Sequence[tuple[str, str, bool]]) -> None:
        """Mount each source at its target, shorter targets first, because others may be inside."""
        opened = [(os.open(source, os.O_PATH), target, is_read_only) for source, target, is_read_only in mounts]
        for source, target, is_read_only in sorted(opened, key=lambda one: one[1].rstrip("/").count("/")):
            is_directory = stat.S_ISDIR(os.fstat(source).st_mode)
            point = self.mount_point(target, is_directory=is_directory)
            _mount(f"/proc/self/fd/{source}", point, None, _MS_BIND | _MS_REC)
            if is_read_only:
                _mount(None, point, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _inherited_flags(point))
            self._volumes.append(point)

    def mount_point(self, target: str, *, is_directory: bool) -> str:
        """A path where something can be mounted so that it appears at `target`."""
        point = os.path.realpath(target)
        if os.path.exists(point):
            if os.path.isdir(point) != is_directory:
                what = ("file", "directory") if is_directory else ("directory", "file")
                raise EntrypointError(f"{target} is a {what[0]} here, and a {what[1]} cannot be mounted over it")
            return point
        parent = os.path.dirname(point)
        while not os.path.exists(parent):
            parent = os.path.dirname(parent)
        if not self._is_ours(parent):
            self._mirror(parent)
        os.makedirs(point if is_directory else os.path.dirname(point), exist_ok=True)
        if not is_directory:
            os.close(os.open(point, os.O_CREAT | os.O_WRONLY, 0o644))
        return point

    def _is_ours(self, directory: str) -> bool:
        if os.stat(directory).st_dev in self._mirrors:
            return True
        return any(directory == volume or directory.startswith(f"{volume}/") for volume in self._volumes)

    def _mirror(self, directory: str) -> None:
        """Mount a tmpfs over a directory, with all its entries."""
        names = os.listdir(directory)
        if len(names) > MIRRORED_ENTRIES_MAX:
            raise EntrypointError(f"{directory} has {len(names)} entries, too many to make a mount point among them")
        entries = {name: os.open(os.path.join(directory, name), os.O_PATH | os.O_NOFOLLOW) for name in names}
        mode = stat.S_IMODE(os.stat(directory).st_mode)
        place = directory if directory != "/" else next(stage for stage in _STAGING_DIRECTORIES if os.path.isdir(stage))
        _mount("mooring", place, "tmpfs", 0, f"mode={mode:o}")
        # A mount below the mirror may contain the mirror itself.
        _mount(None, place, None, _MS_UNBINDABLE)
        self._mirrors.add(os.stat(place).st_dev)
        for name, entry in entries.items():
            _repeat(entry, os.path.join(place, name))
            os.close(entry)
        if directory == "/":
            os.chdir(place)
            _mount(place, "/", None, _MS_MOVE)
            os.chroot(".")


def _repeat(entry: int, path: str) -> None:
    """Mount an entry at another path."""
    mode = os.fstat(entry).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink("", dir_fd=entry), path)
        return
    if stat.S_ISDIR(mode):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    _mount(f"/proc/self/fd/{entry}", path, None, _MS_BIND | _MS_REC)


def _take_back_locale() -> None:
    """Python sets LC_CTYPE where it is not set. /proc/self/environ has the original environment."""
    with open("/proc/self/environ", "rb") as file:
        was_given = any(variable.startswith(b"LC_CTYPE=") for variable in file.read().split(b"\0"))
    if not was_given:
        os.environ.pop("LC_CTYPE", None)


def _unshare(ability: str) -> None:
    user, group = os.getuid(), os.getgid()
    is_root = ability == ROOT
    _check(_libc.unshare(_CLONE_NEWNS if is_root else _CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
    if not is_root:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)


def _join(process: int) -> None:
    for kind in ("user", "mnt"):
        path = f"/proc/{process}/ns/{kind}"
        if os.readlink(path) != os.readlink(f"/proc/self/ns/{kind}"):
            namespace = os.open(path, os.O_RDONLY)
            _check(_libc.setns(namespace, 0), f"setns {kind}")
            os.close(namespace)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = (os.fsencode(text) if text is not None else None for text in (source, target, kind))
    options = data.encode() if data is not None else None
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), options), f"mount {target}")


def _inherited_flags(point: str) -> int:
    seen = os.statvfs(point).f_flag
    return (seen & _MS_INHERITED) | (_RELATIME if seen & _RELATIME_SEEN else 0)


def _death_signal() -> int:
    number = ctypes.c_int(0)
    _libc.prctl(_PR_GET_PDEATHSIG, ctypes.byref(number))
    return number.value


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _opened(directory: str) -> int | None:
    try:
        return os.open(directory, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return None


def _executable_in_path(name: str) -> str:
    for directory in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise EntrypointError(f'exec: "{name}": executable file not found in $PATH')


if __name__ == "__main__":
    main(sys.argv[1:])
