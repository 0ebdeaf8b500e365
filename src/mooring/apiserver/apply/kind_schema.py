"""Ownership schemas: how finely the fields of a kind are owned, from the schema of built-in and custom kinds.

1. A schema says what a value may be: a scalar, a list, a map. Only a value of unknown type may be several of these;
   then the value decides.
2. Schemas refer to each other in cycles (a JSON schema contains JSON schemas). They are created empty, then filled, and
   immutable afterwards.
3. An atomic value is owned as a whole, whatever it contains.

Built-in kinds: from a struct of `mooring.api.schema` to its `KindSchema`.

1. A struct has one schema, or two if a field holds it atomically although the struct is granular, or the other way
   round. Both share their fields.
2. The empty object has the fields that Go always writes: structs, and everything without omitempty. It decides what a
   creator owns: `spec` exists before the creator, `metadata.labels` does not.

Custom kinds: from the OpenAPI schema of a version of a CustomResourceDefinition, or None, to its `KindSchema`.

1. `x-kubernetes-list-type`, `-list-map-keys`, `-map-type`, `-preserve-unknown-fields` and `-int-or-string` have the
   meaning of kube-apiserver. A list without a type is atomic.
2. The creator of a custom object owns `spec` itself, too, because Go writes no empty `spec` for it.
3. Without a schema the values decide: maps are owned entry by entry, lists as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

from mooring.api.caches import BoundedCache
from mooring.api.document import Document
from mooring.api.schema.types import (
    Basic,
    CircularTable,
    Field,
    ListKind,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    Type,
    struct_named,
)
from mooring.apiserver.wire.canonical import STRUCTS_IN_GO, canonical

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
class ListSchema:
    """How the items of a list are identified."""

    kind: ListKind
    item: ValueSchema
    keys: tuple[str, ...] = ()
    """In the order in which the schema names them."""
    sorted_keys: tuple[str, ...] = field(init=False)
    only_key: str | None = field(init=False)
    elements: BoundedCache[str, str] = field(init=False)
    """Path elements by the value of the only key, if it is a text. A cache of `typed`."""

    def __post_init__(self) -> None:
        self.sorted_keys = tuple(sorted(self.keys))
        self.only_key = self.keys[0] if len(self.keys) == 1 else None
        self.elements = BoundedCache(ELEMENTS_CACHED_MAX)


@dataclass(slots=True, eq=False)
class MapSchema:
    """The fields of a struct, the entries of a map, or both."""

    is_atomic: bool = False
    fields: dict[str, ValueSchema] = field(default_factory=dict)
    """By name."""
    item: ValueSchema | None = None
    """The schema of entries without a name of their own; None if there can be none."""
    defaults: dict[str, object] = field(default_factory=dict)
    """The values of absent fields that are keys of list items."""
    plans: BoundedCache[tuple[str, ...], Any] = field(default_factory=lambda: BoundedCache(PLANS_CACHED_MAX))
    """The steps of `typed` through a struct with exactly these fields. A cache of `typed`."""


@dataclass(slots=True, eq=False)
class ValueSchema:
    """The possible forms of a value, and which parts of it can have an owner."""

    scalar: ScalarKind | None = None
    list: ListSchema | None = None
    map: MapSchema | None = None
    is_leaf: bool = field(init=False, default=False)
    """Whether the value always has one owner as a whole."""

    def __post_init__(self) -> None:
        list_is_whole = self.list is None or self.list.kind is ListKind.ATOMIC
        map_is_whole = self.map is None or self.map.is_atomic
        self.is_leaf = list_is_whole and map_is_whole


TEXT = ValueSchema(ScalarKind.TEXT)
NUMBER = ValueSchema(ScalarKind.NUMBER)
FLAG = ValueSchema(ScalarKind.FLAG)
ANY_SCALAR = ValueSchema(ScalarKind.ANY)


def _whole() -> ValueSchema:
    """Anything, owned as a whole."""
    whole = ValueSchema(ScalarKind.ANY)
    whole.list = ListSchema(ListKind.ATOMIC, whole)
    whole.map = MapSchema(is_atomic=True, item=whole)
    return whole


def _deduced() -> ValueSchema:
    """Anything: maps entry by entry, lists as a whole."""
    deduced = ValueSchema(ScalarKind.ANY, ListSchema(ListKind.ATOMIC, WHOLE), MapSchema())
    assert deduced.map is not None
    deduced.map.item = deduced
    return deduced


WHOLE = _whole()
DEDUCED = _deduced()


@dataclass(frozen=True, slots=True, eq=False)
class KindSchema:
    """The ownership schema of one kind in one version."""

    root: ValueSchema
    empty: Document
    """An empty object, with the fields that Go always writes. New objects are compared with it."""
    may_change: bool = False
    """Whether the kind's schema can change while objects exist: custom kinds."""
    other_versions: Mapping[str, ValueSchema] = field(default_factory=dict)
    """The same kind in other versions, by apiVersion. Their documents differ in nothing but the apiVersion."""

    ownerships: BoundedCache[tuple[object, ...], dict[str, Any]] = field(
        default_factory=lambda: BoundedCache(OWNERSHIPS_CACHED_MAX)
    )
    """The fields that the creator of an object owns, by the outline of the object. A cache of `update`."""
    is_blank_when_empty: bool = field(init=False)
    """Whether `empty` has only empty values, apart from `kind` and `apiVersion`."""

    def __post_init__(self) -> None:
        rest = [value for name, value in self.empty.items() if name not in ("kind", "apiVersion")]
        object.__setattr__(self, "is_blank_when_empty", _is_blank(rest))

    def schema_at(self, api_version: str, requested_version: str) -> ValueSchema | None:
        """How entries of a version are read; None if the version is not served."""
        return self.root if requested_version == api_version else self.other_versions.get(requested_version)


