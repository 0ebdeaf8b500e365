"""Find a type of the schema: of a kind, or by package and name.

1. A package is parsed when one of its types is first needed, once per process. All packages together take about 30 ms.
2. Descriptions are in files of their own (`descriptions/`), which are read for an OpenAPI document only.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from mooring.api.schema.circular import CircularTable
from mooring.api.schema.model import Struct, Type
from mooring.api.schema.parse import Package, fill, parse_descriptions, parse_package

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
"""Where the types of an API version stand. `meta` belongs to none: the others refer to it."""

_META_OBJECTS = frozenset({"Status", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"})
"""Objects that every API version knows."""

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


def package_of(api_version: str) -> str | None:
    """The package of an API version: `apps/v1` is `apps`."""
    return _PACKAGES.get(api_version)


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
