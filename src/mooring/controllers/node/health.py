"""The health of a node, by its heartbeats. No I/O.

Inputs: a node, its lease, the health at the last check, the time. Outputs: a `HealthUpdate`.

1. A heartbeat is a new heartbeat time of the Ready condition or a renewed lease. Its time is when this process
   noticed it: the clocks of nodes may be wrong.
2. A node without a Ready condition has the start-up grace period since its creation, others the monitor grace
   period since the last heartbeat.
3. After that Ready, MemoryPressure, DiskPressure and PIDPressure become Unknown, once. NetworkUnavailable belongs
   to others.
4. As in kube-controller-manager, a new heartbeat time drops the lease, so that the next check counts it as renewed.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.views.node import Lease, Node, NodeCondition
from mooring.controllers.conditions import find_condition
from mooring.kit.clock import parse_rfc3339

READY = "Ready"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MICRO_TIME_LENGTH = len("2026-01-01T00:00:00.000000Z")
MONITORED_CONDITIONS = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class GracePeriods:
    """How long a node may be without a heartbeat."""

    monitor_s: float
    startup_s: float


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The observed health of a node."""

    last_seen_s: float
    """Time of the last heartbeat, in seconds since 1970 by a clock that never goes back."""
    ready: NodeCondition | None
    """The Ready condition at that time."""
    lease: Lease | None = None

    @property
    def is_ready(self) -> bool:
        return self.ready is not None and self.ready.status == TRUE


@dataclass(frozen=True, slots=True)
class HealthUpdate:
    """The result of one health check."""

    health: NodeHealth
    was_ready: bool
    """Whether the node reported to be ready."""
    ready_status: str | None
    """The status of the Ready condition after `conditions` are written. None without one."""
    unhealthy_after_s: float
    """When the node becomes unhealthy without another heartbeat."""
    conditions: list[Document]
    """Conditions to write. Empty if nothing changes."""


def evaluate_health(
    node: Node, lease: Lease | None, known: NodeHealth | None, periods: GracePeriods, *, now_s: float, stamp: str
) -> HealthUpdate:
    """Check the health of a node. `stamp` is the time for conditions."""
    ready = find_condition(node.status.conditions, READY)
    health, grace_s = _last_seen(node, ready, known, periods, now_s)
    known_lease = known.lease if known is not None else None
    if lease is not None and is_renewed(known_lease, lease):
        health = NodeHealth(now_s, health.ready, lease)
    was_ready = ready is not None and ready.status == TRUE
    ready_status = ready.status if ready is not None else None
    unhealthy_after_s = health.last_seen_s + grace_s
    if now_s <= unhealthy_after_s:
        return HealthUpdate(health, was_ready, ready_status, unhealthy_after_s, [])
    conditions = [] if ready_status == UNKNOWN else _unknown_conditions(node, stamp)
    if conditions:
        written = NodeCondition(
            type=READY,
            status=UNKNOWN,
            last_heartbeat_time=ready.last_heartbeat_time if ready is not None else node.metadata.creation_timestamp,
            last_transition_time=stamp,
        )
        health = NodeHealth(health.last_seen_s, written, lease)
    return HealthUpdate(health, was_ready, UNKNOWN, unhealthy_after_s, conditions)


def is_renewed(known: Lease | None, lease: Lease) -> bool:
    if known is None:
        return True
    before, after = known.spec.renew_time, lease.spec.renew_time
    if before is None or after is None or before == after:
        return False
    if len(before) == len(after) == MICRO_TIME_LENGTH and before[-1] == after[-1] == "Z":
        return before < after  # both in the format of kubelets, so that the texts sort by time
    return parse_rfc3339(before) < parse_rfc3339(after)


def _last_seen(
    node: Node, ready: NodeCondition | None, known: NodeHealth | None, periods: GracePeriods, now_s: float
) -> tuple[NodeHealth, float]:
    """The health after reading the conditions, and the grace period."""
    if ready is None:
        created = node.metadata.creation_timestamp
        last_seen_s = known.last_seen_s if known is not None else parse_rfc3339(created) if created else now_s
        return NodeHealth(last_seen_s, None, known.lease if known is not None else None), periods.startup_s
    if known is None or known.ready is None or known.ready.last_heartbeat_time != ready.last_heartbeat_time:
        return NodeHealth(now_s, ready), periods.monitor_s
    return known, periods.monitor_s


def _unknown_conditions(node: Node, now: str) -> list[Document]:
    changed: list[Document] = []
    for type in MONITORED_CONDITIONS:
        condition = find_condition(node.status.conditions, type)
        if condition is None:
            changed.append(
                {
                    "type": type,
                    "status": UNKNOWN,
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": node.metadata.creation_timestamp,
                    "lastTransitionTime": now,
                }
            )
        elif condition.status != UNKNOWN:
            changed.append(
                {
                    "type": type,
                    "status": UNKNOWN,
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": now,
                }
            )
    return changed
