"""Deletes events whose last update is older than their time to live.

Inputs: the store, a clock, the time to live. Output: deletions, which watches report like any other.

1. The age of an event is in its stored timestamps, so it counts across restarts and for events that another API server
   wrote to the same etcd. Every write of an event sets one of them: `metadata.creationTimestamp`, a time in
   `managedFields`, `lastTimestamp` or `series.lastObservedTime`. A timestamp in the future is ignored: otherwise the
   event would never expire.
2. A sweep reads `BATCH_EVENTS` records at a time and lets other tasks run in between.
3. A record is deleted only at the revision that was read: an event that is updated meanwhile is kept.
4. A store that fails is swept again later. A value that cannot be read is left alone.
"""

from __future__ import annotations

import logging

import msgspec

from mooring.api.kinds import CORE_EVENT
from mooring.kit.clock import Clock, TimestampError, parse_rfc3339
from mooring.store.interface import Page, Store, StoreError, WriteConflict

EVENT_TTL_S = 3_600.0
"""As kube-apiserver's `--event-ttl`."""
BATCH_EVENTS = 500
SWEEP_S_MIN = 1.0
SWEEPS_PER_TTL = 60
"""An event is deleted at most this share of its time to live too late: a minute of an hour."""

logger = logging.getLogger(__name__)


class _ManagedFields(msgspec.Struct):
    time: str | None = None


class _EventMetadata(msgspec.Struct, rename="camel"):
    creation_timestamp: str | None = None
    managed_fields: tuple[_ManagedFields, ...] | None = None


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    metadata: _EventMetadata = msgspec.field(default_factory=_EventMetadata)
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None


_decoder = msgspec.json.Decoder(_Event)


class EventExpiry:
    """Deletes expired events."""

    def __init__(self, store: Store, clock: Clock, ttl_s: float) -> None:
        assert ttl_s > 0, f"events with a time to live of {ttl_s} s"
        self._store = store
        self._clock = clock
        self._ttl_s = ttl_s
        self._sweep_s = max(SWEEP_S_MIN, ttl_s / SWEEPS_PER_TTL)

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                logger.warning("expired events could not be deleted: %s; trying again in %g s", error, self._sweep_s)
            await self._clock.wait(self._sweep_s)

    async def sweep(self) -> None:
        """Delete the events that are expired now. Raises `StoreError`."""
        deleted, start = 0, ""
        while True:
            page = await self._store.list(CORE_EVENT.key_prefix, start=start, limit=BATCH_EVENTS)
            deleted += await self._delete_expired(page)
            start = page.next_start
            if not start:
                break
            await self._clock.wait(0)
        if deleted:
            logger.info("deleted %d events older than %g s", deleted, self._ttl_s)

    async def _delete_expired(self, page: Page) -> int:
        now_s, deleted = self._clock.wall_s(), 0
        for record in page.records:
            updated_s = last_update_s(record.value, now_s)
            if updated_s is None or updated_s + self._ttl_s > now_s:
                continue
            try:
                await self._store.delete(record.key, if_revision=record.revision)
            except WriteConflict:
                continue  # updated, or deleted by another API server
            deleted += 1
        return deleted


def last_update_s(value: bytes, now_s: float) -> float | None:
    """When a stored event was last written, in seconds since 1970; None if the value has no such time."""
    try:
        event = _decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    texts = [
        event.metadata.creation_timestamp,
        *(managed_field.time for managed_field in event.metadata.managed_fields or ()),
        event.last_timestamp,
        event.event_time,
        event.series.last_observed_time if event.series is not None else None,
    ]
    times_s = [time_s for time_s in map(_time_s, texts) if time_s is not None and time_s <= now_s]
    return max(times_s, default=None)


def _time_s(text: str | None) -> float | None:
    try:
        return parse_rfc3339(text) if text else None
    except TimestampError:
        return None
