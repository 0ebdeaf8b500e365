"""A sampling profiler: the stacks of a thread, weighted by CPU time.

A sampler thread reads the stack and the CPU clock of the other thread. The CPU time since the last sample is added to
the current stack, so a thread that waits is not counted.

 1. A sample costs the other thread about 20 µs, for holding the interpreter lock.
 2. At most `STACKS_MAX` different stacks are kept; further ones are counted as `LEFT_OUT`.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

STACKS_MAX = 20_000
DEPTH_MAX = 256

RawFrame = tuple[str, str, int, int]
"""Function, file, first line, current line."""
RawStack = tuple[RawFrame, ...]
"""Leaf first."""

LEFT_OUT: RawStack = (("(too many different stacks)", "", 0, 0),)


class ThreadSampler:
    """Samples one thread between `start` and `stop`."""

    def __init__(self, thread_ident: int, each_s: float = 0.01) -> None:
        self._ident = thread_ident
        self._each_s = each_s
        self._clock = time.pthread_getcpuclockid(thread_ident)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sampler", daemon=True)
        self.stacks: dict[RawStack, list[int]] = {}
        """Samples and nanoseconds by stack."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        last_ns = time.clock_gettime_ns(self._clock)
        while not self._over.wait(self._each_s):
            now_ns = time.clock_gettime_ns(self._clock)
            frame = sys._current_frames().get(self._ident)
            if frame is not None and now_ns > last_ns:
                self._count(stack_of(frame), now_ns - last_ns)
            del frame  # a reference would keep the locals of the other thread alive
            last_ns = now_ns

    def _count(self, stack: RawStack, spent_ns: int) -> None:
        if stack not in self.stacks and len(self.stacks) >= STACKS_MAX:
            stack = LEFT_OUT
        seen = self.stacks.setdefault(stack, [0, 0])
        seen[0] += 1
        seen[1] += spent_ns


def main_thread_sampler(each_s: float = 0.01) -> ThreadSampler:
    """Samples the calling thread."""
    return ThreadSampler(threading.get_ident(), each_s)


def stack_of(frame: FrameType | None) -> RawStack:
    steps: list[RawFrame] = []
    while frame is not None and len(steps) < DEPTH_MAX:
        code = frame.f_code
        steps.append((code.co_qualname, code.co_filename, code.co_firstlineno, frame.f_lineno))
        frame = frame.f_back
    return tuple(steps)
