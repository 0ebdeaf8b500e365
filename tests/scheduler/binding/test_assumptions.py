from __future__ import annotations

import pytest

from mooring.scheduler.binding.assumptions import Assumptions
from mooring.scheduler.cache.columns import Columns
from tests.builders import pod

RECORD = Columns().record(pod("p"))
OTHER = Columns().record(pod("other"))


def test_an_assumption_is_overdue_when_its_confirmation_does_not_come_in_time() -> None:
    assumptions = Assumptions(overdue_s=30.0)
    first, second = assumptions.add(RECORD, "n1"), assumptions.add(OTHER, "n2")
    assert assumptions.overdue(1e9) == []  # nobody has accepted the bindings yet
    assumptions.bound(first, now_s=10.0)
    assumptions.bound(second, now_s=11.0)
    assert assumptions.next_due_s == 40.0
    assert assumptions.overdue(39.9) == []
    assert assumptions.overdue(40.0) == [first]
    assert assumptions.overdue(40.5) == []  # told once
    assert RECORD.uid in assumptions  # and still believed
    assumptions.remove(OTHER.uid)
    assert assumptions.overdue(1e9) == []


def test_without_a_time_nothing_is_ever_overdue() -> None:
    assumptions = Assumptions(overdue_s=None)
    assumptions.bound(assumptions.add(RECORD, "n1"), now_s=0.0)
    assert assumptions.overdue(1e9) == []
    assert assumptions.next_due_s is None


def test_an_answer_that_comes_after_the_watch_changes_nothing() -> None:
    assumptions = Assumptions(overdue_s=30.0)
    assumption = assumptions.add(RECORD, "n1")
    assumptions.remove(RECORD.uid)  # the watch was faster
    assumptions.bound(assumption, now_s=0.0)
    assert len(assumptions) == 0
    assert assumptions.overdue(1e9) == []


def test_a_pod_is_assumed_once() -> None:
    assumptions = Assumptions(overdue_s=None)
    assumptions.add(RECORD, "n1")
    with pytest.raises(AssertionError, match="assumed already"):
        assumptions.add(RECORD, "n2")


def test_a_binding_that_is_accepted_after_its_pod_was_deleted_leaves_nothing_behind() -> None:
    assumptions = Assumptions(overdue_s=30.0)
    assumption = assumptions.add(RECORD, "n1")
    assumptions.release(RECORD.uid)
    assumptions.bound(assumption, now_s=0.0)
    assert len(assumptions) == 0
    assert assumptions.next_due_s is None
