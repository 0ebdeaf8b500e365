"""Group commit: writes wait until they are durable together.

Input: conditional writes, in order. Outputs: their revisions, once they are durable; the changes, to memory; now and
then, maintenance of the file.

   waiting ──decide──▶ in the commit ──durable──▶ in memory and watched ──▶ acknowledged
      └──▶ conflict                └──failed──▶ refused, and its revision is used again

1. At most one piece of work is with the writer. Further writes wait and go together.
2. A condition is decided when its commit is put together, against what is durable and what precedes it in the same
   commit. A write that lost against the latter fails only when that is durable too.
3. Memory is updated before any writer continues: a read after an acknowledgement finds the write.
4. A failed commit is refused as a whole. The next one is tried as usual: a full disk recovers without a restart. A
   damaged file ends all writes.
5. Deletions are accepted even when the file is at its limit, because they free space. When the disk is full, they get
   the space of the file's reserve; other writes are refused until the reserve can be allocated again.

A commit starts `ITERATIONS_AWAITED` iterations of the event loop after its first write, so that further writes, often
of the tasks that the last commit acknowledged, join it. On an idle loop this takes microseconds. On a busy loop each
iteration collects many writes, and a third of the commits cost a third. On virtual time there is no thread: the work is
done at once, and its outcome is reported one iteration later.

Writers are answered before watches are notified. A writer then knows its revision when its own watch delivers the
change, and need not read it again.

Where a commit runs (`CommitScheduler`): on the loop while the disk is fast, on a thread while it is slow. A thread
costs a busy loop more than it saves: each of its steps waits for the interpreter lock, and each hand-over wakes a
thread. With a thousand Deployments that took almost 3 ms for a commit of 1 ms.

6. The moving average of commit times decides. One slow commit counts at most `STRAIN_MAX` times the allowed time.
7. When the average is too high, commits go to the thread for `thread_s`, and then to the loop again; while that is too
   slow, for twice as long each time.
8. A large commit always goes to the thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar, TypeVarTuple

from mooring.kit.clock import Clock
from mooring.store.interface import (
    Record,
    StoreBusy,
    StoreChange,
    StoreClosed,
    StoreError,
    ValueTooLarge,
    WriteConflict,
)
from mooring.store.sqlite.errors import DiskFull, FileDamaged, FileError, SqliteLimits
from mooring.store.sqlite.file import StoreFile
from mooring.store.sqlite.memory import DurableMemory

STRAIN_MAX = 4.0
"""The weight limit of a single slow commit, in multiples of the allowed time."""
_WEIGHT_OF_LAST = 0.1


class CommitScheduler:
    """Decides where a commit runs, by the recent speed of the disk."""

    def __init__(self, clock: Clock, limits: SqliteLimits) -> None:
        self._clock = clock
        self._limits = limits
        self._strain = 0.0
        self._thread_s = 0.0
        self._thread_until_s = 0.0

    def is_on_loop(self, writes: int, size_bytes: int) -> bool:
        """Whether a commit runs on the event loop."""
        if writes > self._limits.loop_writes_max or size_bytes > self._limits.loop_bytes_max:
            return False
        return self._clock.now_s() >= self._thread_until_s

    def note(self, writes: int, took_s: float) -> None:
        """Record the duration of a commit on the event loop."""
        allowed_s = self._limits.loop_s + writes * self._limits.loop_s_per_write
        strain = min(took_s / allowed_s, STRAIN_MAX)
        self._strain += _WEIGHT_OF_LAST * (strain - self._strain)
        if self._strain > 1.0:
            self._use_thread()
        elif strain <= 1.0:
            self._thread_s = 0.0

    def _use_thread(self) -> None:
        self._strain = 0.0
        self._thread_s = min(max(2 * self._thread_s, self._limits.thread_s), self._limits.thread_s_max)
        self._thread_until_s = self._clock.now_s() + self._thread_s


Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

ITERATIONS_AWAITED = 3
"""Iterations of the event loop between the first waiting write and its commit."""

logger = logging.getLogger(__name__)


class Write:
    """A waiting write. `value` is None for a deletion."""

    __slots__ = ("acknowledged", "if_revision", "key", "value")

    def __init__(
        self, key: str, value: bytes | None, if_revision: int | None, acknowledged: asyncio.Future[int]
    ) -> None:
        self.key = key
        self.value = value
        self.if_revision = if_revision
        self.acknowledged = acknowledged

    def answer(self, outcome: int | StoreError) -> None:
        # The writer may have been cancelled.
        if self.acknowledged.done():
            return
        if isinstance(outcome, StoreError):
            self.acknowledged.set_exception(outcome)
        else:
            self.acknowledged.set_result(outcome)


class Batch:
    """The decided writes of one commit."""

    __slots__ = ("changes", "losers", "present", "size_bytes", "winners")

    def __init__(self) -> None:
        self.changes: list[StoreChange] = []
        self.winners: list[Write] = []
        self.losers: list[tuple[Write, WriteConflict]] = []
        self.present: dict[str, Record | None] = {}  # the keys of this batch after the commit
        self.size_bytes = 0


class GroupCommit:
    """Accepts writes, and passes batches to the writer."""

    def __init__(
        self, file: StoreFile, memory: DurableMemory, clock: Clock, limits: SqliteLimits, writer: Executor
    ) -> None:
        self._file = file
        self._memory = memory
        self._clock = clock
        self._limits = limits
        self._writer = writer
        self._scheduler = CommitScheduler(clock, limits)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Write] = deque()
        self._is_writer_busy = False
        self._is_step_scheduled = False
        self._is_closed = False
        self._is_refusing = False
        self._damage: FileDamaged | None = None
        self._must_maintain = False
        self._can_maintain = True
        self._maintenance_waiters: list[asyncio.Future[None]] = []
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._expiry: asyncio.TimerHandle | None = None
        self._commits = self._commits_on_loop = self._commits_failed = self._maintenances = 0
        self._set_expiry()

    async def write(self, key: str, value: bytes | None, if_revision: int | None) -> int:
        """Wait until the write is durable. Returns its revision."""
        if (error := self._error_of_write(key, value)) is not None:
            raise error
        acknowledged = self._loop.create_future()
        self._waiting.append(Write(key, value, if_revision, acknowledged))
        self._schedule_step()
        revision: int = await acknowledged
        return revision

    async def wait_maintained(self) -> None:
        """Wait until the file has dropped the rows that memory has forgotten."""
        if (error := self._error_of_state()) is not None:
            raise error
        self._must_maintain = self._can_maintain = True
        waiter = self._loop.create_future()
        self._maintenance_waiters.append(waiter)
        self._schedule_step()
        await waiter

    async def wait_closed(self) -> None:
        """Accept no more writes, and wait until the pending ones are answered."""
        self._is_closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        if self._waiting or self._maintenance_waiters or self._is_writer_busy:
            waiter = self._loop.create_future()
            self._idle_waiters.append(waiter)
            await waiter

    def statistics(self) -> dict[str, int]:
        return {
            "commits": self._commits,
            "commits_on_loop": self._commits_on_loop,
            "commits_failed": self._commits_failed,
            "maintenances": self._maintenances,
            "writes_waiting": len(self._waiting),
            "writes_waiting_max": self._limits.waiting_writes_max,
            "obsolete_rows": len(self._memory.obsolete),
            "log_bytes": self._file.log_bytes,
            "file_bytes": self._file.file_bytes,
            "file_bytes_used": self._file.used_bytes,
            "file_bytes_max": self._limits.file_bytes_max,
        }

    def _error_of_write(self, key: str, value: bytes | None) -> StoreError | None:
        # Invalid values are rejected here: on the writer they would fail the whole commit.
        assert "/" in key, f"a key is a path, not {key!r}"
        key.encode()
        if value is not None and len(value) > self._limits.value_bytes_max:
            return ValueTooLarge(f"{key} would have {len(value)} bytes, and may have {self._limits.value_bytes_max}")
        if len(self._waiting) >= self._limits.waiting_writes_max:
            return StoreBusy(f"{len(self._waiting)} writes wait for the disk already: try again later")
        return self._error_of_state()

    def _error_of_state(self) -> StoreError | None:
        if self._damage is not None:
            return self._damage.copied()
        return StoreClosed("the store is closed and takes no more writes") if self._is_closed else None

    # ---------------------------------------------------------------------------------- work for the writer

    def _schedule_step(self) -> None:
        if not self._is_step_scheduled and not self._is_writer_busy:
            self._is_step_scheduled = True
            self._loop.call_soon(self._wait_iterations, ITERATIONS_AWAITED - 1)

    def _wait_iterations(self, iterations_left: int) -> None:
        if iterations_left and not self._is_closed:
            self._loop.call_soon(self._wait_iterations, iterations_left - 1)
        else:
            self._step()

    def _step(self) -> None:
        self._is_step_scheduled = False
        if self._is_writer_busy:
            return
        if self._is_closed and not self._waiting and not self._maintenance_waiters:
            _release(self._idle_waiters)
        elif self._is_maintenance_due():
            rows = self._memory.obsolete[: self._limits.maintained_rows_max]
            then = partial(self._on_maintained, len(rows))
            self._run_in_thread(self._file.maintain, self._memory.oldest_revision(), rows, then=then)
        elif (batch := self._decide()).changes:
            then = partial(self._on_committed, batch)
            if self._scheduler.is_on_loop(len(batch.changes), batch.size_bytes):
                self._append_on_loop(batch, then)
            else:
                self._run_in_thread(self._file.append, batch.changes, then=then)
        elif self._is_closed:
            _release(self._idle_waiters)

    def _append_on_loop(self, batch: Batch, then: Callable[[asyncio.Future[None]], None]) -> None:
        self._is_writer_busy = True
        self._commits_on_loop += 1
        done: asyncio.Future[None] = self._loop.create_future()
        began_s = self._clock.now_s()
        try:
            self._file.append(batch.changes)
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(None)
        self._scheduler.note(len(batch.changes), self._clock.now_s() - began_s)
        done.add_done_callback(then)

    def _run_in_thread(
        self,
        work: Callable[[*Arguments], Result],
        *arguments: *Arguments,
        then: Callable[[asyncio.Future[Result]], None],
    ) -> None:
        self._is_writer_busy = True
        self._loop.run_in_executor(self._writer, work, *arguments).add_done_callback(then)

    def _decide(self) -> Batch:
        """Take the writes that fit into a commit, and number those whose condition holds."""
        batch, limits = Batch(), self._limits
        revision = self._memory.current_revision()
        while self._waiting and len(batch.changes) < limits.commit_writes_max:
            if batch.size_bytes >= limits.commit_bytes_max:
                break
            write = self._waiting.popleft()
            if write.acknowledged.done():
                continue
            key, is_own = write.key, write.key in batch.present
            current = batch.present[key] if is_own else self._memory.current(key)
            if not _holds(write, current):
                conflict = WriteConflict(key, current)
                batch.losers.append((write, conflict)) if is_own else write.answer(conflict)
            elif write.value is not None and self._file.used_bytes + batch.size_bytes >= limits.file_bytes_max:
                write.answer(self._file_at_limit())
            elif write.value is not None and not self._file.reserve.hold():
                write.answer(self._no_reserve())
            else:
                revision += 1
                batch.winners.append(write)
                batch.changes.append(StoreChange(key, revision, write.value, current))
                batch.present[key] = Record(key, write.value, revision) if write.value is not None else None
                batch.size_bytes += len(key) + len(write.value or b"")
        return batch

    def _file_at_limit(self) -> DiskFull:
        self._must_maintain = True  # obsolete rows may free enough space
        return DiskFull(
            f"the store's file is at its limit of {self._limits.file_bytes_max} bytes: delete something, "
            "wait until older history is compacted, or raise the limit"
        )

    def _no_reserve(self) -> DiskFull:
        self._must_maintain = True
        return DiskFull(
            f"less than {self._limits.reserve_bytes} bytes are free on the disk of the store: delete something, or "
            "free some space. Reading and deleting go on"
        )

    def _on_committed(self, batch: Batch, done: asyncio.Future[None]) -> None:
        self._is_writer_busy = False
        if (error := done.exception()) is not None:
            self._on_commit_failed(batch, error)
        else:
            self._commits += 1
            self._can_maintain = True
            if self._is_refusing:
                self._is_refusing = False
                logger.info("the store writes again, at revision %d", batch.changes[-1].revision)
            for write, change in zip(batch.winners, batch.changes):
                write.answer(change.revision)
            for write, conflict in batch.losers:
                write.answer(conflict)
            self._memory.apply(batch.changes, self._clock.now_s())
            self._set_expiry()
        self._schedule_step()

    def _on_commit_failed(self, batch: Batch, error: BaseException) -> None:
        file_error = _as_file_error(error)
        self._commits_failed += 1
        if not self._is_refusing:  # once, not for every write while the disk is full
            self._is_refusing = True
            logger.error("%s", file_error)
        writes = [*batch.winners, *(write for write, _ in batch.losers)]
        if isinstance(file_error, DiskFull) and self._file.reserve.release():
            self._waiting.extendleft(write for write in reversed(writes) if write.value is None)
            writes = [write for write in writes if write.value is not None]
        for write in writes:
            write.answer(file_error.copied())
        if not self._ends_writing(file_error):
            self._must_maintain = self._can_maintain = True  # a checkpoint may free enough space

    def _ends_writing(self, error: FileError) -> bool:
        if not isinstance(error, FileDamaged):
            return False
        self._damage = error
        self._can_maintain = False
        while self._waiting:
            self._waiting.popleft().answer(error.copied())
        self._fail_maintenance_waiters(error)
        return True

    # -------------------------------------------------------------------------------------------- maintenance

    def _is_maintenance_due(self) -> bool:
        if not self._can_maintain:
            return False
        return (
            self._must_maintain
            or len(self._memory.obsolete) >= self._limits.obsolete_rows_max
            or self._file.log_bytes >= self._log_bytes_max()
        )

    def _log_bytes_max(self) -> int:
        is_low = not self._file.reserve.is_held or self._file.free_bytes < self._limits.free_bytes_low
        return self._limits.reserve_bytes // 2 if is_low else self._limits.log_bytes_max

    def _on_maintained(self, rows: int, done: asyncio.Future[bool]) -> None:
        self._is_writer_busy = False
        self._must_maintain = False
        if (error := done.exception()) is not None:
            self._on_maintenance_failed(_as_file_error(error))
        else:
            self._maintenances += 1
            del self._memory.obsolete[:rows]
            if self._maintenance_waiters and (self._memory.obsolete or done.result()):
                self._must_maintain = True
            else:
                _release(self._maintenance_waiters)
        self._step()

    def _on_maintenance_failed(self, error: FileError) -> None:
        logger.error("%s", error)
        if isinstance(error, DiskFull) and self._file.reserve.release():
            self._must_maintain = True
            return
        # Not again until a commit succeeds or `wait_maintained` is called.
        self._can_maintain = False
        self._fail_maintenance_waiters(error)
        self._ends_writing(error)

    def _fail_maintenance_waiters(self, error: FileError) -> None:
        waiters, self._maintenance_waiters = self._maintenance_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error.copied())

    def _set_expiry(self) -> None:
        if self._expiry is None and not self._is_closed and (due_s := self._memory.next_expiry_s()) is not None:
            self._expiry = self._loop.call_later(max(due_s - self._clock.now_s(), 0.0), self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self._memory.forget_expired(self._clock.now_s())
        self._set_expiry()
        self._must_maintain = True
        self._schedule_step()


def _holds(write: Write, current: Record | None) -> bool:
    """Whether the current record meets the condition of a write."""
    if write.value is None and current is None:
        return False
    return write.if_revision is None or write.if_revision == (current.revision if current is not None else 0)


def _as_file_error(error: BaseException) -> FileError:
    if isinstance(error, FileError):
        return error
    if isinstance(error, Exception):
        return FileError(f"the store's writer failed: {error!r}")
    raise error


def _release(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()
