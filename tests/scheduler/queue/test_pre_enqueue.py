"""PreEnqueue plugins: which pods are gated, by which plugin, and what happens if a plugin fails."""

from __future__ import annotations

import logging

import pytest

from mooring.kit.clock import VirtualClock
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.status import Status
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod
from tests.builders import pod
from tests.scheduler.queue.builders import GatingPlugin, gate, profile, record


def run(
    *gates: GatingPlugin, gating_plugin: str | None = None, unschedulable_plugins: frozenset[str] = frozenset()
) -> tuple[bool, QueuedPod]:
    entry = QueuedPod(record(pod("p")), 0.0)
    entry.gating_plugin, entry.unschedulable_plugins = gating_plugin, unschedulable_plugins
    queue = SchedulingQueue({"default-scheduler": profile(*gates)}, clock=VirtualClock())
    is_admitted = queue._run_pre_enqueue_plugins(entry)
    return is_admitted, entry


def test_without_plugins_every_pod_is_admitted() -> None:
    assert run()[0]


def test_every_plugin_must_admit_the_pod() -> None:
    is_admitted, entry = run(gate("One"), gate("Two", is_closed=True), third := gate("Three"))
    assert (is_admitted, entry.gating_plugin, entry.unschedulable_plugins) == (False, "Two", frozenset(("Two",)))
    assert third.called_for == [], "no plugin runs after the first rejection"


def test_the_last_gating_plugin_runs_first() -> None:
    one, two = gate("One", is_closed=True), gate("Two", is_closed=True)
    _, entry = run(one, two, gating_plugin="Two")
    assert (one.called_for, two.called_for, entry.gating_plugin) == ([], ["p"], "Two")


def test_another_plugin_may_gate_the_pod_when_the_last_one_admits_it() -> None:
    is_admitted, entry = run(
        gate("One", is_closed=True), gate("Two"), gating_plugin="Two", unschedulable_plugins=frozenset(("Two",))
    )
    assert (is_admitted, entry.gating_plugin, entry.unschedulable_plugins) == (False, "One", frozenset(("One", "Two")))


def test_a_gating_plugin_stays_an_unschedulable_plugin_after_it_admits_the_pod() -> None:
    is_admitted, entry = run(gate("One"), gating_plugin="One", unschedulable_plugins=frozenset(("One", "Fit")))
    assert (is_admitted, entry.gating_plugin, entry.unschedulable_plugins) == (True, None, frozenset(("One", "Fit")))


def test_a_plugin_that_raises_gates_the_pod_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    broken = gate("Broken", ClusterEventWithHint(EventResource.NODE, ActionType.ADD))
    broken.error = RuntimeError("no key")
    with caplog.at_level(logging.ERROR):
        is_admitted, entry = run(broken)
    assert (is_admitted, entry.gating_plugin) == (False, "Broken")
    assert "PreEnqueue plugin Broken failed for pod default/p" in caplog.text
    assert "no key" in caplog.text


def test_a_plugin_that_returns_an_error_gates_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(GatingPlugin):
        name = "Failing"

        def pre_enqueue(self, pod: object) -> Status | None:
            return Status.error("no key")

    with caplog.at_level(logging.ERROR):
        is_admitted, entry = run(Failing(()))
    assert (is_admitted, entry.gating_plugin) == (False, "Failing")
    assert "PreEnqueue plugin Failing failed for pod default/p: no key" in caplog.text
