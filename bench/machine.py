"""The machine: what it is that was measured on, and how much memory this process takes.

Comes in   /proc, where there is one, and the versions of what runs
Goes out   `Machine`, resident and peak memory

 1. What cannot be found out is called unknown (a text) or is 0 (a number); nothing here fails.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from bench.results import Machine

_UNKNOWN = "unknown"


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


def resident_bytes() -> int:
    """What this process holds in memory now."""
    kib = _first_match(Path("/proc/self/status"), r"VmRSS:\s*(\d+) kB")
    return int(kib) * 1024 if kib is not None else peak_bytes()


def resident_bytes_of(pid: int) -> int:
    """What another process holds in memory now."""
    fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def family_of(pid: int) -> list[int]:
    """A process and those that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(each for child in children for each in family_of(int(child)))]


def cpu_s_of(pid: int) -> float:
    """What another process took of the processor so far."""
    # Its name stands in parentheses, and may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes() -> int:
    """The most that this process ever held in memory."""
    kib = _first_match(Path("/proc/self/status"), r"VmHWM:\s*(\d+) kB")
    if kib is not None:
        return int(kib) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """From now on `peak_bytes` is about what comes, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


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
