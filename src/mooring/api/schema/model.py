"""What the lines of a schema mean: types, and the fields of structs.

1. Types are compared by identity; each is made once. A struct refers to others by holding them, so that walking an
   object and its type side by side costs one dictionary look-up for each field.
2. `Struct.fields` has the fields of inlined structs in it, because that is how JSON has them. Only protobuf needs to
   know where they come from (`messages`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class Basic(Enum):
    """The types that are no struct, list or map; the value is how a schema file writes them."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    INT = "int"
    FLOAT64 = "float64"
    BYTES = "bytes"
    TIME = "Time"
    MICRO_TIME = "MicroTime"
    DURATION = "Duration"
    QUANTITY = "Quantity"
    INT_OR_STRING = "IntOrString"
    RAW_EXTENSION = "RawExtension"
    FIELDS_V1 = "FieldsV1"
    ANY = "Any"


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A single value; `go_name` is what Kubernetes calls its type in error texts, `choices` what it may be."""

    basic: Basic
    go_name: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ListOf:
    item: Type


@dataclass(frozen=True, slots=True, eq=False)
class MapOf:
    """A map from texts to values."""

    value: Type


class ListKind(Enum):
    """How two people's lists become one: whole, as a set, or item by item, told apart by the values of keys."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a struct."""

    name: str
    number: int
    type: Type
    is_pointer: bool = False
    """Whether absent is another thing than empty."""
    omits_empty: bool = False
    omits_zero: bool = False
    is_required: bool = False
    patch_strategy: tuple[str, ...] = ()
    merge_key: str = ""
    list_kind: ListKind | None = None
    """For lists; None where nothing is said, which means atomic."""
    list_keys: tuple[str, ...] = ()
    is_atomic: bool | None = None
    """For maps and structs: whether one manager writes it as a whole. None where the type says it (a map: no)."""
    default: object = None
    """What an absent value means where lists are merged by key."""
    rules: tuple[str, ...] = ()
    """Validation rules in the order of checking; `apiserver.validation.schema_rules` has their meaning."""


@dataclass(slots=True, eq=False)
class Struct:
    """A type with fields."""

    package: str
    name: str
    openapi_name: str
    is_object: bool
    is_atomic: bool
    fields: dict[str, Field] = field(default_factory=dict)
    messages: dict[int, Field | Struct] = field(default_factory=dict)
    """By protobuf number: a field, or an inlined struct."""

    def __repr__(self) -> str:
        return f"<struct {self.package}.{self.name}>"


Type: TypeAlias = "Scalar | ListOf | MapOf | Struct"
