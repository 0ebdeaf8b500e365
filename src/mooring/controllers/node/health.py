"""The health of a node by its heartbeats, and the taints and labels that follow from its state.

Inputs: a node, its lease, the health at the last check, the time. Outputs: a `HealthUpdate`.

1. A heartbeat is a new heartbeat time of the Ready condition or a renewed lease. Its time is when this process
   noticed it: the clocks of nodes may be wrong.
2. A node without a Ready condition has the start-up grace period since its creation, others the monitor grace
   period since the last heartbeat.
3. After that Ready, MemoryPressure, DiskPressure and PIDPressure become Unknown, once. NetworkUnavailable belongs
   to others.
4. As in kube-controller-manager, a new heartbeat time drops the lease, so that the next check counts it as renewed.

Taints and labels follow from the state of a node. Inputs: nodes and pods. Outputs: a `TaintChange`, labels to set; the
patches that write them.

1. NoSchedule taints mirror conditions and `spec.unschedulable`. Other taints are not compared.
2. A node has never both not-ready and unreachable as NoExecute taints: they mirror one condition.
3. Taints are equal if key and effect are.
4. A patch replaces the list of taints. It carries the resourceVersion and is retried after a conflict, up to five
   times. It adds and removes in one write.
5. Only pods with a Ready condition that is not False are marked as not ready. A pod that is gone is no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.kinds import NODE, place_of
from mooring.api.tolerations import NO_EXECUTE, NO_SCHEDULE
from mooring.api.views.meta import find_condition
from mooring.api.views.node import Lease, Node, NodeCondition, Taint
from mooring.api.views.pod import Pod
from mooring.api.well_known import (
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
)
from mooring.client.errors import ClientError, ConflictError, NotFoundError
from mooring.client.events import EventRecorder
from mooring.client.interface import Client, PatchForm
from mooring.controllers.documents import decode_document
from mooring.controllers.pods import ready_condition
from mooring.kit.clock import Clock, format_rfc3339, parse_rfc3339
from mooring.kit.entropy import Entropy

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


# --- taints and labels ----------------------------------------------------------------------------------------


NOT_READY = Taint(key=TAINT_NOT_READY, effect=NO_EXECUTE)
UNREACHABLE = Taint(key=TAINT_UNREACHABLE, effect=NO_EXECUTE)
_KEY_OF_CONDITION: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): TAINT_NOT_READY,
    ("Ready", "Unknown"): TAINT_UNREACHABLE,
    ("MemoryPressure", "True"): TAINT_MEMORY_PRESSURE,
    ("DiskPressure", "True"): TAINT_DISK_PRESSURE,
    ("NetworkUnavailable", "True"): TAINT_NETWORK_UNAVAILABLE,
    ("PIDPressure", "True"): TAINT_PID_PRESSURE,
}
_MIRRORED_KEYS = frozenset((*_KEY_OF_CONDITION.values(), TAINT_UNSCHEDULABLE))
_COPIED_LABELS = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)
TRIES_MAX = 5
RETRY_S = 0.1


@dataclass(frozen=True, slots=True)
class TaintChange:
    """Taints to add and to remove."""

    added: tuple[Taint, ...] = ()
    removed: tuple[Taint, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def no_schedule_change(node: Node) -> TaintChange:
    """The change after which the NoSchedule taints mirror the conditions."""
    keys = [
        key
        for condition in node.status.conditions
        if (key := _KEY_OF_CONDITION.get((condition.type, condition.status))) is not None
    ]
    if node.spec.unschedulable:
        keys.append(TAINT_UNSCHEDULABLE)
    present = [taint for taint in node.spec.taints if taint.effect == NO_SCHEDULE and taint.key in _MIRRORED_KEYS]
    present_keys = [taint.key for taint in present]
    return TaintChange(
        added=tuple(Taint(key=key, effect=NO_SCHEDULE) for key in keys if key not in present_keys),
        removed=tuple(taint for taint in present if taint.key not in keys),
    )


def no_execute_change(ready_status: str) -> TaintChange | None:
    """The NoExecute taints of a node with that Ready status. None if it is ready."""
    if ready_status == "False":
        return TaintChange((NOT_READY,), (UNREACHABLE,))
    if ready_status == "Unknown":
        return TaintChange((UNREACHABLE,), (NOT_READY,))
    return None


REACHABLE = TaintChange(removed=(UNREACHABLE, NOT_READY))


def has_taint(taints: Iterable[Taint], searched: Taint) -> bool:
    return any(taint.key == searched.key and taint.effect == searched.effect for taint in taints)


def taints_after(taints: list[Document], change: TaintChange, now: str) -> list[Document] | None:
    """The taints after a change. None if nothing changes. A taint that is added again gets a new time."""
    result = [*taints]
    is_changed = False
    for taint in change.added:
        document = {"key": taint.key, "effect": taint.effect, "timeAdded": now}
        for index, present in enumerate(result):
            if _is_same(present, taint):
                if present != document:
                    result[index], is_changed = document, True
                break
        else:
            result.append(document)
            is_changed = True
    for taint in change.removed:
        left = [present for present in result if not _is_same(present, taint)]
        is_changed = is_changed or len(left) != len(result)
        result = left
    return result if is_changed else None


def labels_to_set(node: Node) -> dict[str, str]:
    """The deprecated labels that copy other labels."""
    labels = node.metadata.labels
    return {old: labels[new] for new, old in _COPIED_LABELS if new in labels and labels.get(old) != labels[new]}


def _is_same(document: Document, taint: Taint) -> bool:
    return bool(document.get("key") == taint.key and document.get("effect") == taint.effect)


class NodeWriter:
    """Patches nodes for one controller."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy

    async def change_taints(self, name: str, change: TaintChange) -> None:
        """Change taints, with retries on conflicts. Raises `ClientError`."""
        for left in reversed(range(TRIES_MAX)):
            node: Document = decode_document(await self._client.get(NODE, "", name))
            spec: Document = node.get("spec") or {}
            taints = taints_after(spec.get("taints") or [], change, format_rfc3339(self._clock.wall_s()))
            if taints is None:
                return
            metadata = {"resourceVersion": node["metadata"]["resourceVersion"]}
            patch = {"metadata": metadata, "spec": {"taints": taints or None}}
            try:
                await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC)
                return
            except ConflictError:
                if not left:
                    raise
            await self._clock.wait(RETRY_S * (1.0 + self._entropy.uniform()))

    async def set_labels(self, name: str, labels: Mapping[str, str]) -> None:
        """Set labels. Raises `ClientError`."""
        await self._client.patch(NODE, "", name, {"metadata": {"labels": dict(labels)}}, form=PatchForm.STRATEGIC)

    async def set_conditions(self, name: str, uid: str, revision: str, conditions: list[Document]) -> None:
        """Write conditions if the node is unchanged since they were decided. Raises `ClientError`."""
        patch = {"metadata": {"uid": uid, "resourceVersion": revision}, "status": {"conditions": conditions}}
        await self._client.patch(NODE, "", name, patch, form=PatchForm.STRATEGIC, subresource="status")


async def mark_pods_not_ready(
    client: Client, recorder: EventRecorder, clock: Clock, pods: Sequence[Pod]
) -> list[ClientError]:
    """Mark pods as not ready. Returns the errors."""
    errors: list[ClientError] = []
    for pod in pods:
        ready = ready_condition(pod)
        if ready is None or ready.status == "False":
            continue
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_rfc3339(clock.wall_s())}
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        try:
            await client.patch(*place_of(pod), patch, form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            continue
        except ClientError as error:
            errors.append(error)
        recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")
    return errors
