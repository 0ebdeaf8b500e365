"""The types of CEL: which type is assignable to which, and how error texts name them.

1. `any` (an attribute of a device) and `dyn` are assignable to every type, and every type to them. Their values are
   checked at run time.
2. A type parameter is bound at its first use. A failed attempt leaves the `Bindings` unchanged.
3. A type has at most `TYPE_SIZE_MAX` parts, and the checks of one expression take a bounded number of steps: a few
   nested maps with the same type of key and value could have billions.
4. A type has two spellings: `shown` in errors of the checker ("any"), `declared` elsewhere ("google.protobuf.Any").
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

TYPE_SIZE_MAX = 2_000


class TypeTooLarge(Exception):
    """A type has too many parts, or a check takes too many steps."""


class TypeKind(enum.Enum):
    ANY = "any"
    BOOL = "bool"
    BYTES = "bytes"
    DOUBLE = "double"
    DURATION = "duration"
    DYN = "dyn"
    ERROR = "!error!"
    INT = "int"
    LIST = "list"
    MAP = "map"
    NULL = "null"
    OPAQUE = "opaque"
    PARAMETER = "parameter"
    STRING = "string"
    STRUCT = "struct"
    TIMESTAMP = "timestamp"
    TYPE = "type"
    UINT = "uint"


@dataclass(frozen=True, slots=True)
class CelType:
    kind: TypeKind
    name: str
    parameters: tuple[CelType, ...] = ()
    size: int = field(default=1, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.parameters:
            size = 1 + sum(parameter.size for parameter in self.parameters)
            if size > TYPE_SIZE_MAX:
                raise TypeTooLarge
            object.__setattr__(self, "size", size)

    @property
    def shown(self) -> str:
        """The name in errors of the checker."""
        if self.kind in _SHOWN_BY_KIND:
            return self.kind.value
        return self._with_parameters([parameter.shown for parameter in self.parameters])

    @property
    def declared(self) -> str:
        """The name in other texts."""
        if self.kind is TypeKind.PARAMETER:
            return f"<{self.name}>"
        return self._with_parameters([parameter.declared for parameter in self.parameters])

    @property
    def is_dynamic(self) -> bool:
        return self.kind is TypeKind.DYN or self.kind is TypeKind.ANY

    def _with_parameters(self, parameters: list[str]) -> str:
        return f"{self.name}({', '.join(parameters)})" if parameters else self.name


_SHOWN_BY_KIND = {TypeKind.ANY, TypeKind.DURATION, TypeKind.ERROR, TypeKind.NULL, TypeKind.TIMESTAMP}

ANY = CelType(TypeKind.ANY, "google.protobuf.Any")
BOOL = CelType(TypeKind.BOOL, "bool")
BYTES = CelType(TypeKind.BYTES, "bytes")
DOUBLE = CelType(TypeKind.DOUBLE, "double")
DURATION = CelType(TypeKind.DURATION, "google.protobuf.Duration")
DYN = CelType(TypeKind.DYN, "dyn")
ERROR = CelType(TypeKind.ERROR, "error")
INT = CelType(TypeKind.INT, "int")
NULL = CelType(TypeKind.NULL, "null_type")
STRING = CelType(TypeKind.STRING, "string")
TIMESTAMP = CelType(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
UINT = CelType(TypeKind.UINT, "uint")
TYPE = CelType(TypeKind.TYPE, "type")

QUANTITY = CelType(TypeKind.STRUCT, "kubernetes.Quantity")
SEMVER = CelType(TypeKind.STRUCT, "kubernetes.Semver")
URL = CelType(TypeKind.STRUCT, "kubernetes.URL")
NAMED_FORMAT = CelType(TypeKind.STRUCT, "kubernetes.NamedFormat")
IP_ADDRESS = CelType(TypeKind.OPAQUE, "net.IP")
CIDR = CelType(TypeKind.OPAQUE, "net.CIDR")
DEVICE = CelType(TypeKind.STRUCT, "kubernetes.DRADevice")


def list_of(element: CelType) -> CelType:
    return CelType(TypeKind.LIST, "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType(TypeKind.MAP, "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType(TypeKind.OPAQUE, "optional_type", (value,))


def type_of(described: CelType) -> CelType:
    return CelType(TypeKind.TYPE, "type", (described,))


def parameter(name: str) -> CelType:
    return CelType(TypeKind.PARAMETER, name)


def without_optional(type_: CelType) -> tuple[CelType, bool]:
    """The type in an optional, and whether the type is an optional."""
    if type_.kind is TypeKind.OPAQUE and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


class Bindings(dict[str, CelType]):
    """The types to which type parameters are bound."""

    __slots__ = ("_changes", "_steps_left")

    def __init__(self, step_count_max: int) -> None:
        super().__init__()
        self._changes: list[tuple[str, CelType | None]] = []
        self._steps_left = step_count_max

    def step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TypeTooLarge

    def bind(self, name: str, type_: CelType) -> None:
        self._changes.append((name, self.get(name)))
        self[name] = type_

    def commit(self) -> None:
        self._changes.clear()

    def roll_back(self) -> None:
        """Undo all changes since the last commit."""
        while self._changes:
            name, before = self._changes.pop()
            if before is None:
                del self[name]
            else:
                self[name] = before


def assign(bindings: Bindings, actual: tuple[CelType, ...], expected: tuple[CelType, ...]) -> bool:
    """Whether the given types are assignable to the expected types. If so, binds type parameters."""
    if len(actual) == len(expected) and all(_unify(bindings, one, other) for one, other in zip(actual, expected)):
        bindings.commit()
        return True
    bindings.roll_back()
    return False


def renamed(names: Mapping[str, CelType], type_: CelType) -> CelType:
    """The type, with other type parameters."""
    if type_.kind is TypeKind.PARAMETER:
        return names[type_.name]
    if not type_.parameters:
        return type_
    return CelType(type_.kind, type_.name, tuple(renamed(names, part) for part in type_.parameters))


def substituted(bindings: Bindings, type_: CelType, free_becomes_dyn: bool = False) -> CelType:
    """The type, with bound type parameters replaced."""
    bindings.step()
    if type_.kind is TypeKind.PARAMETER:
        bound = bindings.get(type_.name)
        if bound is not None:
            return substituted(bindings, bound, free_becomes_dyn)
        return DYN if free_becomes_dyn else type_
    if not type_.parameters:
        return type_
    parts = tuple(substituted(bindings, part, free_becomes_dyn) for part in type_.parameters)
    return CelType(type_.kind, type_.name, parts)


def most_general(one: CelType, other: CelType) -> CelType:
    """The more general of two types of which one is assignable to the other."""
    return one if _is_as_general(one, other) else other


def is_equivalent(one: CelType, other: CelType) -> bool:
    """Whether two types are the same. `any` and `dyn` equal only themselves."""
    return (
        one.kind is other.kind
        and one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(is_equivalent(part, other_part) for part, other_part in zip(one.parameters, other.parameters))
    )


_NULLABLE_KINDS = {TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP, TypeKind.NULL}
_CONTAINER_KINDS = {TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP}
_WILDCARD_KINDS = {TypeKind.DYN, TypeKind.ANY, TypeKind.ERROR}


def _unify(bindings: Bindings, actual: CelType, expected: CelType) -> bool:
    bindings.step()
    if expected.kind is TypeKind.PARAMETER:
        is_valid, was_bound = _bind(bindings, actual, expected)
        if is_valid or was_bound:
            return is_valid
    if actual.kind is TypeKind.PARAMETER:
        return _bind(bindings, expected, actual)[0]
    if actual.kind in _WILDCARD_KINDS or expected.kind in _WILDCARD_KINDS:
        return True
    if actual.kind is TypeKind.NULL:
        return expected.kind in _NULLABLE_KINDS
    if expected.kind is TypeKind.NULL:
        return actual.kind in _NULLABLE_KINDS
    if actual.kind is not expected.kind:
        return False
    if actual.kind in _CONTAINER_KINDS:
        return (
            actual.name == expected.name
            and len(actual.parameters) == len(expected.parameters)
            and all(_unify(bindings, part, other) for part, other in zip(actual.parameters, expected.parameters))
        )
    return actual.kind is TypeKind.TYPE or actual.name == expected.name


def _bind(bindings: Bindings, type_: CelType, free: CelType) -> tuple[bool, bool]:
    """Whether the type is assignable to a type parameter, and whether the parameter is bound."""
    if type_ == free:
        return True, True
    bound = bindings.get(free.name)
    if bound is None:
        if _occurs(bindings, free, type_):
            return False, False
        bindings.bind(free.name, type_)
        return True, False
    if type_ == bound:
        return True, True
    if not _unify(bindings, type_, bound):
        return False, True
    widened = most_general(type_, bound)
    if not _occurs(bindings, free, widened):
        bindings.bind(free.name, widened)
    return True, True


def _occurs(bindings: Bindings, free: CelType, within: CelType) -> bool:
    bindings.step()
    if within == free:
        return True
    if within.kind is TypeKind.PARAMETER:
        bound = bindings.get(within.name)
        return bound is not None and _occurs(bindings, free, bound)
    return any(_occurs(bindings, free, part) for part in within.parameters)


def _is_as_general(one: CelType, other: CelType) -> bool:
    if one.is_dynamic or one.kind is TypeKind.PARAMETER:
        return True
    if other.is_dynamic or other.kind is TypeKind.PARAMETER or one.kind is not other.kind:
        return False
    if one.kind in _CONTAINER_KINDS:
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(_is_as_general(part, other_part) for part, other_part in zip(one.parameters, other.parameters))
        )
    return one.kind is TypeKind.TYPE or one == other
