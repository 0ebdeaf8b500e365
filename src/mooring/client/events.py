"""Events: what happened to an object, for people to read. Recorders, one writer, and two formats.

    component ── EventRecorder.event ──> EventWriter.record ──┬── seen lately: the event counts one more
                                                              └── new: an event ──> queue ──> workers ──> API server
                                                                                      ^          │
                                    no answer, 429, 5xx: again after about 10 s,      └──────────┘
                                    at most 12 attempts

Recorders. `event` never waits and never fails.

1. A note has at most `NOTE_BYTES_MAX` bytes, the limit of the API. A longer one ends in " ...".
2. A source may report `SPAM_BURST` events about an object, and then one every `SPAM_REFILL_S`, as in client-go's
   recorder for core/v1.
3. No two events of a writer have the same name, even if the clock stands still.

The writer aggregates events and writes them in the background. Attempts and delays are those of client-go.

4. At most `pending_max` events are pending. Further ones are dropped and counted. At most `remembered_max` are
   remembered; the oldest is forgotten first.
5. One worker at a time writes an event, as it is at that moment: what was counted meanwhile is in the same request, or
   in one more.
6. If another writer has taken the name of an event, the event gets a new name. If an earlier request without an answer
   may have created the event, it counts as created. A patch of an event that has expired (404) creates it again.
7. There are few workers unless many events are pending: on a busy server an event costs as much as the binding that it
   reports. With a client that never suspends, a worker yields after `WRITES_IN_A_ROW` events.

The formats are events.k8s.io/v1 (`SeriesFormat`) and core/v1 (`CoreFormat`). kube-scheduler writes events.k8s.io/v1,
controllers and kubelets write core/v1, each as client-go v1.36 does. The APIs differ on purpose: a series leaves out
the note, but a Deployment that is scaled twice has two messages, and both are kept.

8. A format says which events are the same and encodes them (`EventFormat`).
9. events.k8s.io/v1: the same event has an equal key. The key leaves out the note, but not the resourceVersion. A series
   is written when it begins, when it ends, which is after `FINISH_S` without an event, and every `REFRESH_S`, so that
   the API server does not let it expire.
10. core/v1: the same event has an equal message too. Each occurrence is written, unless it is spam, which is only
    counted in its event. From the tenth different message of a reason about an object within `SIMILAR_S` on, messages
    are combined into one event with the last message.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.api.views.meta import ApiObject, ObjectReference, reference_to
from mooring.client.errors import AlreadyExistsError, ClientError, NoAnswerError, NotFoundError
from mooring.client.interface import Client, PatchForm
from mooring.client.workqueue import WorkQueue
from mooring.kit.clock import Clock, format_rfc3339, format_rfc3339_micro
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

NOTE_BYTES_MAX = 1024
NAME_LENGTH_MAX = 253
SPAM_BURST = 25
SPAM_REFILL_S = 300.0
SPAM_SOURCES_MAX = 10_000

EventType: TypeAlias = Literal["Normal", "Warning"]


class EventKey(NamedTuple):
    """All of an event except its note and times."""

    type: str
    action: str
    reason: str
    controller: str
    instance: str
    regarding: ObjectReference
    related: ObjectReference | None


_NOTE_END = " ..."
_NANOS_PER_S = 1_000_000_000
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

logger = logging.getLogger(__name__)


class EventRecorder:
    """Records the events of one component."""

    __slots__ = ("_record", "controller", "instance")

    def __init__(self, record: Callable[[EventKey, str], None], controller: str, instance: str = "") -> None:
        self._record = record
        self.controller = controller
        self.instance = instance

    def event(
        self,
        regarding: ApiObject | ObjectReference,
        type: EventType,
        reason: str,
        note: str,
        *,
        action: str = "",
        related: ObjectReference | None = None,
    ) -> None:
        """Something happened to `regarding`. core/v1 Events have no action and no related object."""
        if type not in ("Normal", "Warning"):
            logger.error(
                "no event is recorded: its type is %r, expected Normal or Warning (%s: %s)", type, reason, note
            )
            return
        reference = regarding if isinstance(regarding, ObjectReference) else reference_to(regarding)
        self._record(EventKey(type, action, reason, self.controller, self.instance, reference, related), note)


class SpamFilter:
    """Limits the events of a source about an object: a token bucket for each."""

    def __init__(self, clock: Clock, *, burst: int, refill_s: float, sources_max: int = SPAM_SOURCES_MAX) -> None:
        assert burst >= 1 and refill_s > 0, f"a burst of {burst}, refilled in {refill_s} s"  # noqa: PT018
        self._clock = clock
        self._burst = float(burst)
        self._rate_per_s = 1.0 / refill_s
        self._sources_max = sources_max
        # (tokens, as of when), the least recent source first. Tuples, because nearly every event is the first of its
        # object. An OrderedDict finds its oldest entry in constant time, a dict does not.
        self._buckets: OrderedDict[tuple[object, ...], tuple[float, float]] = OrderedDict()

    def is_allowed(self, source: tuple[object, ...]) -> bool:
        now_s = self._clock.now_s()
        bucket = self._buckets.pop(source, None)
        if bucket is None:
            tokens = self._burst
            if len(self._buckets) >= self._sources_max:
                self._buckets.popitem(last=False)
        else:
            tokens = min(self._burst, bucket[0] + (now_s - bucket[1]) * self._rate_per_s)
        is_allowed = tokens >= 1.0
        self._buckets[source] = (tokens - 1.0 if is_allowed else tokens, now_s)
        return is_allowed


class EventNames:
    """Makes the names of events: the object's name and a time in nanoseconds, as client-go does."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._last_nanos = 0

    def new(self, object_name: str, now_s: float) -> str:
        self._last_nanos = max(int(now_s * _NANOS_PER_S), self._last_nanos + 1)
        return event_name(object_name, self._last_nanos) or self._entropy.uuid()


