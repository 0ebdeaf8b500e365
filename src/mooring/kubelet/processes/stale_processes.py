"""Kills processes that containers of an earlier kubelet left behind.

Shims kill their containers when the kubelet dies. This module is for the case that the shims were killed as well.

 1. A process is killed only if it belongs to a container of this directory: it has the recorded pid and start time, or
    is in the session of such a process; or its environment has the marker `MOORING_CONTAINER` of this directory.
 2. It waits until the processes are gone, at most `GONE_S_MAX`: until two scans in a row find none. A process that is
    in exec has no environment for a moment, and one scan could miss it.
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
"""In the environment of every process of a container: the directory of the container. Children inherit it."""
GONE_S_MAX = 5.0
_SCAN_S = 0.02

logger = logging.getLogger(__name__)


class _Record(msgspec.Struct):
    """What a shim recorded about its process."""

    pid: int
    started: int
    """Start time in clock ticks since boot."""
    boot: str
    """The boot id."""


async def kill_stale_processes(directories: PodDirectories, clock: Clock) -> int:
    """Kill what still runs of the containers of these directories. Returns the number of processes."""
    killed: set[int] = set()
    end_s = clock.now_s() + GONE_S_MAX
    empty_scans = 0
    while empty_scans < 2:
        found = set(_find(directories))
        killed |= found
        for pid in sorted(found):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if found and clock.now_s() > end_s:
            logger.warning("%d processes of an earlier kubelet do not end: %s", len(found), sorted(found))
            break
        empty_scans = 0 if found else empty_scans + 1
        await clock.wait(_SCAN_S)
    for path in directories.records():
        path.unlink(missing_ok=True)
    if killed:
        logger.warning("killed %d processes of an earlier kubelet", len(killed))
    return len(killed)


def _find(directories: PodDirectories) -> Iterator[int]:
    sessions = {record.pid for record in _recorded(directories) if _is_same(record)}
    mark = f"{OWNER_VARIABLE}={directories.root}{os.sep}".encode()
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        fields = stat_fields(int(name))
        if not fields or fields[0] == "Z":
            continue
        if int(fields[3]) in sessions or _has_marker(int(name), mark):
            yield int(name)


def _recorded(directories: PodDirectories) -> Iterator[_Record]:
    for path in directories.records():
        with suppress(OSError, msgspec.DecodeError):
            yield msgspec.json.decode(path.read_bytes(), type=_Record)


def _is_same(record: _Record) -> bool:
    """Whether the recorded process still runs; it leads its session."""
    fields = stat_fields(record.pid)
    return bool(fields) and int(fields[START_TICKS]) == record.started and record.boot == boot_id()


def _has_marker(pid: int, mark: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return environment.startswith(mark) or b"\0" + mark in environment
