"""The data of the web console: the queue, the nodes and the decisions of a running scheduler, as JSON.

    overview            pods by state, pods bound so far, pending pods by reason, waiting times, the latest rejections
    history             the samples of the overview that the charts show
    nodes?label=&facts= every node as bytes (`nodes`): name, group, requested share of cpu, memory and pods
    nodes/version?label=    changes with them
    node?node=NAME      one node: resources, taints, labels, pods, volumes, devices
    queue?filter=&state=&sort=&descending=&offset=&limit=    a window of the pods that wait
    pod?pod=NAMESPACE/NAME      the state of a pod and its attempts
    explain?pod=NAMESPACE/NAME  its life in the API, the nearest nodes, where it could preempt
    manifest?pod=NAMESPACE/NAME what the scheduler reads of it, as a manifest
    workloads           the pods of each controller by state

1. The functions only read and never await, except `explain`: an answer shows one moment.
2. Every list has a limit with a name. An open page asks once per second, so the overview and the answers about all
   nodes and all workloads are computed at most once in `REUSED_S`, and more rarely if they take long
   (`REUSED_TIMES`), whatever the number of open pages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.console.nodes import NodeColumns, NodeTable, node_page
from mooring.scheduler.console.overview import OverviewHistory, pending_reasons, pending_waits_s
from mooring.scheduler.console.pods import explain_pod, manifest_of, pod_life
from mooring.scheduler.console.queue import REUSED_TIMES, WINDOW_MAX, QueueWindows, waits_since_s
from mooring.scheduler.console.workloads import workloads
from mooring.scheduler.pages import pod_page, wall_time
from mooring.scheduler.reporting.decision_records import DecisionRecord
from mooring.scheduler.scheduler import Scheduler

REUSED_S = 0.9
"""Shorter than the second after which a page asks again."""
PENDING_READ_MAX = 10_000
"""Queued pods that the overview counts by reason."""
RECORDS_READ_MAX = 10_000
"""Latest decisions in which reasons of pods are looked up."""
ANSWERS_MAX = 12
"""Answers that are held. There is one for each label by which the nodes are grouped."""
DECISIONS_SHOWN_MAX = 50
REJECTIONS_SHOWN_MAX = 12

Document = dict[str, object]
Answer = TypeVar("Answer")


class Reused(Generic[Answer]):
    """Answers by name. Each is used again for a while that depends on the time that it took."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, Answer]] = {}
        """By name: until when an answer is used again, and the answer."""

    def get(self, name: str, compute: Callable[[], Answer]) -> Answer:
        known, now_s = self._known.get(name), self._clock.now_s()
        if known is None or now_s > known[0]:
            answer = compute()
            ended_s = self._clock.now_s()
            self._known.pop(name, None)  # so that the oldest answer is the first
            known = self._known[name] = (ended_s + max(REUSED_S, REUSED_TIMES * (ended_s - now_s)), answer)
            while len(self._known) > ANSWERS_MAX:
                del self._known[next(iter(self._known))]
        return known[1]


class ConsoleData:
    """The answers for the console of one scheduler."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._answers = Reused[Document](clock)
        self._tables = Reused[NodeTable](clock)
        self._nodes = NodeColumns(scheduler, clock)
        self._queue = QueueWindows(scheduler, clock)
        self._history = OverviewHistory()

    def overview(self) -> Document:
        return self._answers.get("overview", self._overview)

    def history(self) -> Document:
        """The samples of the last hour."""
        return {"samples": self._history.samples()}

    def sample(self) -> None:
        """Take a sample for the charts, if it is time for one."""
        if self._history.is_due(self._clock.now_s()):
            self.overview()

    def nodes(self, label: str = "") -> NodeTable:
        """All nodes, grouped by a label or by zone."""
        return self._tables.get(label, lambda: self._nodes.table(label))

    def node(self, name: str) -> Document | None:
        """One node with its pods; None if there is no such node."""
        return node_page(self._scheduler, name)

    def queue(
        self,
        text: str,
        state: str,
        *,
        offset: int = 0,
        limit: int = WINDOW_MAX,
        sort: str = "",
        descending: bool = False,
    ) -> Document:
        """A window of the pods whose keys contain the text, in the given state or any."""
        return self._queue.window(
            text, state, self._latest_records(), offset=offset, limit=limit, sort=sort, descending=descending
        )

    @property
    def queue_columns(self) -> tuple[str, ...]:
        """The columns by which the queue can be sorted."""
        return self._queue.columns

    def pod(self, key: str) -> Document:
        """The state of a pod (NAMESPACE/NAME), and its latest attempts, newest first."""
        scheduler = self._scheduler
        parts = scheduler.queue, scheduler.bindings.running, scheduler.waiting_pods, scheduler.engine
        decisions = scheduler.reports.decisions.recent(pod=key, limit=DECISIONS_SHOWN_MAX)
        namespace, _, name = key.partition("/")
        queued = [
            each for each in scheduler.queue.entries() if each.pod.name == name and each.pod.namespace == namespace
        ]
        return {
            "pod": key,
            "now": format_rfc3339_micro(self._clock.wall_s()),
            "nodes": scheduler.engine.columns.node_count,
            "states": pod_page(key, *parts, self._clock)["pods"],
            "queued": [wall_time(waits_since_s(each), self._clock) for each in queued],
            "decisions": [record.document() for record in decisions],
        }

    async def explain(self, key: str) -> Document:
        """The life of a pod in the API; of a pending pod also the nearest nodes and where it could preempt."""
        life = await pod_life(self._scheduler.client, key)
        return {"pod": key, "life": life} | explain_pod(self._scheduler, key, self._clock)

    def manifest(self, key: str) -> Document | None:
        """What the scheduler reads of a pod, as a manifest; None if there is no such pod."""
        return manifest_of(self._scheduler, key)

    def workloads(self) -> Document:
        """The pods of each controller by state."""
        return self._answers.get("workloads", lambda: workloads(self._scheduler))

    def _overview(self) -> Document:
        scheduler, records, now_s = self._scheduler, self._latest_records(), self._clock.now_s()
        entries = list(islice(scheduler.queue.entries(), PENDING_READ_MAX))
        reasons = pending_reasons(entries, records)
        rejected = [record for record in records.values() if record.node is None]
        metrics, wall_s = scheduler.metrics, self._clock.wall_s()
        bound = metrics.attempts_ended("scheduled")
        waits_s = pending_waits_s(entries, now_s)
        numbers = self._history.measure(now_s, wall_s, bound, metrics.waits(), reasons, waits_s)
        return {
            "nowSeconds": now_s,
            "now": format_rfc3339_micro(wall_s),
            "bound": bound,
            "rejected": metrics.attempts_ended("unschedulable"),
            "nodes": scheduler.engine.columns.node_count,
            "pods": len(scheduler.engine.columns.pods),
            "counts": self._queue.counts(),
            "pendingRead": len(entries),
            "reasons": [[reason, count] for reason, count in reasons.most_common()],
            "numbers": numbers,
            "sample": self._history.latest,
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
