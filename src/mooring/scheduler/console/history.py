"""The past of a running scheduler, for the page Time of the console.

Input: the console's data about nodes, sampled while `run` runs; the decision records, and before them the decision log.
Output: the times of the samples, and the map and the queue as they were at a time.

1. The map at a time is that of the last sample before it: exact at the sample. The queue at a time follows from the
   attempts until then: a pod waits if its latest attempt found no node. When a waiting pod was deleted is not recorded.
2. A sample is taken once per second, in large clusters less often (`NODES_PER_SECOND`), and only if something changed.
3. Samples are bounded by number and by size. At a limit every second sample is dropped: the past stays, less detailed.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from zlib import compress, decompress

from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.scheduler.console.data import ConsoleData
from mooring.scheduler.console.nodes import Document, NodeTable
from mooring.scheduler.pages import queue_counts
from mooring.scheduler.reporting.decision_log import DecisionLog, DecisionLogError, oldest_in_log, read_log_around
from mooring.scheduler.reporting.decision_records import BOUND, DecisionRecord
from mooring.scheduler.scheduler import Scheduler

NODES_PER_SECOND = 20_000
"""100,000 nodes are sampled every 5 s."""
SAMPLES_MAX = 600
SAMPLES_BYTES_MAX = 32 * 1024 * 1024
RECORDS_READ_MAX = 20_000
"""Attempts before and after a time that are read for its queue."""
WAITING_SHOWN_MAX = 500
ATTEMPTS_SHOWN_MAX = 20

_NAME_BYTES = 8
"""Of one node in a list of names; the texts are shared with the columns."""
_COMPRESSION = 1


@dataclass(frozen=True, slots=True)
class _Sample:
    wall_s: float
    nodes: NodeTable
    """Without columns. Names and zones are shared by samples with the same nodes."""
    column_names: tuple[str, ...]
    columns: bytes
    """The columns of the nodes one after the other, compressed."""
    counts: dict[str, int]
    bound: int


class History:
    """Samples of one scheduler."""

    def __init__(self, scheduler: Scheduler, clock: Clock, log: DecisionLog | None = None) -> None:
        self._scheduler = scheduler
        self.data = ConsoleData(scheduler, clock)
        self._clock = clock
        self._log_path = log.path if log is not None else None
        self._log_from_s: float | None = None
        self._samples: list[_Sample] = []
        self._last: tuple[str, dict[str, int], int] | None = None

    async def run(self) -> None:
        """Takes samples until it is cancelled."""
        if self._log_path is not None:
            with suppress(DecisionLogError):  # then only the attempts in memory are shown
                self._log_from_s = await asyncio.to_thread(oldest_in_log, self._log_path)
        while True:
            self.sample()
            self.data.sample()
            await self._clock.wait(max(1.0, self._scheduler.engine.columns.node_count / NODES_PER_SECOND))

    def sample(self) -> None:
        scheduler = self._scheduler
        nodes = self.data.nodes()
        counts = queue_counts(scheduler.queue, scheduler.bindings.running)
        bound = int(scheduler.metrics.attempts_ended("scheduled"))
        if self._last == (nodes.version, counts, bound):
            return
        self._last = (nodes.version, counts, bound)
        packed = compress(b"".join(nodes.columns.values()), _COMPRESSION)
        names, without = tuple(nodes.columns), replace(nodes, columns={})
        if self._samples and self._samples[-1].nodes.head == without.head:
            head = self._samples[-1].nodes.head
            without = replace(without, head=head)
        self._samples.append(_Sample(self._clock.wall_s(), without, names, packed, counts, bound))
        if len(self._samples) > SAMPLES_MAX or self._bytes() > SAMPLES_BYTES_MAX:
            self._samples = self._samples[:-1:2] + self._samples[-1:]

    def times(self) -> Document:
        """When there is something to see: the samples, oldest first, with their numbers."""
        oldest = self._scheduler.reports.decisions.oldest
        attempts_from_s = self._log_from_s or (oldest.wall_s if oldest is not None else None)
        return {
            "samples": [
                [round(sample.wall_s, 3), _pending(sample.counts), sample.counts["unschedulable"], sample.bound]
                for sample in self._samples
            ],
            "attemptsFrom": attempts_from_s,
        }

    def nodes_at(self, wall_s: float) -> NodeTable | None:
        """The map at a time; None before the first sample."""
        sample = self._sample_at(wall_s)
        if sample is None:
            return None
        columns, rows = decompress(sample.columns), len(sample.nodes.group)
        parts = {name: columns[place * rows : (place + 1) * rows] for place, name in enumerate(sample.column_names)}
        return replace(sample.nodes, columns=parts)

    async def at(self, wall_s: float) -> Document:
        """The numbers and the queue at a time. Without numbers before the first sample."""
        records = await self._records(wall_s)
        waiting = waiting_at(records, wall_s)
        before = [record for record in records if record.wall_s <= wall_s]
        document: Document = {
            "time": format_rfc3339_micro(wall_s),
            "waitingCount": len(waiting),
            "waiting": waiting[:WAITING_SHOWN_MAX],
            "attempts": [_attempt(record) for record in before[:ATTEMPTS_SHOWN_MAX]],
        }
        sample = self._sample_at(wall_s)
        if sample is None:
            return document
        sampled = format_rfc3339_micro(sample.wall_s)
        return document | {"sampled": sampled, "counts": sample.counts, "bound": sample.bound}

    def _sample_at(self, wall_s: float) -> _Sample | None:
        place = bisect_right(self._samples, wall_s, key=lambda sample: sample.wall_s)
        return self._samples[place - 1] if place else None

    async def _records(self, wall_s: float) -> Sequence[DecisionRecord]:
        """Around a time, newest first: from memory, or from the log if memory does not reach so far back."""
        decisions = self._scheduler.reports.decisions
        is_in_memory = decisions.oldest is not None and decisions.oldest.wall_s <= wall_s
        if self._log_path is None or is_in_memory:
            return list(decisions.recent(limit=RECORDS_READ_MAX))
        return await asyncio.to_thread(read_log_around, self._log_path, wall_s, RECORDS_READ_MAX)

    def _bytes(self) -> int:
        lists = {id(sample.nodes.head): len(sample.nodes.group) for sample in self._samples}
        return sum(len(sample.columns) for sample in self._samples) + _NAME_BYTES * 2 * sum(lists.values())


def waiting_at(records: Iterable[DecisionRecord], wall_s: float) -> list[Document]:
    """The pods whose latest attempt until a time found no node, and what ended their waiting. Records newest first."""
    following: dict[str, DecisionRecord] = {}
    latest: dict[str, DecisionRecord] = {}
    since: dict[str, DecisionRecord] = {}
    settled: set[str] = set()
    for record in records:
        if record.wall_s > wall_s:
            following[record.uid] = record  # at the end the first one after the time
        elif record.uid not in settled:
            latest.setdefault(record.uid, record)
            if _is_placed(record):
                settled.add(record.uid)
            else:
                since[record.uid] = record
    return [_waiting(last, since[uid], following.get(uid)) for uid, last in latest.items() if not _is_placed(last)]


def _is_placed(record: DecisionRecord) -> bool:
    """A binding that failed, such as a lost race, returned the pod to the queue."""
    return record.node is not None and record.binding in ("", BOUND)


def _waiting(last: DecisionRecord, first: DecisionRecord, following: DecisionRecord | None) -> Document:
    document: Document = {
        "pod": last.pod,
        "uid": last.uid,
        "since": format_rfc3339_micro(first.wall_s),
        "attempts": last.attempt,
        "tried": format_rfc3339_micro(last.wall_s),
        "reason": _reason(last),
    }
    if following is not None:
        document["next"] = _attempt(following)
    return document


def _attempt(record: DecisionRecord) -> Document:
    return {
        "time": format_rfc3339_micro(record.wall_s),
        "pod": record.pod,
        "attempt": record.attempt,
        "requeuedBy": record.requeued_by,
        "node": record.node,
        "binding": record.binding,
        "reason": _reason(record),
    }


def _reason(record: DecisionRecord) -> str:
    is_lost = record.node is not None and record.binding != BOUND
    return record.message or record.error or (record.binding if is_lost else "")


def _pending(counts: dict[str, int]) -> int:
    return counts["active"] + counts["backoff"] + counts["unschedulable"] + counts["gated"]
