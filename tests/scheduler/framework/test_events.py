"""Cluster events: labels, registrations, hints, and the events of an update."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest
from msgspec.structs import replace

from mooring.api.kinds import NODE, POD, REPLICATION_CONTROLLER, Kind
from mooring.api.views.meta import ApiObject, Condition
from mooring.api.views.node import Node
from mooring.api.views.pod import (
    Container,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    PodStatus,
    ResourceRequirements,
)
from mooring.api.views.workloads import Service
from mooring.scheduler.framework.events import (
    ANY_EVENT,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    always_skip,
    has_node_or_nomination,
    node_events,
    pod_events,
    queue_on_own_update,
)
from tests.api.builders import resized
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


class Widget(ApiObject):
    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"


WIDGET = Kind("example.com/v1", "Widget", "widgets", view=Widget)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (UNSCHEDULED_POD_UPDATE, "UnschedulablePodUpdate"),
        (ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN), "AssignedPodUpdatePodScaleDown"),
        (
            ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
            "UnschedulablePodUpdatePodSchedulingGatesEliminated",
        ),
        (ClusterEvent(EventResource.NODE, ActionType.ADD), "NodeAdd"),
        (ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE), "NodeUpdateNodeDeclaredFeature"),
        (ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (ClusterEvent(WIDGET, ActionType.ADD), "widgets.v1.example.comAdd"),
        (ClusterEvent(REPLICATION_CONTROLLER, ActionType.DELETE), "replicationcontrollers.v1Delete"),
        (UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (FORCE_ACTIVATE, "ForceActivate"),
        (ClusterEvent(EventResource.WILDCARD, ActionType.ALL), "*All"),
        (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.DELETE), "Node"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_label_is_that_of_kube_scheduler(event: ClusterEvent, label: str) -> None:
    assert event.label == label


NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE)


@pytest.mark.parametrize(
    ("registered", "event", "is_match"),
    [
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            NODE_LABEL,
            True,
            id="one of several",
        ),
        pytest.param(ClusterEventWithHint(EventResource.NODE, ActionType.ADD), NODE_LABEL, False, id="another action"),
        pytest.param(
            ClusterEventWithHint(EventResource.CSI_NODE, ActionType.ALL), NODE_LABEL, False, id="another resource"
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE),
            NODE_LABEL,
            True,
            id="UPDATE matches a specific update",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE),
            NODE_UPDATE,
            True,
            id="UPDATE matches the unspecific update",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
            NODE_UPDATE,
            False,
            id="a specific update does not match another",
        ),
        pytest.param(ANY_EVENT, NODE_UPDATE, True, id="any event"),
        pytest.param(ANY_EVENT, UNSCHEDULABLE_TIMEOUT, True, id="any event matches a wildcard event"),
        pytest.param(
            ClusterEventWithHint(EventResource.NODE, ActionType.ALL),
            UNSCHEDULABLE_TIMEOUT,
            False,
            id="a wildcard event",
        ),
        pytest.param(
            ClusterEventWithHint(EventResource.WILDCARD, ActionType.ADD),
            UNSCHEDULABLE_TIMEOUT,
            False,
            id="any added object",
        ),
        pytest.param(ANY_EVENT, ClusterEvent(EventResource.NODE, ActionType.NONE), False, id="no event"),
        pytest.param(
            ClusterEventWithHint(WIDGET, ActionType.ALL),
            ClusterEvent(WIDGET, ActionType.ADD),
            True,
            id="a registered kind",
        ),
        pytest.param(
            ClusterEventWithHint(WIDGET, ActionType.ALL),
            NODE_UPDATE,
            False,
            id="a registered kind, another resource",
        ),
        pytest.param(ANY_EVENT, ClusterEvent(WIDGET, ActionType.ADD), True, id="any event matches a registered kind"),
    ],
)
def test_which_events_a_registration_matches(
    registered: ClusterEventWithHint, event: ClusterEvent, is_match: bool
) -> None:
    assert registered.matches(event) is is_match


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        pytest.param(
            Kind("example.com/v1", "Widget", "widgets"),
            "an event of example.com/v1 Widget needs a view: Kind(…, view=…)",
            id="no view",
        ),
        pytest.param(
            Kind("example.com/v1", "Widget", "widgets", view=Service),
            "an event of example.com/v1 Widget needs a view of that kind; Service is a view of v1 Service",
            id="a view of another kind",
        ),
        pytest.param(
            Kind("example.com/v1", "Widget", "widgets", view=ApiObject),
            "an event of example.com/v1 Widget needs a view of that kind; ApiObject is a view of no kind",
            id="a view of no kind",
        ),
        pytest.param(NODE, "an event of v1 Node must be registered as EventResource.NODE", id="a listed kind"),
        pytest.param(
            POD,
            "an event of v1 Pod must be registered as EventResource.ASSIGNED_POD or EventResource.UNSCHEDULABLE_POD",
            id="a kind that is listed twice",
        ),
    ],
)
def test_kinds_that_cannot_move_all(kind: Kind, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        ClusterEventWithHint(kind, ActionType.ADD)


@pytest.mark.parametrize(
    ("view", "has_node"), [(pod(on="n1"), True), (pod(nominated="n1"), True), (pod(), False)], ids=str
)
def test_bound_and_nominated_pods_have_a_node(view: Pod, has_node: bool) -> None:
    assert has_node_or_nomination(engine_of().record(view)) is has_node


def test_a_pod_is_own_update_by_its_uid() -> None:
    engine = engine_of()
    rejected, updated, other = (engine.record(pod("p", uid=uid)) for uid in ("1", "1", "2"))
    assert queue_on_own_update(rejected, rejected, updated)
    assert not queue_on_own_update(rejected, rejected, other)
    assert not queue_on_own_update(rejected, rejected, None)


def test_always_skip() -> None:
    assert not always_skip(engine_of().record(pod()), None, None)


def annotated(view: Node, **annotations: str) -> Node:
    return replace(view, metadata=replace(view.metadata, annotations=annotations))


def reporting(view: Node, *conditions: Condition) -> Node:
    return replace(view, status=replace(view.status, conditions=conditions))


READY = Condition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        pytest.param(node(), node(), [], id="a heartbeat"),
        pytest.param(node(unschedulable=True), node(), ["NodeUpdateNodeTaint"], id="uncordoned"),
        pytest.param(node(), node(unschedulable=True), [], id="cordoned"),
        pytest.param(node(cpu=4), node(cpu=2), ["NodeUpdateNodeAllocatable"], id="less cpu"),
        pytest.param(node(cpu=4), node(cpu="4000m"), [], id="an equal quantity"),
        pytest.param(node(), node(others={"gpu": 0}), ["NodeUpdateNodeAllocatable"], id="one more resource"),
        pytest.param(node(), node(zone="a"), ["NodeUpdateNodeLabel"], id="another label"),
        pytest.param(node(), node(taints=["gpu:NoSchedule"]), ["NodeUpdateNodeTaint"], id="tainted"),
        pytest.param(
            node(taints=["cordon:NoSchedule"], unschedulable=True),
            node(),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"],
            id="uncordoned and untainted: two events",
        ),
        pytest.param(node(), reporting(node(), READY), ["NodeUpdateNodeCondition"], id="ready"),
        pytest.param(
            reporting(node(), READY), reporting(node(), replace(READY, reason="posted")), [], id="another reason"
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
def test_the_events_of_a_node_update(old: Node, new: Node, labels: list[str]) -> None:
    assert [event.label for event in node_events(old, new)] == labels


def generated(view: Pod, *claims: str, extended: str = "") -> Pod:
    """The pod with generated claims."""
    status = PodStatus(
        resource_claim_statuses=tuple(PodResourceClaimStatus(name=c, resource_claim_name=c) for c in claims),
        extended_resource_claim_status=PodExtendedResourceClaimStatus(resource_claim_name=extended)
        if extended
        else None,
    )
    return replace(view, status=status)


def running(view: Pod, cpu: str) -> Pod:
    """The pod with resources that its kubelet allocated."""
    return replace(view, status=PodStatus(container_statuses=(resized({"cpu": cpu}),)))


def as_a_whole(cpu: str) -> Pod:
    view = pod()
    return replace(view, spec=replace(view.spec, resources=ResourceRequirements(requests={"cpu": cpu})))


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        pytest.param(pod(), pod(phase="Pending"), ["Update"], id="nothing special"),
        pytest.param(pod(), pod(labels={"a": "b"}), ["UpdatePodLabel"], id="another label"),
        pytest.param(pod(cpu=2), pod(cpu=1), ["UpdatePodScaleDown"], id="requests less"),
        pytest.param(pod(cpu=1), pod(cpu=2), ["Update"], id="requests more"),
        pytest.param(pod(cpu="1"), pod(cpu="1000m"), ["Update"], id="an equal quantity"),
        pytest.param(
            pod(cpu=1, memory=0), pod(cpu=1), ["UpdatePodScaleDown"], id="an explicit request of zero is removed"
        ),
        pytest.param(pod(cpu=2, memory=1), pod(cpu=1, memory=2), ["UpdatePodScaleDown"], id="less of one, more of one"),
        pytest.param(as_a_whole("2"), as_a_whole("1"), ["UpdatePodScaleDown"], id="lower pod-level request"),
        pytest.param(
            running(pod(cpu=1), "2"), running(pod(cpu=1), "1"), ["UpdatePodScaleDown"], id="lower allocated resources"
        ),
        pytest.param(
            running(pod(cpu=2), "2"), running(pod(cpu=1), "2"), ["Update"], id="allocated resources unchanged"
        ),
        pytest.param(
            pod(gates=["a", "b"]), pod(), ["UpdatePodSchedulingGatesEliminated"], id="the last gate was removed"
        ),
        pytest.param(pod(gates=["a", "b"]), pod(gates=["a"]), ["Update"], id="one of two gates was removed"),
        pytest.param(pod(), pod(tolerations=["gpu"]), ["UpdatePodToleration"], id="tolerates more"),
        pytest.param(pod(), generated(pod(), "c"), ["UpdatePodGeneratedResourceClaim"], id="a generated claim"),
        pytest.param(
            pod(),
            generated(pod(), extended="c"),
            ["UpdatePodGeneratedResourceClaim"],
            id="a generated claim for extended resources",
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
def test_the_events_of_a_pod_update(old: Pod, new: Pod, labels: list[str]) -> None:
    engine = engine_of()
    events = pod_events(engine.record(old), engine.record(new), EventResource.UNSCHEDULABLE_POD)
    assert [event.label for event in events] == [f"UnschedulablePod{action}" for action in labels]


def test_the_events_of_an_assigned_pod_need_no_view() -> None:
    engine = engine_of(node("n1"), pod("p", cpu=2, on="n1"))
    old, new = engine.columns.pods["default/p"], engine.record(pod("p", cpu=1, on="n1"))
    assert old.view is None
    assert [event.label for event in pod_events(old, new, EventResource.ASSIGNED_POD)] == [
        "AssignedPodUpdatePodScaleDown"
    ]


def test_a_pod_without_containers_requests_nothing() -> None:
    engine = engine_of()
    empty = engine.record(pod(containers=()))
    asking = engine.record(pod(containers=[Container(resources=ResourceRequirements(requests={"cpu": 1}))]))
    assert [e.label for e in pod_events(asking, empty, EventResource.ASSIGNED_POD)] == ["AssignedPodUpdatePodScaleDown"]
    assert [e.label for e in pod_events(empty, asking, EventResource.ASSIGNED_POD)] == ["AssignedPodUpdate"]
