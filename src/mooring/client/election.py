"""Leader election: one candidate for a Lease.

Inputs: a client, a Lease, and the task of the leader (`lead`). Outputs: `lead` runs while this process leads;
`is_leading`, which the HTTP client of the task checks immediately before it sends a write.

    standing by ──> leading ──> released         the task ended, or the process was asked to stop
         ^  │          │
         └──┘          └──────> lost             the lease was not renewed in time, or another process holds it

1. A lease is taken only if it has no holder, or if its record has not changed for the lease duration in the record,
   measured by our own clock since we observed it. Clocks of two machines are never compared.
2. We lead for `held_s` from the moment at which a renewal was *sent*. Other candidates count from later, when they
   observed it, and for longer. So a leader that cannot renew stops before another one can start.
3. `is_leading` reads the clock each time. A process that was suspended finds that it no longer leads before it does
   anything else, whichever of its tasks runs first. The clock counts the time of a suspended machine.
4. Every write has the resourceVersion that we read: of two candidates one gets a conflict.
5. The lease is released only after `lead` has ended. A lost lease is not written.
6. A request without an answer may have made us the holder: the next read shows it.

This is stricter than client-go, which counts from the answer and only from the next attempt on (up to 12 s of a 15 s
lease, more with slow answers), and checks nothing before a write. Both can share a lease: each follows the record.

An `ElectionRecord` is the holder of a Lease, read and written as client-go does. A written Lease has the record and is
otherwise unchanged.

1. A record is a value. A renewal is any change of the record. Its times are never compared with our clock: another
   machine wrote them.
2. The fields are client-go's, so that both can share a lease: whole seconds, times with microseconds, an empty holder
   for a released lease.
3. Unknown fields (a strategy, a preferred holder) are kept.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.api.kinds import LEASE
from mooring.api.views.meta import View
from mooring.client.errors import ClientError, ConflictError, NotFoundError, ServerError
from mooring.client.interface import Client, JsonObject
from mooring.kit.clock import Clock, format_rfc3339_micro
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

JITTER = 1.2
"""Candidates wait up to this much longer than the retry period, so that they do not all write at once."""
HELD_SHARE_MAX = 0.9
"""The largest share of a lease for which we lead without a renewal: clocks run at different speeds."""
RELEASE_S_MAX = 5.0
OVERDUE_S_MAX = 20.0
"""A leader that still runs so long after its lease ended is unhealthy."""

logger = logging.getLogger(__name__)


class ElectionSettingsError(ValueError):
    """Contradictory durations. The texts are client-go's."""


class LeadershipLostError(Exception):
    """The lease was not renewed in time, or another process holds it. Work in progress must stop."""


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """The lease, the identity of the candidate, and durations. The defaults are those of Kubernetes."""

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
            raise ElectionSettingsError("leaseDuration must be at least one second: leases have whole seconds")
        if not self.identity:
            raise ElectionSettingsError("Lock identity is empty")

    @property
    def held_s(self) -> float:
        """How long we lead after sending a renewal."""
        return min(self.renew_deadline_s, HELD_SHARE_MAX * int(self.lease_s))

    @property
    def attempt_s_max(self) -> float:
        return self.renew_deadline_s / 2


def new_identity(entropy: Entropy) -> str:
    """The identity of this process. Processes of the same host have different ones."""
    return f"{socket.gethostname()}_{entropy.uuid()}"


