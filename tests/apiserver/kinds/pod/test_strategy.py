"""Tests of kinds.pod.strategy and of the table of pods. kube-apiserver v1.36.4 prints the same rows."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.apiserver.kinds.pod.strategy import POD_TABLE, PodStrategy
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import NOW, call_for, changed, pod, stored

STRATEGY = PodStrategy(POD)
STATUS = STRATEGY.subresources["status"]
EPHEMERAL = STRATEGY.subresources["ephemeralcontainers"]
RESIZE = STRATEGY.subresources["resize"]


def test_a_new_pod_is_pending_with_a_generation_and_a_qos_class() -> None:
    made = pod(container={"resources": {"requests": {"cpu": "1"}}})
    made["status"] = {"phase": "Running"}
    STRATEGY.prepare_for_create(made, call_for())
    assert made["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert made["metadata"]["generation"] == 1
    assert STRATEGY.validate(made, call_for()) == []


def test_a_new_gated_pod_has_a_scheduling_gated_condition() -> None:
    made = pod({"schedulingGates": [{"name": "g"}]})
    STRATEGY.prepare_for_create(made, call_for())
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["lastTransitionTime"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
        NOW,
    )


def test_a_pod_name_that_is_no_dns_label_has_a_warning() -> None:
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
def test_an_update_increments_the_generation_only_for_changes_of_the_spec(spec: Document, generation: int) -> None:
    old = stored(pod())
    new = changed(old, spec, {"labels": {"a": "b"}})
    new["status"] = {"phase": "Running"}
    STRATEGY.prepare_for_update(new, old, call_for())
    assert (new["metadata"]["generation"], new["status"]) == (generation, old["status"])


def test_an_update_validates_the_metadata_twice() -> None:
    old = stored(pod())
    new = changed(old, metadata={"labels": {"a b": "c"}})
    assert [error.field for error in STRATEGY.validate_update(new, old, call_for())] == ["metadata.labels"] * 2


@pytest.mark.parametrize(
    ("spec", "phase", "asked_s", "given_s"),
    [
        pytest.param({"nodeName": "n"}, "Running", None, 30, id="grace period of the pod"),
        pytest.param({"nodeName": "n"}, "Running", 5, 5, id="requested grace period"),
        pytest.param({"nodeName": "n"}, "Running", -1, 1, id="negative grace period"),
        pytest.param({"nodeName": "n"}, "Running", 0, 0, id="grace period of zero"),
        pytest.param({}, "Pending", 5, 0, id="not bound"),
        pytest.param({"nodeName": "n"}, "Succeeded", 5, 0, id="succeeded"),
    ],
)
def test_graceful_s_returns_the_grace_period_of_a_delete(
    spec: Document, phase: str, asked_s: int | None, given_s: int
) -> None:
    made = stored(pod(spec))
    made["status"]["phase"] = phase
    assert STRATEGY.graceful_s(made, asked_s, call_for()) == given_s


def test_selectable_fields_of_pods() -> None:
    made = stored(pod({"nodeName": "n", "hostNetwork": True}))
    made["status"]["podIPs"] = [{"ip": "1.1.1.1"}]
    fields = STRATEGY.selectable_fields(made)
    assert (fields["spec.nodeName"], fields["spec.host"], fields["spec.hostNetwork"]) == ("n", "n", "true")
    assert (fields["status.podIP"], fields["status.podIPs"], fields["status.phase"]) == ("1.1.1.1", "", "Pending")
    assert set(fields) == set(STRATEGY.selectable_fields(stored(pod())))


def test_a_status_update_keeps_the_spec_and_observed_generations() -> None:
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


def test_addresses_that_are_not_canonical_have_a_warning() -> None:
    old = stored(pod())
    new = changed(old)
    new["status"]["podIPs"] = [{"ip": "FE80::1"}]
    assert STATUS.warnings_on_update(new, old, call_for()) == [
        'status.podIPs[0].ip: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")'
    ]


def test_an_update_of_ephemeral_containers_changes_nothing_else() -> None:
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


NOW_S = 1_000_000.0
EARLIER, LATER = "1970-01-12T13:00:00Z", "1970-01-12T13:30:00Z"
"""46 and 16 minutes before now."""
RUNNING: Document = {"running": {"startedAt": EARLIER}}
WITH_SIDECAR: Document = {
    "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}]
}


def container(name: str, state: Document | None = None, **more: Any) -> Document:
    finished = more.pop("last", None)
    last = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": finished}}} if finished else {}
    return {"name": name, "ready": False, "restartCount": 0, "state": state or {}, **last, **more}


def ended(code: int, reason: str = "", signal: int = 0) -> Document:
    found = {"exitCode": code, "reason": reason, "signal": signal}
    return {"terminated": {name: value for name, value in found.items() if value or name == "exitCode"}}


def waiting(reason: str) -> Document:
    return {"waiting": {"reason": reason}}


def row(spec: Document, status: Document, **metadata: Any) -> Document:
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]
    pod = {
        "metadata": {"name": "p", "creationTimestamp": "1970-01-12T13:46:00Z", **metadata},
        "spec": {"containers": containers, **spec},
        "status": status,
    }
    return POD_TABLE.row(pod, NOW_S)


READY_CONDITION = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("spec", "status", "ready", "text", "restarts"),
    [
        pytest.param({}, {"phase": "Pending"}, "0/2", "Pending", "0", id="only a phase"),
        pytest.param(
            {}, {"phase": "Failed", "reason": "Evicted"}, "0/2", "Evicted", "0", id="a reason wins over the phase"
        ),
        pytest.param(
            {},
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "0/2",
            "SchedulingGated",
            "0",
            id="scheduling gated",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "containerStatuses": [
                    container("c", RUNNING, ready=True, restartCount=3, last=EARLIER),
                    container("d", RUNNING, ready=True, restartCount=2, last=LATER),
                ],
            },
            "2/2",
            "Running",
            "5 (16m ago)",
            id="the sum of restarts and the last time",
        ),
        pytest.param(
            {},
            {"phase": "Running", "containerStatuses": [container("c", waiting("CrashLoopBackOff"), restartCount=7)]},
            "0/2",
            "CrashLoopBackOff",
            "7",
            id="the reason of a waiting container",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "conditions": READY_CONDITION,
                "containerStatuses": [container("c", ended(0, "Completed")), container("d", RUNNING, ready=True)],
            },
            "1/2",
            "Running",
            "0",
            id="one completed, one running",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "containerStatuses": [container("c", ended(0, "Completed")), container("d", RUNNING, ready=True)],
            },
            "1/2",
            "NotReady",
            "0",
            id="one completed, one running, pod not ready",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "containerStatuses": [container("c", ended(0, "Completed")), container("d", ended(3, "Oops"))],
            },
            "0/2",
            "Oops",
            "0",
            id="one completed, one failed",
        ),
        pytest.param(
            {},
            {"phase": "Failed", "containerStatuses": [container("c", ended(2)), container("d", ended(0, "", 9))]},
            "0/2",
            "ExitCode:2",
            "0",
            id="the first container wins",
        ),
        pytest.param(
            {}, {"phase": "Failed", "containerStatuses": [container("c", ended(1, "", 9))]}, "0/2", "Signal:9", "0"
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Pending",
                "initContainerStatuses": [container("i", ended(1, "Error"), restartCount=4, last=EARLIER)],
                "containerStatuses": [container("c", waiting("PodInitializing"))],
            },
            "0/3",
            "Init:Error",
            "4 (46m ago)",
            id="an init container failed",
        ),
        pytest.param(
            WITH_SIDECAR,
            {"phase": "Pending", "initContainerStatuses": [container("i", ended(1))]},
            "0/3",
            "Init:ExitCode:1",
            "0",
        ),
        pytest.param(
            WITH_SIDECAR,
            {"phase": "Pending", "initContainerStatuses": [container("i", ended(1, "", 11))]},
            "0/3",
            "Init:Signal:11",
            "0",
        ),
        pytest.param(
            WITH_SIDECAR,
            {"phase": "Pending", "initContainerStatuses": [container("i", waiting("PodInitializing"))]},
            "0/3",
            "Init:0/2",
            "0",
            id="the first of two init containers runs",
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    container("i", ended(0, "Completed"), restartCount=4, last=EARLIER),
                    container("s", waiting("CrashLoopBackOff"), restartCount=2, last=LATER),
                ],
            },
            "0/3",
            "Init:CrashLoopBackOff",
            "6 (16m ago)",
            id="a sidecar does not start",
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Running",
                "initContainerStatuses": [
                    container("i", ended(0, "Completed"), restartCount=4, last=EARLIER),
                    container("s", RUNNING, restartCount=2, last=LATER, ready=True, started=True),
                ],
                "containerStatuses": [container("c", RUNNING, ready=True, restartCount=1)],
            },
            "2/3",
            "Running",
            "3 (16m ago)",
            id="only restarts of sidecars count once it runs",
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Running",
                "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [
                    container("i", ended(0, "Completed")),
                    container("s", RUNNING, started=False),
                ],
                "containerStatuses": [container("c", RUNNING, ready=True, restartCount=1)],
            },
            "1/3",
            "Init:1/2",
            "1",
            id="initialized, although a sidecar starts again",
        ),
    ],
)
def test_the_status_column_of_pods(spec: Document, status: Document, ready: str, text: str, restarts: str) -> None:
    assert row(spec, status)["cells"][:5] == ["p", ready, text, restarts, "40s"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)
def test_the_status_column_of_deleted_pods(status: Document, text: str) -> None:
    assert row({}, status, deletionTimestamp=LATER)["cells"][2] == text


def test_the_wide_columns_of_pods() -> None:
    status: Document = {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        "nominatedNodeName": "n2",
        "conditions": [{"type": "a/b", "status": "True"}, {"type": "a/c", "status": "False"}],
    }
    gates = [{"conditionType": "a/b"}, {"conditionType": "a/c"}, {"conditionType": "a/d"}]
    assert row({"readinessGates": gates, "nodeName": "n1"}, status)["cells"][5:] == ["10.0.0.1", "n1", "n2", "1/3"]
    assert row({}, {})["cells"][5:] == ["<none>"] * 4


@pytest.mark.parametrize(
    ("phase", "condition"),
    [("Succeeded", "The pod has completed successfully."), ("Failed", "The pod failed.")],
)
def test_rows_of_finished_pods_have_a_completed_condition(phase: str, condition: str) -> None:
    found = row({}, {"phase": phase})["conditions"]
    assert found == [{"type": "Completed", "status": "True", "reason": phase, "message": condition}]
    assert "conditions" not in row({}, {"phase": "Running"})
