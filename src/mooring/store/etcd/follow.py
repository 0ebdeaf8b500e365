"""Following an etcd: one stream of events for the whole process, whatever happens to the connection.

Comes in   events, from whichever endpoint answers
Goes out   the mirror, which is kept up to date

            ┌────────────── lost ◀─────────────┐
            ▼                                  │
   load ─▶ stream from the revision after the mirror's ──▶ tell the mirror
    ▲       │
    └───────┴── compacted meanwhile, or it is another etcd, or one that went back in time

 1. A stream begins one revision after the mirror's: nothing is lost and nothing comes twice, however often it breaks.
 2. Following never gives up: without etcd the mirror stands still, and whoever needs it newer is told so in time.
"""

from __future__ import annotations

import logging

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.store.etcd.endpoints import Endpoints
from mooring.store.etcd.errors import EtcdCompacted, EtcdReplaced
from mooring.store.etcd.limits import EtcdLimits
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.stream import EventStream
from mooring.store.etcd.wire import Wire
from mooring.store.interface import Record, StoreClosed, StoreError

# All keys that begin with a slash lie before the first that begins with the character after it.
_FIRST_KEY, _END_KEY = b"/", b"0"

logger = logging.getLogger(__name__)


class Follower:
    """Keeps the mirror up to date."""

    def __init__(self, endpoints: Endpoints, mirror: EtcdMirror, clock: Clock, limits: EtcdLimits) -> None:
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
        """Take everything that there is."""
        records, revision, compacted = await self._endpoints.ask(self._read_everything)
        self._mirror.load(records, revision)
        self._mirror.forget_before(compacted)
        self._must_load = False

    async def follow(self) -> None:
        """For as long as the store is open."""
        while True:
            try:
                if self._must_load:
                    await self.load()
                await self._follow_stream()
            except (EtcdCompacted, EtcdReplaced) as error:
                logger.warning("changes were missed that cannot be had, so everything is loaded again: %s", error)
                self._must_load = True
            except StoreClosed:
                return
            except StoreError as error:
                await self._wait_after(error)

    def start_over(self) -> None:
        """What the mirror has is not what etcd had: load it again."""
        self._must_load = True
        if self._stream is not None:
            self._stream.cancel()

    def statistics(self) -> dict[str, int]:
        return {"reconnections": self._reconnections}

    async def _follow_stream(self) -> None:
        # A question first: it connects, logs in, and moves on to an endpoint that answers.
        stream = await self._endpoints.ask(self._new_stream)
        async with stream:
            self._stream = stream
            while not self._must_load:
                changes = await stream.next_changes()
                if self._failures:
                    logger.info("etcd is followed again, from revision %d on", self._mirror.current_revision() + 1)
                    self._failures = 0
                if changes:
                    self._mirror.tell(changes)

    async def _new_stream(self, wire: Wire) -> EventStream:
        await wire.revision()
        if wire.cluster != self._cluster:
            raise EtcdReplaced(f"etcd at {wire.endpoint} is cluster {wire.cluster:x}, not {self._cluster:x} as before")
        return wire.stream(self._mirror.current_revision() + 1)

    async def _wait_after(self, error: StoreError) -> None:
        if self._must_load:
            return
        self._failures += 1
        self._reconnections += 1
        if self._failures == 1:  # once, not for every attempt while etcd is away
            logger.warning("etcd is not followed any more, and we try to again: %s", error)
        await self._clock.wait(self._backoff.delay_s(self._failures))

    async def _read_everything(self, wire: Wire) -> tuple[list[Record], int, int]:
        limit = self._limits.loaded_records_max
        await wire.revision()
        self._cluster = wire.cluster
        # Before the records, so that what it says is older than what we load.
        compacted = await wire.read_compacted()
        page = await wire.read(_FIRST_KEY, _END_KEY, limit=limit)
        records, revision, count = [*page.records], page.revision, page.total
        while len(records) < count:
            first = records[-1].key.encode(errors="surrogateescape") + b"\0"
            records += (await wire.read(first, _END_KEY, limit=limit, at=revision)).records
        return records, revision, compacted