class LeaderElector:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        settings: ElectionSettings,
        *,
        clock: Clock,
        entropy: Entropy,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """`report` gets the texts for events: that the process became leader, or stopped leading."""
        self.settings = settings
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._report = report
        self._raw = b""
        self._record: ElectionRecord | None = None
        self._observed_s = 0.0
        self._leading_until_s = float("-inf")
        self._last_leader = ""

    @property
    def is_leading(self) -> bool:
        """Whether this process leads now."""
        return self._clock.now_s() < self._leading_until_s

    @property
    def leader(self) -> str:
        """The holder that we observed last; empty: none."""
        return self._record.holder if self._record is not None else ""

    @property
    def lease(self) -> bytes:
        """The Lease that we observed last; empty: none."""
        return self._raw

    def health_problem(self) -> str:
        """The problem for a health check; empty if healthy. Standing by is healthy."""
        overdue_s = self._clock.now_s() - self._observed_s - self.settings.lease_s
        if self.leader == self.settings.identity and overdue_s > OVERDUE_S_MAX:
            return f"failed election to renew leadership on lease {self.settings.name}"
        return ""

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the lease, then lead. Ends when `lead` does. Raises `LeadershipLostError`."""
        where = f"{self.settings.namespace}/{self.settings.name}"
        logger.info("standing by for the lease %s as %s", where, self.settings.identity)
        await self._wait_for_lease()
        logger.info("leading: the lease %s is ours", where)
        self._report_event("became leader")
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

    # ------------------------------------------------------------------------------------------------ states

    async def _wait_for_lease(self) -> None:
        settings = self.settings
        while not await self._attempt(settings.attempt_s_max):
            await self._clock.wait(settings.retry_s * (1.0 + JITTER * self._entropy.uniform()))

    async def _keep_renewing(self) -> None:
        begun_s = self._clock.now_s()
        while True:
            # From the start of the last attempt: slow answers must not delay the next one.
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
        """Try once to take or renew the lease. A failure is logged; the caller tries again later."""
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
        if self._is_held_by_other(self._record):
            return False
        await self._write(self._record)
        return True

    def _is_held_by_other(self, record: ElectionRecord) -> bool:
        is_fresh = self._clock.now_s() < self._observed_s + record.lease_s
        return record.holder not in ("", self.settings.identity) and is_fresh

    # --------------------------------------------------------------------------------------------- requests

    async def _create(self) -> None:
        sent_s = self._clock.now_s()
        settings = self.settings
        record = acquired_record(settings.identity, int(settings.lease_s), self._clock.wall_s(), None)
        body = new_lease(settings.namespace, settings.name, record)
        self._hold(await self._client.create(LEASE, settings.namespace, body), sent_s)

    async def _write(self, before: ElectionRecord) -> None:
        sent_s = self._clock.now_s()
        settings = self.settings
        record = acquired_record(settings.identity, int(settings.lease_s), self._clock.wall_s(), before)
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
        """Release the lease, so that others need not wait for its end. A failure is logged."""
        try:
            async with asyncio.timeout(min(RELEASE_S_MAX, self.settings.renew_deadline_s)):
                await self._release_now()
        except (ClientError, TimeoutError) as error:
            logger.warning("the lease %s was not given back: %s", self.settings.name, str(error) or "no answer in time")

    async def _release_now(self) -> None:
        settings = self.settings
        # Read again: a renewal that was in flight when we stopped may have succeeded without an answer.
        self._observe(await self._client.get(LEASE, settings.namespace, settings.name))
        assert self._record is not None
        if self._record.holder != settings.identity:
            return
        body = lease_with(self._raw, released_record(self._record, self._clock.wall_s()))
        self._observe(await self._client.update(LEASE, settings.namespace, settings.name, body))
        logger.info("the lease %s/%s is given back", settings.namespace, settings.name)
        self._report_event("stopped leading")

    # ------------------------------------------------------------------------------------------------ helpers

    def _left_s(self) -> float:
        return self._leading_until_s - self._clock.now_s()

    def _report_event(self, what: str) -> None:
        if self._report is not None:
            self._report(f"{self.settings.identity} {what}")

    def _note_leader(self) -> None:
        if self.leader != self._last_leader:
            self._last_leader = self.leader
            logger.info("the lease %s is held by %s", self.settings.name, self.leader or "no process")


def _first(failures: BaseExceptionGroup[LeadershipLostError]) -> LeadershipLostError:
    for error in failures.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        return error
    raise AssertionError("a group of errors without any")


# --- the election record --------------------------------------------------------------------------------------


RELEASED_LEASE_S = 1
"""The duration of a released lease, so that other candidates do not wait."""


@dataclass(frozen=True, slots=True)
class ElectionRecord:
    """The holder of a lease, with times as text: they are only displayed."""

    holder: str = ""
    lease_s: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0


class _LeaseSpec(View):
    holder_identity: str | None = ""
    lease_duration_seconds: int | None = 0
    acquire_time: str | None = ""
    renew_time: str | None = ""
    lease_transitions: int | None = 0


class _LeaseView(View):
    spec: _LeaseSpec | None = None


_decoder = msgspec.json.Decoder(_LeaseView)


def record_in(raw: bytes) -> ElectionRecord:
    """Raises `ServerError` if `raw` is not a Lease."""
    try:
        spec = _decoder.decode(raw).spec or _LeaseSpec()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ServerError(f"the server answered with something else than a lease: {error}") from None
    return ElectionRecord(
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )


def lease_with(raw: bytes, record: ElectionRecord) -> dict[str, object]:
    """The Lease with another record. The resourceVersion stays, so that the update is conditional."""
    lease: dict[str, object] = msgspec.json.decode(raw)
    spec = lease.get("spec")
    return {**lease, "spec": {**(spec if isinstance(spec, Mapping) else {}), **_spec_of(record)}}


def new_lease(namespace: str, name: str, record: ElectionRecord) -> JsonObject:
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": _spec_of(record),
    }


def acquired_record(identity: str, lease_s: int, wall_s: float, before: ElectionRecord | None) -> ElectionRecord:
    """The record with us as the holder. A change of the holder counts as a transition."""
    now = format_rfc3339_micro(wall_s)
    if before is None:
        return ElectionRecord(identity, lease_s, now, now, 0)
    if before.holder == identity:
        return ElectionRecord(identity, lease_s, before.acquired or now, now, before.transitions)
    return ElectionRecord(identity, lease_s, now, now, before.transitions + 1)


def released_record(before: ElectionRecord, wall_s: float) -> ElectionRecord:
    """The record of a released lease."""
    now = format_rfc3339_micro(wall_s)
    return ElectionRecord("", RELEASED_LEASE_S, now, now, before.transitions)


def _spec_of(record: ElectionRecord) -> dict[str, object]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.lease_s,
        "acquireTime": record.acquired,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }
