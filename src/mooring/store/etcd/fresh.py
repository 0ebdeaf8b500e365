"""Freshness: a read waits until the mirror has everything that anybody was told of before it.

Comes in   readers who are about to read the mirror
Goes out   the same readers, when it is fresh enough for them

 1. A reader needs the answer to a question that was asked after it came. So one that comes while a question is under
    way waits for the next; all who wait share one, and a thousand readers cost etcd no more than a few.
 2. Somebody who waits longer than `request_s_max` for the mirror is told that etcd is out of reach.
 3. An etcd that answers with a revision that lies before the mirror's was put back to an older state: the mirror is
    loaded again.
"""

from __future__ import annotations

import asyncio
import logging

from mooring.store.etcd.endpoints import Endpoints
from mooring.store.etcd.errors import EtcdUnreachable, again
from mooring.store.etcd.follow import Follower
from mooring.store.etcd.limits import EtcdLimits
from mooring.store.etcd.mirror import EtcdMirror
from mooring.store.etcd.wire import Wire
from mooring.store.interface import StoreClosed, StoreError

logger = logging.getLogger(__name__)


class Freshness:
    """Asks etcd how far it is, for everybody."""

    def __init__(self, endpoints: Endpoints, mirror: EtcdMirror, follower: Follower, limits: EtcdLimits) -> None:
        self._endpoints = endpoints
        self._mirror = mirror
        self._follower = follower
        self._limits = limits
        self._waiters: list[asyncio.Future[int]] = []
        self._is_wanted = asyncio.Event()
        self._is_closed = False
        self._questions = 0
        self._readers = 0

    async def wait_fresh(self) -> int:
        """The revision of etcd at some moment after the call; the mirror has reached it."""
        if self._is_closed:
            raise StoreClosed("the store is closed")
        self._readers += 1
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._is_wanted.set()
        revision = await waiter
        await self.wait_reached(revision)
        return revision

    async def wait_reached(self, revision: int) -> None:
        """Until the mirror has come to a revision that etcd has."""
        try:
            async with asyncio.timeout(self._limits.request_s_max):
                await self._mirror.wait_reached(revision)
        except TimeoutError:
            raise EtcdUnreachable(
                f"etcd is at revision {revision}, but its events come only up to {self._mirror.current_revision()}; "
                "try again later"
            ) from None

    async def answer(self) -> None:
        """For as long as the store is open."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            waiters, self._waiters = self._waiters, []
            try:
                revision = await self._ask()
            except StoreError as error:
                _tell(waiters, error)
            except asyncio.CancelledError:
                _tell(waiters, StoreClosed("the store was closed during a read"))
                raise
            else:
                _tell(waiters, revision)

    def close(self) -> None:
        """Nobody asks any more: neither those who wait, nor those who come."""
        self._is_closed = True
        _tell(self._waiters, StoreClosed("the store was closed during a read"))

    async def _ask(self) -> int:
        before = self._mirror.current_revision()
        self._questions += 1
        revision = await self._endpoints.ask(Wire.revision)
        if revision < before:
            logger.error("etcd is at revision %d and was at %d: everything is loaded again", revision, before)
            self._follower.start_over()
            raise EtcdUnreachable(f"etcd went back from revision {before} to {revision}; it is being loaded again")
        return revision

    def statistics(self) -> dict[str, int]:
        return {"fresh_readers": self._readers, "fresh_questions": self._questions}


def _tell(waiters: list[asyncio.Future[int]], outcome: int | StoreError) -> None:
    for waiter in waiters:
        # A reader that was cancelled does not care any more.
        if waiter.done():
            continue
        if isinstance(outcome, StoreError):
            waiter.set_exception(again(outcome))
        else:
            waiter.set_result(outcome)
