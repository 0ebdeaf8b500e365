"""Binding sets the node once and says so in the status; a pod has time to end where a kubelet has it."""

from __future__ import annotations

import pytest

from mooring.apiserver.storage.stored_form import PlainObject
from mooring.client.errors import ConflictError
from mooring.client.interface import Deletion
from tests.fakes.raw_pods import bound, grace_of_deletion_s

EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
OTHER = {"type": "Ready", "status": "False"}


def pod(spec: PlainObject | None = None, status: PlainObject | None = None, **metadata: object) -> PlainObject:
    whole: PlainObject = {"metadata": {"name": "web", "uid": "u1", **metadata}, "spec": spec or {}}
    return {**whole, "status": status} if status is not None else whole


def bind(it: PlainObject, uid: str = "u1") -> PlainObject:
    return bound(it, "/registry/pods/default/web", uid=uid, node_name="n1", now=NOW)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(None, {"conditions": [SCHEDULED]}, id="no status yet"),
        pytest.param(
            {"phase": "Pending", "nominatedNodeName": "n2", "conditions": [OTHER]},
            {"phase": "Pending", "conditions": [OTHER, SCHEDULED]},
            id="other conditions stay, the nomination goes",
        ),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, OTHER]},
            {"conditions": [SCHEDULED, OTHER]},
            id="it was unschedulable",
        ),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": EARLIER}]},
            {"conditions": [{**SCHEDULED, "lastTransitionTime": EARLIER}]},
            id="it was said to be scheduled before",
        ),
    ],
)
def test_binding_says_so_in_the_status(status: PlainObject | None, expected: PlainObject) -> None:
    result = bind(pod(status=status))
    assert result["status"] == expected
    assert result["spec"] == {"nodeName": "n1"}


@pytest.mark.parametrize(
    ("it", "uid", "words"),
    [
        pytest.param(pod({"nodeName": "n2"}), "u1", 'pod web is already assigned to node "n2"', id="it has a node"),
        pytest.param(
            pod({"schedulingGates": [{"name": "g"}]}), "u1", "has non-empty .spec.schedulingGates", id="a gate"
        ),
        pytest.param(
            pod(deletionTimestamp=NOW), "", "pod web is being deleted, cannot be assigned to a host", id="ending"
        ),
        pytest.param(pod(), "u0", "UID in precondition: u0, UID in object meta: u1", id="another pod"),
        pytest.param(
            pod({"nodeName": "n2"}, deletionTimestamp=NOW),
            "u0",
            "UID in precondition",
            id="another pod, before all else",
        ),
        pytest.param(
            pod({"nodeName": "n2"}, deletionTimestamp=NOW), "", "is being deleted", id="ending, before its node"
        ),
    ],
)
def test_a_pod_that_cannot_be_bound(it: PlainObject, uid: str, words: str) -> None:
    with pytest.raises(ConflictError) as refusal:
        bind(it, uid)
    assert words in str(refusal.value)


def test_empty_gates_and_an_unnamed_uid_are_no_hindrance() -> None:
    assert bind(pod({"schedulingGates": []}), uid="")["spec"] == {"schedulingGates": [], "nodeName": "n1"}


@pytest.mark.parametrize(
    ("it", "asked_s", "grace_s"),
    [
        pytest.param(pod({"nodeName": "n1", "terminationGracePeriodSeconds": 30}), None, 30, id="its own time"),
        pytest.param(pod({"nodeName": "n1", "terminationGracePeriodSeconds": 30}), 5, 5, id="what is asked for"),
        pytest.param(pod({"nodeName": "n1"}), None, 0, id="it says nothing"),
        pytest.param(pod({"nodeName": "n1"}), -1, 1, id="less than nothing"),
        pytest.param(pod({"terminationGracePeriodSeconds": 30}), 60, 0, id="no node"),
        pytest.param(pod({"nodeName": "n1"}, {"phase": "Succeeded"}), 60, 0, id="it has succeeded"),
        pytest.param(pod({"nodeName": "n1"}, {"phase": "Failed"}), 60, 0, id="it has failed"),
        pytest.param(pod({"nodeName": "n1"}, {"phase": "Running"}), 60, 60, id="it runs"),
    ],
)
def test_how_long_a_pod_may_take_to_end(it: PlainObject, asked_s: int | None, grace_s: int) -> None:
    assert grace_of_deletion_s(it, Deletion(grace_s=asked_s)) == grace_s
