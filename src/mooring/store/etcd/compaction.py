"""Compaction of an etcd: all API servers on it take turns, kube-apiserver included.

Comes in   the time
Goes out   an etcd without the history that is older than one interval

The key `compact_rev_key` holds how far somebody compacted last; its version counts the turns. Every interval a server
tries to take the turn that follows the last one it knows of:

   nobody took it ──▶ it is ours: compact up to where etcd was at our last turn
   somebody did   ──▶ note theirs, and try the one after it in the next interval

 1. However many servers there are, etcd is compacted once in an interval. When the one that did it stops, another takes
    over within two.
 2. What is compacted was there at least one interval ago: a pager or a watch that fell behind has as long.
 3. The first turn compacts nothing: nobody knows yet how far etcd was an interval ago.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from mooring.kit.clock import Clock
from mooring.store.etcd.endpoints import Endpoints
from mooring.store.etcd.errors import EtcdCompacted
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.wire import decimal
from mooring.store.interface import StoreClosed, StoreError

logger = logging.getLogger(__name__)


class Compaction:
    """Our part in it."""

    def __init__(self, endpoints: Endpoints, mirror: EtcdMirror) -> None:
        self._endpoints = endpoints
        self._mirror = mirror
        self._version = 0
        self._revision = 0
        self._turns = 0
        self._failures = 0

    async def take_turns(self, clock: Clock, interval_s: float) -> None:
        """For as long as the store is open."""
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
        """Whether it was ours."""
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
        """Out of turn, because somebody asked for it; the others hear of it."""
        if revision <= self._mirror.compacted_revision():
            return
        await self._compact(revision)
        await self._endpoints.ask(lambda wire: wire.announce_compaction(revision))

    async def _compact(self, revision: int) -> None:
        # As a question, which may be asked twice: the second time it is compacted already.
        with suppress(EtcdCompacted):
            await self._endpoints.ask(lambda wire: wire.compact(revision))
        self._mirror.forget_before(revision)

    def statistics(self) -> dict[str, int]:
        return {"compactions": self._turns, "compactions_failed": self._failures}
