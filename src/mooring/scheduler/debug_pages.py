"""What the scheduler has in mind, as plain data: the pages /debug/queue and /debug/cache.

Comes in   the queue, the bindings under way and the believed cluster
Goes out   data that JSON can carry, for people who ask why a pod waits or what a node is believed to hold

1. Reading only, and nothing here waits: a page is a picture of one moment. 2. Who asks about one pod is always told
   something: one that has left the queue may wait for a volume for ten minutes, and to its owner it is as pending as
   before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.binding.assumed_pods import Assumptions
from mooring.scheduler.binding.cycle import Binding, Stage
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.framework.waiting_pods import WaitingPods
from mooring.scheduler.queue.queue import SchedulingQueue
from mooring.scheduler.queue.queued_pod import QueuedPod

ROWS_MAX = 10_000
"""So many pods or nodes are shown at most; the page says how many there are."""


NOBODYS = "not known: it does not exist, has finished, or waits for another scheduler"


def queue_told(
    queue: SchedulingQueue, bindings: Mapping[str, Binding], waiting: WaitingPods, clock: Clock
) -> dict[str, object]:
    """Every pod that waits or is on its way to its node: where it is, since when and why."""
    numbers = queue.statistics()
    rows = list(islice(_rows(queue, bindings, waiting, clock), ROWS_MAX))
    return {
        "counts": {
            "active": numbers.active,
            "backoff": numbers.backoff,
            "unschedulable": numbers.unschedulable,
            "gated": numbers.gated,
            "inFlight": numbers.in_flight,
            "binding": sum(queue.status(uid) is None for uid in bindings),
        },
        "shown": len(rows),
        "pods": rows,
    }


def pod_told(
    key: str,
    queue: SchedulingQueue,
    bindings: Mapping[str, Binding],
    waiting: WaitingPods,
    columns: Columns,
    clock: Clock,
) -> dict[str, object]:
    """The same about one pod (NAMESPACE/NAME), wherever it is: usually one row, several if the name was used again."""
    rows = list(_rows(queue, bindings, waiting, clock, key=key))
    told = {row["uid"] for row in rows}
    for pod in columns.pods.values():
        if pod.key == key and pod.uid not in told:
            rows.append({"pod": key, "uid": pod.uid, "state": "on its node", "node": pod.node_name})
    return {"shown": len(rows), "pods": rows or [{"pod": key, "state": NOBODYS}]}


def _rows(
    queue: SchedulingQueue, bindings: Mapping[str, Binding], waiting: WaitingPods, clock: Clock, *, key: str = ""
) -> Iterator[dict[str, object]]:
    for entry in queue.entries():
        if not key or entry.pod.key == key:
            told = _entry_told(queue, entry, clock)
            binding = bindings.get(entry.pod.uid)
            yield told if binding is None else told | _way_told(binding, waiting)
    for uid, binding in bindings.items():
        if queue.status(uid) is None and (not key or binding.pod.key == key):
            yield {
                "pod": binding.pod.key,
                "uid": uid,
                "scheduler": binding.entry.scheduler_name,
                "priority": binding.pod.signature.priority,
                "state": "binding",
                "since": _wall(binding.started_s, clock),
                "attempts": binding.entry.attempts,
            } | _way_told(binding, waiting)


def _way_told(binding: Binding, waiting: WaitingPods) -> dict[str, object]:
    """How far a pod has come that has been given its node."""
    told: dict[str, object] = {"node": binding.node_name, "stage": binding.stage.value}
    waiter = waiting.get(binding.pod.uid)
    if waiter is not None:
        told["waitsFor"] = list(waiter.pending_plugins)
    elif binding.stage is Stage.PREPARING:
        told["waitsFor"] = [plugin.name for plugin in binding.pre_binds]
    return told


def _entry_told(queue: SchedulingQueue, entry: QueuedPod, clock: Clock) -> dict[str, object]:
    where = queue.status(entry.pod.uid)
    assert where is not None, f"{entry} is in the queue, and is not"
    told: dict[str, object] = {
        "pod": entry.pod.key,
        "uid": entry.pod.uid,
        "scheduler": entry.scheduler_name,
        "priority": entry.pod.signature.priority,
        "state": where.state.words,
        "since": _wall(where.since_s, clock),
        "cause": where.cause.words,
        "event": where.event_label,
        "attempts": where.attempts,
    }
    if where.gating_plugin is not None:
        told["gatedBy"] = where.gating_plugin
    if where.unschedulable_plugins:
        told["rejectedBy"] = list(where.unschedulable_plugins)
    if where.pending_plugins:
        told["waitsFor"] = list(where.pending_plugins)
    if where.backoff_end_s is not None:
        told["backsOffUntil"] = _wall(where.backoff_end_s, clock)
    if where.timeout_s is not None:
        told["retriedAtTheLatest"] = _wall(where.timeout_s, clock)
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
