"""The shapes of built-in kinds, from the schema.

Input: a struct of `mooring.api.schema`. Output: its `Shape`.

1. A struct has one grain, or two if a field holds it atomically although the struct is granular, or the other way
   round. Both share their fields.
2. The empty object has the fields that Go always writes: structs, and everything without omitempty. It decides what a
   creator owns: `spec` exists before the creator, `metadata.labels` does not.
"""

from __future__ import annotations

from functools import cache

from mooring.api.document import Document
from mooring.api.schema.model import Basic, Field, ListKind, ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import CircularTable
from mooring.apiserver.apply.shape import (
    ANY_SCALAR,
    DEDUCED,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Grain,
    ListGrain,
    MapGrain,
    ScalarKind,
    Shape,
)

_SCALARS = {
    Basic.STRING: TEXT,
    Basic.BYTES: TEXT,
    Basic.DURATION: TEXT,
    Basic.BOOL: FLAG,
    Basic.INT32: NUMBER,
    Basic.INT64: NUMBER,
    Basic.INT: NUMBER,
    Basic.FLOAT64: NUMBER,
    Basic.TIME: ANY_SCALAR,
    Basic.MICRO_TIME: ANY_SCALAR,
    Basic.QUANTITY: ANY_SCALAR,
    Basic.RAW_EXTENSION: WHOLE,
    Basic.FIELDS_V1: Grain(map=MapGrain(item=DEDUCED)),
    # OpenAPI gives these two no type, so that they may be anything.
    Basic.INT_OR_STRING: Grain(ScalarKind.ANY, ListGrain(ListKind.ATOMIC, WHOLE), MapGrain(item=DEDUCED)),
    Basic.ANY: Grain(ScalarKind.ANY, ListGrain(ListKind.ATOMIC, WHOLE), MapGrain(item=DEDUCED)),
}

_ZEROS: dict[Basic, object] = {
    Basic.STRING: "",
    Basic.BOOL: False,
    Basic.INT32: 0,
    Basic.INT64: 0,
    Basic.INT: 0,
    Basic.FLOAT64: 0,
    Basic.DURATION: "0s",
    Basic.QUANTITY: "0",
    Basic.INT_OR_STRING: 0,
}
"""What Go writes for an unset value; null for types that are not here."""

_GO_STRUCTS = frozenset(
    {
        Basic.TIME,
        Basic.MICRO_TIME,
        Basic.DURATION,
        Basic.QUANTITY,
        Basic.INT_OR_STRING,
        Basic.RAW_EXTENSION,
        Basic.FIELDS_V1,
        Basic.ANY,
    }
)
"""Single values to us, structs to Go, which omitempty does not leave out."""

_grains: CircularTable[tuple[Struct, bool], Grain] = CircularTable()


@cache
def struct_shape(struct: Struct, api_version: str = "", kind: str = "") -> Shape:
    """The shape of a kind."""
    empty = _empty(struct)
    if api_version:
        empty |= {"apiVersion": api_version, "kind": kind or struct.name}
    return Shape(grain_of_struct(struct), empty)


def grain_of_struct(struct: Struct, is_atomic: bool | None = None) -> Grain:
    """The grain of a struct, as it is held by a field that says (or does not say) whether it is atomic."""
    whole = struct.is_atomic if is_atomic is None else is_atomic
    found = _grains.get((struct, whole))
    return found if found is not None else _made_grain(struct, whole)


def _made_grain(struct: Struct, whole: bool) -> Grain:
    with _grains.filling() as grains:
        if (struct, whole) in grains:
            return grains[struct, whole]
        counterpart = grains.get((struct, not whole))
        fields = counterpart.map.fields if counterpart is not None and counterpart.map is not None else {}
        defaults = counterpart.map.defaults if counterpart is not None and counterpart.map is not None else {}
        grain = grains[struct, whole] = Grain(map=MapGrain(whole, fields, None, defaults))
        if counterpart is None:
            _fill(struct, fields, defaults)
        return grain


def _fill(struct: Struct, fields: dict[str, Grain], defaults: dict[str, object]) -> None:
    if struct.is_object:
        fields |= {"apiVersion": TEXT, "kind": TEXT}
    for name, known in struct.fields.items():
        fields[name] = _grain_of_field(known)
        default = known.default if known.default is not None else _zero_key(known)
        if default is not None:
            defaults[name] = default


def _zero_key(known: Field) -> object:
    """What Go writes for an absent key counts as said: such a field has its zero as a default in OpenAPI."""
    if known.omits_empty or known.omits_zero or known.is_pointer or not isinstance(known.type, Scalar):
        return None
    return None if known.type.basic in _GO_STRUCTS else _ZEROS.get(known.type.basic)


def _grain_of_field(known: Field) -> Grain:
    match known.type:
        case ListOf(item):
            return Grain(list=ListGrain(known.list_kind or ListKind.ATOMIC, _grain_of_type(item), known.list_keys))
        case MapOf(value):
            return Grain(map=MapGrain(bool(known.is_atomic), item=_grain_of_type(value)))
        case Struct() as struct:
            return grain_of_struct(struct, known.is_atomic)
        case scalar:
            return _SCALARS[scalar.basic]


def _grain_of_type(held: Type) -> Grain:
    match held:
        case ListOf(item):
            return Grain(list=ListGrain(ListKind.ATOMIC, _grain_of_type(item)))
        case MapOf(value):
            return Grain(map=MapGrain(item=_grain_of_type(value)))
        case Struct() as struct:
            return grain_of_struct(struct)
        case scalar:
            return _SCALARS[scalar.basic]


def _empty(struct: Struct) -> Document:
    empty: Document = {}
    for name, known in struct.fields.items():
        if known.omits_zero or (known.omits_empty and (known.is_pointer or not _is_go_struct(known.type))):
            continue
        if known.is_pointer:
            empty[name] = None
        elif isinstance(known.type, Struct):
            empty[name] = _empty(known.type)
        else:
            empty[name] = _ZEROS.get(known.type.basic) if isinstance(known.type, Scalar) else None
    return empty


def _is_go_struct(held: Type) -> bool:
    return isinstance(held, Struct) or (isinstance(held, Scalar) and held.basic in _GO_STRUCTS)
