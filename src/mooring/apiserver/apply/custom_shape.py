"""The shapes of custom kinds, from their structural schema.

Input: the OpenAPI schema of a version of a CustomResourceDefinition, or None. Output: its `Shape`.

1. `x-kubernetes-list-type`, `-list-map-keys`, `-map-type`, `-preserve-unknown-fields` and `-int-or-string` have the
   meaning of kube-apiserver. A list without a type is atomic.
2. The creator of a custom object owns `spec` itself, too, because Go writes no empty `spec` for it.
3. Without a schema the values decide: maps are owned entry by entry, lists as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api.schema.model import ListKind
from mooring.api.schema.tables import struct_named
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
from mooring.apiserver.apply.struct_shape import grain_of_struct

Schema = Mapping[str, Any]


def custom_shape(
    api_version: str,
    kind: str,
    schema: Schema | None,
    *,
    preserves_unknown: bool = False,
    other_versions: Mapping[str, Schema | None] | None = None,
) -> Shape:
    """The shape of a custom kind in one of its versions. `preserves_unknown` is what the definition's spec says."""
    schemas = {**(other_versions or {}), api_version: schema}
    return custom_shapes(kind, schemas, preserves_unknown=preserves_unknown)[api_version]


def custom_shapes(
    kind: str, schemas: Mapping[str, Schema | None], *, preserves_unknown: bool = False
) -> dict[str, Shape]:
    """The shapes of a custom kind in all its versions, from their schemas by apiVersion. They share their grains."""
    roots = {version: _root(schema, preserves_unknown) for version, schema in schemas.items()}
    return {
        version: Shape(root, {"apiVersion": version, "kind": kind}, may_change=True, other_versions=roots)
        for version, root in roots.items()
    }


def _root(schema: Schema | None, preserves_unknown: bool) -> Grain:
    if schema is None:
        return DEDUCED
    root = _grain(schema, preserves_unknown)
    if root.map is not None:
        metadata = grain_of_struct(struct_named("meta", "ObjectMeta"))
        root.map.fields |= {"apiVersion": TEXT, "kind": TEXT, "metadata": metadata}
    return root


def _grain(schema: Schema, preserves_unknown: bool) -> Grain:
    preserves_unknown = preserves_unknown or schema.get("x-kubernetes-preserve-unknown-fields") is True
    match schema.get("type"):
        case "object":
            return Grain(map=_map_grain(schema, preserves_unknown))
        case "array":
            return Grain(list=_list_grain(schema, preserves_unknown))
        case "integer" | "number":
            return NUMBER
        case "boolean":
            return FLAG
        case "string":
            return TEXT if schema.get("format", "") in ("", "byte") else ANY_SCALAR
        case _:
            lists, maps = _list_grain(schema, preserves_unknown), _map_grain(schema, preserves_unknown)
            return Grain(ScalarKind.ANY, lists, maps)


def _map_grain(schema: Schema, preserves_unknown: bool) -> MapGrain:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    grain = MapGrain(
        is_atomic=schema.get("x-kubernetes-map-type") == "atomic",
        fields={name: _grain(held, preserves_unknown) for name, held in properties.items()},
        defaults={name: held["default"] for name, held in properties.items() if held.get("default") is not None},
    )
    match schema.get("additionalProperties"):
        case None:
            grain.item = DEDUCED if preserves_unknown or not properties else None
        case bool(is_allowed):
            grain.item = DEDUCED if is_allowed else None
        case held:
            grain.item = _grain(held, preserves_unknown)
    if schema.get("x-kubernetes-embedded-resource"):
        metadata = grain_of_struct(struct_named("meta", "ObjectMeta"))
        grain.fields = {"apiVersion": TEXT, "kind": TEXT, "metadata": metadata} | grain.fields
    return grain


def _list_grain(schema: Schema, preserves_unknown: bool) -> ListGrain:
    held = schema.get("items")
    item = WHOLE if held is None else _grain(held, preserves_unknown)
    kind = ListKind(schema.get("x-kubernetes-list-type") or ListKind.ATOMIC.value)
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind is ListKind.MAP else ()
    return ListGrain(kind, item, keys)
