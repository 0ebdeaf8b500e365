"""The data of the web console: the queue, the nodes and the decisions of a running scheduler, as JSON.

    overview            pods by state, pods bound so far, pending pods by reason, the latest rejections
    nodes               every node: name, zone, requested share of cpu, memory and pods
    node?node=NAME      one node: resources, taints, labels, pods
    queue?filter=&state=    pods that wait, with reason, next retry and awaited events
    pod?pod=NAMESPACE/NAME  the state of a pod and its attempts

1. The functions only read and never await: an answer shows one moment.
2. Every list has a limit with a name. An open page asks once per second, so the overview and the answer about all nodes
   are computed at most once in `REUSED_S`, whatever the number of open pages.
3. Shares are bytes, one per node, as base64: percent of the allocatable amount, at most 255. Names and zones are sent
   only if the client does not have them: `facts` identifies a set of nodes.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from itertools import islice

import numpy as np

from mooring.api.views.node import Node
from mooring.api.well_known import ZONE, ZONE_BETA
from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.cache.arrays import Int64s, UInt8s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cache.resources import CPU, CPU_NON_ZERO, MEMORY, MEMORY_NON_ZERO, PODS
from mooring.scheduler.pages import pod_page, queue_counts, queue_page
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.queue.states import QueueState
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecord
from mooring.scheduler.scheduler import Scheduler

REUSED_S = 0.9
"""Shorter than the second after which a page asks again."""
PENDING_READ_MAX = 10_000
"""Queued pods that the overview counts by reason."""
RECORDS_READ_MAX = 10_000
"""Latest decisions in which reasons of pods are looked up."""
QUEUE_ROWS_MAX = 500
DECISIONS_SHOWN_MAX = 50
REJECTIONS_SHOWN_MAX = 12
PODS_SHOWN_MAX = 500
"""Pods of a node."""
NO_ATTEMPT = "not tried yet"

Document = dict[str, object]


class ConsoleData:
    """The answers for the console of one scheduler."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._started = f"{clock.wall_s():.6f}"
        self._reused: dict[str, tuple[float, Document]] = {}
        self._facts: Document = {"facts": ""}
        self._rows: Int64s = np.zeros(0, dtype=np.int64)

    def overview(self) -> Document:
        return self._once("overview", self._overview)

    def nodes(self, facts: str) -> Document:
        """All nodes. Without names and zones if `facts` is that of the present nodes."""
        now = self._once("nodes", self._nodes)
        if facts != now["facts"]:
            return now
        return {name: value for name, value in now.items() if name not in ("names", "zone", "zones")}

    def node(self, name: str) -> Document | None:
        """One node with its pods; None if there is no such node."""
        columns = self._scheduler.engine.columns
        row = columns.row_of.get(name)
        node = columns.nodes[row] if row is not None else None
        if row is None or node is None:
            return None
        offered, used = columns.resources.at(row)
        resources = [
            {"name": resource, "allocatable": offered[slot], "requested": used[slot]}
            for slot, resource in enumerate(columns.resources.names)
            if slot not in (CPU_NON_ZERO, MEMORY_NON_ZERO) and (offered[slot] or used[slot])
        ]
        pods = sorted(columns.pods_on[row].values(), key=lambda pod: pod.key)
        return {
            "node": name,
            "zone": _zone(node),
            "unschedulable": bool(columns.unschedulable[row]),
            "resources": resources,
            "taints": [{"key": each.key, "value": each.value, "effect": each.effect} for each in node.spec.taints],
            "labels": dict(sorted(node.metadata.labels.items())),
            "podCount": len(pods),
            "pods": [self._placed(pod) for pod in pods[:PODS_SHOWN_MAX]],
        }

    def queue(self, text: str, state: str) -> Document:
        """Pods whose keys contain the text, in the given state or any."""
        scheduler = self._scheduler
        page = queue_page(
            scheduler.queue,
            scheduler.bindings.running,
            scheduler.waiting_pods,
            self._clock,
            limit=QUEUE_ROWS_MAX,
            is_shown=lambda key, each: text in key and (not state or state == each),
        )
        records, rows = self._latest_records(), page["pods"]
        assert isinstance(rows, list), "the rows of the queue are a list"
        for row in rows:
            record = records.get(row["uid"])
            if record is not None and record.node is None:
                row["reason"] = record.message or record.error
        return page | {"limit": QUEUE_ROWS_MAX, "now": format_rfc3339_micro(self._clock.wall_s())}

    def pod(self, key: str) -> Document:
        """The state of a pod (NAMESPACE/NAME), and its latest attempts, newest first."""
        scheduler = self._scheduler
        columns = scheduler.engine.columns
        parts = scheduler.queue, scheduler.bindings.running, scheduler.waiting_pods, scheduler.engine
        decisions = scheduler.reports.decisions.recent(pod=key, limit=DECISIONS_SHOWN_MAX)
        return {
            "pod": key,
            "now": format_rfc3339_micro(self._clock.wall_s()),
            "nodes": columns.node_count,
            "states": pod_page(key, *parts, self._clock)["pods"],
            "decisions": [record.document() for record in decisions],
        }

    def _once(self, name: str, compute: Callable[[], Document]) -> Document:
        known, now_s = self._reused.get(name), self._clock.now_s()
        if known is None or now_s - known[0] > REUSED_S:
            known = self._reused[name] = (now_s, compute())
        return known[1]

    def _overview(self) -> Document:
        scheduler, records = self._scheduler, self._latest_records()
        entries = list(islice(scheduler.queue.entries(), PENDING_READ_MAX))
        reasons = Counter(_reason(entry, records.get(entry.uid)) for entry in entries)
        rejected = [record for record in records.values() if record.node is None]
        return {
            "nowSeconds": self._clock.now_s(),
            "now": format_rfc3339_micro(self._clock.wall_s()),
            "bound": scheduler.metrics.attempts_ended("scheduled"),
            "rejected": scheduler.metrics.attempts_ended("unschedulable"),
            "nodes": scheduler.engine.columns.node_count,
            "pods": len(scheduler.engine.columns.pods),
            "counts": queue_counts(scheduler.queue, scheduler.bindings.running),
            "pendingRead": len(entries),
            "reasons": [[reason, count] for reason, count in reasons.most_common()],
            "rejections": [
                {
                    "time": format_rfc3339_micro(each.wall_s),
                    "pod": each.pod,
                    "attempt": each.attempt,
                    "message": each.message or each.error,
                }
                for each in rejected[:REJECTIONS_SHOWN_MAX]
            ],
        }

    def _latest_records(self) -> dict[str, DecisionRecord]:
        """The latest decision about each pod by uid, newest first."""
        latest: dict[str, DecisionRecord] = {}
        for record in self._scheduler.reports.decisions.recent(limit=RECORDS_READ_MAX):
            latest.setdefault(record.uid, record)
        return latest

    def _nodes(self) -> Document:
        columns = self._scheduler.engine.columns
        facts = f"{self._started}-{columns.fact_changes.position}"
        if self._facts["facts"] != facts:  # a pass over all nodes in Python, only after a node has changed
            self._rows = np.flatnonzero(columns.alive[: columns.height])
            self._facts = {"facts": facts} | _facts(columns, self._rows)
        rows, table = self._rows, columns.resources
        return self._facts | {
            "cpu": _text(shares(table.used[CPU, rows], table.allocatable[CPU, rows])),
            "memory": _text(shares(table.used[MEMORY, rows], table.allocatable[MEMORY, rows])),
            "pods": _text(shares(table.used[PODS, rows], table.allocatable[PODS, rows])),
        }

    def _placed(self, pod: PodInfo) -> Document:
        vector = pod.signature.request_vector
        return {
            "pod": pod.key,
            "priority": pod.priority,
            "cpuMilli": int(vector[CPU]),
            "memory": int(vector[MEMORY]),
            "terminating": pod.terminating,
            "assumed": pod.uid in self._scheduler.assumed_pods,
        }


