"""What an update of a node or a pod is to those who sleep."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.meta import Condition
from mooring.api.views.node import Node
from mooring.api.views.pod import (
    Container,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodStatus,
    ResourceRequirements,
)
from mooring.scheduler.framework.changes import node_events, pod_events
from mooring.scheduler.framework.events import Subject
from tests.api.builders import resized
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


def annotated(view: Node, **annotations: str) -> Node:
    return replace(view, metadata=replace(view.metadata, annotations=annotations))


def reporting(view: Node, *conditions: Condition) -> Node:
    return replace(view, status=replace(view.status, conditions=conditions))


READY = Condition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(node(), node(), [], id="a heartbeat"),
        pytest.param(node(unschedulable=True), node(), ["NodeUpdateNodeTaint"], id="uncordoned"),
        pytest.param(node(), node(unschedulable=True), [], id="cordoned"),
        pytest.param(node(cpu=4), node(cpu=2), ["NodeUpdateNodeAllocatable"], id="offers less"),
        pytest.param(node(cpu=4), node(cpu="4000m"), [], id="offers the same in other words"),
        pytest.param(node(), node(others={"gpu": 0}), ["NodeUpdateNodeAllocatable"], id="offers nothing of one more"),
        pytest.param(node(), node(zone="a"), ["NodeUpdateNodeLabel"], id="has another label"),
        pytest.param(node(), node(taints=["gpu:NoSchedule"]), ["NodeUpdateNodeTaint"], id="tainted"),
        pytest.param(
            node(taints=["cordon:NoSchedule"], unschedulable=True),
            node(),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"],
            id="uncordoned and untainted at the same time is told twice",
        ),
        pytest.param(node(), reporting(node(), READY), ["NodeUpdateNodeCondition"], id="has become ready"),
        pytest.param(
            reporting(node(), READY), reporting(node(), replace(READY, reason="posted")), [], id="is ready otherwise"
        ),
        pytest.param(node(), annotated(node(), a="b"), ["NodeUpdateNodeAnnotation"], id="annotated"),
        pytest.param(node(), node(features=["Fast"]), ["NodeUpdateNodeDeclaredFeature"], id="declares a feature"),
        pytest.param(
            node(unschedulable=True),
            annotated(reporting(node(cpu=9, zone="a", features=["Fast"]), READY), a="b"),
            [
                "NodeUpdateNodeTaint",
                "NodeUpdateNodeAllocatable",
                "NodeUpdateNodeLabel",
                "NodeUpdateNodeCondition",
                "NodeUpdateNodeAnnotation",
                "NodeUpdateNodeDeclaredFeature",
            ],
            id="everything, in kube-scheduler's order",
        ),
    ],
)
def test_what_an_update_of_a_node_is(old: Node, new: Node, told: list[str]) -> None:
    assert [event.label for event in node_events(old, new)] == told


def generated(view: Pod, *claims: str, extended: str = "") -> Pod:
    """The pod with claims that were made for it."""
    status = PodStatus(
        resource_claim_statuses=tuple(PodResourceClaimStatus(name=c, resource_claim_name=c) for c in claims),
        extended_resource_claim_status=PodExtendedResourceClaimStatus(resource_claim_name=extended)
        if extended
        else None,
    )
    return replace(view, status=status)


def running(view: Pod, cpu: str) -> Pod:
    """The pod with what its kubelet has granted it."""
    return replace(view, status=PodStatus(container_statuses=(resized({"cpu": cpu}),)))


def as_a_whole(cpu: str) -> Pod:
    view = pod()
    return replace(view, spec=replace(view.spec, resources=ResourceRequirements(requests={"cpu": cpu})))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(pod(), pod(phase="Pending"), ["Update"], id="nothing special"),
        pytest.param(pod(), pod(labels={"a": "b"}), ["UpdatePodLabel"], id="has another label"),
        pytest.param(pod(cpu=2), pod(cpu=1), ["UpdatePodScaleDown"], id="requests less"),
        pytest.param(pod(cpu=1), pod(cpu=2), ["Update"], id="requests more"),
        pytest.param(pod(cpu="1"), pod(cpu="1000m"), ["Update"], id="requests the same in other words"),
        pytest.param(pod(cpu=1, memory=0), pod(cpu=1), ["UpdatePodScaleDown"], id="no longer says that it wants none"),
        pytest.param(pod(cpu=2, memory=1), pod(cpu=1, memory=2), ["UpdatePodScaleDown"], id="less of one, more of one"),
        pytest.param(as_a_whole("2"), as_a_whole("1"), ["UpdatePodScaleDown"], id="requests less as a whole"),
        pytest.param(
            running(pod(cpu=1), "2"), running(pod(cpu=1), "1"), ["UpdatePodScaleDown"], id="the kubelet took it away"
        ),
        pytest.param(running(pod(cpu=2), "2"), running(pod(cpu=1), "2"), ["Update"], id="the kubelet has not yet"),
        pytest.param(
            pod(gates=["a", "b"]), pod(), ["UpdatePodSchedulingGatesEliminated"], id="the last gate was opened"
        ),
        pytest.param(pod(gates=["a", "b"]), pod(gates=["a"]), ["Update"], id="one of two gates was opened"),
        pytest.param(pod(), pod(tolerations=["gpu"]), ["UpdatePodToleration"], id="tolerates more"),
        pytest.param(pod(), generated(pod(), "c"), ["UpdatePodGeneratedResourceClaim"], id="a claim was made for it"),
        pytest.param(
            pod(), generated(pod(), extended="c"), ["UpdatePodGeneratedResourceClaim"], id="one for its resources was"
        ),
        pytest.param(
            pod(cpu=2, gates=["a"]),
            generated(pod(cpu=1, tolerations=["gpu"], labels={"a": "b"}), "c"),
            [
                "UpdatePodLabel",
                "UpdatePodScaleDown",
                "UpdatePodSchedulingGatesEliminated",
                "UpdatePodToleration",
                "UpdatePodGeneratedResourceClaim",
            ],
            id="everything, in kube-scheduler's order",
        ),
    ],
)
def test_what_an_update_of_a_pod_is(old: Pod, new: Pod, told: list[str]) -> None:
    engine = engine_of()
    events = pod_events(engine.record(old), engine.record(new), Subject.PENDING_POD)
    assert [event.label for event in events] == [f"UnschedulablePod{action}" for action in told]


def test_of_a_placed_pod_only_the_record_is_needed() -> None:
    engine = engine_of(node("n1"), pod("p", cpu=2, on="n1"))
    old, new = engine.columns.pods["default/p"], engine.record(pod("p", cpu=1, on="n1"))
    assert old.view is None
    assert [event.label for event in pod_events(old, new, Subject.ASSIGNED_POD)] == ["AssignedPodUpdatePodScaleDown"]


def test_a_pod_without_containers_requests_nothing() -> None:
    engine = engine_of()
    empty = engine.record(pod(containers=()))
    asking = engine.record(pod(containers=[Container(resources=ResourceRequirements(requests={"cpu": 1}))]))
    assert [e.label for e in pod_events(asking, empty, Subject.ASSIGNED_POD)] == ["AssignedPodUpdatePodScaleDown"]
    assert [e.label for e in pod_events(empty, asking, Subject.ASSIGNED_POD)] == ["AssignedPodUpdate"]
