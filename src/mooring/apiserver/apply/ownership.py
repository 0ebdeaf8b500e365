"""What the managers of an object own after a change.

Input: an object before and after, and its managers. Output: the managers with their fields, and the changed fields.

1. The manager that changes a field takes it from all others. A removed field has no owner.
2. An entry is read in its own version. An entry of a version that is no longer served is dropped; for a custom kind it
   is an error, because custom kinds have no conversion.
3. If the schema made a field atomic, all owners of a part of it own the field.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.field_set import LEAF, FieldSet, Ignored, difference, intersection, kept, ordered, union
from mooring.apiserver.apply.managers import Entry, ManagerId, Managers
from mooring.apiserver.apply.path_elements import FIELD, SELF
from mooring.apiserver.apply.shape import DEDUCED, Grain, Shape
from mooring.apiserver.apply.typed import GrainError, compare


@dataclass(frozen=True, slots=True)
class Change:
    """What changed between two states of an object, as far as the way of writing can change it."""

    written: FieldSet
    """Added or modified."""
    removed: FieldSet


class Changes:
    """What changed, in each version that an entry may be in."""

    def __init__(self, shape: Shape, api_version: str, old: Document, new: Document, ignored: Ignored) -> None:
        self._shape = shape
        self._api_version = api_version
        self._old = old
        self._new = new
        self._ignored = ignored
        self._by_version: dict[str, Change | None] = {}
        self.own = self._compared(shape.root)
        """In the version of the request."""

    def at(self, api_version: str) -> Change | None:
        """None if the version is not served."""
        if api_version == self._api_version:
            return self.own
        if api_version not in self._by_version:
            grain = self._shape.other_versions.get(api_version)
            self._by_version[api_version] = None if grain is None else self._compared(grain)
        return self._by_version[api_version]

    def _compared(self, grain: Grain) -> Change:
        added, modified, removed = compare(grain, self._old, self._new, is_strict=self._shape.may_change)
        return Change(kept(union(added, modified), self._ignored), kept(removed, self._ignored))


def conflicts(managers: Managers, changes: Changes, writer: ManagerId) -> dict[ManagerId, FieldSet]:
    """The fields that a writer changes although others own them."""
    found: dict[ManagerId, FieldSet] = {}
    for key, entry in managers.items():
        change = changes.at(entry.api_version)
        if key != writer and change is not None and (common := intersection(entry.fields, change.written)):
            found[key] = common
    return found


def give_up(managers: Managers, changes: Changes, writer: ManagerId | None) -> None:
    """Remove changed and deleted fields from all managers but the writer. Changes `managers`."""
    for key, entry in list(managers.items()):
        if key != writer:
            change = changes.at(entry.api_version)
            if change is None:
                del managers[key]
                continue
            entry.keep_only(difference(difference(entry.fields, change.written), change.removed))
        if not entry.fields:
            del managers[key]


def reconcile(managers: Managers, shape: Shape, api_version: str) -> None:
    """Fit the entries to the schema as it is now. Changes `managers`. Raises `GrainError`."""
    for key, entry in list(managers.items()):
        grain = shape.grain_at(api_version, entry.api_version)
        if grain is not None:
            _reconcile_entry(entry, grain)
        elif shape.may_change:
            raise GrainError(f"request to convert CR to an invalid group/version: {entry.api_version}")
        else:
            del managers[key]


def _reconcile_entry(entry: Entry, grain: Grain) -> None:
    fields = _reconciled(grain, entry.fields)
    if fields != entry.fields:
        entry.keep_only(fields)


def _reconciled(grain: Grain, branch: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for element, below in branch.items():
        inner = LEAF if element == SELF else _reconciled_below(grain, element, below)
        result[element] = inner
    return ordered(result)


def _reconciled_below(grain: Grain, element: str, below: FieldSet) -> FieldSet:
    inner = _inner(grain, element)
    if inner is None or not below:
        return below
    if inner.map is not None:
        if inner.map.is_atomic:
            return LEAF
        is_deduced = inner.map.item is DEDUCED and not inner.map.fields
        return below if is_deduced else _reconciled(inner, below)
    if inner.scalar is None and inner.list is not None:
        return LEAF if inner.list.kind is ListKind.ATOMIC else _reconciled(inner, below)
    return below


def _inner(grain: Grain, element: str) -> Grain | None:
    if grain.map is not None:
        name = element[len(FIELD) :] if element.startswith(FIELD) else ""
        return grain.map.fields.get(name, grain.map.item)
    return grain.list.item if grain.list is not None else None