def _facts(columns: Columns, rows: Int64s) -> Document:
    """What changes only when a node does."""
    nodes = [node for row in rows.tolist() if (node := columns.nodes[row]) is not None]
    zone_of = [_zone(node) for node in nodes]
    zones = sorted(set(zone_of))
    codes = {zone: code for code, zone in enumerate(zones)}
    flags = [int(node.spec.unschedulable) | (2 if node.spec.taints else 0) for node in nodes]
    return {
        "zones": zones,
        "names": [node.metadata.name for node in nodes],
        "zone": [codes[zone] for zone in zone_of],
        "flags": _text(np.array(flags, dtype=np.uint8)),
    }


def shares(used: Int64s, allocatable: Int64s) -> UInt8s:
    """Per row: min(255, 100 * used / allocatable); 255 if something is used of nothing."""
    percent = np.where(allocatable > 0, used * 100.0 / np.maximum(allocatable, 1), np.where(used > 0, 255.0, 0.0))
    return np.clip(percent, 0, 255).astype(np.uint8)


def _text(column: UInt8s) -> str:
    return b64encode(column.tobytes()).decode("ascii")


def _zone(node: Node) -> str:
    labels = node.metadata.labels
    return labels.get(ZONE) or labels.get(ZONE_BETA) or ""


def _reason(entry: QueuedPod, record: DecisionRecord | None) -> str:
    """Why a pod waits: the reason of the most nodes in its last attempt, or the plugins that reject it."""
    if entry.state is QueueState.GATED:
        return f"gated by {entry.gating_plugin}"
    if record is not None and record.node is not None and record.binding not in ("", BOUND):
        return record.binding
    if record is not None and record.node is None and record.rejections:
        largest = max(record.rejections, key=lambda each: each.nodes)
        return largest.reason or largest.plugin
    if entry.was_rejected:
        return f"rejected by {', '.join(sorted(entry.unschedulable_plugins | entry.pending_plugins))}"
    return "failed, see its attempts" if record is not None and record.error else NO_ATTEMPT
