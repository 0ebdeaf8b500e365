"""The model of a schema: types, and the fields of structs.

1. Types are compared by identity; each exists once. A struct holds the types of its fields, so that walking an object
   together with its type costs one dictionary lookup for each field.
2. `Struct.fields` includes the fields of inlined structs, as JSON does. `messages` has them separately, for protobuf.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class Basic(Enum):
    """The types other than structs, lists and maps; the value is their name in a schema file."""

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
    """How a list is merged: as a whole (atomic), as a set, or item by item by keys (map)."""

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
    """For lists; None means atomic."""
    list_keys: tuple[str, ...] = ()
    is_atomic: bool | None = None
    """For maps and structs: whether it is atomic. None means the default of the type (a map: no)."""
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