def _is_blank(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_blank, value.values()))
    return all(map(_is_blank, value)) if isinstance(value, list) else not value


# --- built-in kinds -------------------------------------------------------------------------------------------


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
    Basic.FIELDS_V1: ValueSchema(map=MapSchema(item=DEDUCED)),
    # These two have no type in OpenAPI, so that any value is valid.
    Basic.INT_OR_STRING: ValueSchema(ScalarKind.ANY, ListSchema(ListKind.ATOMIC, WHOLE), MapSchema(item=DEDUCED)),
    Basic.ANY: ValueSchema(ScalarKind.ANY, ListSchema(ListKind.ATOMIC, WHOLE), MapSchema(item=DEDUCED)),
}

_schemas: CircularTable[tuple[Struct, bool], ValueSchema] = CircularTable()


@cache
def kind_schema_of_struct(struct: Struct, api_version: str = "", kind: str = "") -> KindSchema:
    """The ownership schema of a kind."""
    empty = canonical(struct, {}, [])
    if api_version:
        empty |= {"apiVersion": api_version, "kind": kind or struct.name}
    return KindSchema(schema_of_struct(struct), empty)


def schema_of_struct(struct: Struct, is_atomic: bool | None = None) -> ValueSchema:
    """The schema of a struct in a field that may say whether it is atomic."""
    whole = struct.is_atomic if is_atomic is None else is_atomic
    found = _schemas.get((struct, whole))
    return found if found is not None else _made_schema(struct, whole)


def _made_schema(struct: Struct, whole: bool) -> ValueSchema:
    with _schemas.filling() as value_schemas:
        if (struct, whole) in value_schemas:
            return value_schemas[struct, whole]
        counterpart = value_schemas.get((struct, not whole))
        fields = counterpart.map.fields if counterpart is not None and counterpart.map is not None else {}
        defaults = counterpart.map.defaults if counterpart is not None and counterpart.map is not None else {}
        value_schema = value_schemas[struct, whole] = ValueSchema(map=MapSchema(whole, fields, None, defaults))
        if counterpart is None:
            _fill(struct, fields, defaults)
        return value_schema


def _fill(struct: Struct, fields: dict[str, ValueSchema], defaults: dict[str, object]) -> None:
    if struct.is_object:
        fields |= {"apiVersion": TEXT, "kind": TEXT}
    zeros = canonical(struct, {}, [])
    for name, go_field in struct.fields.items():
        fields[name] = _schema_of_field(go_field)
        default = go_field.default
        if default is None and isinstance(go_field.type, Scalar) and go_field.type.basic not in STRUCTS_IN_GO:
            default = zeros.get(name)  # OpenAPI has the zero as the default of a field that Go always writes
        if default is not None:
            defaults[name] = default


