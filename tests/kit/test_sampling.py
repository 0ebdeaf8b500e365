"""The sampler counts CPU time by stack."""

from __future__ import annotations

import sys
import threading
import time

from mooring.kit.sampling import ThreadSampler, main_thread_sampler, stack_of


def test_work_is_seen_and_waiting_is_not() -> None:
    sampler = main_thread_sampler(0.001)
    began_ns = time.thread_time_ns()
    sampler.start()
    while seen_ns(sampler, "burn") < 50e6:
        burn(0.02)
    threading.Event().wait(0.1)
    sampler.stop()
    # Only CPU time is counted, and the thread has used no more than this.
    assert seen_ns(sampler) <= time.thread_time_ns() - began_ns


def test_a_stack_has_the_leaf_first() -> None:
    stack = stack_of(sys._getframe())
    assert stack[0][0] == "test_a_stack_has_the_leaf_first"
    assert stack[0][1] == __file__


def seen_ns(sampler: ThreadSampler, function: str = "") -> int:
    """Nanoseconds of all stacks, or of those with a function in them."""
    stacks = list(sampler.stacks.items())  # at once: the sampler may be adding one
    return sum(spent_ns for stack, (_, spent_ns) in stacks if not function or function in [step[0] for step in stack])


def burn(cpu_s: float) -> None:
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        sum(range(1_000))
