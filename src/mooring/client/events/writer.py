"""The event writer: writes pending events to the API server in the background.

Input: `enqueue`, which never waits. Output: create and patch requests.

    enqueue ──> queue ──> workers ──> API server
                  ^          │
                  └──────────┘ no answer, 429, 5xx: again after about 10 s, at most 12 attempts

1. At most `pending_max` events are pending. Further ones are dropped and counted.
2. One worker at a time writes an event.
3. If another writer has taken the name of an event, the event gets a new name. If an earlier request without an answer
   may have created the event, it counts as created.
4. A patch of an event that has expired (404) creates it again.
5. There are few workers unless many events are pending: on a busy server an event costs as much as the binding that it
   reports.
6. With a client that never suspends, a worker yields after `writes_in_a_row` events.

Attempts and delays are those of client-go.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from mooring.api.kinds import Kind
from mooring.client.errors import AlreadyExistsError, ClientError, NoAnswerError, NotFoundError
from mooring.client.events.recorder import EventKey, EventRecorder
from mooring.client.interface import Client, PatchForm
from mooring.client.workqueue import WorkQueue
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

TRIES_MAX = 12
NAMES_MAX = 8
RETRY_S = 10.0
RETRY_JITTER = 0.25
EVENTS_PER_WORKER = 250
"""How many events are pending for each worker before another one starts."""
LOSSES_LOGGED_EACH_S = 60.0

logger = logging.getLogger(__name__)


class PendingEvent(ABC):
    """An event with something to write."""

    __slots__ = ("is_outcome_unknown", "name", "namespace", "tries")

    kind: ClassVar[Kind]

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.tries = 0
        self.is_outcome_unknown = False

    @property
    @abstractmethod
    def is_created(self) -> bool:
        """Whether the Event exists, so that a patch is enough."""

    @abstractmethod
    def body(self) -> dict[str, object]:
        """The whole Event."""

    @abstractmethod
    def patch(self) -> dict[str, object]:
        """The fields that change when the event happens again."""

    @abstractmethod
    def rename(self) -> bool:
        """Take another name, because this one exists. False if the existing Event will do."""

    @abstractmethod
    def begin_write(self) -> bool:
        """`body` or `patch` is sent next. Returns False if there is nothing to write."""

    @abstractmethod
    def end_write(self, *, is_written: bool) -> bool:
        """The write has succeeded, or is given up. Returns whether another one is due."""


AnyEvent = TypeVar("AnyEvent", bound=PendingEvent)


class EventWriter(ABC, Generic[AnyEvent]):
    """Writes events of one format. A subclass decides what becomes an event (`record`)."""

    workers_min: ClassVar[int]
    workers_max: ClassVar[int]
    writes_in_a_row: ClassVar[int]

    def __init__(self, name: str, client: Client, clock: Clock, entropy: Entropy, *, pending_max: int) -> None:
        self._name = name
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._pending_max = pending_max
        self._queue: WorkQueue[AnyEvent] = WorkQueue(name, clock, entropy.fork("queue"))
        self._group: TaskGroup | None = None
        self._workers = self.workers_min
        self._counts = dict.fromkeys(
            ("recorded", "created", "patched", "retried", "dropped_full", "dropped_spam", "dropped_refused"), 0
        )
        self._losses_logged = 0
        self._losses_logged_s = clock.now_s() - LOSSES_LOGGED_EACH_S

    def recorder(self, controller: str, instance: str = "") -> EventRecorder:
        """A recorder, for `controller` such as default-scheduler and `instance` such as default-scheduler-host1."""
        return EventRecorder(self.record, controller, instance)

    @abstractmethod
    def record(self, key: EventKey, note: str) -> None:
        """Aggregate an event and enqueue it if it must be written."""

    def start(self, group: TaskGroup) -> None:
        """Start to write, in background tasks of the group."""
        self._group = group
        for number in range(self.workers_min):
            group.start_background(self._work(), name=f"{self._name} writer {number}")

    async def wait_written(self) -> None:
        """Wait until all recorded events have been written, or tried once."""
        await self._queue.wait_idle()

    async def close(self) -> None:
        """Accept no more events, and wait until the recorded ones have been written, or tried once."""
        self._queue.shut_down()
        await self._queue.wait_drained()

    def statistics(self) -> dict[str, int]:
        return {"pending": self._queue.backlog, **self._counts}

    @property
    def is_full(self) -> bool:
        return self._queue.backlog >= self._pending_max or self._queue.is_shut_down

    def enqueue(self, event: AnyEvent) -> bool:
        if self.is_full:
            self.lose("dropped_full")
            return False
        self._queue.add(event)
        return True

    def lose(self, why: str) -> None:
        self._counts[why] += 1
        now_s = self._clock.now_s()
        if now_s - self._losses_logged_s < LOSSES_LOGGED_EACH_S:
            return
        lost = sum(count for name, count in self._counts.items() if name.startswith("dropped"))
        logger.warning("%d events were lost since the last such line (%s)", lost - self._losses_logged, self._counts)
        self._losses_logged, self._losses_logged_s = lost, now_s

    @abstractmethod
    def finish(self, event: AnyEvent, *, is_written: bool) -> None:
        """No write of the event is due. `is_written`: whether the last one succeeded."""

    # -------------------------------------------------------------------------------------------------- workers

    async def _work(self) -> None:
        in_a_row = 0
        while (event := await self._queue.get()) is not None:
            self._start_helper()
            await self._write_safely(event)
            in_a_row += 1
            if in_a_row % self.writes_in_a_row == 0:
                await self._clock.wait(0)

    def _start_helper(self) -> None:
        if self._workers < self.workers_max and len(self._queue) > self._workers * EVENTS_PER_WORKER:
            assert self._group is not None, "a worker runs before `start`"
            self._group.start_background(self._help(self._workers), name=f"{self._name} writer {self._workers}")
            self._workers += 1

    async def _help(self, number: int) -> None:
        try:
            while len(self._queue) > number * EVENTS_PER_WORKER and (event := self._queue.get_nowait()) is not None:
                await self._write_safely(event)
        finally:
            self._workers -= 1

    # --------------------------------------------------------------------------------------------------- writes

    async def _write_safely(self, event: AnyEvent) -> None:
        try:
            await self._write(event)
        except Exception:
            # One event must not stop the worker.
            logger.exception("event %s/%s could not be written", event.namespace, event.name)
            self._give_up(event)
        finally:
            self._queue.done(event)

    async def _write(self, event: AnyEvent) -> None:
        if not event.begin_write():
            return
        try:
            if event.is_created:
                await self._patch(event)
            else:
                await self._create(event)
        except ClientError as error:
            event.is_outcome_unknown = event.is_outcome_unknown or error.is_outcome_unknown
            self._retry_or_give_up(event, error)
            return
        self._finish(event, is_written=True)

    async def _create(self, event: AnyEvent) -> None:
        for _ in range(NAMES_MAX):
            try:
                await self._client.create(event.kind, event.namespace, event.body(), is_answer_wanted=False)
                break
            except AlreadyExistsError:
                if event.is_outcome_unknown or not event.rename():
                    break
        else:
            raise NoAnswerError(f"{NAMES_MAX} names for an event were all taken")
        self._counts["created"] += 1

    async def _patch(self, event: AnyEvent) -> None:
        try:
            await self._client.patch(event.kind, event.namespace, event.name, event.patch(), form=PatchForm.STRATEGIC)
        except NotFoundError:
            await self._create(event)
            return
        self._counts["patched"] += 1

    def _retry_or_give_up(self, event: AnyEvent, error: ClientError) -> None:
        event.tries += 1
        if not error.can_help_to_retry or event.tries >= TRIES_MAX:
            logger.info("event %s/%s is dropped after %d attempts: %s", event.namespace, event.name, event.tries, error)
            self._give_up(event)
        elif not self._queue.is_shut_down:
            self._counts["retried"] += 1
            self._queue.add_after(event, RETRY_S * (1.0 + RETRY_JITTER * self._entropy.uniform()))

    def _give_up(self, event: AnyEvent) -> None:
        self.lose("dropped_refused")
        self._finish(event, is_written=False)

    def _finish(self, event: AnyEvent, *, is_written: bool) -> None:
        event.tries = 0
        if event.end_write(is_written=is_written):
            self._queue.add(event)
        else:
            self.finish(event, is_written=is_written)
