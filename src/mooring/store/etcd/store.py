"""The store on etcd: the store promise kept on an etcd that others use, too.

Comes in   everything that the store promise allows; the address of an etcd
Goes out   the same; keys and values are in etcd as they are given

    async with await EtcdStore.open("etcd://127.0.0.1:2379", SystemClock()) as store:
        revision = await store.put("/registry/minions/n1", b"{}")

 1. A write has happened when etcd says so. If etcd is lost before it does, the outcome is unknown, and so it says.
 2. A read sees everything that anybody was told of before it began, whoever wrote it: reads come from a mirror in
    memory, after asking etcd how far it is (`fresh`). A read at a revision that the mirror has costs no question.
 3. However many watches there are, etcd has one (`follow`). A lost connection is no event for them.
 4. A revision of the promise is a revision of etcd: the store's, that of its header; a record's, its mod_revision.

The rooms behind: `wire` speaks with one endpoint, `endpoints` chooses it, `mirror` holds what is there,
`watch` reaches back behind it, `compaction` forgets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.address import EtcdAddress, parse_address
from mooring.store.etcd.compaction import Compaction
from mooring.store.etcd.endpoints import Endpoints
from mooring.store.etcd.errors import EtcdCompacted
from mooring.store.etcd.follow import Follower
from mooring.store.etcd.fresh import Freshness
from mooring.store.etcd.limits import EtcdLimits
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.stream import encoded_key
from mooring.store.etcd.watch import EtcdWatch
from mooring.store.etcd.wire import Wire
from mooring.store.interface import Page, Record, RevisionAhead, RevisionGone, StoreBusy, StoreClosed

Answer = TypeVar("Answer")

_DEFAULT_LIMITS = EtcdLimits()


class EtcdStore:
    """Keeps the store promise on an etcd."""

    def __init__(self, endpoints: Endpoints, clock: Clock, limits: EtcdLimits) -> None:
        """Only for `open`."""
        self._endpoints = endpoints
        self._clock = clock
        self._limits = limits
        self._mirror = EtcdMirror(limits)
        self._follower = Follower(endpoints, self._mirror, clock, limits)
        self._fresh = Freshness(endpoints, self._mirror, self._follower, limits)
        self._compaction = Compaction(endpoints, self._mirror)
        self._tasks = TaskGroup("etcd store")
        self._written = 0
        self._writes_waiting = 0
        self._is_closed = False

    @classmethod
    async def open(cls, address: str | EtcdAddress, clock: Clock, limits: EtcdLimits = _DEFAULT_LIMITS) -> Self:
        """Connect, and load what is there. Raises an error of `errors`.

        The store's own tasks belong to the task that opens it, which should be the one that closes it.
        """
        endpoints = Endpoints(parse_address(address) if isinstance(address, str) else address, clock, limits)
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
        """End following, and tell those who wait that it is over."""
        if self._is_closed:
            return
        self._is_closed = True
        self._fresh.close()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            await self._endpoints.close()

    # ------------------------------------------------------------------------------------------------ reading

    async def revision(self) -> int:
        return await self._fresh.wait_fresh()

    async def get(self, key: str, *, at: int | None = None) -> Record | None:
        if at is None:
            await self._fresh.wait_fresh()
        elif not await self._has(at):
            extract = await self._ask_past(at, lambda wire: wire.read(encoded_key(key), b"", at=at))
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
        """Whether the mirror can say how it was at a revision; otherwise etcd can."""
        if revision > self._mirror.current_revision():
            await self._fresh.wait_fresh()
        if revision > self._mirror.current_revision():
            raise RevisionAhead(revision, self._mirror.current_revision())
        return revision >= self._mirror.oldest_revision()

    async def _list_past(self, folder: str, start: str, limit: int, at: int) -> Page:
        first, end = encoded_key(max(folder, start)), encoded_key(folder[:-1] + "0")  # "0" comes after "/"
        extract = await self._ask_past(at, lambda wire: wire.read(first, end, limit=limit, at=at))
        remaining = extract.total - len(extract.records)
        following = f"{extract.records[-1].key}\0" if remaining and extract.records else ""
        return Page(extract.records, at, following, remaining)

    async def _ask_past(self, at: int, question: Callable[[Wire], Awaitable[Answer]]) -> Answer:
        try:
            return await self._endpoints.ask(question)
        except EtcdCompacted:
            # etcd does not say how far it is compacted, only that it is.
            raise RevisionGone(at, max(self._mirror.compacted_revision(), at + 1)) from None

    # ------------------------------------------------------------------------------------------------ writing

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        return await self._write(key, lambda wire: wire.put(key, value, if_revision))

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        return await self._write(key, lambda wire: wire.delete(key, if_revision))

    async def _write(self, key: str, write: Callable[[Wire], Awaitable[int]]) -> int:
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

    # --------------------------------------------------------------------------------------------- forgetting

    async def compact(self, revision: int) -> None:
        current = await self._fresh.wait_fresh()
        if revision > current:
            raise RevisionAhead(revision, current)
        await self._compaction.compact(revision)

    def statistics(self) -> dict[str, int]:
        """`revision` is the highest that we know of; the mirror may be a moment behind."""
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
