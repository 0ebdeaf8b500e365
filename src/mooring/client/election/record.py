"""The election record: the holder of a Lease, read and written as client-go does.

Inputs: a Lease; our identity and lease duration. Outputs: an `ElectionRecord`; a Lease with that record and otherwise
unchanged.

1. A record is a value. A renewal is any change of the record. Its times are never compared with our clock: another
   machine wrote them.
2. The fields are client-go's, so that both can share a lease: whole seconds, times with microseconds, an empty holder
   for a released lease.
3. Unknown fields (a strategy, a preferred holder) are kept.
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


def taken(identity: str, lease_s: int, wall_s: float, before: ElectionRecord | None) -> ElectionRecord:
    """The record with us as the holder. A change of the holder counts as a transition."""
    now = format_rfc3339_micro(wall_s)
    if before is None:
        return ElectionRecord(identity, lease_s, now, now, 0)
    if before.holder == identity:
        return ElectionRecord(identity, lease_s, before.acquired or now, now, before.transitions)
    return ElectionRecord(identity, lease_s, now, now, before.transitions + 1)


def released(before: ElectionRecord, wall_s: float) -> ElectionRecord:
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
