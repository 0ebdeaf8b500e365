"""The transitions of the queue: which are allowed, and which queue the metric counts them for."""

from __future__ import annotations

import pytest

from mooring.scheduler.queue.states import (
    BACKOFF_STATES,
    CAUSES,
    UNSCHEDULABLE_STATES,
    QueueState,
    TransitionCause,
    check_transition,
    incoming_queue,
)


def test_every_state_can_be_entered_and_left() -> None:
    others = {state for state in QueueState if state is not QueueState.NOT_QUEUED}
    assert {target for _, target in CAUSES} == set(QueueState)
    assert {origin for origin, _ in CAUSES} == set(QueueState)
    assert all((state, QueueState.NOT_QUEUED) in CAUSES for state in others)


def test_only_pop_makes_a_pod_in_flight() -> None:
    causes = {cause for (_, target), causes in CAUSES.items() if target is QueueState.IN_FLIGHT for cause in causes}
    assert causes == {TransitionCause.POPPED, TransitionCause.POPPED_FROM_BACKOFF}


def test_a_pod_after_an_error_is_never_popped_from_backoff() -> None:
    assert (QueueState.ERROR_BACKOFF, QueueState.IN_FLIGHT) not in CAUSES


@pytest.mark.parametrize("state", sorted(UNSCHEDULABLE_STATES | BACKOFF_STATES), ids=lambda state: state.words)
def test_of_the_waiting_states_only_backoff_leads_to_in_flight(state: QueueState) -> None:
    assert ((state, QueueState.IN_FLIGHT) in CAUSES) == (state is QueueState.BACKOFF)


@pytest.mark.parametrize(
    ("origin", "target", "cause"),
    [
        pytest.param(
            QueueState.NOT_QUEUED, QueueState.IN_FLIGHT, TransitionCause.POPPED, id="from not queued to in flight"
        ),
        pytest.param(QueueState.ACTIVE, QueueState.BACKOFF, TransitionCause.EVENT, id="from active back to backoff"),
        pytest.param(QueueState.BACKOFF, QueueState.ACTIVE, TransitionCause.EVENT, id="out of backoff by an event"),
        pytest.param(
            QueueState.ERROR_BACKOFF,
            QueueState.IN_FLIGHT,
            TransitionCause.POPPED_FROM_BACKOFF,
            id="popped from backoff after an error",
        ),
        pytest.param(
            QueueState.IN_FLIGHT, QueueState.UNSCHEDULABLE, TransitionCause.FAILED, id="unschedulable after an error"
        ),
        pytest.param(
            QueueState.UNSCHEDULABLE, QueueState.UNSCHEDULABLE, TransitionCause.EVENT, id="unschedulable again"
        ),
    ],
)
def test_other_transitions_are_bugs(origin: QueueState, target: QueueState, cause: TransitionCause) -> None:
    with pytest.raises(AssertionError, match=f"p: no transition from {origin.words} to {target.words} with cause"):
        check_transition(origin, target, cause, "p")


@pytest.mark.parametrize(
    ("origin", "target", "cause", "queue"),
    [
        pytest.param(
            QueueState.NOT_QUEUED, QueueState.ACTIVE, TransitionCause.ADDED, "active", id="a new pod is active"
        ),
        pytest.param(
            QueueState.NOT_QUEUED,
            QueueState.GATED,
            TransitionCause.ADDED,
            "unschedulable",
            id="gated counts as unschedulable",
        ),
        pytest.param(
            QueueState.IN_FLIGHT,
            QueueState.ERROR_BACKOFF,
            TransitionCause.FAILED,
            "backoff",
            id="both backoff states count as backoff",
        ),
        pytest.param(
            QueueState.BACKOFF,
            QueueState.IN_FLIGHT,
            TransitionCause.POPPED_FROM_BACKOFF,
            "active",
            id="popped from backoff counts as active",
        ),
        pytest.param(
            QueueState.ACTIVE, QueueState.IN_FLIGHT, TransitionCause.POPPED, "", id="a popped pod is not counted"
        ),
        pytest.param(
            QueueState.GATED,
            QueueState.GATED,
            TransitionCause.EVENT,
            "unschedulable",
            id="gated again after an event is counted again",
        ),
        pytest.param(
            QueueState.GATED, QueueState.GATED, TransitionCause.UPDATED, "", id="gated again after an update is not"
        ),
        pytest.param(
            QueueState.UNSCHEDULABLE,
            QueueState.GATED,
            TransitionCause.ACTIVATED,
            "",
            id="gated after an activation is not",
        ),
    ],
)
def test_transitions_are_counted_as_in_kube_scheduler(
    origin: QueueState, target: QueueState, cause: TransitionCause, queue: str
) -> None:
    check_transition(origin, target, cause, "p")
    assert incoming_queue(origin, target, cause) == queue
