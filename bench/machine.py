"""The machine: its description, the memory and CPU time of processes, and free ports.

1. `describe_machine` reads /proc where there is one. An unknown text is "unknown", an unknown number is 0.
2. CPU time comes from the process's CPU clock (nanoseconds). /proc/PID/stat counts in ticks of 10 ms, so a short
   measurement may read 0 there.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import resource
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from itertools import count
from pathlib import Path

from bench.results import Machine

_UNKNOWN = "unknown"
_PORT_MIN = 10_000
_PORTS_APART = 977
_ports = count()


def describe_machine() -> Machine:
    return Machine(
        cpu=_first_match(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.processor() or _UNKNOWN,
        cores=os.cpu_count() or 0,
        memory_bytes=int(_first_match(Path("/proc/meminfo"), r"MemTotal:\s*(\d+) kB") or 0) * 1024,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        numpy=version("numpy"),
        msgspec=version("msgspec"),
        garbage_collection=_garbage_collection(),
    )


def resident_bytes(pid: int | str = "self") -> int:
    """What a process holds in memory now; without /proc the most that this process ever held."""
    return _status_bytes(pid, "VmRSS")


def peak_bytes(pid: int | str = "self") -> int:
    """The most that a process ever held in memory."""
    return _status_bytes(pid, "VmHWM")


def family_of(pid: int) -> list[int]:
    """A process and those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(descendant for child in children for descendant in family_of(int(child)))]


def cpu_s_of(pid: int) -> float:
    """CPU time that a process has used so far, over all of its threads."""
    # clock_getcpuclockid(3), which Python does not offer: the complement of the process ID, and 2 for the scheduler's
    # own count.
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def forget_peak() -> None:
    """From now on `peak_bytes` is about what comes, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def free_port() -> int:
    """A port of 127.0.0.1 that is free and stays free until the caller listens on it.

    It lies below the range from which the kernel takes ports for outgoing connections: a port of that range may be
    taken again at once, by any connection of any process. Processes count from different ports.
    """
    first_of_kernel = int(_first_match(Path("/proc/sys/net/ipv4/ip_local_port_range"), r"(\d+)") or 0)
    candidates = range(_PORT_MIN, first_of_kernel) or range(1)
    for _ in candidates:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", candidates[(os.getpid() * _PORTS_APART + next(_ports)) % len(candidates)]))
            return int(probe.getsockname()[1])
    raise OSError("every port is taken")


def commit() -> tuple[str, bool]:
    """The commit that is checked out, shortened, and whether there is more than that in the tree."""
    name = _git("rev-parse", "--short", "HEAD")
    return name or _UNKNOWN, bool(_git("status", "--porcelain"))


def _garbage_collection() -> str:
    if not gc.isenabled():
        return "off"
    thresholds = ", ".join(map(str, gc.get_threshold()))
    return f"Python's own, thresholds {thresholds}; what was loaded is settled first (kit.memory), as in a scheduler"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _first_match(path: Path, pattern: str) -> str | None:
    try:
        found = re.search(pattern, path.read_text())
    except OSError:
        return None
    return found[1].strip() if found is not None else None


def _status_bytes(pid: int | str, field: str) -> int:
    kib = _first_match(Path(f"/proc/{pid}/status"), rf"{field}:\s*(\d+) kB")
    if kib is not None:
        return int(kib) * 1024
    assert pid == "self", f"process {pid} has ended"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
