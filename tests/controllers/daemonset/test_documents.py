"""What a DaemonSet's controller sends."""

from __future__ import annotations

from mooring.api.views.daemon_sets import DaemonSetStatus
from mooring.controllers.daemonset.documents import daemon_pod, is_same_status, status_document
from tests.controllers.batch_builders import daemon_set_view


def test_a_pod_carries_its_revision() -> None:
    pod = daemon_pod(daemon_set_view(), "abc")
    assert pod["metadata"]["labels"] == {"app": "agent", "controller-revision-hash": "abc"}
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    assert len(pod["spec"]["tolerations"]) == 6


def test_a_status_keeps_what_is_not_counted() -> None:
    counts = DaemonSetStatus(desired_number_scheduled=2, number_unavailable=2)
    assert status_document({"collisionCount": 1, "numberAvailable": 7, "numberReady": 7}, counts) == {
        "collisionCount": 1,
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 2,
        "numberReady": 0,
        "numberUnavailable": 2,
    }


def test_a_status_is_stale_until_the_generation_was_seen() -> None:
    counts = DaemonSetStatus(number_ready=1)
    assert is_same_status(daemon_set_view(status={"numberReady": 1, "observedGeneration": 1}), counts)
    assert not is_same_status(daemon_set_view(status={"numberReady": 1}), counts)
    assert not is_same_status(daemon_set_view(status={"observedGeneration": 1}), counts)
