"""A mould: what is known of a spec, for everybody who meets an object that was sent with it.

Comes in   a spec that `wire.moulds` has read; notes of those who looked at it
Goes out   the same, next time

 1. It depends on the bytes of the spec and on nothing else, and is shared: notes are added, never changed.
"""

from __future__ import annotations

from mooring.api.memory import Memory
from mooring.apiserver.apply.field_set import FieldSet

OWNERSHIPS_KEPT_MAX = 64


class Mould:
    """One spec."""

    __slots__ = ("ownerships", "spec")

    def __init__(self, spec: bytes) -> None:
        self.spec = spec
        """As it is after it was made canonical and defaulted."""
        self.ownerships: Memory[tuple[object, ...], FieldSet] = Memory(OWNERSHIPS_KEPT_MAX)
        """Which fields the creator of such an object owns, by the names in its metadata: notes of `apply.update`."""
