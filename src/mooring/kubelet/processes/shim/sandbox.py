"""The sandbox of a process: namespaces, mounts, user, capabilities. Then it becomes the command.

Input: a `Message` with the fields of `client.Sandbox`. Output: the command in its sandbox; or one line with an error.

                    unshare                       mounts              user, capabilities, exec
    shim ── fork ──> child ── fork ──> init, pid 1 ───── fork ──> the container's process
                       └── exits: the shim adopts init

 1. Without a PID namespace there is no init: the child becomes the command.
 2. init reaps orphans and ends with the code of the container's process. It ignores signals, as the first process of a
    PID namespace does; those to the process group reach the container's process. When it ends, the kernel kills all
    processes of the namespace. The kernel kills init when the shim ends.
 3. As root, namespaces and mounts belong to the host, and the container's process joins a user namespace last: it can
    change neither. Other users create the user namespace first, because that gives them the right to the others.
 4. init keeps no descriptor: the shim must see the end of the container's output.
 5. A command that joins a container (a probe or a hook) gets the same namespaces, user and capabilities.

The mounts of a container, in its own mount namespace.

Input: sources on the host and their paths in the container. Output: the mounts. Raises `OSError` and
`MountNamespaceError`.

 1. Nothing outside the namespace changes. A missing mount point is created in a mirror: a tmpfs over its parent
    directory, in which all entries of that directory are mounted again.
 2. Sources are cloned before anything is mounted: a volume over /tmp must not hide the others. A source is a path
    without links: a process that can write there could exchange a directory for a link between check and mount.
 3. Volumes with mapped ids keep the ids of the pod on disk, whatever user namespace the pod has.

It uses open_tree, move_mount and mount_setattr, so Linux 5.12 or newer. Imports the standard library only, like
`program`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import stat
from collections.abc import Sequence
from typing import Any, NoReturn

EXIT_CODE = 128
NONE, ROOT, USER_NAMESPACE = "none", "root", "user namespace"
DESCRIPTORS_MAX = 1 << 20

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPABILITIES_MAX = 64
"""More than the kernel has: dropping an unknown one fails with EINVAL."""

Message = dict[str, Any]


def open_user_namespace(sandbox: Message) -> int | None:
    """The user namespace of a container, for root; None if it has none, or creates it itself."""
    if sandbox["level"] != ROOT or not sandbox["id_map"]:
        return None
    ready, ready_end = os.pipe()
    go, go_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go_end)
        result = libc.unshare(_CLONE_NEWUSER)
        os.write(ready_end, b"y" if result == 0 else b"n")
        os.read(go, 1)
        os._exit(0)
    try:
        os.close(ready_end)
        if os.read(ready, 1) != b"y":
            raise OSError(errno.EPERM, "unshare: user namespaces are not available")
        for name in ("uid_map", "gid_map"):
            _write(f"/proc/{pid}/{name}", sandbox["id_map"][name])
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (ready, go, go_end):
            os.close(descriptor)
        os.waitpid(pid, 0)


def enter(command: list[str], environment: dict[str, str], sandbox: Message, user_namespace: int | None) -> NoReturn:
    """Set up the sandbox in this process, which is a child of the shim, and become the command."""
    directory = sandbox["directory"]
    before = _opened(directory)
    namespace: MountNamespace | None = None
    if sandbox["joins"]:
        _join(sandbox)
    elif sandbox["level"] != NONE:
        namespace = _unshare(sandbox)
        namespace.show(sandbox["mounts"], user_namespace)
    _change_directory(directory, before, namespace)
    if namespace is not None and sandbox["is_root_read_only"]:
        namespace.make_root_read_only()
    if namespace is not None and sandbox["has_pid_namespace"]:
        child = os.fork()
        if child:
            _be_init(child)
    _take_identity(sandbox, user_namespace)
    _exec(command, environment)


def continue_in_child(pids: int, go: int) -> None:
    """Continue in a child, which is in the PID namespace. The shim adopts it, says so (`go`), and gets an answer: from
    then on the child ends with the shim."""
    child = os.fork()
    if child:
        os.write(pids, str(child).encode())
        os._exit(0)
    os.setsid()
    if os.read(go, 1) != b"g":  # the shim has ended
        os._exit(EXIT_CODE)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.write(pids, b"a")  # fails if the shim ended before the kernel knew that it matters
    for descriptor in (pids, go):
        os.close(descriptor)


def _unshare(sandbox: Message) -> MountNamespace:
    kinds = _CLONE_NEWNS
    if sandbox["has_pid_namespace"]:
        kinds |= _CLONE_NEWPID
    if sandbox["has_ipc_namespace"]:
        kinds |= _CLONE_NEWIPC
    user, group = os.getuid(), os.getgid()
    if sandbox["level"] == USER_NAMESPACE:
        kinds |= _CLONE_NEWUSER
    check(libc.unshare(kinds), "unshare")
    if sandbox["level"] == USER_NAMESPACE:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{sandbox['user']} {user} 1")
        _write("/proc/self/gid_map", f"{sandbox['group']} {group} 1")
        # The shim opens the namespaces of this process, which became undumpable when it got its capabilities.
        libc.prctl(_PR_SET_DUMPABLE, 1)
    if sandbox["has_pid_namespace"]:
        continue_in_child(sandbox["pids"], sandbox["go"])
    namespace = MountNamespace()
    if sandbox["has_pid_namespace"]:
        namespace.show_processes()
    return namespace


def _join(sandbox: Message) -> None:
    kinds = ("user", "mnt", "ipc", "pid")  # the first one gives other users than root the right to the others
    opened = {kind: os.open(f"/proc/{sandbox['joins']}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds}
    own = {kind: os.stat(f"/proc/self/ns/{kind}").st_ino for kind in kinds}
    for kind, namespace in opened.items():
        if os.fstat(namespace).st_ino != own[kind]:
            check(libc.setns(namespace, 0), f"setns {kind}")
    if sandbox["has_pid_namespace"]:
        continue_in_child(sandbox["pids"], sandbox["go"])


def _be_init(child: int) -> NoReturn:
    os.closerange(0, DESCRIPTORS_MAX)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _change_directory(directory: str, before: int | None, namespace: MountNamespace | None) -> None:
    try:
        os.chdir(directory)
    except FileNotFoundError:
        if before is not None:
            os.fchdir(before)
        elif namespace is not None:
            os.chdir(namespace.mount_point(directory, is_directory=True))
        else:
            raise MountNamespaceError(f'chdir to cwd ("{directory}") failed: no such file or directory') from None


def _take_identity(sandbox: Message, user_namespace: int | None) -> None:
    if user_namespace is not None:
        check(libc.setns(user_namespace, _CLONE_NEWUSER), "setns user")
    if sandbox["capabilities"] is not None:
        _drop_capabilities(sandbox["capabilities"])
    if sandbox["sets_user"]:
        os.setgroups(sandbox["groups"])
        os.setresgid(*[sandbox["group"]] * 3)
        os.setresuid(*[sandbox["user"]] * 3)
    if sandbox["has_no_new_privileges"]:
        check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS")


def _drop_capabilities(kept: Sequence[int]) -> None:
    """From the bounding set: exec cannot grant them again."""
    for number in range(CAPABILITIES_MAX):
        if number not in kept and libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            try:
                check(-1, f"dropping capability {number}")
            except OSError as error:
                if error.errno == errno.EINVAL:
                    return
                raise


def _exec(command: list[str], environment: dict[str, str]) -> NoReturn:
    name = command[0]
    path = name if "/" in name else _executable_in_path(name, environment.get("PATH", os.defpath))
    try:
        os.execve(path, command, environment)
    except FileNotFoundError:
        if os.path.exists(path):
            raise MountNamespaceError(f'exec: "{name}": its interpreter does not exist') from None
        raise MountNamespaceError(f'exec: "{name}": stat {name}: no such file or directory') from None
    except PermissionError:
        what = "is a directory" if os.path.isdir(path) else "permission denied"
        raise MountNamespaceError(f'exec: "{name}": {what}') from None
    except OSError as error:
        what = "exec format error" if error.errno == errno.ENOEXEC else str(error.strerror).lower()
        raise MountNamespaceError(f"exec {path}: {what}") from None


def _executable_in_path(name: str, path: str) -> str:
    for directory in path.split(":"):
        file = os.path.join(directory or ".", name)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    raise MountNamespaceError(f'exec: "{name}": executable file not found in $PATH')


def _opened(directory: str) -> int | None:
    try:
        return os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


# --- mounts ---------------------------------------------------------------------------------------------------


MIRRORED_ENTRIES_MAX = 4096

_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
"""System calls without a wrapper in older C libraries. Their numbers are the same on all architectures."""
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4
_RESOLVE_NO_SYMLINKS = 4
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_IDMAP = 1, 0x00100000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_MOVE, _MS_REC = 2, 4, 8, 4096, 8192, 16384
_MS_UNBINDABLE, _MS_PRIVATE = 1 << 17, 1 << 18
_STAGING_DIRECTORIES = ("/tmp", "/usr", "/var", "/etc")
_ALWAYS_WRITABLE = ("/proc", "/dev")
"""Not part of the root file system of a container."""
_NOT_SEEN = (errno.EINVAL, errno.EACCES, errno.ENOENT)
"""Another mount hides a mount, or it is below a directory that is closed to this user."""

libc = ctypes.CDLL(None, use_errno=True)


class MountNamespaceError(Exception):
    """Why the command cannot run."""


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


class _OpenHow(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


class MountNamespace:
    """The mounts of this process, in a namespace of its own."""

    def __init__(self) -> None:
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
        self._mirrors: set[int] = set()
        """Devices of the file systems that this process mounted."""
        self._volumes: list[str] = []

    def show_processes(self) -> None:
        """/proc of this process's own PID namespace."""
        _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)

    def show(self, mounts: Sequence[tuple[str, str, bool, bool]], user_namespace: int | None) -> None:
        """Mount each source at its target, shorter targets first, because others may be inside. A mount is a source, a
        target, whether it is read-only, and whether its ids are mapped to those of `user_namespace`."""
        cloned = []
        for source, target, is_read_only, has_mapped_ids in mounts:
            maps = user_namespace if has_mapped_ids else None
            cloned.append((*_cloned(source, is_read_only, maps), target))
        for tree, is_directory, target in sorted(cloned, key=lambda one: one[2].rstrip("/").count("/")):
            point = self.mount_point(target, is_directory=is_directory)
            flags = ctypes.c_long(_MOVE_MOUNT_F_EMPTY_PATH)
            path = os.fsencode(point)
            check(libc.syscall(_MOVE_MOUNT, ctypes.c_long(tree), b"", ctypes.c_long(_AT_FDCWD), path, flags), target)
            os.close(tree)
            self._volumes.append(point)

    def make_root_read_only(self) -> None:
        """Everything but volumes, /proc and /dev."""
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.split(" ") for line in file]
        points = {field[0]: field[4] for field in fields}
        # A mount that another one covers is its parent, at the same point.
        covered = {field[1] for field in fields if points.get(field[1]) == field[4]}
        seen = [(_unescaped(field[4]), field[5].split(",")) for field in fields if field[0] not in covered]
        kept = (*self._volumes, *_ALWAYS_WRITABLE)
        writable = [point for point, options in seen if "rw" in options and any(_is_below(point, one) for one in kept)]
        _set_attributes(_AT_FDCWD, b"/", _AT_RECURSIVE, _MOUNT_ATTR_RDONLY)
        for point in writable:
            try:
                _set_attributes(_AT_FDCWD, os.fsencode(point), 0, 0, cleared=_MOUNT_ATTR_RDONLY)
            except OSError as error:
                if error.errno not in _NOT_SEEN:
                    raise

    def mount_point(self, target: str, *, is_directory: bool) -> str:
        """A path where something can be mounted so that it appears at `target`."""
        point = os.path.realpath(target)
        if os.path.exists(point):
            if os.path.isdir(point) != is_directory:
                what = ("file", "directory") if is_directory else ("directory", "file")
                raise MountNamespaceError(f"{target} is a {what[0]} here, and a {what[1]} cannot be mounted over it")
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
        return any(_is_below(directory, volume) for volume in self._volumes)

    def _mirror(self, directory: str) -> None:
        """Mount a tmpfs over a directory, with all its entries."""
        names = os.listdir(directory)
        if len(names) > MIRRORED_ENTRIES_MAX:
            raise MountNamespaceError(
                f"{directory} has {len(names)} entries, too many to make a mount point among them"
            )
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


