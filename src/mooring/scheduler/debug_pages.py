"""The debug pages /debug/queue and /debug/cache as plain data: why a pod waits, and what the columns have for a node.

1. A page only reads, and never awaits: it shows one moment.
2. The page of one pod always has an entry. A pod that has left the queue may wait for a volume for ten minutes, and
   to its owner it is still pending.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.binding.assumed_pods import AssumedPods
from mooring.scheduler.binding.cycle import Binding, Stage
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.queue import SchedulingQueue

ROWS_MAX = 10_000
"""Limit of the pods or nodes on a page. The page also shows the total."""
UNKNOWN_POD = "not known: it does not exist, has finished, or waits for another scheduler"


def queue_page(
    queue: SchedulingQueue, bindings: Mapping[str, Binding], waiting: WaitingPods, clock: Clock
) -> dict[str, object]:
    """Every pending pod and every running binding: where the pod is, since when and why."""
    numbers = queue.statistics()
    rows = list(islice(_rows(queue, bindings, waiting, clock), ROWS_MAX))
    return {
        "counts": {
            "active": numbers.active,
            "backoff": numbers.backoff,
            "unschedulable": numbers.unschedulable,
            "gated": numbers.gated,
            "inFlight": numbers.in_flight,
            "binding": sum(queue.whereabouts(uid) is None for uid in bindings),
        },
        "shown": len(rows),
        "pods": rows,
    }


def pod_page(
    key: str,
    queue: SchedulingQueue,
    bindings: Mapping[str, Binding],
    waiting: WaitingPods,
    columns: Columns,
    clock: Clock,
) -> dict[str, object]:
    """One pod (NAMESPACE/NAME), wherever it is. Several rows if the name was used again."""
    rows = list(_rows(queue, bindings, waiting, clock, key=key))
    known = {row["uid"] for row in rows}
    for pod in columns.pods.values():
        if pod.key == key and pod.uid not in known:
            rows.append({"pod": key, "uid": pod.uid, "room": "on its node", "node": pod.node_name})
    return {"shown": len(rows), "pods": rows or [{"pod": key, "room": UNKNOWN_POD}]}


def _rows(
    queue: SchedulingQueue, bindings: Mapping[str, Binding], waiting: WaitingPods, clock: Clock, *, key: str = ""
) -> Iterator[dict[str, object]]:
    for entry in queue.entries():
        if not key or entry.pod.key == key:
            fields = _entry_row(queue, entry, clock)
            binding = bindings.get(entry.pod.uid)
            yield fields if binding is None else fields | _binding_fields(binding, waiting)
    for uid, binding in bindings.items():
        if queue.whereabouts(uid) is None and (not key or binding.pod.key == key):
            yield {
                "pod": binding.pod.key,
                "uid": uid,
                "scheduler": binding.entry.scheduler_name,
                "priority": binding.pod.signature.priority,
                "room": "binding",
                "since": _wall(binding.started_s, clock),
                "attempts": binding.entry.attempts,
            } | _binding_fields(binding, waiting)


def _binding_fields(binding: Binding, waiting: WaitingPods) -> dict[str, object]:
    """The stage of a binding."""
    fields: dict[str, object] = {"node": binding.node_name, "stage": binding.stage.value}
    waiter = waiting.get(binding.pod.uid)
    if waiter is not None:
        fields["waitsFor"] = list(waiter.pending_plugins)
    elif binding.stage is Stage.PREPARING:
        fields["waitsFor"] = [plugin.name for plugin in binding.pre_binds]
    return fields


def _entry_row(queue: SchedulingQueue, entry: QueuedPod, clock: Clock) -> dict[str, object]:
    where = queue.whereabouts(entry.pod.uid)
    assert where is not None, f"the queue lists {entry} and does not find it"
    fields: dict[str, object] = {
        "pod": entry.pod.key,
        "uid": entry.pod.uid,
        "scheduler": entry.scheduler_name,
        "priority": entry.pod.signature.priority,
        "room": where.room.words,
        "since": _wall(where.since_s, clock),
        "cause": where.cause.words,
        "event": where.label,
        "attempts": where.attempts,
    }
    if where.gated_by is not None:
        fields["gatedBy"] = where.gated_by
    if where.rejectors:
        fields["refusedBy"] = list(where.rejectors)
    if where.pending:
        fields["waitsFor"] = list(where.pending)
    if where.backoff_end_s is not None:
        fields["backsOffUntil"] = _wall(where.backoff_end_s, clock)
    if where.asleep_until_s is not None:
        fields["wokenAtTheLatest"] = _wall(where.asleep_until_s, clock)
    if entry.pod.nominated_node:
        fields["nominatedNode"] = entry.pod.nominated_node
    return fields


def cache_page(columns: Columns, assumed_pods: AssumedPods, *, node: str = "") -> dict[str, object]:
    """Every node with its allocatable and requested resources; with its pods if `node` is given."""
    rows = [row for name, row in sorted(columns.row_of.items()) if not node or name == node]
    return {
        "counts": {"nodes": columns.node_count, "pods": len(columns.pods), "assumedPods": len(assumed_pods)},
        "shown": min(len(rows), ROWS_MAX),
        "nodes": [_node_row(columns, assumed_pods, row, with_pods=bool(node)) for row in rows[:ROWS_MAX]],
    }


def _node_row(columns: Columns, assumed_pods: AssumedPods, row: int, *, with_pods: bool) -> dict[str, object]:
    offered, used = columns.resources.at(row)
    pods = columns.pods_on[row]
    fields: dict[str, Any] = {
        "node": columns.node_names[row],
        "unschedulable": bool(columns.unschedulable[row]),
        "allocatable": _amounts(columns, offered),
        "requested": _amounts(columns, used),
        "pods": len(pods),
        "assumedPods": sum(uid in assumed_pods for uid in pods),
    }
    if with_pods:
        fields["podNames"] = sorted(pod.key for pod in pods.values())
    return fields


def _amounts(columns: Columns, amounts: list[int]) -> dict[str, int]:
    """By resource; cpu in millicores, as in the columns."""
    return {
        "cpuMilli" if name == "cpu" else name: amount
        for slot, (name, amount) in enumerate(zip(columns.resources.names, amounts))
        if amount and slot not in (CPU_NON_ZERO, MEMORY_NON_ZERO)
    }


def _wall(now_s: float, clock: Clock) -> str:
    """A time of the clock as a timestamp."""
    return format_rfc3339_micro(clock.wall_s() - clock.now_s() + now_s)
