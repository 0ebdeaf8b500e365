"""What is believed of objects before the API server has heard of it."""

from __future__ import annotations

import pytest

from mooring.api.storage import bound_to
from mooring.api.views.storage import PersistentVolume
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.plugins.volume_assumptions import AssumedObjects
from tests.storage_builders import volume, waiting

FREE = volume("v", version="1")
TAKEN = bound_to(FREE, waiting("c"))


class Beliefs:
    """A store with assumptions, and everything that a listener was told."""

    def __init__(self, *volumes: PersistentVolume) -> None:
        self.store: ObjectStore[PersistentVolume] = ObjectStore()
        for each in volumes:
            self.store.put(each)
        self.assumed = AssumedObjects(self.store)
        self.told: list[tuple[str, PersistentVolume | None]] = []
        self.assumed.listen(lambda name, believed: self.told.append((name, believed)))


def test_without_assumptions_the_store_is_believed() -> None:
    beliefs = Beliefs(FREE)
    assert beliefs.assumed.get("v") is FREE
    assert beliefs.assumed.get("w") is None
    assert beliefs.told == [("v", FREE)]


def test_an_assumption_is_believed_until_it_is_taken_back() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    assert beliefs.assumed.get("v") is TAKEN
    beliefs.assumed.restore(TAKEN)
    assert beliefs.assumed.get("v") is FREE
    assert beliefs.told == [("v", FREE), ("v", TAKEN), ("v", FREE)]


def test_who_listens_late_hears_what_is_assumed() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    told: list[PersistentVolume | None] = []
    beliefs.assumed.listen(lambda _, believed: told.append(believed))
    assert told == [TAKEN]


def test_a_newer_version_beats_an_assumption() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    newer = volume("v", version="2")
    beliefs.store.put(newer)
    assert beliefs.assumed.get("v") is newer
    assert beliefs.told[-1] == ("v", newer)


def test_the_same_version_again_does_not() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    beliefs.store.put(volume("v", version="1"))
    assert beliefs.assumed.get("v") is TAKEN


def test_an_object_that_is_gone_is_not_believed_in() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    beliefs.store.remove("v")
    assert beliefs.assumed.get("v") is None
    assert beliefs.told[-1] == ("v", None)


def test_only_the_assumption_that_is_believed_can_be_taken_back() -> None:
    beliefs = Beliefs(FREE)
    beliefs.assumed.assume(TAKEN)
    beliefs.assumed.restore(bound_to(FREE, waiting("another")))
    assert beliefs.assumed.get("v") is TAKEN
    beliefs.store.put(volume("v", version="2"))
    beliefs.assumed.restore(TAKEN)
    assert beliefs.told[-1][1] == volume("v", version="2")


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        pytest.param([], "does not exist", id="an object that nobody knows"),
        pytest.param([volume("v", version="2")], "out of sync", id="an outdated version"),
    ],
)
def test_what_cannot_be_assumed_is_a_bug(stored: list[PersistentVolume], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        Beliefs(*stored).assumed.assume(TAKEN)
