"""Leader election: of several processes that could do the same work, one does it at a time.

Comes in   a client, a lease to fight for, and what the leader is to do (`lead`)
Goes out   `lead` is run while we lead; a fence (`is_leading`) that whoever writes can ask at any moment

    standing by ──> leading ──> given back       the work ended, or somebody asked us to stop
         ^  │          │
         └──┘          └──────> lost             the lease could not be renewed in time, or somebody else has it

 1. A lease is taken only when it is nobody's, or when its record has not changed for as long as the record itself says,
    by our own clock since we saw it. Two clocks are never compared, so that it does not matter how far they differ.
 2. We lead from the moment at which a renewal was *sent*, for `held_s`. The others count from later, when they saw it,
    and for longer. So whoever cannot renew has stopped before anybody else can begin.
 3. `is_leading` compares with the clock each time. A process that was stopped and goes on finds that it does not lead
    before it does anything else, whichever of its tasks wakes first.
 4. Every write carries the resourceVersion of what we read: of two who take a lease at once one gets a conflict.
 5. The lease is given back only after `lead` has ended, in whatever way. A lease that was lost is not touched.
 6. A request whose answer is lost may have made us the holder without our knowing: the next look at the lease tells.

Stricter than client-go, which counts from the answer and only from the next try on (up to 12 s of a lease of 15 s, and
with slow answers more), and asks nobody before a write. Both can share a lease: each keeps to what the record says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from mooring.api.kinds import LEASE
from mooring.client.election.record import ElectionRecord, lease_with, new_lease, record_in, released, taken
from mooring.client.errors import ClientError, ConflictError, NotFoundError
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

JITTER = 1.2
"""Those who stand by wait up to this much longer than the retry period, so that they do not all come at once."""
HELD_SHARE_MAX = 0.9
"""We give up a lease at the latest after this share of it: clocks do not run equally fast."""
RELEASE_S_MAX = 5.0
OVERDUE_S_MAX = 20.0
"""A leader whose lease ended so long ago and who still runs is ill."""

logger = logging.getLogger(__name__)


class ElectionSettingsError(ValueError):
    """Times that contradict each other, in client-go's words."""


class LeadershipLostError(Exception):
    """The lease could not be renewed in time, or is somebody else's: whatever is under way must not go on."""


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Which lease, who wants it, and the times. The defaults are Kubernetes'."""

    namespace: str
    name: str
    identity: str
    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_s <= self.renew_deadline_s:
            raise ElectionSettingsError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline_s <= JITTER * self.retry_s:
            raise ElectionSettingsError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.retry_s <= 0:
            raise ElectionSettingsError("retryPeriod must be greater than zero")
        if self.lease_s < 1:
            raise ElectionSettingsError("leaseDuration must be at least one second: leases are written in whole ones")
        if not self.identity:
            raise ElectionSettingsError("Lock identity is empty")

    @property
    def held_s(self) -> float:
        """How long we lead after a renewal was sent."""
        return min(self.renew_deadline_s, HELD_SHARE_MAX * int(self.lease_s))

    @property
    def attempt_s_max(self) -> float:
        return self.renew_deadline_s / 2


