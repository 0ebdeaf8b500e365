"""A mould: what is known of a sort of specs, for everybody who meets an object that was sent with one of them.

Comes in   what `wire.moulds` made of a spec; notes of those who looked at it
Goes out   the same, next time

 1. It depends on the outline of the spec and on nothing else, and is shared: notes are added, never changed.
"""

from __future__ import annotations

from mooring.api.memory import Memory
from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.free_texts import Form

OWNERSHIPS_KEPT_MAX = 64


class Mould:
    """All specs of one outline, or a single one."""

    __slots__ = ("form", "ownerships")

    def __init__(self, form: Form) -> None:
        self.form = form
        """Of a spec that was made canonical and defaulted."""
        self.ownerships: Memory[tuple[object, ...], FieldSet] = Memory(OWNERSHIPS_KEPT_MAX)
        """Which fields the creator of such an object owns, by the names in its metadata: notes of `apply.update`."""

    @property
    def is_of_one(self) -> bool:
        return not self.form.numbers

    def of_one(self, spec: bytes) -> Mould:
        """The mould of just this one of them."""
        mould = Mould(Form([spec], []))
        mould.ownerships = self.ownerships
        return mould
