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
3. Waiting times of bound pods come from the histogram `pod_scheduling_sli_duration_seconds`: those of the last
   `WINDOW_S`, interpolated within buckets like Prometheus' `histogram_quantile`.
4. Waiting times of pending pods are exact, of the pods that are read. Gated pods do not count.
5. A sample for the charts is kept every `SAMPLE_S`, whether a page is open or not, for an hour.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

import numpy as np

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.kit.histogram import HistogramValue
from mooring.scheduler.console.nodes import Document, NodeColumns, NodeTable, node_page
from mooring.scheduler.console.pods import explain_pod, manifest_of, pod_life, workloads
from mooring.scheduler.console.queue import WINDOW_MAX, QueueWindows, reason_of, waits_since_s
from mooring.scheduler.console.reuse import Reused
from mooring.scheduler.pages import pod_page, wall_time
from mooring.scheduler.queue.queued_pod import QueuedPod, QueueState
from mooring.scheduler.reporting.decision_records import DecisionRecord
from mooring.scheduler.scheduler import Scheduler

WINDOW_S = 60.0
"""The pods bound in this time count for the waiting times of bound pods."""
SAMPLE_S = 5.0
SAMPLES_MAX = 720
"""An hour."""
REASONS_MAX = 7
"""Reasons of a sample; all others are added up."""
OTHER = "other reasons"
QUANTILES = (0.5, 0.99)
PENDING_READ_MAX = 10_000
"""Queued pods that the overview counts by reason."""
RECORDS_READ_MAX = 10_000
"""Latest decisions in which reasons of pods are looked up."""
ANSWERS_MAX = 12
"""Answers that are held. There is one for each label by which the nodes are grouped."""
DECISIONS_SHOWN_MAX = 50
REJECTIONS_SHOWN_MAX = 12


class OverviewHistory:
    """The numbers of now, and the samples of the last hour."""

    def __init__(self) -> None:
        self._samples: deque[Document] = deque(maxlen=SAMPLES_MAX)
        self._counts: deque[tuple[float, int, list[int]]] = deque()
        """(time, pods bound, bucket counts), of the last `WINDOW_S`."""
        self._sampled: tuple[float, int] | None = None
        """Time and pods bound at the last sample."""

    def is_due(self, now_s: float) -> bool:
        """Whether it is time for the next sample."""
        return self._sampled is None or now_s - self._sampled[0] >= SAMPLE_S

    def measure(
        self,
        now_s: float,
        wall_s: float,
        bound: int,
        waits: Sequence[HistogramValue],
        reasons: Counter[str],
        pending_waits_s: Sequence[float],
    ) -> Document:
        """The numbers of now. They become a sample, if it is time for one; its rate is that since the last sample.

        `waits` are histograms of the same buckets, by number of attempts."""
        counts = [sum(column) for column in zip(*(wait.counts for wait in waits))] if waits else []
        while self._counts and now_s - self._counts[0][0] > WINDOW_S:
            self._counts.popleft()
        first = self._counts[0] if self._counts else (now_s, bound, counts)
        last = self._counts[-1] if self._counts else first
        self._counts.append((now_s, bound, counts))
        old = first[2] or [0] * len(counts)
        recent = [new - before for new, before in zip(counts, old, strict=True)]
        bounds = waits[0].bounds if waits else ()
        numbers: Document = {
            "time": wall_s,
            "boundPerSecond": _per_second((last[0], last[1]), now_s, bound),
            "boundWaits": [histogram_quantile(share, bounds, recent) for share in QUANTILES],
            "pendingWaits": [float(wait_s) for wait_s in np.quantile(pending_waits_s, QUANTILES)]
            if pending_waits_s
            else [None, None],
            "reasons": _largest(reasons),
        }
        if self.is_due(now_s):
            self._samples.append(numbers | {"boundPerSecond": _per_second(self._sampled, now_s, bound)})
            self._sampled = now_s, bound
        return numbers

    @property
    def latest(self) -> Document:
        return self._samples[-1]

    def samples(self) -> list[Document]:
        return list(self._samples)


def _per_second(since: tuple[float, int] | None, now_s: float, bound: int) -> float | None:
    return (bound - since[1]) / (now_s - since[0]) if since is not None and now_s > since[0] else None


def pending_reasons(entries: Sequence[QueuedPod], records: Mapping[str, DecisionRecord]) -> Counter[str]:
    """Number of pods by the reason why they wait."""
    return Counter(reason_of(entry, records.get(entry.uid)) for entry in entries)


def pending_waits_s(entries: Sequence[QueuedPod], now_s: float) -> list[float]:
    """How long each pod has been waiting."""
    return [now_s - waits_since_s(entry) for entry in entries if entry.state is not QueueState.GATED]


def histogram_quantile(share: float, bounds: Sequence[float], counts: Sequence[int]) -> float | None:
    """The value below which a share of the observations lies, evenly distributed in each bucket; None without any.

    Observations above the last bound count as the last bound."""
    rank = share * sum(counts)
    if not rank:
        return None
    seen = 0
    for (low, high), count in zip(pairwise((0.0, *bounds)), counts):
        if count and seen + count >= rank:
            return low + (high - low) * (rank - seen) / count
        seen += count
    return bounds[-1]


def _largest(reasons: Counter[str]) -> dict[str, int]:
    found = dict(reasons.most_common(REASONS_MAX))
    rest = reasons.total() - sum(found.values())
    return found | {OTHER: rest} if rest else found


class ConsoleData:
    """The answers for the console of one scheduler."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._answers = Reused[Document](clock, ANSWERS_MAX)
        self._tables = Reused[NodeTable](clock, ANSWERS_MAX)
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
            entry for entry in scheduler.queue.entries() if entry.pod.name == name and entry.pod.namespace == namespace
        ]
        return {
            "pod": key,
            "now": format_rfc3339_micro(self._clock.wall_s()),
            "nodes": scheduler.engine.columns.node_count,
            "states": pod_page(key, *parts, self._clock)["pods"],
            "queued": [wall_time(waits_since_s(entry), self._clock) for entry in queued],
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
                    "time": format_rfc3339_micro(record.wall_s),
                    "pod": record.pod,
                    "attempt": record.attempt,
                    "message": record.message or record.error,
                }
                for record in rejected[:REJECTIONS_SHOWN_MAX]
            ],
        }

    def _latest_records(self) -> dict[str, DecisionRecord]:
        """The latest decision about each pod by uid, newest first."""
        latest: dict[str, DecisionRecord] = {}
        for record in self._scheduler.reports.decisions.recent(limit=RECORDS_READ_MAX):
            latest.setdefault(record.uid, record)
        return latest
