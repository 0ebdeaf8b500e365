"""Settings of the garbage collector."""

import gc
from contextlib import suppress

from mooring.kit.memory import end_loading, loading, settle_memory


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
