"""Removing: a document without the fields of a set.

Comes in   a document, and the paths to take out
Goes out   a new document; parts that lose nothing are shared with the old one

 1. A path that is in the set goes with everything below it. Something atomic goes if anything below it is named.
 2. A map or a list that loses everything becomes null, which is not written.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.field_set import FieldSet, ends_here
from mooring.apiserver.apply.path_elements import FIELD, KEY, SELF
from mooring.apiserver.apply.shape import Grain, ListGrain, MapGrain
from mooring.apiserver.apply.typed import GrainError, element_of


def removed(grain: Grain, document: Document, fields: FieldSet) -> Document:
    """A document without the fields of a set."""
    return _removed(grain, document, fields) or {} if fields else document


def with_named_fields(grain: Grain | None, fields: FieldSet) -> FieldSet:
    """A set with the paths of the named fields on the way to its paths, which belong to nobody otherwise."""
    result: FieldSet = {}
    for element, branch in fields.items():
        if element == SELF or not branch:
            result[element] = branch
            continue
        inner, is_named = _step(grain, element)
        below = with_named_fields(inner, branch)
        result[element] = {SELF: below.get(SELF, {}), **below} if is_named else below
    return result


def _step(grain: Grain | None, element: str) -> tuple[Grain | None, bool]:
    """What an element leads to, and whether it is the field of a struct."""
    if grain is not None and grain.map is not None and element.startswith(FIELD):
        name = element[len(FIELD) :]
        inner = grain.map.fields.get(name)
        return inner or grain.map.item, inner is not None
    if grain is not None and grain.list is not None and element.startswith(KEY):
        return grain.list.item, False
    return None, False


def _removed(grain: Grain, value: Any, fields: FieldSet) -> Any:
    if value.__class__ is dict and grain.map is not None:
        return None if not value or grain.map.is_atomic else _without_entries(grain.map, value, fields)
    if value.__class__ is list and grain.list is not None:
        whole = not value or grain.list.kind is ListKind.ATOMIC
        return None if whole else _without_items(grain.list, value, fields)
    return value if grain.scalar is not None else None


def _without_entries(known: MapGrain, value: Document, fields: FieldSet) -> Document | None:
    result: Document = {}
    for name, held in value.items():
        below = fields.get(FIELD + name)
        if below is None:
            result[name] = held
        elif not ends_here(below):
            grain = known.fields.get(name, known.item)
            result[name] = held if grain is None else _removed(grain, held, below)
    return result or None


def _without_items(items: ListGrain, value: list[Any], fields: FieldSet) -> list[Any] | None:
    result: list[Any] = []
    for held in value:
        try:
            below = fields.get(element_of(items, held))
        except GrainError:
            below = None
        if below is None:
            result.append(held)
        elif not ends_here(below):
            result.append(_removed(items.item, held, below))
    return result or None
