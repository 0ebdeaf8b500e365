"""Whether a node had a heartbeat lately."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Lease, LeaseSpec, Node, NodeCondition, NodeStatus
from mooring.controllers.node.health import GracePeriods, NodeHealth, evaluate_health, is_renewed
from mooring.kit.clock import format_rfc3339, format_rfc3339_micro

PERIODS = GracePeriods(monitor_s=50.0, startup_s=60.0)
CREATED_S = 1000.0


def node(*conditions: NodeCondition) -> Node:
    metadata = ObjectMeta(name="n1", creation_timestamp=format_rfc3339(CREATED_S))
    return Node(metadata=metadata, status=NodeStatus(conditions=conditions))


def ready(status: str = "True", beat_s: float = CREATED_S) -> NodeCondition:
    return NodeCondition(type="Ready", status=status, last_heartbeat_time=format_rfc3339(beat_s))


def lease(renewed_s: float) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=format_rfc3339_micro(renewed_s)))


@pytest.mark.parametrize(
    ("seen", "its_lease", "known", "now_s", "last_seen_s", "written"),
    [
        pytest.param(
            node(ready()), None, None, 5000.0, 5000.0, [], id="a node seen for the first time counts as seen now"
        ),
        pytest.param(node(), None, None, 1060.0, CREATED_S, [], id="a mute node has the start-up grace period"),
        pytest.param(
            node(),
            None,
            None,
            1060.5,
            CREATED_S,
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
            id="a mute node is silent after the start-up grace period",
        ),
        pytest.param(
            node(), lease(1050.0), None, 1070.0, 1070.0, [], id="a mute node with a lease is taken for healthy"
        ),
        pytest.param(
            node(ready(beat_s=1200.0)),
            None,
            NodeHealth(1100.0, ready(beat_s=1100.0)),
            1210.0,
            1210.0,
            [],
            id="a new heartbeat counts from when it is noticed",
        ),
        pytest.param(
            node(ready()), None, NodeHealth(1100.0, ready()), 1150.0, 1100.0, [], id="up to its grace period it is well"
        ),
        pytest.param(
            node(ready()),
            None,
            NodeHealth(1100.0, ready()),
            1150.5,
            1100.0,
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
            id="after its grace period it is silent",
        ),
        pytest.param(
            node(ready()),
            lease(1140.0),
            NodeHealth(1100.0, ready(), lease(1130.0)),
            1150.5,
            1150.5,
            [],
            id="a renewed lease is as good as a heartbeat",
        ),
        pytest.param(
            node(ready()),
            lease(1130.0),
            NodeHealth(1100.0, ready(), lease(1130.0)),
            1150.5,
            1100.0,
            ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"],
            id="a lease that is not renewed does not help",
        ),
        pytest.param(
            node(ready("Unknown")),
            None,
            NodeHealth(1100.0, ready("Unknown")),
            2000.0,
            1100.0,
            [],
            id="what is unknown already is not written again",
        ),
    ],
)
def test_when_a_node_is_silent(
    seen: Node, its_lease: Lease | None, known: NodeHealth | None, now_s: float, last_seen_s: float, written: list[str]
) -> None:
    health_update = evaluate_health(seen, its_lease, known, PERIODS, now_s=now_s, stamp="now")
    assert health_update.health.last_seen_s == last_seen_s
    assert [condition["type"] for condition in health_update.conditions] == written


def test_a_silent_node_says_unknown_and_was_ready() -> None:
    pressure = NodeCondition(type="MemoryPressure", status="False")
    health_update = evaluate_health(
        node(ready(), pressure), None, NodeHealth(CREATED_S, ready()), PERIODS, now_s=2000.0, stamp="now"
    )
    assert (health_update.was_ready, health_update.ready_status) == (True, "Unknown")
    assert health_update.conditions[0] == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": "now",
    }
    assert health_update.conditions[2] == {
        "type": "DiskPressure",
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": format_rfc3339(CREATED_S),
        "lastTransitionTime": "now",
    }
    assert not health_update.health.is_ready


def test_after_a_heartbeat_the_lease_counts_as_renewed_once_more() -> None:
    known = NodeHealth(1100.0, ready(beat_s=1100.0), lease(1105.0))
    first = evaluate_health(node(ready(beat_s=1200.0)), lease(1105.0), known, PERIODS, now_s=1210.0, stamp="now")
    assert first.health.lease is None
    second = evaluate_health(
        node(ready(beat_s=1200.0)), lease(1105.0), first.health, PERIODS, now_s=1215.0, stamp="now"
    )
    assert second.health.last_seen_s == 1215.0


def renewed_at(text: str | None) -> Lease:
    return Lease(spec=LeaseSpec(renew_time=text))


@pytest.mark.parametrize(
    ("before", "after", "is_so"),
    [
        pytest.param("2026-01-01T00:00:09.900000Z", "2026-01-01T00:00:10.000000Z", True, id="later"),
        pytest.param("2026-01-01T00:00:10.000000Z", "2026-01-01T00:00:09.900000Z", False, id="earlier"),
        pytest.param("2026-01-01T00:00:10.000000Z", "2026-01-01T00:00:10.000000Z", False, id="the same"),
        pytest.param("2026-01-01T00:00:10Z", "2026-01-01T00:00:10.5Z", True, id="written otherwise"),
        pytest.param("2026-01-01T02:00:00.000000+02:00", "2026-01-01T01:00:00.000000Z", True, id="of another zone"),
        pytest.param(None, "2026-01-01T00:00:10.000000Z", False, id="for the first time"),
    ],
)
def test_a_lease_is_renewed_if_its_time_is_later(before: str | None, after: str, is_so: bool) -> None:
    assert is_renewed(renewed_at(before), renewed_at(after)) is is_so
