"""The store on an etcd that other programs may use too. Keys and values are written unchanged.

    async with await EtcdStore.open("etcd://127.0.0.1:2379", SystemClock()) as store:
        revision = await store.put("/registry/minions/n1", b"{}")

1. A write has happened when etcd confirms it. If the connection breaks before, the outcome is unknown.
2. A read sees every write that was confirmed before it began, of any client: reads come from a mirror in memory, after
   asking etcd for its revision. A read at a revision that the mirror has needs no request.
3. All watches share one watch of etcd. A lost connection is invisible to them.
4. Revisions are those of etcd: the store's is that of the header, a record's is its mod_revision.
5. A watch that starts before the mirror's history is attached to the mirror first and then reads the missed changes
   from etcd. It reads all keys, so that the event at the mirror's revision shows the end, and at most
   `missed_changes_max` changes: beyond that a list is cheaper (`RevisionGone`).

6. Every value that is read passes through `read_value`, which converts what another API server wrote. If a value cannot
   be read, the store does not open; while it is open, the mirror stands still until the value is replaced.

Compaction: all API servers on an etcd take turns, kube-apiserver included. The key `compact_rev_key` has the revision
of the last compaction, and its version counts the turns. Every interval a server tries to take the next turn:

   not taken ──▶ it is ours: compact up to the revision of etcd at our last turn
   taken     ──▶ remember it, and try the next one after the interval

7. etcd is compacted once in an interval, by any number of servers. When the active one stops, another takes over within
   two intervals.
8. A compacted revision is at least one interval old, so that slow watches and lists can continue.
9. The first turn compacts nothing: the revision of an interval ago is unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.errors import EtcdCompacted, EtcdUnreachable
from mooring.store.etcd.mirror import EtcdMirror, MirrorFollower, RevisionReader
from mooring.store.etcd.settings import EtcdAddress, EtcdLimits, parse_address
from mooring.store.etcd.wire import EtcdEndpoints, EtcdWire, ValueReader, as_it_is, decimal, encoded_key
from mooring.store.interface import (
    Page,
    Record,
    RevisionAhead,
    RevisionGone,
    StoreBusy,
    StoreChange,
    StoreClosed,
    StoreError,
)
from mooring.store.memory import MemoryWatch

logger = logging.getLogger(__name__)


class Compaction:
    """The compaction turns of this process."""

    def __init__(self, endpoints: EtcdEndpoints, mirror: EtcdMirror) -> None:
        self._endpoints = endpoints
        self._mirror = mirror
        self._version = 0
        self._revision = 0
        self._turns = 0
        self._failures = 0

    async def take_turns(self, clock: Clock, interval_s: float) -> None:
        """Take a turn every interval until the store is closed."""
        while True:
            await clock.wait(interval_s)
            try:
                await self.take_turn()
            except StoreClosed:
                return
            except StoreError as error:
                self._failures += 1
                logger.warning("etcd was not compacted: %s", error)

    async def take_turn(self) -> bool:
        """Returns whether the turn was ours."""
        target = self._revision
        turn = await self._endpoints.write(lambda wire: wire.take_turn(self._version, b"%d" % target))
        self._version, self._revision = turn.version, turn.revision
        if not turn.is_ours:
            self._mirror.forget_before(decimal(turn.value))
        elif target:
            await self._compact(target)
            self._turns += 1
        return turn.is_ours

    async def compact(self, revision: int) -> None:
        """Compact out of turn, and announce it to the other servers."""
        if revision <= self._mirror.compacted_revision():
            return
        await self._compact(revision)
        await self._endpoints.call(lambda wire: wire.announce_compaction(revision))

    async def _compact(self, revision: int) -> None:
        # `call` may repeat it: then etcd is compacted already.
        with suppress(EtcdCompacted):
            await self._endpoints.call(lambda wire: wire.compact(revision))
        self._mirror.forget_before(revision)

    def statistics(self) -> dict[str, int]:
        return {"compactions": self._turns, "compactions_failed": self._failures}


class EtcdWatch(MemoryWatch):
    """Implements `StoreWatch` on an `EtcdStore`."""

    __slots__ = ("_endpoints", "_fresh", "_limits", "_mirror", "_since")

    def __init__(
        self,
        mirror: EtcdMirror,
        endpoints: EtcdEndpoints,
        fresh: RevisionReader,
        limits: EtcdLimits,
        folder: str,
        since: int,
    ) -> None:
        super().__init__(mirror, folder, since, limits.buffer_max)
        self._mirror = mirror
        self._endpoints = endpoints
        self._fresh = fresh
        self._limits = limits
        self._since = since

    async def __aenter__(self) -> Self:
        mirror = self._mirror
        if self._since > mirror.current_revision():
            await self._fresh.wait_fresh()
        if self._since >= mirror.oldest_revision():
            return await super().__aenter__()
        if self._since < mirror.compacted_revision():
            raise RevisionGone(self._since, mirror.compacted_revision())
        until = mirror.current_revision()
        mirror.begin_watch(self, until)
        try:
            missed = await self._endpoints.call(lambda wire: self._fetch(wire, until))
        except BaseException as error:
            mirror.end_watch(self)
            if isinstance(error, EtcdCompacted):
                raise RevisionGone(self._since, error.compacted) from None
            raise
        if not self._is_cut_off:
            self._buffer = missed + self._buffer
        return self

    async def _fetch(self, wire: EtcdWire, until: int) -> list[StoreChange]:
        """The changes of the folder after `since`, up to and including `until`."""
        await wire.revision()
        missed: list[StoreChange] = []
        seen, revision = 0, self._since
        async with wire.stream(self._since + 1, has_previous=True) as stream:
            while revision < until:
                try:
                    async with asyncio.timeout(self._limits.request_s_max):
                        changes = await stream.next_changes()
                except TimeoutError:
                    raise EtcdUnreachable(f"etcd at {wire.endpoint} stopped sending events") from None
                seen += len(changes)
                if seen > self._limits.missed_changes_max:
                    raise RevisionGone(self._since, until)
                for change in changes:
                    revision = change.revision
                    if revision <= until and change.key.startswith(self.folder):
                        missed.append(change)
        return missed


Answer = TypeVar("Answer")

_DEFAULT_LIMITS = EtcdLimits()


class EtcdStore:
    """Implements `Store` on an etcd."""

    def __init__(self, endpoints: EtcdEndpoints, clock: Clock, limits: EtcdLimits) -> None:
        """Called by `open` only."""
        self._endpoints = endpoints
        self._clock = clock
        self._limits = limits
        self._mirror = EtcdMirror(limits)
        self._follower = MirrorFollower(endpoints, self._mirror, clock, limits)
        self._fresh = RevisionReader(endpoints, self._mirror, self._follower, limits)
        self._compaction = Compaction(endpoints, self._mirror)
        self._tasks = TaskGroup("etcd store")
        self._written = 0
        self._writes_waiting = 0
        self._is_closed = False

    @classmethod
    async def open(
        cls,
        address: str | EtcdAddress,
        clock: Clock,
        limits: EtcdLimits = _DEFAULT_LIMITS,
        read_value: ValueReader = as_it_is,
    ) -> Self:
        """Connect, and load all records. Raises an error of `errors`.

        The background tasks belong to the calling task, which should also close the store.
        """
        parsed = parse_address(address) if isinstance(address, str) else address
        endpoints = EtcdEndpoints(parsed, clock, limits, read_value)
        store = cls(endpoints, clock, limits)
        try:
            await store._follower.load()
        except BaseException:
            await endpoints.close()
            raise
        await store._begin()
        return store

    async def _begin(self) -> None:
        tasks = await self._tasks.__aenter__()
        tasks.start_background(self._follower.follow(), name="follow")
        tasks.start_background(self._fresh.answer(), name="fresh")
        if interval_s := self._limits.compaction_interval_s:
            tasks.start_background(self._compaction.take_turns(self._clock, interval_s), name="compact")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop the background tasks. Waiting calls fail with `StoreClosed`."""
        if self._is_closed:
            return
        self._is_closed = True
        self._fresh.close()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self._endpoints.close()

    # ------------------------------------------------------------------------------------------------ reads

    async def revision(self) -> int:
        return await self._fresh.wait_fresh()

    async def get(self, key: str, *, at: int | None = None) -> Record | None:
        if at is None:
            await self._fresh.wait_fresh()
        elif not await self._has(at):
            extract = await self._read_past(at, lambda wire: wire.read(encoded_key(key), b"", at=at))
            return extract.records[0] if extract.records else None
        return await self._mirror.get(key, at=at)

    def peek(self, key: str) -> Record | None:
        return self._mirror.peek(key)

    async def list(self, folder: str, *, start: str = "", limit: int = 0, at: int | None = None) -> Page:
        if at is None:
            await self._fresh.wait_fresh()
        elif not await self._has(at):
            return await self._list_past(folder, start, limit, at)
        return await self._mirror.list(folder, start=start, limit=limit, at=at)

    def watch(self, folder: str, *, since: int) -> EtcdWatch:
        assert folder.endswith("/"), f"a folder's path ends with a slash, not {folder!r}"
        return EtcdWatch(self._mirror, self._endpoints, self._fresh, self._limits, folder, since)

    async def _has(self, revision: int) -> bool:
        """Whether the mirror has a revision; otherwise etcd has it. Raises `RevisionAhead`."""
        if revision > self._mirror.current_revision():
            await self._fresh.wait_fresh()
        if revision > self._mirror.current_revision():
            raise RevisionAhead(revision, self._mirror.current_revision())
        return revision >= self._mirror.oldest_revision()

    async def _list_past(self, folder: str, start: str, limit: int, at: int) -> Page:
        first, end = encoded_key(max(folder, start)), encoded_key(folder[:-1] + "0")  # "0" comes after "/"
        extract = await self._read_past(at, lambda wire: wire.read(first, end, limit=limit, at=at))
        remaining = extract.total - len(extract.records)
        following = f"{extract.records[-1].key}\0" if remaining and extract.records else ""
        return Page(extract.records, at, following, remaining)

    async def _read_past(self, at: int, question: Callable[[EtcdWire], Awaitable[Answer]]) -> Answer:
        try:
            return await self._endpoints.call(question)
        except EtcdCompacted:
            # etcd does not report the compacted revision here.
            raise RevisionGone(at, max(self._mirror.compacted_revision(), at + 1)) from None

    # ------------------------------------------------------------------------------------------------ writes

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        return await self._write(key, lambda wire: wire.put(key, value, if_revision))

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        return await self._write(key, lambda wire: wire.delete(key, if_revision))

    async def _write(self, key: str, write: Callable[[EtcdWire], Awaitable[int]]) -> int:
        assert key.startswith("/"), f"a key is a path, not {key!r}"
        if self._is_closed:
            raise StoreClosed("the store is closed and takes no more writes")
        if self._writes_waiting >= self._limits.waiting_writes_max:
            raise StoreBusy(f"{self._writes_waiting} writes wait for etcd already: try again later")
        self._writes_waiting += 1
        try:
            revision = await self._endpoints.write(write)
        finally:
            self._writes_waiting -= 1
        self._written = max(self._written, revision)
        return revision

    # --------------------------------------------------------------------------------------------- compaction

    async def compact(self, revision: int) -> None:
        current = await self._fresh.wait_fresh()
        if revision > current:
            raise RevisionAhead(revision, current)
        await self._compaction.compact(revision)

    def statistics(self) -> dict[str, int]:
        """`revision` is the highest known one; the mirror may be behind."""
        counts = self._mirror.statistics()
        counts["revision"] = max(counts["revision"], self._written)
        counts |= {"writes_waiting": self._writes_waiting, "writes_waiting_max": self._limits.waiting_writes_max}
        return (
            counts
            | self._endpoints.statistics()
            | self._follower.statistics()
            | self._fresh.statistics()
            | self._compaction.statistics()
        )
