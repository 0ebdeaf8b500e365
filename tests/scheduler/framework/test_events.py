"""Events: what they are called, and who hears them."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest

from mooring.api.kinds import NODE, POD, REPLICATION_CONTROLLER, Kind
from mooring.api.views.meta import ApiObject
from mooring.api.views.workloads import Service
from mooring.scheduler.framework.events import (
    ANYTHING,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    PENDING_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Subject,
    Wake,
)


class Widget(ApiObject):
    api_version: ClassVar[str] = "example.com/v1"
    kind: ClassVar[str] = "Widget"


WIDGET = Kind("example.com/v1", "Widget", "widgets", view=Widget)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (PENDING_POD_UPDATE, "UnschedulablePodUpdate"),
        (ClusterEvent(Subject.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN), "AssignedPodUpdatePodScaleDown"),
        (
            ClusterEvent(Subject.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
            "UnschedulablePodUpdatePodSchedulingGatesEliminated",
        ),
        (ClusterEvent(Subject.NODE, Action.ADD), "NodeAdd"),
        (ClusterEvent(Subject.NODE, Action.UPDATE_NODE_DECLARED_FEATURE), "NodeUpdateNodeDeclaredFeature"),
        (ClusterEvent(Subject.CSI_NODE, Action.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (ClusterEvent(WIDGET, Action.ADD), "widgets.v1.example.comAdd"),
        (ClusterEvent(REPLICATION_CONTROLLER, Action.DELETE), "replicationcontrollers.v1Delete"),
        (UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (FORCE_ACTIVATE, "ForceActivate"),
        (ClusterEvent(Subject.ANY, Action.ALL), "*All"),
        (ClusterEvent(Subject.NODE, Action.ADD | Action.DELETE), "Node"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_event_is_called_as_kubernetes_calls_it(event: ClusterEvent, label: str) -> None:
    assert event.label == label


NODE_LABEL = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_LABEL)
NODE_UPDATE = ClusterEvent(Subject.NODE, Action.UPDATE)


@pytest.mark.parametrize(
    ("wake", "event", "is_heard"),
    [
        pytest.param(Wake(Subject.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), NODE_LABEL, True, id="one of several"),
        pytest.param(Wake(Subject.NODE, Action.ADD), NODE_LABEL, False, id="another action"),
        pytest.param(Wake(Subject.CSI_NODE, Action.ALL), NODE_LABEL, False, id="another subject"),
        pytest.param(Wake(Subject.NODE, Action.UPDATE), NODE_LABEL, True, id="any update, a special one"),
        pytest.param(Wake(Subject.NODE, Action.UPDATE), NODE_UPDATE, True, id="any update, none of the special ones"),
        pytest.param(Wake(Subject.NODE, Action.UPDATE_NODE_LABEL), NODE_UPDATE, False, id="a special one, another one"),
        pytest.param(ANYTHING, NODE_UPDATE, True, id="anything"),
        pytest.param(ANYTHING, UNSCHEDULABLE_TIMEOUT, True, id="anything, an event about anything"),
        pytest.param(Wake(Subject.NODE, Action.ALL), UNSCHEDULABLE_TIMEOUT, False, id="an event about anything"),
        pytest.param(Wake(Subject.ANY, Action.ADD), UNSCHEDULABLE_TIMEOUT, False, id="what comes, whatever it is"),
        pytest.param(ANYTHING, ClusterEvent(Subject.NODE, Action.NONE), False, id="nothing happened"),
        pytest.param(Wake(WIDGET, Action.ALL), ClusterEvent(WIDGET, Action.ADD), True, id="a kind that was named"),
        pytest.param(Wake(WIDGET, Action.ALL), NODE_UPDATE, False, id="a kind that was named, another subject"),
        pytest.param(ANYTHING, ClusterEvent(WIDGET, Action.ADD), True, id="anything, a kind that another one named"),
    ],
)
def test_who_hears_an_event(wake: Wake, event: ClusterEvent, is_heard: bool) -> None:
    assert wake.hears(event) is is_heard


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        pytest.param(
            Kind("example.com/v1", "Widget", "widgets"),
            "a wake by example.com/v1 Widget needs a view to read it by: Kind(…, view=…)",
            id="nothing to read it by",
        ),
        pytest.param(
            Kind("example.com/v1", "Widget", "widgets", view=Service),
            "a wake by example.com/v1 Widget needs a view of that kind; Service is one of v1 Service",
            id="read as if it were another kind",
        ),
        pytest.param(
            Kind("example.com/v1", "Widget", "widgets", view=ApiObject),
            "a wake by example.com/v1 Widget needs a view of that kind; ApiObject is one of no kind",
            id="read as if it were any kind",
        ),
        pytest.param(NODE, "a wake by v1 Node is a wake by Subject.NODE", id="a kind that has a subject"),
        pytest.param(
            POD, "a wake by v1 Pod is a wake by Subject.ASSIGNED_POD or Subject.PENDING_POD", id="a kind that has two"
        ),
    ],
)
def test_kinds_that_cannot_wake(kind: Kind, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        Wake(kind, Action.ADD)
