"""Pending pods by reason, waiting times, and how they were in the last hour.

1. Waiting times of bound pods come from the histogram `pod_scheduling_sli_duration_seconds`: those of the last
   `WINDOW_S`, interpolated within buckets like Prometheus' `histogram_quantile`.
2. Waiting times of pending pods are exact, of the pods that are read. Gated pods do not count.
3. A sample for the charts is kept every `SAMPLE_S`, whether a page is open or not, for an hour.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from mooring.kit.histogram import HistogramValue
from mooring.scheduler.console.queue import reason_of, waits_since_s
from mooring.scheduler.queue.queued_pod import QueuedPod
from mooring.scheduler.queue.states import QueueState
from mooring.scheduler.reporting.decision_records import DecisionRecord

WINDOW_S = 60.0
"""The pods bound in this time count for the waiting times of bound pods."""
SAMPLE_S = 5.0
SAMPLES_MAX = 720
"""An hour."""
REASONS_MAX = 7
"""Reasons of a sample; all others are added up."""
OTHER = "other reasons"
QUANTILES = (0.5, 0.99)

Document: TypeAlias = dict[str, object]


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
        counts = [sum(column) for column in zip(*(each.counts for each in waits))] if waits else []
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
            "pendingWaits": [float(each) for each in np.quantile(pending_waits_s, QUANTILES)]
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
