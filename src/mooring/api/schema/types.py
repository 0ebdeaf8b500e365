"""Types of the schema: structs and their fields; the type of a kind or of a name; parsing of the files with the types.

1. Types are compared by identity; each exists once. A struct holds the types of its fields, so that walking an object
   together with its type costs one dictionary lookup for each field.
2. `Struct.fields` includes the fields of inlined structs, as JSON does. `messages` has them separately, for protobuf.
3. A package is parsed when one of its types is first needed, once per process. All packages together take about 30 ms.
4. Descriptions are in files of their own (`descriptions/`), which are read for an OpenAPI document only.

A `CircularTable` is filled on demand, its entries refer to each other in circles, and several threads use it:

    found = _table.get(key)                     # complete entries only
    if found is None:
        with _table.filling() as entries:       # also those that are being filled, by this thread
            ...

5. An entry may be added to `entries` before what it refers to is there.
6. Other threads see an entry when everything that it refers to is complete: when the outermost `filling` ends.
7. One thread fills at a time.

Parsing: input is the text of a package, and a function that finds types of other packages. Output: its structs and
named types.

8. A struct is created empty and filled afterwards, because structs refer to each other in cycles.
9. A line that cannot be parsed is a bug: an `AssertionError` that quotes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.resources import files
from threading import RLock
from typing import Generic, TypeAlias, TypeVar


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
    """Whether absent differs from empty."""
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


Key = TypeVar("Key")
Entry = TypeVar("Entry")


class CircularTable(Generic[Key, Entry]):
    """A table of lazily made entries."""

    def __init__(self) -> None:
        self._complete: dict[Key, Entry] = {}
        self._entries: dict[Key, Entry] = {}
        self._lock = RLock()
        self._depth = 0
        self.get = self._complete.get
        """The complete entry of a key; None if there is none."""

    @contextmanager
    def filling(self) -> Iterator[dict[Key, Entry]]:
        """All entries, complete or not, which only this thread changes during the block."""
        with self._lock:
            self._depth += 1
            try:
                yield self._entries
            except BaseException:
                self._entries = dict(self._complete)  # what it was about to refer to is missing
                raise
            finally:
                self._depth -= 1
            if not self._depth:
                self._complete.update(self._entries)


_PACKAGES = {
    "v1": "core",
    "apiextensions.k8s.io/v1": "apiextensions",
    "apps/v1": "apps",
    "authentication.k8s.io/v1": "authentication",
    "authorization.k8s.io/v1": "authorization",
    "autoscaling/v1": "autoscaling",
    "batch/v1": "batch",
    "coordination.k8s.io/v1": "coordination",
    "discovery.k8s.io/v1": "discovery",
    "events.k8s.io/v1": "events",
    "mooring.dev/v1alpha1": "mooring",
    "node.k8s.io/v1": "node",
    "policy/v1": "policy",
    "rbac.authorization.k8s.io/v1": "rbac",
    "resource.k8s.io/v1": "resource",
    "scheduling.k8s.io/v1": "scheduling",
    "storage.k8s.io/v1": "storage",
}
"""The schema file of each API version. `meta` belongs to none: the others refer to it."""

_META_OBJECTS = frozenset({"Status", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"})
"""Objects of every API version."""

_loaded: CircularTable[str, Package] = CircularTable()


def struct_of_kind(api_version: str, kind: str) -> Struct | None:
    """The type of a kind; None if the schema does not have it."""
    if kind in _META_OBJECTS:
        return struct_named("meta", kind)
    package = _PACKAGES.get(api_version)
    found = _package(package).types.get(kind) if package else None
    return found if isinstance(found, Struct) and found.is_object else None


def struct_named(package: str, name: str) -> Struct:
    """A struct by its name in a `.schema` file: `core`, `PodSpec`."""
    found = _find(package, name)
    assert isinstance(found, Struct), f"{package}.{name} is no struct"
    return found


def type_named(package: str, name: str) -> Type:
    """A type by its name in a `.schema` file: `core`, `TaintEffect`."""
    return _find(package, name)


@cache
def api_versions() -> tuple[str, ...]:
    """The API versions that have a schema."""
    return tuple(_PACKAGES)


@cache
def api_version_of_package(package: str) -> str:
    """The API version of a package: `apps` is `apps/v1`. Shared types count as core."""
    return next((version for version, name in _PACKAGES.items() if name == package), "v1")


def description_of(package: str, struct: str, field: str = "") -> str:
    """The description of a struct or of one of its fields; empty if there is none."""
    return _descriptions(package).get(f"{struct}.{field}" if field else struct, "")


@cache
def _descriptions(package: str) -> dict[str, str]:
    file = files(__package__).joinpath("descriptions", f"{package}.txt")
    return parse_descriptions(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _find(package: str, name: str) -> Type:
    return _package(package).types[name]


def _package(name: str) -> Package:
    package = _loaded.get(name)
    return package if package is not None else _load(name)


def _load(name: str) -> Package:
    with _loaded.filling() as packages:
        package = packages.get(name)
        if package is None:
            text = files(__package__).joinpath(f"{name}.schema").read_text(encoding="utf-8")
            package = packages[name] = parse_package(text)
            fill(package, _find)
        return package


# --- parsing --------------------------------------------------------------------------------------------------


FindType = Callable[[str, str], Type]
"""From a package and a name to a type."""

INLINE = "<inline>"

_BASICS = {basic.value: Scalar(basic, basic.value) for basic in Basic}
_GO_NAMES = {
    Basic.BYTES: "[]uint8",
    Basic.TIME: "v1.Time",
    Basic.MICRO_TIME: "v1.MicroTime",
    Basic.DURATION: "v1.Duration",
    Basic.QUANTITY: "resource.Quantity",
    Basic.INT_OR_STRING: "intstr.IntOrString",
    Basic.RAW_EXTENSION: "runtime.RawExtension",
    Basic.FIELDS_V1: "v1.FieldsV1",
}
_BASICS.update({basic.value: Scalar(basic, name) for basic, name in _GO_NAMES.items()})


@dataclass(slots=True)
class Package:
    """The types of one `.schema` file. `fill` gives the structs their fields."""

    name: str
    types: dict[str, Type] = field(default_factory=dict)
    bodies: dict[str, list[str]] = field(default_factory=dict)


_DESCRIBED = re.compile(r"(?P<indent>  )?(?P<name>\w+)(?:  (?P<text>.*))?")


def parse_descriptions(text: str) -> dict[str, str]:
    """Descriptions by `Struct` and `Struct.field`.

        Taint  Keeps pods away from a node,
          unless they tolerate it.
          key  What the taint is about.

    A name is followed by two spaces. A line that begins in another way continues the last description.
    """
    found: dict[str, str] = {}
    struct = last = ""
    for line in text.splitlines():
        match = _DESCRIBED.fullmatch(line)
        if match is None:
            assert last in found, f"no description to continue with {line!r}"
            found[last] += f" {line.strip()}"
            continue
        struct = struct if match["indent"] else match["name"]
        last = f"{struct}.{match['name']}" if match["indent"] else struct
        assert last not in found, f"{last} is described twice"
        if match["text"]:
            found[last] = match["text"]
    return found


def parse_package(text: str) -> Package:
    """The types of a package by name, the structs still without fields."""
    lines = text.splitlines()
    word, name, prefix = lines[0].split()
    assert word == "package", f"a schema begins with its package, not with {lines[0]!r}"
    package = Package(name)
    body: list[str] = []
    for line in lines[1:]:
        if line.startswith("  "):
            body.append(line)
            continue
        words = line.split()
        match words:
            case []:
                pass
            case ["type", type_name, base, *choices]:
                package.types[type_name] = Scalar(
                    Basic(base), f"v1.{type_name}", tuple(choice.strip('"') for choice in choices)
                )
            case ["struct" | "object" as sort, type_name, *marks]:
                openapi_name = f"{prefix}.{type_name}"
                package.types[type_name] = Struct(name, type_name, openapi_name, sort == "object", "atomic" in marks)
                body = package.bodies[type_name] = []
            case _:
                raise AssertionError(f"a line of package {name} cannot be read: {line!r}")
    return package


def fill(package: Package, find: FindType) -> None:
    """Give every struct of a package its fields."""
    for name in list(package.bodies):
        _fill_struct(package, name, find)


def _fill_struct(package: Package, name: str, find: FindType) -> None:
    struct = package.types[name]
    assert isinstance(struct, Struct)
    for line in package.bodies.pop(name, ()):
        number, field_name = line.split()[:2]
        type_text, options = _split_type(line)
        if field_name == INLINE:
            _fill_inlined(struct, int(number), type_text, package, find)
            continue
        made = _field(field_name, int(number), type_text, options, package.name, find)
        struct.fields[made.name] = made
        struct.messages[made.number] = made


def _fill_inlined(struct: Struct, number: int, type_text: str, package: Package, find: FindType) -> None:
    if type_text in package.bodies:  # it is defined further down in the file and is still empty
        _fill_struct(package, type_text, find)
    inlined = _type(type_text, package.name, find)
    assert isinstance(inlined, Struct), f"{type_text} is inlined in {struct!r} and is no struct"
    struct.messages[number] = inlined
    struct.fields.update(inlined.fields)


def _split_type(line: str) -> tuple[str, str]:
    """The type and the options of a line; the type of a map consists of two parts."""
    words = line.split()
    length = 2 if words[2] in ("map", "*map") else 1
    return " ".join(words[2 : 2 + length]), " ".join(words[2 + length :])


def _field(name: str, number: int, type_text: str, options: str, package: str, find: FindType) -> Field:
    values = dict(option.split("=", 1) for option in options.split() if "=" in option)
    plain = {option for option in options.split() if "=" not in option}
    kind = values.get("list")
    return Field(
        name=name.rstrip("?~"),
        number=number,
        type=_type(type_text.removeprefix("*"), package, find),
        is_pointer=type_text.startswith("*"),
        omits_empty="?" in name,
        omits_zero="~" in name,
        is_required="required" in plain,
        patch_strategy=tuple(values["patch"].split(",")) if "patch" in values else (),
        merge_key=values.get("mergekey", ""),
        list_kind=ListKind(kind) if kind else None,
        list_keys=tuple(values["keys"].split(",")) if "keys" in values else (),
        is_atomic=_is_atomic(values.get("map") or values.get("struct")),
        default=json.loads(values["default"]) if "default" in values else None,
        rules=tuple(values["valid"].split(",")) if "valid" in values else (),
    )


def _is_atomic(mark: str | None) -> bool | None:
    assert mark in (None, "atomic", "granular"), f"{mark} is no way to merge a map or a struct"
    return None if mark is None else mark == "atomic"


def _type(text: str, package: str, find: FindType) -> Type:
    if text.startswith("[]"):
        return ListOf(_type(text[2:].removeprefix("*"), package, find))
    if text.startswith("map "):
        return MapOf(_type(text[4:].removeprefix("*"), package, find))
    if text in _BASICS:
        return _BASICS[text]
    if "." in text:
        package, _, text = text.partition(".")
    return find(package, text)
