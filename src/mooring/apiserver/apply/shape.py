"""Shapes: how finely the fields of a kind are owned.

Input: grains of `struct_shape` (built-in kinds) or `custom_shape` (custom kinds).

1. A grain says what a value may be: a scalar, a list, a map. Only a value of unknown type may be several of these; then
   the value decides.
2. Grains refer to each other in cycles (a JSON schema contains JSON schemas). They are created empty, then filled, and
   immutable afterwards.
3. An atomic value is owned as a whole, whatever it contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mooring.api.document import Document
from mooring.api.memory import Memory
from mooring.api.schema.model import ListKind

PLANS_CACHED_MAX = 1024
"""For each struct."""

ELEMENTS_CACHED_MAX = 4096
"""For each list."""

OWNERSHIPS_CACHED_MAX = 128
"""For each kind."""


class ScalarKind(Enum):
    NUMBER = "numeric"
    TEXT = "string"
    FLAG = "boolean"
    ANY = "untyped"


@dataclass(slots=True, eq=False)
class ListGrain:
    """How the items of a list are identified."""

    kind: ListKind
    item: Grain
    keys: tuple[str, ...] = ()
    """In the order in which the schema names them."""
    sorted_keys: tuple[str, ...] = field(init=False)
    only_key: str | None = field(init=False)
    elements: Memory[str, str] = field(init=False)
    """By the value of the only key, if it is a text: `typed`'s notes."""

    def __post_init__(self) -> None:
        self.sorted_keys = tuple(sorted(self.keys))
        self.only_key = self.keys[0] if len(self.keys) == 1 else None
        self.elements = Memory(ELEMENTS_CACHED_MAX)


@dataclass(slots=True, eq=False)
class MapGrain:
    """The fields of a struct, the entries of a map, or both."""

    is_atomic: bool = False
    fields: dict[str, Grain] = field(default_factory=dict)
    """By name."""
    item: Grain | None = None
    """Of entries without a name of their own; None if there may be none."""
    defaults: dict[str, object] = field(default_factory=dict)
    """What an absent field means where it is the key of a list item."""
    plans: Memory[tuple[str, ...], Any] = field(default_factory=lambda: Memory(PLANS_CACHED_MAX))
    """How `typed` walks through a struct with just these fields; its own notes."""


@dataclass(slots=True, eq=False)
class Grain:
    """What a value may be, and who can own which part of it."""

    scalar: ScalarKind | None = None
    list: ListGrain | None = None
    map: MapGrain | None = None
    is_leaf: bool = field(init=False, default=False)
    """Whether it is always owned as a whole."""

    def __post_init__(self) -> None:
        list_is_whole = self.list is None or self.list.kind is ListKind.ATOMIC
        map_is_whole = self.map is None or self.map.is_atomic
        self.is_leaf = list_is_whole and map_is_whole


TEXT = Grain(ScalarKind.TEXT)
NUMBER = Grain(ScalarKind.NUMBER)
FLAG = Grain(ScalarKind.FLAG)
ANY_SCALAR = Grain(ScalarKind.ANY)


def _whole() -> Grain:
    """Anything, owned as a whole."""
    whole = Grain(ScalarKind.ANY)
    whole.list = ListGrain(ListKind.ATOMIC, whole)
    whole.map = MapGrain(is_atomic=True, item=whole)
    return whole


def _deduced() -> Grain:
    """Anything: maps entry by entry, lists as a whole."""
    deduced = Grain(ScalarKind.ANY, ListGrain(ListKind.ATOMIC, WHOLE), MapGrain())
    assert deduced.map is not None
    deduced.map.item = deduced
    return deduced


WHOLE = _whole()
DEDUCED = _deduced()


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """How the objects of one kind are owned, in one version."""

    root: Grain
    empty: Document
    """What a new object is compared with: the fields that Go always writes."""
    may_change: bool = False
    """Whether the kind's schema can change while objects exist: custom kinds."""
    other_versions: Mapping[str, Grain] = field(default_factory=dict)
    """The same kind in other versions, by apiVersion. Their documents differ in nothing but the apiVersion."""

    ownerships: Memory[tuple[object, ...], dict[str, Any]] = field(
        default_factory=lambda: Memory(OWNERSHIPS_CACHED_MAX)
    )
    """What the creator of an object owns, by its outline: notes of `creation`."""
    is_blank_when_empty: bool = field(init=False)
    """Whether `empty` holds nothing but empty values, apart from what the kind is called."""

    def __post_init__(self) -> None:
        rest = [value for name, value in self.empty.items() if name not in ("kind", "apiVersion")]
        object.__setattr__(self, "is_blank_when_empty", _is_blank(rest))

    def grain_at(self, api_version: str, asked_version: str) -> Grain | None:
        """How entries of a version are read; None if the version is not served."""
        return self.root if asked_version == api_version else self.other_versions.get(asked_version)


def _is_blank(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_blank, value.values()))
    return all(map(_is_blank, value)) if isinstance(value, list) else not value
