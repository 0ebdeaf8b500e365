"""Events: what they are called, and who hears them."""

from __future__ import annotations

import pytest

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
    ],
)
def test_who_hears_an_event(wake: Wake, event: ClusterEvent, is_heard: bool) -> None:
    assert wake.hears(event) is is_heard
