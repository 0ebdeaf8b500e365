"""Which fields the creator of an object owns: all of them, and that is known before.

Comes in   a new object
Goes out   the place in a memory where the field set of its creator is found, or is to be noted by `update`

What somebody owns depends on the names in an object and not on its values, and the objects of a cluster are made after
few patterns. So a field set is worked out for a pattern that is new, and then found by its names.

 1. Of an object whose spec was cast from a mould only the names in its metadata are looked at.
 2. Of others every name is, down to where fields are not owned one by one any more: that is its outline. Values count
    only if they are empty, because a new object is compared with an empty one. The names of a struct of single values,
    none of them empty, are one entry, once `typed` knows such a struct.
 3. Kinds whose schema can change, objects that bring managers along and very large ones have no place.
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
from mooring.apiserver.mould import Mould

OUTLINE_LENGTH_MAX = 512

_OPEN, _CLOSE, _WHOLE, _EMPTY_MAP, _EMPTY_LIST, _SEVERAL = range(1, 7)
"""Between names, which are texts; and no empty value is one of these numbers."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_USUAL_PARTS = len(("kind", "apiVersion", "metadata", "spec", "status"))


class Place(NamedTuple):
    """Where a field set is remembered."""

    memory: Memory[tuple[object, ...], FieldSet]
    question: tuple[object, ...]


def place_of(shape: Shape, new: Document, mould: Mould | None, ignored: Ignored) -> Place | None:
    """Where to look for what the creator of an object owns."""
    if shape.may_change or not shape.is_blank_when_empty or "managedFields" in new["metadata"]:
        return None
    if mould is not None and len(new) <= _USUAL_PARTS and not new.get("status"):
        return Place(mould.ownerships, _names(new["metadata"]))
    outline: list[object] = [tuple(ignored)]
    try:
        _outline(shape.root, new, outline)
    except GrainError:
        return None
    return Place(shape.ownerships, tuple(outline)) if len(outline) <= OUTLINE_LENGTH_MAX else None


def _names(metadata: Document) -> tuple[object, ...]:
    return (
        tuple(metadata),
        tuple(metadata.get("labels") or ()),
        tuple(metadata.get("annotations") or ()),
        tuple(metadata.get("finalizers") or ()),
        tuple([owner.get("uid") for owner in metadata.get("ownerReferences") or ()]),
    )


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
