"""Settling memory."""

import gc

from mooring.kit.memory import settle_memory


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