class LeaderElector:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        settings: ElectionSettings,
        *,
        clock: Clock,
        entropy: Entropy,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`tell` is given what users may want to know: that we became leader, that we stopped."""
        self.settings = settings
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._tell = tell
        self._raw = b""
        self._record: ElectionRecord | None = None
        self._observed_s = 0.0
        self._leading_until_s = float("-inf")
        self._last_leader = ""

    @property
    def is_leading(self) -> bool:
        """Whether we may do a leader's work at this very moment."""
        return self._clock.now_s() < self._leading_until_s

    @property
    def leader(self) -> str:
        """Who led when we looked last; empty if nobody did."""
        return self._record.holder if self._record is not None else ""

    @property
    def lease(self) -> bytes:
        """The Lease as we saw it last; empty if there was none."""
        return self._raw

    def ailment(self) -> str:
        """What is wrong, for a health check; empty if nothing is. Standing by is not."""
        overdue_s = self._clock.now_s() - self._observed_s - self.settings.lease_s
        if self.leader == self.settings.identity and overdue_s > OVERDUE_S_MAX:
            return f"failed election to renew leadership on lease {self.settings.name}"
        return ""

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Stand by until the lease is ours, then lead. Raises `LeadershipLostError`; ends when `lead` does."""
        where = f"{self.settings.namespace}/{self.settings.name}"
        logger.info("standing by for the lease %s as %s", where, self.settings.identity)
        await self._stand_by()
        logger.info("leading: the lease %s is ours", where)
        self._say("became leader")
        try:
            async with TaskGroup("leader") as group:
                group.start(lead(), name="lead")
                group.start_background(self._keep_renewing(), name="renewing")
        except BaseExceptionGroup as failures:
            lost = failures.subgroup(LeadershipLostError)
            if lost is None or failures.split(LeadershipLostError)[1] is not None:
                raise
            raise _first(lost) from None
        finally:
            if self.is_leading:
                await self._release()
            self._leading_until_s = float("-inf")

    # ------------------------------------------------------------------------------------------------ the story

    async def _stand_by(self) -> None:
        settings = self.settings
        while not await self._attempt(settings.attempt_s_max):
            await self._clock.wait(settings.retry_s * (1.0 + JITTER * self._entropy.uniform()))

    async def _keep_renewing(self) -> None:
        begun_s = self._clock.now_s()
        while True:
            # From the beginning of the last try: if answers are slow there is no time to lose.
            pause_s = begun_s + self.settings.retry_s - self._clock.now_s()
            await self._clock.wait(max(0.0, min(pause_s, self._left_s())))
            begun_s, left_s = self._clock.now_s(), self._left_s()
            if left_s <= 0:
                raise LeadershipLostError(f"the lease was not renewed within {self.settings.held_s:g} s")
            await self._attempt(min(left_s, self.settings.attempt_s_max))
            if self.leader not in ("", self.settings.identity):
                self._leading_until_s = float("-inf")
                raise LeadershipLostError(f"the lease is held by {self.leader}")

    async def _attempt(self, s_max: float) -> bool:
        """Try once to take or renew the lease. Whatever prevents it is told in the log, and tried again later."""
        try:
            async with asyncio.timeout(s_max):
                is_ours = await self._take_or_renew()
        except TimeoutError:
            logger.warning("the lease %s: no answer within %.1f s", self.settings.name, s_max)
            return False
        except ClientError as error:
            logger.warning("the lease %s was not taken or renewed: %s", self.settings.name, error)
            return False
        finally:
            self._note_leader()
        return is_ours and self.is_leading

    async def _take_or_renew(self) -> bool:
        if self.is_leading and self._record is not None:
            try:
                await self._write(self._record)
                return True
            except (ConflictError, NotFoundError) as error:
                logger.info("the lease %s is not as we left it (%s); looking at it", self.settings.name, error)
        try:
            self._observe(await self._client.get(LEASE, self.settings.namespace, self.settings.name))
        except NotFoundError:
            await self._create()
            return True
        assert self._record is not None
        if self._is_somebody_elses(self._record):
            return False
        await self._write(self._record)
        return True

    def _is_somebody_elses(self, record: ElectionRecord) -> bool:
        is_fresh = self._clock.now_s() < self._observed_s + record.lease_s
        return record.holder not in ("", self.settings.identity) and is_fresh

    # --------------------------------------------------------------------------------------------- the requests

    async def _create(self) -> None:
        sent_s = self._clock.now_s()
        settings = self.settings
        record = taken(settings.identity, int(settings.lease_s), self._clock.wall_s(), None)
        body = new_lease(settings.namespace, settings.name, record)
        self._hold(await self._client.create(LEASE, settings.namespace, body), sent_s)

    async def _write(self, before: ElectionRecord) -> None:
        sent_s = self._clock.now_s()
        settings = self.settings
        record = taken(settings.identity, int(settings.lease_s), self._clock.wall_s(), before)
        body = lease_with(self._raw, record)
        self._hold(await self._client.update(LEASE, settings.namespace, settings.name, body), sent_s)

    def _hold(self, raw: bytes, sent_s: float) -> None:
        self._observe(raw)
        self._leading_until_s = max(self._leading_until_s, sent_s + self.settings.held_s)

    def _observe(self, raw: bytes) -> None:
        record = record_in(raw)
        self._raw = raw
        if record != self._record:
            self._record = record
            self._observed_s = self._clock.now_s()

    async def _release(self) -> None:
        """Nobody has to wait for a lease that is given back. If it does not work, they wait; that is all."""
        try:
            async with asyncio.timeout(min(RELEASE_S_MAX, self.settings.renew_deadline_s)):
                await self._give_back()
        except (ClientError, TimeoutError) as error:
            logger.warning("the lease %s was not given back: %s", self.settings.name, str(error) or "no answer in time")

    async def _give_back(self) -> None:
        settings = self.settings
        # Once more: a renewal that was under way when we stopped may have come through without our hearing of it.
        self._observe(await self._client.get(LEASE, settings.namespace, settings.name))
        assert self._record is not None
        if self._record.holder != settings.identity:
            return
        body = lease_with(self._raw, released(self._record, self._clock.wall_s()))
        self._observe(await self._client.update(LEASE, settings.namespace, settings.name, body))
        logger.info("the lease %s/%s is given back", settings.namespace, settings.name)
        self._say("stopped leading")

    # ------------------------------------------------------------------------------------------------ small ones

    def _left_s(self) -> float:
        return self._leading_until_s - self._clock.now_s()

    def _say(self, what: str) -> None:
        if self._tell is not None:
            self._tell(f"{self.settings.identity} {what}")

    def _note_leader(self) -> None:
        if self.leader != self._last_leader:
            self._last_leader = self.leader
            logger.info("the lease %s is held by %s", self.settings.name, self.leader or "nobody")


def _first(failures: BaseExceptionGroup[LeadershipLostError]) -> LeadershipLostError:
    for error in failures.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        return error
    raise AssertionError("a group of errors without any")
