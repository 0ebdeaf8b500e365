"""The event writer: brings recorded events to the API server, in the background.

Comes in   from the recorders of a process: what happened (`record`, which never waits)
Goes out   Events: created, and their series patched

    record ──┬── seen lately: the series counts one more
             └── new: a record ──> queue ──> writers ──> API server
                                     ^          │
                                     └──────────┘ no answer, 429, 5xx: again in about 10 s, at most 12 times

 1. At most `PENDING_MAX` records wait to be written; what comes then is dropped. At most `SERIES_MAX` are remembered;
    the oldest is forgotten first.
 2. A record is written by one writer at a time, as it is at that moment: whatever was counted meanwhile is written in
    the same request, or in one more after it.
 3. A series that was quiet for `FINISH_S` is over: its last count is written and it is forgotten. A series that goes on
    is written each `REFRESH_S`, so that the API server does not let it expire.
 4. No two events of a writer have the same name, also when the clock stands still. If another writer took the name, the
    event gets a new one; if our own request may have created it, it is ours.
 5. Few write at a time, unless much waits: on a busy server each event takes as long as the binding that it tells of,
    and would be written instead of the next one.
 6. With a client that never suspends, others get their turn after each `WRITES_IN_A_ROW` events.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from mooring.api.kinds import EVENT
from mooring.client.errors import AlreadyExistsError, ClientError, NoAnswerError, NotFoundError
from mooring.client.events import (
    SPAM_BURST,
    SPAM_REFILL_S,
    EventKey,
    EventRecord,
    EventRecorder,
    SpamFilter,
    event_name,
    shortened,
)
from mooring.client.interface import Client, PatchForm
from mooring.client.workqueue import WorkQueue
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

PENDING_MAX = 10_000
SERIES_MAX = 10_000
WRITERS_MIN, WRITERS_MAX = 4, 32
RECORDS_PER_WRITER = 250
"""How many wait for each writer before there is one more: all of them are at work long before `PENDING_MAX`."""
WRITES_IN_A_ROW = 32
TRIES_MAX = 12
NAMES_MAX = 8
RETRY_S = 10.0
RETRY_JITTER = 0.25
FINISH_S = 360.0
REFRESH_S = 1800.0
LOSSES_LOGGED_EACH_S = 60.0

_NANOS_PER_S = 1_000_000_000

logger = logging.getLogger(__name__)


class EventWriter:
    """One for a process; its recorders are made by `recorder`."""

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
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._pending_max = pending_max
        self._series_max = series_max
        self._spam = SpamFilter(clock, burst=spam_burst, refill_s=spam_refill_s)
        self._queue: WorkQueue[EventRecord] = WorkQueue("events", clock, entropy.fork("queue"))
        self._records: OrderedDict[EventKey, EventRecord] = OrderedDict()  # the oldest first
        self._has_records = asyncio.Event()
        self._group: TaskGroup | None = None
        self._writers = WRITERS_MIN
        self._refreshed_s = clock.now_s()
        self._last_nanos = 0
        self._counts = dict.fromkeys(
            ("recorded", "created", "patched", "retried", "dropped_full", "dropped_spam", "dropped_refused"), 0
        )
        self._losses_logged = 0
        self._losses_logged_s = clock.now_s() - LOSSES_LOGGED_EACH_S

    def recorder(self, controller: str, instance: str) -> EventRecorder:
        """A voice: `controller` such as default-scheduler, `instance` such as default-scheduler-host1."""
        return EventRecorder(self._record, controller, instance)

    def start(self, group: TaskGroup) -> None:
        """Begin to write, in background tasks of the group."""
        self._group = group
        for number in range(WRITERS_MIN):
            group.start_background(self._write_records(), name=f"event writer {number}")
        group.start_background(self._tend_series(), name="event series")

    async def close(self) -> None:
        """Take no more; come back when what was recorded has been written, or tried once."""
        self._queue.shut_down()
        await self._queue.wait_drained()

    def statistics(self) -> dict[str, int]:
        return {"pending": self._queue.backlog, "remembered": len(self._records), **self._counts}

    # ------------------------------------------------------------------------------------------------ recording

    def _record(self, key: EventKey, note: str) -> None:
        self._counts["recorded"] += 1
        now_s = self._clock.wall_s()
        known = self._records.get(key)
        if known is not None:
            known.count += 1
            known.last_seen_s = now_s
            # Only the beginning of a series is written at once; the rest waits for its end.
            if known.count == 2 and self._spam.is_allowed(key):
                self._enqueue(known)
            return
        if not self._spam.is_allowed(key):
            self._lose("dropped_spam")
            return
        record = EventRecord(key, self._new_name(key[5].name, now_s), shortened(note), now_s)
        if self._enqueue(record):
            self._remember(record)

    def _enqueue(self, record: EventRecord) -> bool:
        if self._queue.backlog >= self._pending_max or self._queue.is_shut_down:
            self._lose("dropped_full")
            return False
        self._queue.add(record)
        return True

    def _remember(self, record: EventRecord) -> None:
        if len(self._records) >= self._series_max:
            self._write_last_count(self._records.popitem(last=False)[1])
        self._records[record.key] = record
        self._has_records.set()

    def _new_name(self, object_name: str, now_s: float) -> str:
        self._last_nanos = max(int(now_s * _NANOS_PER_S), self._last_nanos + 1)
        return event_name(object_name, self._last_nanos) or self._entropy.uuid()

    def _lose(self, why: str) -> None:
        self._counts[why] += 1
        now_s = self._clock.now_s()
        if now_s - self._losses_logged_s < LOSSES_LOGGED_EACH_S:
            return
        lost = sum(count for name, count in self._counts.items() if name.startswith("dropped"))
        logger.warning("%d events were lost since the last such line (%s)", lost - self._losses_logged, self._counts)
        self._losses_logged, self._losses_logged_s = lost, now_s

    # -------------------------------------------------------------------------------------------------- writing

    async def _write_records(self) -> None:
        in_a_row = 0
        while (record := await self._queue.get()) is not None:
            self._get_help()
            await self._write_safely(record)
            in_a_row += 1
            if in_a_row % WRITES_IN_A_ROW == 0:
                await self._clock.wait(0)

    def _get_help(self) -> None:
        if len(self._queue) > self._writers * RECORDS_PER_WRITER and self._writers < WRITERS_MAX:
            assert self._group is not None, "somebody writes before the writer was started"
            self._group.start_background(self._help(self._writers), name=f"event writer {self._writers}")
            self._writers += 1

    async def _help(self, number: int) -> None:
        try:
            while len(self._queue) > number * RECORDS_PER_WRITER and (record := self._queue.get_nowait()) is not None:
                await self._write_safely(record)
        finally:
            self._writers -= 1

    async def _write_safely(self, record: EventRecord) -> None:
        try:
            await self._write(record)
        except Exception:
            # Whatever it is, it must not silence the others.
            self._lose("dropped_refused")
            logger.exception("event %s/%s could not be written", record.namespace, record.name)
        finally:
            self._queue.done(record)

    async def _write(self, record: EventRecord) -> None:
        count = record.count
        try:
            if record.count_written:
                await self._patch(record)
            else:
                await self._create(record)
        except ClientError as error:
            record.is_outcome_unknown = record.is_outcome_unknown or error.is_outcome_unknown
            self._try_again_or_give_up(record, error)
            return
        record.count_written = count
        record.tries = 0

    async def _create(self, record: EventRecord) -> None:
        for _ in range(NAMES_MAX):
            try:
                await self._client.create(EVENT, record.namespace, record.body(), is_answer_wanted=False)
                break
            except AlreadyExistsError:
                if record.is_outcome_unknown:
                    break
                record.name = self._new_name(record.key[5].name, record.seen_s)
        else:
            raise NoAnswerError(f"{NAMES_MAX} names for an event were all taken")
        self._counts["created"] += 1

    async def _patch(self, record: EventRecord) -> None:
        try:
            await self._client.patch(EVENT, record.namespace, record.name, record.series(), form=PatchForm.STRATEGIC)
        except NotFoundError:
            # It expired while the series went on: it begins anew.
            await self._create(record)
            return
        self._counts["patched"] += 1

    def _try_again_or_give_up(self, record: EventRecord, error: ClientError) -> None:
        record.tries += 1
        if not error.can_help_to_retry or record.tries >= TRIES_MAX:
            self._lose("dropped_refused")
            logger.info(
                "event %s/%s is given up after %d tries: %s", record.namespace, record.name, record.tries, error
            )
            record.tries = 0
            self._records.pop(record.key, None)
            return
        if self._queue.is_shut_down:
            return
        self._counts["retried"] += 1
        self._queue.add_after(record, RETRY_S * (1.0 + RETRY_JITTER * self._entropy.uniform()))

    # --------------------------------------------------------------------------------------------------- series

    async def _tend_series(self) -> None:
        while True:
            await self._has_records.wait()
            await self._clock.wait(FINISH_S)
            self._finish_series()
            if self._clock.now_s() - self._refreshed_s >= REFRESH_S:
                self._refresh_series()
            if not self._records:
                self._has_records.clear()

    def _finish_series(self) -> None:
        quiet_since_s = self._clock.wall_s() - FINISH_S
        for record in [record for record in self._records.values() if record.last_seen_s <= quiet_since_s]:
            del self._records[record.key]
            self._write_last_count(record)

    def _refresh_series(self) -> None:
        self._refreshed_s = self._clock.now_s()
        for record in self._records.values():
            if record.is_series:
                self._enqueue(record)

    def _write_last_count(self, record: EventRecord) -> None:
        if record.count != record.count_written:
            self._enqueue(record)
