"""The sampler sees what a thread does, and counts what it costs."""

from __future__ import annotations

import sys
import threading
import time

from mooring.kit.sampling import main_thread_sampler, stack_of


def test_work_is_seen_and_waiting_is_not() -> None:
    sampler = main_thread_sampler(0.001)
    sampler.start()
    burn(0.1)
    threading.Event().wait(0.1)
    sampler.stop()
    spent_ns = sum(counts[1] for counts in sampler.stacks.values())
    burnt_ns = sum(counts[1] for stack, counts in sampler.stacks.items() if any(step[0] == "burn" for step in stack))
    assert burnt_ns > 0.5 * spent_ns
    assert 0.05 < spent_ns / 1e9 < 0.2


def test_a_stack_has_the_leaf_first() -> None:
    stack = stack_of(sys._getframe())
    assert stack[0][0] == "test_a_stack_has_the_leaf_first"
    assert stack[0][1] == __file__


def burn(cpu_s: float) -> None:
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        sum(range(1_000))
