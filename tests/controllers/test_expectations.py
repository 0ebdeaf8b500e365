"""What was asked for and has not been seen yet."""

from __future__ import annotations

from mooring.controllers.expectations import EXPECTED_S_MAX, Expectations
from mooring.kit.clock import VirtualClock


def has_seen_nothing(revision: str) -> bool:
    return False


def test_creations_are_counted_down() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    assert expectations.are_met("a")
    expectations.expect_creations("a", 2)
    expectations.creation_seen("a")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_a_deletion_is_seen_once_however_often_it_is_told() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    expectations.expect_deletions("a", ["p1", "p2"])
    expectations.deletion_seen("a", "p1")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.deletion_seen("a", "p2")
    assert expectations.are_met("a")


def test_what_is_never_seen_is_given_up() -> None:
    clock = VirtualClock()
    expectations = Expectations(clock, has_seen_nothing)
    expectations.expect("a", 1, ["p1"])
    clock.advance_to(EXPECTED_S_MAX)
    assert not expectations.are_met("a")
    clock.advance_to(EXPECTED_S_MAX + 1)
    assert expectations.are_met("a")


def test_what_is_forgotten_is_not_expected() -> None:
    expectations = Expectations(VirtualClock(), has_seen_nothing)
    expectations.expect_creations("a", 1)
    expectations.forget("a")
    expectations.creation_seen("a")
    expectations.deletion_seen("a", "p")
    assert expectations.are_met("a")


def test_what_came_and_went_unseen_is_met_by_an_informer_that_is_newer() -> None:
    seen = ["1"]
    expectations = Expectations(VirtualClock(), lambda revision: int(revision) <= int(seen[-1]))
    expectations.expect_creations("a", 3)
    expectations.creation_answered("a", "10")
    expectations.creation_failed("a")
    seen.append("20")
    assert not expectations.are_met("a"), "one request is on its way still"
    expectations.creation_answered("a", "9")
    assert expectations.are_met("a")


def test_an_informer_that_is_older_has_seen_nothing_yet() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: int(revision) <= 9)
    expectations.expect("a", 1, ["p1"])
    expectations.creation_answered("a", "10")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_deletions_are_told_whatever_happens() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: True)
    expectations.expect("a", 1, ["p1"])
    expectations.creation_answered("a", "10")
    assert not expectations.are_met("a"), "the copy had the pod, so it hears of its end"


def test_versions_that_are_no_numbers_prove_nothing() -> None:
    expectations = Expectations(VirtualClock(), lambda revision: True)
    expectations.expect_creations("a", 1)
    expectations.creation_answered("a", "abc")
    assert not expectations.are_met("a")
