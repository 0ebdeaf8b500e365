"""The field set of an object's creator, cached by the outline of the object.

The creator of an object owns all of its fields. Which fields there are depends on the names in the object, not on their
values, and most objects of a cluster have one of a few outlines. So the field set is computed once for each outline.

 1. The outline holds every name, down to where fields are not owned one by one any more. It holds a value only if the
    value is empty, because a new object is compared with an empty one. The names of a struct of single values, none of
    them empty, are one entry, once `typed` knows such a struct.
 2. Kinds whose schema can change, objects that bring managers along and very large objects are not cached.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mooring.api.document import Document
from mooring.api.memory import Memory
from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.field_set import FieldSet
from mooring.apiserver.apply.filters import Ignored
from mooring.apiserver.apply.shape import Grain, Shape
from mooring.apiserver.apply.typed import GrainError, Several, by_element

OUTLINE_LENGTH_MAX = 512

_OPEN, _CLOSE, _WHOLE, _EMPTY_MAP, _EMPTY_LIST, _SEVERAL = range(1, 7)
"""Between names, which are texts; and no empty value is one of these numbers."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


class Place(NamedTuple):
    """Where a field set is remembered."""

    memory: Memory[tuple[object, ...], FieldSet]
    question: tuple[object, ...]


def place_of(shape: Shape, new: Document, ignored: Ignored) -> Place | None:
    """Where to look for what the creator of an object owns."""
    if shape.may_change or not shape.is_blank_when_empty or "managedFields" in new["metadata"]:
        return None
    outline: list[object] = [tuple(ignored)]
    try:
        _outline(shape.root, new, outline)
    except GrainError:
        return None
    return Place(shape.ownerships, tuple(outline)) if len(outline) <= OUTLINE_LENGTH_MAX else None


def _outline(grain: Grain | None, value: Any, outline: list[object]) -> None:
    """Add the names below a value. Raises `GrainError`."""
    sort = value.__class__
    if sort is dict:
        fields = grain.map if grain is not None and not grain.is_leaf else None
        if not value or fields is None or fields.is_atomic:
            outline.append(_WHOLE if value else _EMPTY_MAP)
            return
        names = tuple(value)
        if fields.plans.get(names).__class__ is dict and all(value.values()):
            outline.append(names)
            return
        known, item = fields.fields, fields.item
        outline.append(_OPEN)
        for name, held in value.items():
            outline.append(name)
            _outline(known.get(name, item), held, outline)
        outline.append(_CLOSE)
    elif sort is list:
        items = grain.list if grain is not None and not grain.is_leaf else None
        if not value or items is None or items.kind is ListKind.ATOMIC:
            outline.append(_WHOLE if value else _EMPTY_LIST)
            return
        outline.append(_OPEN)
        for element, held in by_element(items, value).items():
            outline.append(element)
            if held.__class__ is Several:
                outline.append(_SEVERAL)
            else:
                _outline(items.item, held, outline)
        outline.append(_CLOSE)
    elif sort in _SCALARS:
        outline.append(_WHOLE if value else value)
    else:
        raise GrainError(f"a {sort.__name__} has no outline")  # what stands for labels that somebody left empty
