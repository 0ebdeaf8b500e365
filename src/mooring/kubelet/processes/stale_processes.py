"""Leftovers: processes of an earlier life, found and killed.

Comes in   the directory of the pods; what the shims of an earlier mooring wrote down there
Goes out   nobody left of them

A mooring that is killed takes its containers with it: their shims see it and kill them. This is for when the shims were
killed too.

 1. A process is killed only if it is known to be ours: it has the recorded number and was started at the recorded time
    (numbers are given again), or is of its session; or its environment says that it is of this directory.
 2. Waits until they are gone, for `GONE_S_MAX` at most: until two looks in a row find none. A process that is just
    calling exec has no environment for a moment, and one look could miss it.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from mooring.kit.clock import Clock
from mooring.kubelet.processes.directories import PodDirectories
from mooring.kubelet.processes.shim.linux import START_TICKS, boot_id, stat_fields

OWNER_VARIABLE = "MOORING_CONTAINER"
"""In the environment of every process of a container: the directory that it belongs to. What it starts inherits it."""
GONE_S_MAX = 5.0
_LOOK_S = 0.02

logger = logging.getLogger(__name__)


class _Record(msgspec.Struct):
    """What a shim wrote down of the process that it started."""

    pid: int
    started: int
    """In ticks since the machine was started, as the kernel counts them."""
    boot: str
    """Which start of the machine that was."""


async def clear_leftovers(directories: PodDirectories, clock: Clock) -> int:
    """Kill whatever still runs of the containers of these directories. Says how many processes there were."""
    killed: set[int] = set()
    end_s = clock.now_s() + GONE_S_MAX
    empty_looks = 0
    while empty_looks < 2:
        found = set(_found(directories))
        killed |= found
        for pid in sorted(found):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if found and clock.now_s() > end_s:
            logger.warning("%d processes of an earlier mooring do not end: %s", len(found), sorted(found))
            break
        empty_looks = 0 if found else empty_looks + 1
        await clock.wait(_LOOK_S)
    for path in directories.records():
        path.unlink(missing_ok=True)
    if killed:
        logger.warning("%d processes of an earlier mooring were still running, and were killed", len(killed))
    return len(killed)


def _found(directories: PodDirectories) -> Iterator[int]:
    sessions = {record.pid for record in _recorded(directories) if _is_same(record)}
    mark = f"{OWNER_VARIABLE}={directories.root}{os.sep}".encode()
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        fields = stat_fields(int(name))
        if not fields or fields[0] == "Z":
            continue
        if int(fields[3]) in sessions or _is_marked(int(name), mark):
            yield int(name)


def _recorded(directories: PodDirectories) -> Iterator[_Record]:
    for path in directories.records():
        with suppress(OSError, msgspec.DecodeError):
            yield msgspec.json.decode(path.read_bytes(), type=_Record)


def _is_same(record: _Record) -> bool:
    """Whether it still is the same process, which is the leader of its session."""
    fields = stat_fields(record.pid)
    return bool(fields) and int(fields[START_TICKS]) == record.started and record.boot == boot_id()


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return environment.startswith(mark) or b"\0" + mark in environment
