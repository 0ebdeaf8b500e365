"""Binding sets the node once and says so in the status; a pod has time to end where a kubelet has it."""

from __future__ import annotations

from typing import cast

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.pod import PodStatus
from mooring.client.errors import ConflictError
from mooring.client.interface import Deletion
from mooring.client.local_form import PlainObject, decoded, encoded
from mooring.client.local_pods import bound, bound_form, grace_of_deletion_s, with_labels

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
    ("status", "is_read"),
    [
        pytest.param({"phase": "Pending"}, True, id="a usual one is put together, and known as it is read"),
        pytest.param({"conditions": [{"type": "Ready"}]}, True, id="with other conditions"),
        pytest.param({"conditions": [OTHER]}, False, id="with a status inside of it, it is taken apart"),
        pytest.param({"podIP": 7}, True, id="a field that nobody reads may be anything"),
        pytest.param({"phase": 7}, False, id="one that cannot be read is taken apart"),
    ],
)
def test_the_stored_form_is_the_one_that_taking_it_apart_gives(status: PlainObject, is_read: bool) -> None:
    it = {"kind": "Pod", "apiVersion": "v1", **pod({"containers": []}, status)}
    form = bound_form(encoded(it), "/registry/pods/default/web", uid="u1", node_name="n1", now=NOW)
    whole = decoded(form.value)
    assert whole == bind(it)
    assert form.status == (convert_as(PodStatus, cast(PlainObject, whole["status"])) if is_read else None)


@pytest.mark.parametrize(
    ("labels", "is_put_in"),
    [
        pytest.param({"app": "web"}, True, id="it has others"),
        pytest.param({"app": "web", "not-zone": 'a "zone":'}, True, id="another one ends like it"),
        pytest.param({"app": "web", "zone": "b"}, False, id="it has one of them"),
        pytest.param({}, False, id="it has none yet"),
        pytest.param(None, False, id="it has none at all, but its template does"),
    ],
)
def test_labels_are_put_into_the_stored_form(labels: dict[str, str] | None, is_put_in: bool) -> None:
    it = {"kind": "Pod", "apiVersion": "v1", **pod({"labels": {"a": "b"}}, finalizers=["x"])}
    metadata = cast(PlainObject, it["metadata"])
    if labels is not None:
        it["metadata"] = metadata = {"labels": labels, **metadata}
    labelled = with_labels(encoded(it), {"zone": "a", "region": "r"})
    assert (labelled is not None) == is_put_in
    if labelled is not None and labels is not None:
        metadata["labels"] = {**labels, "zone": "a", "region": "r"}
        assert decoded(labelled) == it


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
