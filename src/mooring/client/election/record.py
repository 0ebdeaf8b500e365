"""The election record: what a Lease says about who leads, read and written as client-go does.

Comes in   a Lease as the API server has it; who we are, and for how long we want to lead
Goes out   an `ElectionRecord`; a Lease that says so, with everything else in it as it was

 1. A record is a value: whether somebody has renewed is whether the record is another one than before. What its times
    say is never compared with our clock, because it was written by somebody else's.
 2. The fields are client-go's, so that its electors and ours share a lease: whole seconds, times with microseconds, an
    empty holder for a lease that was given back.
 3. Fields that we do not know (a strategy, a preferred holder) stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mooring.api.kinds import LEASE
from mooring.api.views.base import View
from mooring.client.errors import ServerError
from mooring.client.interface import JsonObject
from mooring.kit.clock import format_rfc3339_micro

RELEASED_LEASE_S = 1
"""How long a lease lasts that was given back: nobody has to wait for it, holder or not."""


@dataclass(frozen=True, slots=True)
class ElectionRecord:
    """Who holds a lease, since when and for how long. Times are text: they are shown, and not computed with."""

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
    """Raises `ServerError` if it is no Lease."""
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
    """The Lease that the server has, with another record. Its resourceVersion stays: it is only taken if unchanged."""
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


def taken(identity: str, lease_s: int, wall_s: float, before: ElectionRecord | None) -> ElectionRecord:
    """Ours, from now on. What was ours already goes on; a lease that was anybody else's has changed hands."""
    now = format_rfc3339_micro(wall_s)
    if before is None:
        return ElectionRecord(identity, lease_s, now, now, 0)
    if before.holder == identity:
        return ElectionRecord(identity, lease_s, before.acquired or now, now, before.transitions)
    return ElectionRecord(identity, lease_s, now, now, before.transitions + 1)


def released(before: ElectionRecord, wall_s: float) -> ElectionRecord:
    """Nobody's."""
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
