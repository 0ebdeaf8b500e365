"""Looking over a thread's shoulder: what it was doing, and how much CPU it took for it.

Comes in   a thread, how often to look, for how long
Goes out   stacks with the nanoseconds of CPU that went into them

A thread of our own looks at the other one's stack and at its CPU clock. What the clock moved by since the last look
goes to the stack that is seen: a thread that waits for the network has not moved, and is not counted, however often one
looks. So a sample is worth what it cost, and not one tick.

 1. Looking costs the other thread about 20 µs each time, for holding the interpreter.
 2. At most `STACKS_MAX` different stacks are kept; what comes then is counted as `LEFT_OUT`.
"""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType

STACKS_MAX = 20_000
DEPTH_MAX = 256

RawFrame = tuple[str, str, int, int]
"""The function, its file, its first line, and the line that is being run."""
RawStack = tuple[RawFrame, ...]
"""The leaf first."""

LEFT_OUT: RawStack = (("(too many different stacks)", "", 0, 0),)


class ThreadSampler:
    """Watches one thread. `start`, and after a while `stop`."""

    def __init__(self, thread_ident: int, each_s: float = 0.01) -> None:
        self._ident = thread_ident
        self._each_s = each_s
        self._clock = time.pthread_getcpuclockid(thread_ident)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sampler", daemon=True)
        self.stacks: dict[RawStack, list[int]] = {}
        """For each stack how often it was seen, and the nanoseconds."""

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
            del frame  # or the other thread's locals would live on in ours
            last_ns = now_ns

    def _count(self, stack: RawStack, spent_ns: int) -> None:
        if stack not in self.stacks and len(self.stacks) >= STACKS_MAX:
            stack = LEFT_OUT
        seen = self.stacks.setdefault(stack, [0, 0])
        seen[0] += 1
        seen[1] += spent_ns


def main_thread_sampler(each_s: float = 0.01) -> ThreadSampler:
    """For the thread that calls this."""
    return ThreadSampler(threading.get_ident(), each_s)


def stack_of(frame: FrameType | None) -> RawStack:
    steps: list[RawFrame] = []
    while frame is not None and len(steps) < DEPTH_MAX:
        code = frame.f_code
        steps.append((code.co_qualname, code.co_filename, code.co_firstlineno, frame.f_lineno))
        frame = frame.f_back
    return tuple(steps)