def event_name(object_name: str, nanos: int) -> str | None:
    """The name of an event about an object; None if it would be invalid."""
    name = f"{object_name}.{nanos:x}"
    return name if len(name) <= NAME_LENGTH_MAX and _SUBDOMAIN.fullmatch(name) else None


def shortened(note: str) -> str:
    """A note of at most `NOTE_BYTES_MAX` bytes."""
    if len(note) * 4 <= NOTE_BYTES_MAX:  # no character takes more than four bytes
        return note
    raw = note.encode()
    if len(raw) <= NOTE_BYTES_MAX:
        return note
    return raw[: NOTE_BYTES_MAX - len(_NOTE_END)].decode(errors="ignore") + _NOTE_END


PENDING_MAX = 10_000
REMEMBERED_MAX = 10_000
WORKERS_MIN, WORKERS_MAX = 4, 32
WRITES_IN_A_ROW = 32
FINISH_S = 360.0
REFRESH_S = 1800.0
TRIES_MAX = 12
NAMES_MAX = 8
RETRY_S = 10.0
RETRY_JITTER = 0.25
EVENTS_PER_WORKER = 250
"""How many events are pending for each worker before another one starts."""
LOSSES_LOGGED_EACH_S = 60.0
NAMESPACE_OF_CLUSTER_EVENTS = "default"


@dataclass(slots=True, eq=False)
class EventRecord:
    """One event, how often it happened, and how much of that is written."""

    identity: tuple[object, ...]
    key: EventKey
    name: str
    note: str
    seen_s: float
    last_seen_s: float
    count: int = 1
    count_written: int = 0
    tries: int = 0
    is_outcome_unknown: bool = False

    @property
    def namespace(self) -> str:
        return self.key.regarding.namespace or NAMESPACE_OF_CLUSTER_EVENTS