def _cloned(source: str, is_read_only: bool, user_namespace: int | None) -> tuple[int, bool]:
    """A detached mount of a source, and whether that is a directory."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    path = os.fsencode(source)
    opened = check(libc.syscall(_OPENAT2, ctypes.c_long(_AT_FDCWD), path, ctypes.byref(how), size), f"open {source}")
    is_directory = stat.S_ISDIR(os.fstat(opened).st_mode)
    # What is mounted inside a volume of the pod has its own ids.
    deep = _AT_RECURSIVE if user_namespace is None else 0
    flags = ctypes.c_long(_OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | deep)
    tree = check(libc.syscall(_OPEN_TREE, ctypes.c_long(opened), b"", flags), f"open_tree {source}")
    os.close(opened)
    if is_read_only:
        _set_attributes(tree, b"", _AT_EMPTY_PATH | deep, _MOUNT_ATTR_RDONLY)
    if user_namespace is not None:
        _set_attributes(tree, b"", _AT_EMPTY_PATH, _MOUNT_ATTR_IDMAP, user_namespace)
    return tree, is_directory


def _set_attributes(
    directory: int, path: bytes, flags: int, attributes: int, user_namespace: int = 0, cleared: int = 0
) -> None:
    changes = _Attributes(attributes, cleared, 0, user_namespace)
    result = libc.syscall(
        _MOUNT_SETATTR,
        ctypes.c_long(directory),
        path,
        ctypes.c_long(flags),
        ctypes.byref(changes),
        ctypes.c_size_t(ctypes.sizeof(changes)),
    )
    check(result, f"mount_setattr {os.fsdecode(path)}".rstrip())


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


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = (os.fsencode(text) if text is not None else None for text in (source, target, kind))
    options = data.encode() if data is not None else None
    check(libc.mount(*texts, ctypes.c_ulong(flags), options), f"mount {target}")


def _unescaped(point: str) -> str:
    """The kernel writes spaces and other characters as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")
