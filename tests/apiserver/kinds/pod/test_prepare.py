"""Tests of kinds.pod.prepare."""

from __future__ import annotations

from copy import deepcopy
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.kinds.pod.prepare import (
    FIELDS_READ_BY_BINDING,
    binding_error,
    bound_pod,
    drop_disabled_spec_fields,
    drop_disabled_status_fields,
    merge_label_keys,
    move_apparmor_annotations,
    validate_binding,
    with_condition,
)
from mooring.apiserver.storage.stored_form import decoded, encoded, partly_decoded, stored_form
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import NOW, call_for, changed, pod, stored
from tests.apiserver.pod_strategies import PODS


def test_with_condition_sets_the_time_when_the_status_changes() -> None:
    new = with_condition((), {"type": "A", "status": "True"}, "t1")
    assert new == [{"type": "A", "status": "True", "lastProbeTime": None, "lastTransitionTime": "t1"}]
    same = with_condition(new, {"type": "A", "status": "True", "reason": "r"}, "t2")
    assert (same[0]["lastTransitionTime"], same[0]["reason"]) == ("t1", "r")
    other = with_condition([{"type": "B", "status": "True"}, *same], {"type": "A", "status": "False"}, "t3")
    assert [(each["type"], each.get("lastTransitionTime")) for each in other] == [("B", None), ("A", "t3")]


SPEC = pod(
    {
        "schedulingGroup": {"podGroupName": "g"},
        "volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "y"}}]}}],
    },
    {"lifecycle": {"stopSignal": "SIGUSR1"}},
)["spec"]


def test_disabled_spec_fields_are_dropped() -> None:
    spec = deepcopy(SPEC)
    drop_disabled_spec_fields(spec, None)
    assert "schedulingGroup" not in spec
    assert "lifecycle" not in spec["containers"][0]
    assert spec["volumes"][0]["projected"]["sources"] == [{}]


def test_disabled_spec_fields_in_use_are_kept() -> None:
    spec = deepcopy(SPEC)
    drop_disabled_spec_fields(spec, SPEC)
    assert spec == SPEC


def test_disabled_status_fields_are_dropped() -> None:
    mount = {"name": "v", "mountPath": "/x", "volumeStatus": {"image": {"imageRef": "q"}}}
    status = {"nodeAllocatableResourceClaimStatuses": [{}], "containerStatuses": [{"volumeMounts": [mount]}]}
    drop_disabled_status_fields(status, None)
    assert status == {"containerStatuses": [{"volumeMounts": [{"name": "v", "mountPath": "/x"}]}]}


KEY = "container.apparmor.security.beta.kubernetes.io/c"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_merge_label_keys_adds_match_expressions() -> None:
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["v", "absent"], "mismatchLabelKeys": ["w"]}
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["v"]}
    made = pod(
        {
            "affinity": {"podAntiAffinity": {REQUIRED: [term]}},
            "topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"a": "b"}}}, constraint],
        },
        metadata={"labels": {"v": "1", "w": "2"}},
    )
    merge_label_keys(made)
    (selected,) = made["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert selected["labelSelector"]["matchExpressions"] == [
        {"key": "v", "operator": "In", "values": ["1"]},
        {"key": "w", "operator": "NotIn", "values": ["2"]},
    ]
    with_selector, without = made["spec"]["topologySpreadConstraints"]
    assert with_selector["labelSelector"]["matchExpressions"] == [{"key": "v", "operator": "In", "values": ["1"]}]
    assert "labelSelector" not in without


@pytest.mark.parametrize(
    ("annotation", "pod_profile", "profile", "warns"),
    [
        pytest.param("unconfined", None, {"type": "Unconfined"}, True, id="a profile moves"),
        pytest.param("localhost/a", None, {"type": "Localhost", "localhostProfile": "a"}, True, id="a local one moves"),
        pytest.param("unconfined", {"type": "Unconfined"}, None, False, id="the pod has the same profile"),
        pytest.param("nonsense", None, None, True, id="an invalid profile stays"),
    ],
)
def test_apparmor_annotations_move_to_security_contexts(
    annotation: str, pod_profile: Document | None, profile: Document | None, warns: bool
) -> None:
    context = {"appArmorProfile": pod_profile} if pod_profile else {}
    made = pod({"securityContext": context}, metadata={"annotations": {KEY: annotation}})
    call = call_for()
    move_apparmor_annotations(made, call)
    found = (made["spec"]["containers"][0].get("securityContext") or {}).get("appArmorProfile")
    advice = f'metadata.annotations[{KEY}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    assert (found, call.warnings) == (profile, [advice] if warns else [])