def _schema_of_field(struct_field: Field) -> ValueSchema:
    match struct_field.type:
        case ListOf(item):
            return ValueSchema(
                list=ListSchema(
                    struct_field.list_kind or ListKind.ATOMIC, _schema_of_type(item), struct_field.list_keys
                )
            )
        case MapOf(value):
            return ValueSchema(map=MapSchema(bool(struct_field.is_atomic), item=_schema_of_type(value)))
        case Struct() as struct:
            return schema_of_struct(struct, struct_field.is_atomic)
        case scalar:
            return _SCALARS[scalar.basic]


def _schema_of_type(type_: Type) -> ValueSchema:
    match type_:
        case ListOf(item):
            return ValueSchema(list=ListSchema(ListKind.ATOMIC, _schema_of_type(item)))
        case MapOf(value):
            return ValueSchema(map=MapSchema(item=_schema_of_type(value)))
        case Struct() as struct:
            return schema_of_struct(struct)
        case scalar:
            return _SCALARS[scalar.basic]


# --- custom kinds ---------------------------------------------------------------------------------------------


Schema = Mapping[str, Any]


def custom_kind_schemas(
    kind: str, schemas: Mapping[str, Schema | None], *, preserves_unknown: bool = False
) -> dict[str, KindSchema]:
    """The ownership schemas of a custom kind in all its versions, from their OpenAPI schemas. They share nodes.

    `preserves_unknown` is `spec.preserveUnknownFields` of the definition.
    """
    roots = {version: _root(schema, preserves_unknown) for version, schema in schemas.items()}
    return {
        version: KindSchema(root, {"apiVersion": version, "kind": kind}, may_change=True, other_versions=roots)
        for version, root in roots.items()
    }


def _root(schema: Schema | None, preserves_unknown: bool) -> ValueSchema:
    if schema is None:
        return DEDUCED
    root = _value_schema(schema, preserves_unknown)
    if root.map is not None:
        metadata = schema_of_struct(struct_named("meta", "ObjectMeta"))
        root.map.fields |= {"apiVersion": TEXT, "kind": TEXT, "metadata": metadata}
    return root


def _value_schema(schema: Schema, preserves_unknown: bool) -> ValueSchema:
    preserves_unknown = preserves_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
    match schema.get("type"):
        case "object":
            return ValueSchema(map=_map_schema(schema, preserves_unknown))
        case "array":
            return ValueSchema(list=_list_schema(schema, preserves_unknown))
        case "integer" | "number":
            return NUMBER
        case "boolean":
            return FLAG
        case "string":
            return TEXT if schema.get("format", "") in ("", "byte") else ANY_SCALAR
        case _:
            lists, maps = _list_schema(schema, preserves_unknown), _map_schema(schema, preserves_unknown)
            return ValueSchema(ScalarKind.ANY, lists, maps)


def _map_schema(schema: Schema, preserves_unknown: bool) -> MapSchema:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    value_schema = MapSchema(
        is_atomic=schema.get("x-kubernetes-map-type") == "atomic",
        fields={name: _value_schema(nested, preserves_unknown) for name, nested in properties.items()},
        defaults={name: nested["default"] for name, nested in properties.items() if nested.get("default") is not None},
    )
    match schema.get("additionalProperties"):
        case None:
            value_schema.item = DEDUCED if preserves_unknown or not properties else None
        case bool(is_allowed):
            value_schema.item = DEDUCED if is_allowed else None
        case nested:
            value_schema.item = _value_schema(nested, preserves_unknown)
    if schema.get("x-kubernetes-embedded-resource"):
        metadata = schema_of_struct(struct_named("meta", "ObjectMeta"))
        value_schema.fields = {"apiVersion": TEXT, "kind": TEXT, "metadata": metadata} | value_schema.fields
    return value_schema


def _list_schema(schema: Schema, preserves_unknown: bool) -> ListSchema:
    nested = schema.get("items")
    item = WHOLE if nested is None else _value_schema(nested, preserves_unknown)
    kind = ListKind(schema.get("x-kubernetes-list-type") or ListKind.ATOMIC.value)
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind is ListKind.MAP else ()
    return ListSchema(kind, item, keys)
