"""The standstill: nothing is lost, nothing overtakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.scheduler.standstill import Standstill


def test_actions_run_at_once_unless_somebody_minds() -> None:
    done: list[str] = []
    standstill = Standstill()
    standstill.run(lambda: done.append("a"))
    with standstill.held():
        standstill.run(lambda: done.append("b"))
        standstill.run(lambda: done.append("c"))
        assert (done, standstill.waiting, standstill.is_held) == (["a"], 2, True)
    assert (done, standstill.waiting, standstill.is_held) == (["a", "b", "c"], 0, False)


def test_an_action_that_brings_another_one_does_not_overtake() -> None:
    done: list[str] = []
    standstill = Standstill()

    def bringing(name: str, another: str) -> Callable[[], None]:
        def action() -> None:
            standstill.run(lambda: done.append(another))
            done.append(name)

        return action

    with standstill.held():
        standstill.run(bringing("a", "d"))
        standstill.run(lambda: done.append("b"))
        standstill.run(lambda: done.append("c"))
    assert done == ["a", "b", "c", "d"]


def test_an_action_that_fails_does_not_stop_the_others() -> None:
    done: list[str] = []
    standstill = Standstill()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), standstill.held():
        standstill.run(fail)
        standstill.run(lambda: done.append("b"))
    assert done == ["b"]
    assert not standstill.is_held


def test_what_waits_runs_even_if_the_decision_fails() -> None:
    done: list[str] = []
    standstill = Standstill()
    with pytest.raises(LookupError), standstill.held():
        standstill.run(lambda: done.append("a"))
        raise LookupError("the decision")
    assert done == ["a"]


def test_one_decision_at_a_time() -> None:
    standstill = Standstill()
    with (
        standstill.held(),
        pytest.raises(AssertionError, match="already holds"),
        standstill.held(),
    ):
        raise NotImplementedError("nobody gets here")
