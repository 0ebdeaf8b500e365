"""How long the threads of processes were ready to run while the operating system ran others, as the kernel counts it.

A duration by the wall clock depends on the other processes of the machine. Minus this delay it does not: what is left
is work, locks (the interpreter's among them), disks and sockets. Without other load the delay is close to 0.

Linux has it in `/proc/PID/task/TID/schedstat`: CPU time and run queue delay in nanoseconds. The kernel adds a delay
when the thread runs again. A kernel without this accounting has no such file, or only zeros in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


class RunQueueDelay:
    """The delay of all threads of some processes since they began. Threads that have ended count on."""

    def __init__(self, *pids: int, proc: Path = PROC) -> None:
        self._tasks = [proc / str(pid) / "task" for pid in pids]
        self._of_thread: dict[str, int] = {}
        self.is_available = any(cpu for _, cpu, _ in self._read())

    def total_s(self) -> float:
        for thread, _, delay in self._read():
            self._of_thread[thread] = delay
        return sum(self._of_thread.values()) / 1e9

    def _read(self) -> Iterator[tuple[str, int, int]]:
        for tasks in self._tasks:
            for thread in tasks.iterdir() if tasks.is_dir() else ():
                try:
                    cpu, delay, _ = (thread / "schedstat").read_text(encoding="ascii").split()
                except OSError:  # the thread has ended, or the kernel has no such file
                    continue
                yield thread.name, int(cpu), int(delay)
