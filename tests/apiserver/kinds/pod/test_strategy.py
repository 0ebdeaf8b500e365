"""Tests of kinds.pod.strategy."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.kinds.pod.strategy import PodStrategy
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import NOW, call_for, changed, pod, stored

STRATEGY = PodStrategy(POD)
STATUS = STRATEGY.subresources["status"]
EPHEMERAL = STRATEGY.subresources["ephemeralcontainers"]
RESIZE = STRATEGY.subresources["resize"]


def test_a_new_pod_is_pending_with_a_generation_and_a_quality() -> None:
    made = pod(container={"resources": {"requests": {"cpu": "1"}}})
    made["status"] = {"phase": "Running"}
    STRATEGY.prepare_for_create(made, call_for())
    assert made["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert made["metadata"]["generation"] == 1
    assert STRATEGY.validate(made, call_for()) == []


def test_a_gated_pod_says_so() -> None:
    made = pod({"schedulingGates": [{"name": "g"}]})
    STRATEGY.prepare_for_create(made, call_for())
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["lastTransitionTime"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
        NOW,
    )


def test_a_name_that_is_no_hostname_is_unwise() -> None:
    made = pod(metadata={"name": "a.b"})
    assert STRATEGY.warnings_on_create(made, call_for()) == [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]


@pytest.mark.parametrize(
    ("spec", "generation"),
    [
        pytest.param({}, 1, id="nothing changes"),
        pytest.param({"activeDeadlineSeconds": 5}, 2, id="the spec changes"),
    ],
)
def test_generations_count_changes_of_the_spec(spec: Document, generation: int) -> None:
    old = stored(pod())
    new = changed(old, spec, {"labels": {"a": "b"}})
    new["status"] = {"phase": "Running"}
    STRATEGY.prepare_for_update(new, old, call_for())
    assert (new["metadata"]["generation"], new["status"]) == (generation, old["status"])


def test_an_update_looks_at_the_metadata_twice() -> None:
    old = stored(pod())
    new = changed(old, metadata={"labels": {"a b": "c"}})
    assert [error.field for error in STRATEGY.validate_update(new, old, call_for())] == ["metadata.labels"] * 2


@pytest.mark.parametrize(
    ("spec", "phase", "asked_s", "given_s"),
    [
        pytest.param({"nodeName": "n"}, "Running", None, 30, id="its own time"),
        pytest.param({"nodeName": "n"}, "Running", 5, 5, id="the time that was asked for"),
        pytest.param({"nodeName": "n"}, "Running", -1, 1, id="less than no time"),
        pytest.param({"nodeName": "n"}, "Running", 0, 0, id="no time"),
        pytest.param({}, "Pending", 5, 0, id="no kubelet knows it"),
        pytest.param({"nodeName": "n"}, "Succeeded", 5, 0, id="it has ended"),
    ],
)
def test_ends(spec: Document, phase: str, asked_s: int | None, given_s: int) -> None:
    made = stored(pod(spec))
    made["status"]["phase"] = phase
    assert STRATEGY.graceful_s(made, asked_s, call_for()) == given_s


def test_selectable_fields() -> None:
    made = stored(pod({"nodeName": "n", "hostNetwork": True}))
    made["status"]["podIPs"] = [{"ip": "1.1.1.1"}]
    fields = STRATEGY.selectable_fields(made)
    assert (fields["spec.nodeName"], fields["spec.host"], fields["spec.hostNetwork"]) == ("n", "n", "true")
    assert (fields["status.podIP"], fields["status.podIPs"], fields["status.phase"]) == ("1.1.1.1", "", "Pending")
    assert set(fields) == set(STRATEGY.selectable_fields(stored(pod())))


def test_a_status_changes_nothing_else_and_forgets_no_generation() -> None:
    old = stored(pod({"nodeName": "n"}))
    old["status"].update(
        observedGeneration=1, conditions=[{"type": "Ready", "status": "True", "observedGeneration": 1}]
    )
    new = changed(old, {"schedulerName": "x"}, {"ownerReferences": [{"uid": "u"}], "labels": {"a": "b"}})
    new["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    STATUS.prepare_for_update(new, old, call_for())
    assert new["spec"] == old["spec"]
    assert (new["metadata"].get("ownerReferences"), new["metadata"]["labels"]) == (None, {"a": "b"})
    assert new["status"] == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "False", "observedGeneration": 1}],
    }
    assert STATUS.validate_update(new, old, call_for()) == []


def test_addresses_are_better_written_short() -> None:
    old = stored(pod())
    new = changed(old)
    new["status"]["podIPs"] = [{"ip": "FE80::1"}]
    assert STATUS.warnings_on_update(new, old, call_for()) == [
        'status.podIPs[0].ip: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")'
    ]


def test_ephemeral_containers_come_alone() -> None:
    old = stored(pod())
    new = changed(
        old, {"ephemeralContainers": [{"name": "e", "image": "x"}], "schedulerName": "z"}, {"labels": {"a": "b"}}
    )
    STRATEGY.default(new)
    EPHEMERAL.prepare_for_update(new, old, call_for())
    assert (new["spec"]["schedulerName"], new["metadata"].get("labels")) == ("default-scheduler", None)
    assert new["metadata"]["generation"] == 2
    assert EPHEMERAL.validate_update(new, old, call_for()) == []
    assert EPHEMERAL.ignored_fields == ()


def test_a_resize_changes_resources_only() -> None:
    old = stored(pod(container={"resources": {"requests": {"cpu": "1"}}}))
    old["status"]["qosClass"] = "Burstable"
    new = deepcopy(old)
    new["spec"]["containers"][0].update(resources={"requests": {"cpu": "2"}}, image="other")
    RESIZE.prepare_for_update(new, old, call_for())
    container = new["spec"]["containers"][0]
    assert (container["image"], container["resources"]) == ("nginx:1", {"requests": {"cpu": "2"}})
    assert RESIZE.validate_update(new, old, call_for()) == []
    assert old["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("spec", "metadata", "message"),
    [
        pytest.param(
            {"nodeName": "n"},
            {"annotations": {"kubernetes.io/config.mirror": "x"}},
            "[]: Forbidden: static pods cannot be resized",
            id="a static pod",
        ),
        pytest.param({"os": {"name": "windows"}}, {}, "[]: Forbidden: windows pods cannot be resized", id="on Windows"),
    ],
)
def test_pods_that_cannot_be_resized(spec: Document, metadata: Document, message: str) -> None:
    old = stored(pod(spec, metadata=metadata))
    assert messages(RESIZE.validate_update(deepcopy(old), old, call_for())) == [message]
