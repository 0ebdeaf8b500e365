"""What the scheduler has in mind, as plain data: the pages /debug/queue and /debug/cache.

Comes in   the queue and the believed cluster
Goes out   data that JSON can carry, for people who ask why a pod waits or what a node is believed to hold

Reading only, and nothing here waits: a page is a picture of one moment.
"""

from __future__ import annotations

from typing import Any

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.binding.assumptions import Assumptions
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.queue.entry import QueuedPod
from mooring.scheduler.queue.queue import SchedulingQueue

ROWS_MAX = 10_000
"""So many pods or nodes are shown at most; the page says how many there are."""


def queue_told(queue: SchedulingQueue, clock: Clock, *, pod: str = "") -> dict[str, object]:
    """Every waiting pod: where it is, since when and why; only `pod` (NAMESPACE/NAME), if it is given."""
    numbers = queue.statistics()
    entries = [entry for entry in queue.entries() if not pod or entry.pod.key == pod]
    return {
        "counts": {
            "active": numbers.active,
            "backoff": numbers.backoff,
            "unschedulable": numbers.unschedulable,
            "gated": numbers.gated,
            "inFlight": numbers.in_flight,
        },
        "shown": min(len(entries), ROWS_MAX),
        "pods": [_pod_told(queue, entry, clock) for entry in entries[:ROWS_MAX]],
    }


def _pod_told(queue: SchedulingQueue, entry: QueuedPod, clock: Clock) -> dict[str, object]:
    where = queue.whereabouts(entry.pod.uid)
    assert where is not None, f"{entry} is in the queue, and is not"
    told: dict[str, object] = {
        "pod": entry.pod.key,
        "uid": entry.pod.uid,
        "scheduler": entry.scheduler_name,
        "priority": entry.pod.shape.priority,
        "room": where.room.words,
        "since": _wall(where.since_s, clock),
        "cause": where.cause.words,
        "event": where.label,
        "attempts": where.attempts,
    }
    if where.gated_by is not None:
        told["gatedBy"] = where.gated_by
    if where.rejectors:
        told["refusedBy"] = list(where.rejectors)
    if where.pending:
        told["waitsFor"] = list(where.pending)
    if where.backoff_end_s is not None:
        told["backsOffUntil"] = _wall(where.backoff_end_s, clock)
    if where.asleep_until_s is not None:
        told["wokenAtTheLatest"] = _wall(where.asleep_until_s, clock)
    if entry.pod.nominated_node:
        told["nominatedNode"] = entry.pod.nominated_node
    return told


def cache_told(columns: Columns, assumptions: Assumptions, *, node: str = "") -> dict[str, object]:
    """Every node: what it offers, and what is believed to be used of it; with its pods if one `node` is asked for."""
    rows = [row for name, row in sorted(columns.row_of.items()) if not node or name == node]
    return {
        "counts": {"nodes": columns.node_count, "pods": len(columns.pods), "assumedPods": len(assumptions)},
        "shown": min(len(rows), ROWS_MAX),
        "nodes": [_node_told(columns, assumptions, row, with_pods=bool(node)) for row in rows[:ROWS_MAX]],
    }


def _node_told(columns: Columns, assumptions: Assumptions, row: int, *, with_pods: bool) -> dict[str, object]:
    offered, used = columns.resources.at(row)
    pods = columns.pods_on[row]
    told: dict[str, Any] = {
        "node": columns.node_names[row],
        "unschedulable": bool(columns.unschedulable[row]),
        "allocatable": _amounts(columns, offered),
        "requested": _amounts(columns, used),
        "pods": len(pods),
        "assumedPods": sum(uid in assumptions for uid in pods),
    }
    if with_pods:
        told["podNames"] = sorted(pod.key for pod in pods.values())
    return told


def _amounts(columns: Columns, amounts: list[int]) -> dict[str, int]:
    """By resource; cpu in thousandths, as everywhere in the columns."""
    return {
        "cpuMilli" if name == "cpu" else name: amount
        for slot, (name, amount) in enumerate(zip(columns.resources.names, amounts))
        if amount and slot not in (CPU_NON_ZERO, MEMORY_NON_ZERO)
    }


def _wall(now_s: float, clock: Clock) -> str:
    """A reading of the clock as a date."""
    return format_rfc3339_micro(clock.wall_s() - clock.now_s() + now_s)
