"""Processes of the shim: fork, prctl, /proc.

 1. A child either becomes the command or exits; it never returns.
 2. The kernel kills a child when the shim ends (PR_SET_PDEATHSIG).

Imports the standard library only, like `program`.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from typing import Any

from mooring.kubelet.processes.shim.sandbox import EXIT_CODE, enter

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

START_TICKS = 19
"""The index of the start time in `stat_fields`."""

Message = dict[str, Any]


def spawn(
    command: list[str], config: Message, outputs: tuple[int, int], errors: int, user_namespace: int | None
) -> int:
    """Fork, and become the command in the child. Why that failed is written to `errors`.

    Returns the process to signal and to wait for: with a PID namespace, the first process in it.
    """
    parent = os.getpid()
    pids, pids_end = os.pipe()
    go, go_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for end in (pids, go_end):
                os.close(end)
            _prepare(config, outputs, parent)
            sandbox = {**config["sandbox"], "pids": pids_end, "go": go}
            enter(command, config["environment"], sandbox, user_namespace)
        except BaseException as error:  # a child must never return
            os.write(errors, f"{error}\n".encode("utf-8", "surrogateescape"))
            os._exit(EXIT_CODE)
    for end in (pids_end, go):
        os.close(end)
    try:
        return _adopted(pid, pids, go_end) if config["sandbox"]["has_pid_namespace"] else pid
    finally:
        for end in (pids, go_end):
            os.close(end)


def _adopted(pid: int, pids: int, go: int) -> int:
    """The process that continues for `pid`, once this process is its parent."""
    child = os.read(pids, 32)
    if not child:
        return pid  # it has failed, and reported why
    os.waitpid(pid, 0)
    os.write(go, b"g")
    os.read(pids, 1)
    return int(child)


def _prepare(config: Message, outputs: tuple[int, int], parent: int) -> None:
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(EXIT_CODE)
    for directory in config["cgroups"]:
        with open(f"{directory}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(outputs[0], 1)
    os.dup2(outputs[1], 2)


def adopt_orphans() -> None:
    """Make this process the subreaper of its descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def descendants_of(ancestor: int) -> list[int]:
    """All descendants that are not zombies."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        fields = stat_fields(int(name))
        if fields and fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(name))
    found, waiting = [], [ancestor]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            found.append(pid)
            waiting.append(pid)
    return found


def start_ticks(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[START_TICKS]) if fields else 0


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on: the name before it may contain anything."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def has_oom_kill(path: str) -> bool:
    try:
        with open(path, encoding="ascii") as file:
            fields = [line.split() for line in file]
    except OSError:
        return False
    return any(line[0] == "oom_kill" and line[1] != "0" for line in fields if len(line) == 2)
