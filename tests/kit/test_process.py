"""Settings of the garbage collector, and the sampling profiler."""

import gc
import sys
import threading
import time
from contextlib import suppress

from mooring.kit.memory import end_loading, loading, settle_memory
from mooring.kit.sampling import ThreadSampler, main_thread_sampler, stack_of


def test_what_lives_when_memory_is_settled_is_not_walked_again() -> None:
    threshold = gc.get_threshold()
    pods = [{"pod": [number]} for number in range(1000)]
    try:
        settle_memory()
        walked = {id(each) for each in gc.get_objects()}
        assert gc.get_freeze_count() >= len(pods)
        assert not any(id(pod) in walked for pod in pods)
        later = {"made": ["later"]}
        assert id(later) in {id(each) for each in gc.get_objects()}
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


def test_nothing_is_collected_while_a_program_is_read_in_and_seldom_afterwards() -> None:
    threshold = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        with loading():
            was_collecting = gc.isenabled()
            end_loading()
            assert [was_collecting, gc.isenabled()] == [False, True]
            assert gc.get_threshold()[0] > 700
            assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)


def test_a_program_that_cannot_be_read_in_leaves_the_collector_as_it_was() -> None:
    with suppress(ValueError), loading():
        raise ValueError("a bad flag")
    assert gc.isenabled()


# --- The sampler counts CPU time by stack ----------------------------------------------------------------------------


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