@pytest.mark.parametrize(
    ("target", "errors"),
    [
        pytest.param({"kind": "Node", "name": "n"}, [], id="a node"),
        pytest.param({"name": "n"}, [], id="no kind"),
        pytest.param({"kind": "Node"}, ["target.name: Required value"], id="no name"),
        pytest.param(
            {"kind": "Pod", "name": "n"},
            ['target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
            id="another kind",
        ),
    ],
)
def test_targets_of_bindings_are_validated(target: Document, errors: list[str]) -> None:
    assert messages(validate_binding({"target": target})) == errors


@pytest.mark.parametrize(
    ("spec", "metadata", "raised"),
    [
        pytest.param({}, {}, "", id="an unbound pod"),
        pytest.param({"nodeName": "n1"}, {}, 'pod p is already assigned to node "n1"', id="a bound pod"),
        pytest.param(
            {},
            {"deletionTimestamp": NOW},
            "pod p is being deleted, cannot be assigned to a host",
            id="a terminating pod",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "g"}]},
            {},
            "pod p has non-empty .spec.schedulingGates",
            id="a gated pod",
        ),
    ],
)
def test_binding_error_rejects_bound_terminating_and_gated_pods(
    spec: Document, metadata: Document, raised: str
) -> None:
    assert binding_error(changed(stored(pod()), spec, metadata)) == raised


def test_bound_pod_has_the_node_and_the_metadata_of_the_binding() -> None:
    old = stored(pod(metadata={"labels": {"a": "b", "zone": "old"}}))
    old["status"]["nominatedNodeName"] = "n2"
    before = deepcopy(old)
    binding = {"metadata": {"labels": {"zone": "new"}, "annotations": {"c": "d"}}, "target": {"name": "n1"}}
    new = bound_pod(old, binding, NOW)
    assert old == before
    assert (new["spec"]["nodeName"], new["metadata"]["labels"]) == ("n1", {"a": "b", "zone": "new"})
    assert new["metadata"]["annotations"] == {"c": "d"}
    assert "nominatedNodeName" not in new["status"]
    assert new["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
    ]


BINDINGS = st.fixed_dictionaries(
    {
        "metadata": st.sampled_from([{}, {"labels": {"zone": "new"}}, {"annotations": {"c": "d"}}]),
        "target": st.just({"name": "n1"}),
    }
)
STATUSES = st.sampled_from(
    [
        {},
        {"nominatedNodeName": "n2"},
        {"conditions": [{"type": "Ready", "status": "False"}]},
        {"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "t1", "message": "no"}]},
        {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "t1"}]},
    ]
)


@given(PODS, STATUSES, BINDINGS, st.booleans())
def test_a_binding_of_a_partly_decoded_pod_equals_that_of_a_decoded_pod(
    one: Document, status: Document, binding: Document, ends: bool
) -> None:
    """If this fails, FIELDS_READ_BY_BINDING lacks a field that bindings read."""
    metadata = {"name": "p", "namespace": "default", "uid": "u", **one["metadata"]}
    if ends:
        metadata["deletionTimestamp"] = NOW
    value = stored_form(POD, {**one, "status": status}, metadata)
    whole, part = decoded(value), cast(Document, partly_decoded(value, FIELDS_READ_BY_BINDING))
    for field in ("name", "namespace"):
        part["metadata"][field] = metadata[field]  # from the key, see `ObjectStorage.find_partly`
    assert binding_error(part) == binding_error(whole)
    assert encoded(bound_pod(part, binding, NOW)) == encoded(bound_pod(whole, binding, NOW))
