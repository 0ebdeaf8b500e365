"""What was asked for and has not been seen yet."""

from __future__ import annotations

from mooring.controllers.expectations import EXPECTED_S_MAX, Expectations
from mooring.kit.clock import VirtualClock


def test_creations_are_counted_down() -> None:
    expectations = Expectations(VirtualClock())
    assert expectations.are_met("a")
    expectations.expect_creations("a", 2)
    expectations.creation_seen("a")
    assert not expectations.are_met("a")
    expectations.creation_seen("a")
    assert expectations.are_met("a")


def test_a_deletion_is_seen_once_however_often_it_is_told() -> None:
    expectations = Expectations(VirtualClock())
    expectations.expect_deletions("a", ["p1", "p2"])
    expectations.deletion_seen("a", "p1")
    expectations.deletion_seen("a", "p1")
    assert not expectations.are_met("a")
    expectations.deletion_seen("a", "p2")
    assert expectations.are_met("a")


def test_what_is_never_seen_is_given_up() -> None:
    clock = VirtualClock()
    expectations = Expectations(clock)
    expectations.expect("a", 1, ["p1"])
    clock.advance_to(EXPECTED_S_MAX)
    assert not expectations.are_met("a")
    clock.advance_to(EXPECTED_S_MAX + 1)
    assert expectations.are_met("a")


def test_what_is_forgotten_is_not_expected() -> None:
    expectations = Expectations(VirtualClock())
    expectations.expect_creations("a", 1)
    expectations.forget("a")
    expectations.creation_seen("a")
    expectations.deletion_seen("a", "p")
    assert expectations.are_met("a")
