"""Whether two documents mean the same, as Kubernetes compares them.

Comes in   two documents and their type
Goes out   yes or no

 1. Quantities are compared by amount (`1Gi` is `1024Mi`), and an empty list or map is an absent one.
 2. Documents that are equal as they stand are never walked.
"""

from __future__ import annotations

from mooring.api.quantity import quantity_nano
from mooring.api.schema.model import Basic, ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import struct_named


def means_the_same(one: object, other: object, package: str, struct_name: str) -> bool:
    """Whether two documents of a struct mean the same."""
    return one == other or _is_same(one, other, struct_named(package, struct_name))


def _is_same(one: object, other: object, kind: Type) -> bool:
    if one == other:
        return True
    match kind:
        case Struct():
            if not isinstance(one, dict) or not isinstance(other, dict):
                return False
            keys = one.keys() | other.keys()
            return all(
                _is_same(one.get(key), other.get(key), kind.fields[key].type)
                if key in kind.fields
                else one.get(key) == other.get(key)
                for key in keys
            )
        case ListOf(item):
            ones, others = one or [], other or []
            if not isinstance(ones, list) or not isinstance(others, list) or len(ones) != len(others):
                return False
            return all(_is_same(first, second, item) for first, second in zip(ones, others, strict=True))
        case MapOf(item):
            ours, theirs = one or {}, other or {}
            if not isinstance(ours, dict) or not isinstance(theirs, dict) or ours.keys() != theirs.keys():
                return False
            return all(_is_same(value, theirs[key], item) for key, value in ours.items())
        case Scalar():
            is_quantity = kind.basic is Basic.QUANTITY and isinstance(one, str) and isinstance(other, str)
            return is_quantity and quantity_nano(str(one)) == quantity_nano(str(other))
