"""A watch of the store on etcd: a watch of the mirror, which can begin before the mirror's history does.

Comes in   changes of one folder from the mirror; what happened before its history, from etcd
Goes out   the same changes in batches, in order, once

 1. A watch is attached to the mirror before etcd is asked for what was missed: what comes meanwhile waits behind it.
 2. etcd is asked for all keys, though a folder is wanted: the event at the mirror's revision then says where to stop.
 3. At most `missed_changes_max` changes are fetched: beyond that listing again is cheaper, and `RevisionGone` says so.
"""

from __future__ import annotations

import asyncio
from typing import Self

from mooring.store.etcd.endpoints import Endpoints
from mooring.store.etcd.errors import EtcdCompacted, EtcdUnreachable
from mooring.store.etcd.fresh import Freshness
from mooring.store.etcd.limits import EtcdLimits
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.wire import Wire
from mooring.store.interface import RevisionGone, StoreChange
from mooring.store.memory_watch import MemoryWatch


class EtcdWatch(MemoryWatch):
    """Keeps the promise of a watch on an `EtcdStore`."""

    __slots__ = ("_endpoints", "_fresh", "_limits", "_mirror", "_since")

    def __init__(
        self, mirror: EtcdMirror, endpoints: Endpoints, fresh: Freshness, limits: EtcdLimits, folder: str, since: int
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
            missed = await self._endpoints.ask(lambda wire: self._fetch(wire, until))
        except BaseException as error:
            mirror.end_watch(self)
            if isinstance(error, EtcdCompacted):
                raise RevisionGone(self._since, error.compacted) from None
            raise
        if not self._is_cut_off:
            self._buffer = missed + self._buffer
        return self

    async def _fetch(self, wire: Wire, until: int) -> list[StoreChange]:
        """What happened to the folder after `since`, up to and with `until`."""
        await wire.revision()
        missed: list[StoreChange] = []
        seen, revision = 0, self._since
        async with wire.stream(self._since + 1, has_previous=True) as stream:
            while revision < until:
                try:
                    async with asyncio.timeout(self._limits.request_s_max):
                        changes = await stream.next_changes()
                except TimeoutError:
                    raise EtcdUnreachable(f"etcd at {wire.endpoint} stopped telling what happened") from None
                seen += len(changes)
                if seen > self._limits.missed_changes_max:
                    raise RevisionGone(self._since, until)
                for change in changes:
                    revision = change.revision
                    if revision <= until and change.key.startswith(self.folder):
                        missed.append(change)
        return missed
