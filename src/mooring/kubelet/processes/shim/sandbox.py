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

Imports the standard library only, like `program`.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Sequence
from typing import Any, NoReturn

from mooring.kubelet.processes.shim.mount_namespace import MountNamespace, MountNamespaceError, check, libc

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
    _become(command, environment)


def leave_to_child(pids: int, go: int) -> None:
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
        leave_to_child(sandbox["pids"], sandbox["go"])
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
        leave_to_child(sandbox["pids"], sandbox["go"])


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


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
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
