"""The mirror: the contents of etcd in memory, kept up to date by one watch of etcd.

Inputs: all records at a revision, then every change of every key. Outputs: reads and watches as `MemoryStore` has them;
`wait_fresh`, which waits until the mirror has everything that was confirmed before.

            ┌──────────── broken ◀─────────────┐
            ▼                                  │
   load ─▶ stream from the revision after the mirror's ──▶ apply to the mirror
    ▲       │
    └───────┴── compacted meanwhile, or another etcd, or one that was restored from a backup

1. The mirror always equals etcd at `current_revision`: changes come in order and in whole revisions.
2. Every key moves the revision, also keys of others (without a leading slash). Several changes may share a revision:
   etcd deletes all keys of a lease at once.
3. The history up to the revision in `compact_rev_key` is dropped here too.
4. A stream starts one revision after the mirror's: no change is lost or repeated. If missed changes are compacted,
   everything is loaded again and every watch is cut off.
5. `MirrorFollower` never gives up. Without etcd the mirror stands still, and reads that need a newer one fail in time.
6. `RevisionReader`: a reader needs the revision of etcd from a request that was sent after the reader arrived. All
   waiting readers share one request. A reader that waits longer than `request_s_max` for the mirror gets
   `EtcdUnreachable`.
7. If etcd answers with a revision below the mirror's, it was restored from a backup: the mirror is loaded again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.store.etcd.errors import EtcdCompacted, EtcdReplaced, EtcdUnreachable, copied
from mooring.store.etcd.settings import EtcdLimits
from mooring.store.etcd.wire import EtcdEndpoints, EtcdWire, EventStream
from mooring.store.interface import (
    Record,
    RevisionAhead,
    RevisionGone,
    StoreChange,
    StoreClosed,
    StoreError,
    ValueUnreadable,
)
from mooring.store.memory import MemoryStore

_COMPACTION_KEY = "compact_rev_key"


class EtcdMirror(MemoryStore):
    """A `MemoryStore` that gets the changes of etcd instead of writes."""

    def __init__(self, limits: EtcdLimits) -> None:
        super().__init__(
            changes_max=limits.changes_max,
            replaced_bytes_max=limits.replaced_bytes_max,
            buffer_max=limits.buffer_max,
        )
        self._compacted = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._loads = 0

    # ------------------------------------------------------------------------------------------------- changes

    def load(self, records: Sequence[Record], revision: int) -> None:
        """Replace all records, at a revision."""
        for watch in [*self._watches]:
            watch.cut_off()
        self._folders.clear()
        self._history.clear()
        self._replaced_bytes = 0
        self._paths_sorted = None
        for record in records:
            path = record.key[: record.key.rindex("/") + 1]
            folder = self._folders.get(path) or self._open_folder(path)
            folder.put(record, is_new=True)
        self._loads += 1
        self._compacted = 0
        self._oldest = revision
        self._revision = revision
        self._notify_advanced()

    def apply(self, changes: Sequence[StoreChange]) -> None:
        """Apply changes in order."""
        for change in changes:
            assert change.revision >= self._revision, f"revision {change.revision} after {self._revision}"
            self._revision = change.revision
            if change.key.startswith("/"):
                self._apply_one(change)
            elif change.key == _COMPACTION_KEY and change.value is not None and change.value.isdigit():
                self.forget_before(int(change.value))
        self._notify_advanced()

    def _apply_one(self, change: StoreChange) -> None:
        key = change.key
        path = key[: key.rindex("/") + 1]
        folder = self._folders.get(path) or self._open_folder(path)
        # The record of the mirror, not a second copy from etcd.
        change.previous = previous = folder.records.get(key)
        if change.value is not None:
            folder.put(Record(key, change.value, change.revision), is_new=previous is None)
        elif previous is not None:
            folder.remove(key)
        if not folder.records:
            del self._folders[path]
            self._paths_sorted = None
        self._notify(folder, change)

    def _notify_advanced(self) -> None:
        # Changes of foreign keys move the revision, too.
        callbacks, self._advance_callbacks = self._advance_callbacks, []
        for callback in callbacks:
            callback()
        waiters, self._waiters = self._waiters, []
        for revision, waiter in waiters:
            if revision > self._revision:
                self._waiters.append((revision, waiter))
            elif not waiter.done():
                waiter.set_result(None)

    # ------------------------------------------------------------------------------------------------- waiting

    async def wait_reached(self, revision: int) -> None:
        """Wait until the mirror has a revision."""
        if revision <= self._revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((revision, waiter))
        try:
            await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                self._waiters = [waiting for waiting in self._waiters if waiting[1] is not waiter]

    # ------------------------------------------------------------------------------------------------- history

    def _changes_after(self, revision: int) -> Sequence[StoreChange]:
        """By revision, not by position: revisions have gaps, and changes may share one."""
        if revision < self._oldest:
            raise RevisionGone(revision, self._oldest)
        if revision > self._revision:
            raise RevisionAhead(revision, self._revision)
        latest: list[StoreChange] = []
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            latest.append(change)
        latest.reverse()
        return latest

    def forget_before(self, revision: int) -> None:
        """It is compacted."""
        self._compacted = max(self._compacted, revision)
        while self._history and self._history[0].revision <= revision:
            self._forget_oldest()
        self._oldest = max(self._oldest, min(revision, self._revision))

    def compacted_revision(self) -> int:
        """The highest known compacted revision."""
        return self._compacted

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"revision_compacted": self._compacted, "loads": self._loads}


# All keys with a leading slash: "0" is the character after "/".
_FIRST_KEY, _END_KEY = b"/", b"0"

logger = logging.getLogger(__name__)


class MirrorFollower:
    """Applies the events of etcd to the mirror."""

    def __init__(self, endpoints: EtcdEndpoints, mirror: EtcdMirror, clock: Clock, limits: EtcdLimits) -> None:
        self._endpoints = endpoints
        self._mirror = mirror
        self._clock = clock
        self._limits = limits
        self._backoff = Backoff(limits.retry_s, limits.retry_s_max)
        self._stream: EventStream | None = None
        self._must_load = False
        self._cluster = 0
        self._failures = 0
        self._reconnections = 0

    async def load(self) -> None:
        """Load all records."""
        records, revision, compacted = await self._endpoints.call(self._read_everything)
        self._mirror.load(records, revision)
        self._mirror.forget_before(compacted)
        self._must_load = False

    async def follow(self) -> None:
        """Run until the store is closed."""
        while True:
            try:
                if self._must_load:
                    await self.load()
                await self._follow_stream()
            except (EtcdCompacted, EtcdReplaced) as error:
                logger.warning("missed changes are not available, so everything is loaded again: %s", error)
                self._must_load = True
            except StoreClosed:
                return
            except ValueUnreadable as error:
                # The stream would deliver the same value again: only a load finds its replacement.
                await self._wait_after(error)
                self._must_load = True
            except StoreError as error:
                if not self._must_load:
                    await self._wait_after(error)

    def reload(self) -> None:
        """Load everything again: the mirror differs from etcd."""
        self._must_load = True
        if self._stream is not None:
            self._stream.cancel()

    def statistics(self) -> dict[str, int]:
        return {"reconnections": self._reconnections}

    async def _follow_stream(self) -> None:
        # The request for the revision first: it connects, logs in, and finds an endpoint that answers.
        stream = await self._endpoints.call(self._new_stream)
        async with stream:
            self._stream = stream
            while not self._must_load:
                changes = await stream.next_changes()
                if self._failures:
                    logger.info("the watch of etcd continues from revision %d on", self._mirror.current_revision() + 1)
                    self._failures = 0
                if changes:
                    self._mirror.apply(changes)

    async def _new_stream(self, wire: EtcdWire) -> EventStream:
        await wire.revision()
        if wire.cluster != self._cluster:
            raise EtcdReplaced(f"etcd at {wire.endpoint} is cluster {wire.cluster:x}, not {self._cluster:x} as before")
        return wire.stream(self._mirror.current_revision() + 1)

    async def _wait_after(self, error: StoreError) -> None:
        self._failures += 1
        self._reconnections += 1
        if self._failures == 1:  # once, not for every attempt
            logger.warning("the watch of etcd is broken and is tried again: %s", error)
        await self._clock.wait(self._backoff.delay_s(self._failures))

    async def _read_everything(self, wire: EtcdWire) -> tuple[list[Record], int, int]:
        limit = self._limits.loaded_records_max
        await wire.revision()
        self._cluster = wire.cluster
        # Before the records, so that the compacted revision is not newer than they are.
        compacted = await wire.read_compacted()
        page = await wire.read(_FIRST_KEY, _END_KEY, limit=limit)
        records, revision, count = [*page.records], page.revision, page.total
        while len(records) < count:
            first = records[-1].key.encode(errors="surrogateescape") + b"\0"
            records += (await wire.read(first, _END_KEY, limit=limit, at=revision)).records
        return records, revision, compacted


class RevisionReader:
    """Asks etcd for its revision, for all readers."""

    def __init__(
        self, endpoints: EtcdEndpoints, mirror: EtcdMirror, follower: MirrorFollower, limits: EtcdLimits
    ) -> None:
        self._endpoints = endpoints
        self._mirror = mirror
        self._follower = follower
        self._limits = limits
        self._waiters: list[asyncio.Future[int]] = []
        self._is_requested = asyncio.Event()
        self._is_closed = False
        self._requests = 0
        self._readers = 0

    async def wait_fresh(self) -> int:
        """Wait until the mirror has the revision of etcd at some moment after the call. Returns it."""
        if self._is_closed:
            raise StoreClosed("the store is closed")
        self._readers += 1
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._is_requested.set()
        revision = await waiter
        await self.wait_reached(revision)
        return revision

    async def wait_reached(self, revision: int) -> None:
        """Wait until the mirror has a revision of etcd. Raises `EtcdUnreachable`."""
        try:
            async with asyncio.timeout(self._limits.request_s_max):
                await self._mirror.wait_reached(revision)
        except TimeoutError:
            raise EtcdUnreachable(
                f"etcd is at revision {revision}, but its events come only up to {self._mirror.current_revision()}; "
                "try again later"
            ) from None

    async def answer(self) -> None:
        """Run until the store is closed."""
        while True:
            await self._is_requested.wait()
            self._is_requested.clear()
            waiters, self._waiters = self._waiters, []
            try:
                revision = await self._read_revision()
            except StoreError as error:
                _resolve(waiters, error)
            except asyncio.CancelledError:
                _resolve(waiters, StoreClosed("the store was closed during a read"))
                raise
            else:
                _resolve(waiters, revision)

    def close(self) -> None:
        """Fail waiting and later readers with `StoreClosed`."""
        self._is_closed = True
        _resolve(self._waiters, StoreClosed("the store was closed during a read"))

    async def _read_revision(self) -> int:
        before = self._mirror.current_revision()
        self._requests += 1
        revision = await self._endpoints.call(EtcdWire.revision)
        if revision < before:
            logger.error("etcd is at revision %d and was at %d: everything is loaded again", revision, before)
            self._follower.reload()
            raise EtcdUnreachable(f"etcd went back from revision {before} to {revision}; it is being loaded again")
        return revision

    def statistics(self) -> dict[str, int]:
        return {"fresh_readers": self._readers, "fresh_questions": self._requests}


def _resolve(waiters: list[asyncio.Future[int]], outcome: int | StoreError) -> None:
    for waiter in waiters:
        # The reader may have been cancelled.
        if waiter.done():
            continue
        if isinstance(outcome, StoreError):
            waiter.set_exception(copied(outcome))
        else:
            waiter.set_result(outcome)
