"""How tests wait on real time.

A test waits for a condition and never for a duration, and it never asserts how long something took: the machine may be
busy. `LIMIT_S` only ends a test that hangs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from mooring.kit.clock import SystemClock

LIMIT_S: Final = 180.0
"""Reached only by a test that hangs."""
LOOK_EACH_S: Final = 0.02

Found = TypeVar("Found")


async def until(condition: Callable[[], object], *, each_s: float = LOOK_EACH_S) -> None:
    """Wait on the running loop until the condition holds."""
    clock = SystemClock()
    ends_s = clock.now_s() + LIMIT_S
    while not condition():
        assert clock.now_s() < ends_s, f"still not so after {LIMIT_S:g} s"
        await clock.wait(each_s)


def wait_until(look: Callable[[], Found], *, each_s: float = LOOK_EACH_S, why: Callable[[], object] = str) -> Found:
    """Block until `look` finds something, and return that. `why` explains a failure."""
    clock = SystemClock()
    ends_s = clock.now_s() + LIMIT_S
    while not (found := look()):
        assert clock.now_s() < ends_s, f"still not so after {LIMIT_S:g} s: {why()}"
        threading.Event().wait(each_s)
    return found
