"""PreEnqueue plugins: who is gated, by whom, and what happens when a gate breaks."""

from __future__ import annotations

import logging

import pytest

from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.status import Status
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.gates import Gates
from tests.builders import pod
from tests.scheduler.queue.builders import Gate, gate, profile, record


def ask(*gates: Gate, gated_by: str | None = None, rejectors: frozenset[str] = frozenset()) -> tuple[bool, QueuedPod]:
    entry = QueuedPod(record(pod("p")), 0.0)
    entry.gated_by, entry.rejectors = gated_by, rejectors
    is_in = Gates({"default-scheduler": profile(*gates)}).let_in(entry)
    return is_in, entry


def test_without_gates_everybody_is_let_in() -> None:
    assert ask()[0]


def test_all_gates_must_let_a_pod_in() -> None:
    is_in, entry = ask(gate("One"), gate("Two", is_shut=True), third := gate("Three"))
    assert (is_in, entry.gated_by, entry.rejectors) == (False, "Two", frozenset(("Two",)))
    assert third.asked == [], "nobody is asked after the first no"


def test_who_gated_the_pod_last_is_asked_first() -> None:
    one, two = gate("One", is_shut=True), gate("Two", is_shut=True)
    _, entry = ask(one, two, gated_by="Two")
    assert (one.asked, two.asked, entry.gated_by) == ([], ["p"], "Two")


def test_another_gate_may_shut_when_the_last_one_opens() -> None:
    is_in, entry = ask(gate("One", is_shut=True), gate("Two"), gated_by="Two", rejectors=frozenset(("Two",)))
    assert (is_in, entry.gated_by, entry.rejectors) == (False, "One", frozenset(("One", "Two")))


def test_who_gated_stays_a_rejector_after_it_has_let_the_pod_in() -> None:
    is_in, entry = ask(gate("One"), gated_by="One", rejectors=frozenset(("One", "Fit")))
    assert (is_in, entry.gated_by, entry.rejectors) == (True, None, frozenset(("One", "Fit")))


def test_a_gate_that_raises_keeps_the_pod_out_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    broken = gate("Broken", Wake(Subject.NODE, Action.ADD))
    broken.error = RuntimeError("no key")
    with caplog.at_level(logging.ERROR):
        is_in, entry = ask(broken)
    assert (is_in, entry.gated_by) == (False, "Broken")
    assert "PreEnqueue plugin Broken failed for pod default/p" in caplog.text
    assert "no key" in caplog.text


def test_a_gate_that_answers_with_an_error_keeps_the_pod_out_too(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Gate):
        name = "Failing"

        def pre_enqueue(self, pod: object) -> Status | None:
            return Status.error("no key")

    with caplog.at_level(logging.ERROR):
        is_in, entry = ask(Failing(()))
    assert (is_in, entry.gated_by) == (False, "Failing")
    assert "PreEnqueue plugin Failing failed for pod default/p: no key" in caplog.text
