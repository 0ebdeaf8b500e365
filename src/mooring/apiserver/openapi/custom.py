"""Schemas of custom kinds, as they are published.

Comes in   the schema of a version of a definition, or none
Goes out   the same with what every object has; and the schema of the list

 1. The second dialect can say less: what it cannot say is left open rather than wrong. kubectl, which reads it, refuses
    values with several types, and fields of what may have others.
 2. The schema that is handed in is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.api.document import Document
from mooring.apiserver.openapi.dialect import Dialect
from mooring.apiserver.resources import Resource

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_TEXT: Document = {"type": "string"}
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
_KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"


def schema_name(resource: Resource, kind: str) -> str:
    """`com.example.v1.Widget` for the kind Widget of example.com/v1."""
    group = ".".join(reversed(resource.kind.group.split(".")))
    return f"{group}.{resource.version}.{kind}"


def custom_schema(resource: Resource, schema: Document | None, dialect: Dialect) -> Document:
    """The schema of a custom kind."""
    keeps_everything = schema is not None and bool(schema.get(_KEEPS_UNKNOWN)) and not dialect.is_third
    if schema is None or keeps_everything:
        made: Document = {"type": "object"}
    else:
        made = _translated(schema, dialect)
        own = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": dialect.wrapped(_OBJECT_META)}
        made["properties"] = dict(sorted({**made.get("properties", {}), **own}.items()))
    made["x-kubernetes-group-version-kind"] = [_group_version_kind(resource, resource.kind.kind)]
    fields = sorted(name for name in resource.selectable_fields if not name.startswith("metadata."))
    if fields and dialect.is_third:
        made["x-kubernetes-selectable-fields"] = [{"fieldPath": name} for name in fields]
    return made


def custom_list_schema(resource: Resource, dialect: Dialect) -> Document:
    items = {"type": "array", "items": dialect.reference(schema_name(resource, resource.kind.kind))}
    metadata = dialect.wrapped(_LIST_META)
    return {
        "type": "object",
        "required": ["items"],
        "properties": {"apiVersion": _TEXT, "items": items, "kind": _TEXT, "metadata": metadata},
        "x-kubernetes-group-version-kind": [_group_version_kind(resource, resource.list_kind)],
    }


def _group_version_kind(resource: Resource, kind: str) -> Document:
    return {"group": resource.kind.group, "kind": kind, "version": resource.version}


# --- translation ------------------------------------------------------------------------------------------------


def _translated(schema: Document, dialect: Dialect) -> Document:
    made = dict(schema) if dialect.is_third else _without_what_cannot_be_said(schema)
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: _translated(inner, dialect) for name, inner in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _translated(made[key], dialect)
    if dialect.is_third and made.get(_INT_OR_STRING) and "anyOf" not in made and not made.get("allOf"):
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if made.get(_EMBEDDED) and (dialect.is_third or not made.get(_KEEPS_UNKNOWN)):
        _embed(made, dialect)
    return made


def _without_what_cannot_be_said(schema: Document) -> Document:
    made: dict[str, Any] = {key: value for key, value in schema.items() if key not in (*_JUNCTORS, "default")}
    if made.pop("nullable", False):
        _drop(made, ("type", "items", "properties"))
    if made.get(_KEEPS_UNKNOWN):
        _drop(made, ("items", "properties"))
    if (made.get("type") == "array" and "items" not in made) or (
        made.get("type") == "object" and made.get(_KEEPS_UNKNOWN)
    ):
        _drop(made, ("type",))
    inner = made.get("properties") or {}
    required = [name for name in made.get("required") or () if not (inner.get(name) or {}).get("nullable")]
    if "required" in made:
        made["required"] = required
        if not required:
            del made["required"]
    return made


def _drop(made: Document, keys: Iterable[str]) -> None:
    for key in keys:
        made.pop(key, None)


def _embed(made: Document, dialect: Dialect) -> None:
    own = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": dialect.wrapped(_OBJECT_META)}
    made["properties"] = dict(sorted({**(made.get("properties") or {}), **own}.items()))
    required = list(made.get("required") or ())
    made["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]