class EventFormat(Protocol):
    """Which events are the same, and what an Event looks like."""

    @property
    def kind(self) -> Kind: ...

    @property
    def is_series(self) -> bool:
        """Whether an event is written when its series begins, ends or goes on for `REFRESH_S`, instead of each time."""
        ...

    def aggregate(self, key: EventKey, note: str, now_s: float) -> tuple[tuple[object, ...], str]:
        """The identity of an event, equal for events that are counted together, and its note."""
        ...

    def spam_key(self, key: EventKey) -> tuple[object, ...]:
        """The source and the object of an event, for the limit."""
        ...

    def body(self, record: EventRecord) -> dict[str, object]: ...

    def patch(self, record: EventRecord) -> dict[str, object]:
        """The fields that change when the event happens again."""
        ...


class EventWriter:
    """Writes events of one format. One for a process."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        format: EventFormat,
        *,
        pending_max: int = PENDING_MAX,
        remembered_max: int = REMEMBERED_MAX,
        spam_burst: int = SPAM_BURST,
        spam_refill_s: float = SPAM_REFILL_S,
    ) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._format = format
        self._pending_max = pending_max
        self._remembered_max = remembered_max
        self._names = EventNames(entropy)
        self._spam = SpamFilter(clock, burst=spam_burst, refill_s=spam_refill_s)
        self._queue: WorkQueue[EventRecord] = WorkQueue("events", clock, entropy.fork("queue"))
        self._records: OrderedDict[tuple[object, ...], EventRecord] = OrderedDict()  # the least recent first
        self._has_records = asyncio.Event()
        self._group: TaskGroup | None = None
        self._workers = WORKERS_MIN
        self._refreshed_s = clock.now_s()
        self._counts = dict.fromkeys(
            ("recorded", "created", "patched", "retried", "dropped_full", "dropped_spam", "dropped_refused"), 0
        )
        self._losses_logged = 0
        self._losses_logged_s = clock.now_s() - LOSSES_LOGGED_EACH_S

    def recorder(self, controller: str, instance: str = "") -> EventRecorder:
        """A recorder for a component, such as default-scheduler, and optionally its instance."""
        return EventRecorder(self.record, controller, instance)

    def start(self, group: TaskGroup) -> None:
        """Start to write, in background tasks of the group."""
        self._group = group
        for number in range(WORKERS_MIN):
            group.start_background(self._work(), name=f"event writer {number}")
        if self._format.is_series:
            group.start_background(self._maintain_series(), name="event series")

    async def wait_written(self) -> None:
        """Wait until all recorded events have been written, or tried once."""
        await self._queue.wait_idle()

    async def close(self) -> None:
        """Accept no more events, and wait until the recorded ones have been written, or tried once."""
        self._queue.shut_down()
        await self._queue.wait_drained()

    def statistics(self) -> dict[str, int]:
        return {"pending": self._queue.backlog, "remembered": len(self._records), **self._counts}

    # ------------------------------------------------------------------------------------------------ recording

    def record(self, key: EventKey, note: str) -> None:
        self._counts["recorded"] += 1
        now_s = self._clock.wall_s()
        identity, note = self._format.aggregate(key, shortened(note), now_s)
        record = self._records.get(identity)
        if record is not None:
            self._records.move_to_end(identity)
            record.count += 1
            record.last_seen_s = now_s
            if not self._format.is_series:
                record.note = note
                self._enqueue_unless_spam(record)
            elif record.count == 2 and self._spam.is_allowed(self._format.spam_key(key)):
                self.enqueue(record)  # the beginning of a series; the rest waits for its end
            return
        record = EventRecord(identity, key, self._names.new(key.regarding.name, now_s), note, now_s, now_s)
        if self._enqueue_unless_spam(record) or not self._format.is_series:
            self._remember(record)

    def enqueue(self, record: EventRecord) -> bool:
        """Have an event written. False if too many are pending."""
        if self._queue.backlog >= self._pending_max or self._queue.is_shut_down:
            self._lose("dropped_full")
            return False
        self._queue.add(record)
        return True

    def _enqueue_unless_spam(self, record: EventRecord) -> bool:
        if self._spam.is_allowed(self._format.spam_key(record.key)):
            return self.enqueue(record)
        self._lose("dropped_spam")
        return False

    def _remember(self, record: EventRecord) -> None:
        if len(self._records) >= self._remembered_max:
            self._write_last_count(self._records.popitem(last=False)[1])
        if not self._records:
            self._has_records.set()
        self._records[record.identity] = record

    def _lose(self, why: str) -> None:
        self._counts[why] += 1
        now_s = self._clock.now_s()
        # Spam of core/v1 is counted in its event, and usual: a ReplicaSet with a hundred pods is enough.
        is_usual = why == "dropped_spam" and not self._format.is_series
        if is_usual or now_s - self._losses_logged_s < LOSSES_LOGGED_EACH_S:
            return
        lost = sum(count for name, count in self._counts.items() if name.startswith("dropped"))
        logger.warning("%d events were lost since the last such line (%s)", lost - self._losses_logged, self._counts)
        self._losses_logged, self._losses_logged_s = lost, now_s

    # -------------------------------------------------------------------------------------------------- workers

    async def _work(self) -> None:
        in_a_row = 0
        while (record := await self._queue.get()) is not None:
            self._start_helper()
            await self._write_safely(record)
            in_a_row += 1
            if in_a_row % WRITES_IN_A_ROW == 0:
                await self._clock.wait(0)

    def _start_helper(self) -> None:
        if len(self._queue) > self._workers * EVENTS_PER_WORKER and self._workers < WORKERS_MAX:
            assert self._group is not None, "a worker runs before `start`"
            self._group.start_background(self._help(self._workers), name=f"event writer {self._workers}")
            self._workers += 1

    async def _help(self, number: int) -> None:
        try:
            while len(self._queue) > number * EVENTS_PER_WORKER and (record := self._queue.get_nowait()) is not None:
                await self._write_safely(record)
        finally:
            self._workers -= 1

    async def _write_safely(self, record: EventRecord) -> None:
        try:
            await self._write(record)
        except Exception:
            # One event must not stop the worker.
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
            self._retry_or_give_up(record, error)
            return
        record.count_written = count
        record.tries = 0

    async def _create(self, record: EventRecord) -> None:
        for _ in range(NAMES_MAX):
            try:
                body = self._format.body(record)
                await self._client.create(self._format.kind, record.namespace, body, is_answer_wanted=False)
                break
            except AlreadyExistsError:
                if record.is_outcome_unknown:
                    break
                record.name = self._names.new(record.key.regarding.name, record.seen_s)
        else:
            raise NoAnswerError(f"{NAMES_MAX} names for an event were all taken")
        self._counts["created"] += 1

    async def _patch(self, record: EventRecord) -> None:
        patch = self._format.patch(record)
        try:
            await self._client.patch(self._format.kind, record.namespace, record.name, patch, form=PatchForm.STRATEGIC)
        except NotFoundError:
            await self._create(record)
            return
        self._counts["patched"] += 1

    def _retry_or_give_up(self, record: EventRecord, error: ClientError) -> None:
        record.tries += 1
        if not error.can_help_to_retry or record.tries >= TRIES_MAX:
            self._lose("dropped_refused")
            logger.info(
                "event %s/%s is dropped after %d attempts: %s", record.namespace, record.name, record.tries, error
            )
            record.tries = 0
            self._records.pop(record.identity, None)
        elif not self._queue.is_shut_down:
            self._counts["retried"] += 1
            self._queue.add_after(record, RETRY_S * (1.0 + RETRY_JITTER * self._entropy.uniform()))

    # --------------------------------------------------------------------------------------------------- series

    async def _maintain_series(self) -> None:
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
            del self._records[record.identity]
            self._write_last_count(record)

    def _refresh_series(self) -> None:
        self._refreshed_s = self._clock.now_s()
        for record in self._records.values():
            if record.count > 1:
                self.enqueue(record)

    def _write_last_count(self, record: EventRecord) -> None:
        if self._format.is_series and record.count != record.count_written:
            self.enqueue(record)


# --- formats --------------------------------------------------------------------------------------------------


SIMILAR_MAX = 10
SIMILAR_S = 600.0
SIMILAR_KEYS_MAX = 10_000
COMBINED = "(combined from similar events): "


class SeriesFormat(EventFormat):
    """events.k8s.io/v1: repeated events form a series."""

    kind: Kind = EVENT
    is_series = True

    def aggregate(self, key: EventKey, note: str, now_s: float) -> tuple[tuple[object, ...], str]:
        return key, note

    def spam_key(self, key: EventKey) -> tuple[object, ...]:
        about = key.regarding
        return key.controller, key.instance, key.type, about.kind, about.namespace, about.name, about.uid

    def body(self, record: EventRecord) -> dict[str, object]:
        key = record.key
        event: dict[str, object] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": record.name, "namespace": record.namespace},
            "eventTime": format_rfc3339_micro(record.seen_s),
            "reportingController": key.controller,
            "reportingInstance": key.instance,
            "action": key.action,
            "reason": key.reason,
            "regarding": msgspec.to_builtins(key.regarding),
            "note": record.note,
            "type": key.type,
        }
        if key.related is not None:
            event["related"] = msgspec.to_builtins(key.related)
        if record.count > 1:
            event |= self.patch(record)
        return event

    def patch(self, record: EventRecord) -> dict[str, object]:
        return {"series": {"count": record.count, "lastObservedTime": format_rfc3339_micro(record.last_seen_s)}}


class CoreFormat(EventFormat):
    """core/v1: repeated events have a count; many similar ones are combined."""

    kind: Kind = CORE_EVENT
    is_series = False

    def __init__(self) -> None:
        # The messages of a key and when the last one came, the least recent key first.
        self._similar: OrderedDict[tuple[object, ...], tuple[float, dict[str, None]]] = OrderedDict()

    def aggregate(self, key: EventKey, note: str, now_s: float) -> tuple[tuple[object, ...], str]:
        similar_key = (*self.spam_key(key), key.type, key.reason)
        last_s, messages = self._similar.pop(similar_key, (now_s, {}))
        if now_s - last_s > SIMILAR_S:
            messages = {}
        messages[note] = None
        is_combined = len(messages) >= SIMILAR_MAX
        if is_combined:
            del messages[next(iter(messages))]
        if len(self._similar) >= SIMILAR_KEYS_MAX:
            self._similar.popitem(last=False)
        self._similar[similar_key] = now_s, messages
        return (similar_key, shortened(COMBINED + note)) if is_combined else ((*similar_key, note), note)

    def spam_key(self, key: EventKey) -> tuple[object, ...]:
        about = key.regarding
        return key.controller, about.kind, about.namespace, about.name, about.uid, about.api_version

    def body(self, record: EventRecord) -> dict[str, object]:
        key = record.key
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": record.name, "namespace": record.namespace},
            "involvedObject": msgspec.to_builtins(key.regarding),
            "reason": key.reason,
            "message": record.note,
            "source": {"component": key.controller},
            "firstTimestamp": format_rfc3339(record.seen_s),
            "lastTimestamp": format_rfc3339(record.last_seen_s),
            "count": record.count,
            "type": key.type,
            "eventTime": None,
            "reportingComponent": key.controller,
            "reportingInstance": "",
        }

    def patch(self, record: EventRecord) -> dict[str, object]:
        return {
            "count": record.count,
            "lastTimestamp": format_rfc3339(record.last_seen_s),
            "message": record.note,
        }
