"""events.k8s.io/v1 Events, as kube-scheduler writes them: repeated events form a series.

    record ──┬── seen lately: the series counts one more
             └── new: an event ──> queue

1. An event with the same key as a recent one counts in its series. The key leaves out the note, but not the
   resourceVersion of the object.
2. A series is counted at once, and written when it begins, when it ends, and every `REFRESH_S`, so that the API server
   does not let it expire. A series ends after `FINISH_S` without an event.
3. An event is written as it is at that moment: what was counted meanwhile is in the same request, or in one more.
4. At most `SERIES_MAX` series are kept. The oldest is forgotten first.

Format and intervals are those of client-go's recorder for events.k8s.io/v1, in kube-scheduler v1.36.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from mooring.api.kinds import EVENT
from mooring.client.events.recorder import (
    SPAM_BURST,
    SPAM_REFILL_S,
    EventKey,
    EventNames,
    SpamFilter,
    encode_reference,
    event_namespace,
    shortened,
)
from mooring.client.events.writer import EventWriter, PendingEvent
from mooring.client.interface import Client
from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

PENDING_MAX = 10_000
SERIES_MAX = 10_000
WORKERS_MIN, WORKERS_MAX = 4, 32
FINISH_S = 360.0
REFRESH_S = 1800.0


class SeriesEvent(PendingEvent):
    """One event and its series."""

    __slots__ = ("_count_sent", "_names", "count", "count_written", "key", "last_seen_s", "note", "seen_s")

    kind = EVENT

    def __init__(self, key: EventKey, note: str, seen_s: float, names: EventNames) -> None:
        super().__init__(event_namespace(key[5]), names.new(key[5].name, seen_s))
        self.key = key
        self.note = note
        self.seen_s = seen_s
        self.last_seen_s = seen_s
        self.count = 1
        self.count_written = 0
        self._count_sent = 0
        self._names = names

    @property
    def is_series(self) -> bool:
        return self.count > 1

    @property
    def is_created(self) -> bool:
        return self.count_written > 0

    def body(self) -> dict[str, object]:
        type_, action, reason, controller, instance, regarding, related = self.key
        event: dict[str, object] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "eventTime": format_rfc3339_micro(self.seen_s),
            "reportingController": controller,
            "reportingInstance": instance,
            "action": action,
            "reason": reason,
            "regarding": encode_reference(regarding),
            "note": self.note,
            "type": type_,
        }
        if related is not None:
            event["related"] = encode_reference(related)
        if self.is_series:
            event |= self.patch()
        return event

    def patch(self) -> dict[str, object]:
        return {"series": {"count": self.count, "lastObservedTime": format_rfc3339_micro(self.last_seen_s)}}

    def rename(self) -> bool:
        self.name = self._names.new(self.key[5].name, self.seen_s)
        return True

    def begin_write(self) -> bool:
        self._count_sent = self.count
        return True

    def end_write(self, *, is_written: bool) -> bool:
        if is_written:
            self.count_written = self._count_sent
        return False


class SeriesEventWriter(EventWriter[SeriesEvent]):
    """Writes events.k8s.io/v1 Events. One for a process."""

    workers_min, workers_max = WORKERS_MIN, WORKERS_MAX
    writes_in_a_row = 32

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        *,
        pending_max: int = PENDING_MAX,
        series_max: int = SERIES_MAX,
        spam_burst: int = SPAM_BURST,
        spam_refill_s: float = SPAM_REFILL_S,
    ) -> None:
        super().__init__("events", client, clock, entropy, pending_max=pending_max)
        self._names = EventNames(entropy)
        self._spam = SpamFilter(clock, burst=spam_burst, refill_s=spam_refill_s)
        self._series_max = series_max
        self._series: OrderedDict[EventKey, SeriesEvent] = OrderedDict()  # the oldest first
        self._has_series = asyncio.Event()
        self._refreshed_s = clock.now_s()

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        group.start_background(self._tend_series(), name="event series")

    def statistics(self) -> dict[str, int]:
        return {"remembered": len(self._series), **super().statistics()}

    def record(self, key: EventKey, note: str) -> None:
        self._counts["recorded"] += 1
        now_s = self._clock.wall_s()
        known = self._series.get(key)
        if known is not None:
            known.count += 1
            known.last_seen_s = now_s
            # Only the beginning of a series is written at once.
            if known.count == 2 and self._spam.is_allowed(key):
                self.enqueue(known)
            return
        if not self._spam.is_allowed(key):
            self.lose("dropped_spam")
            return
        event = SeriesEvent(key, shortened(note), now_s, self._names)
        if self.enqueue(event):
            self._remember(event)

    def finish(self, event: SeriesEvent, *, is_written: bool) -> None:
        if not is_written:
            self._series.pop(event.key, None)

    def _remember(self, event: SeriesEvent) -> None:
        if len(self._series) >= self._series_max:
            self._write_last_count(self._series.popitem(last=False)[1])
        self._series[event.key] = event
        self._has_series.set()

    async def _tend_series(self) -> None:
        while True:
            await self._has_series.wait()
            await self._clock.wait(FINISH_S)
            self._finish_series()
            if self._clock.now_s() - self._refreshed_s >= REFRESH_S:
                self._refresh_series()
            if not self._series:
                self._has_series.clear()

    def _finish_series(self) -> None:
        quiet_since_s = self._clock.wall_s() - FINISH_S
        for event in [event for event in self._series.values() if event.last_seen_s <= quiet_since_s]:
            del self._series[event.key]
            self._write_last_count(event)

    def _refresh_series(self) -> None:
        self._refreshed_s = self._clock.now_s()
        for event in self._series.values():
            if event.is_series:
                self.enqueue(event)

    def _write_last_count(self, event: SeriesEvent) -> None:
        if event.count != event.count_written:
            self.enqueue(event)
