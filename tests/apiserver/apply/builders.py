"""Builders for the tests of managed fields: kind schemas, documents, and field sets from paths."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import kind_named
from mooring.api.schema.types import struct_of_kind
from mooring.apiserver.apply.field_set import FieldSet, paths, set_of, shown_path
from mooring.apiserver.apply.kind_schema import KindSchema, custom_kind_schemas, kind_schema_of_struct
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.patch import apply_as
from mooring.apiserver.apply.update import write_managed_fields
from mooring.apiserver.call import Call
from mooring.serving.users import User

MONDAY = "2026-01-05T00:00:00Z"
TUESDAY = "2026-01-06T00:00:00Z"
STATUS = (("status",),)


def kind_schema_of(api_version: str, kind: str) -> KindSchema:
    struct = struct_of_kind(api_version, kind)
    assert struct is not None
    return kind_schema_of_struct(struct, api_version, kind)


CONFIG_MAP = kind_schema_of("v1", "ConfigMap")
POD = kind_schema_of("v1", "Pod")
DEPLOYMENT = kind_schema_of("apps/v1", "Deployment")

THING_SCHEMA: Document = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "whole": {"type": "array", "items": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": {"type": "string"},
                        },
                    },
                },
                "pair": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
                },
                "words": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "size": {"x-kubernetes-int-or-string": True},
            },
        }
    },
}
THING_VERSION = "example.com/v1"
THING = custom_kind_schemas("Thing", {THING_VERSION: THING_SCHEMA})[THING_VERSION]


def fields(*texts: str) -> FieldSet:
    """A field set: `data`, `data k1`, `spec containers k:{"name":"c"} image` (steps are separated by spaces)."""
    return set_of([[step if step[1:2] == ":" else f"f:{step}" for step in text.split()] for text in texts])


def shown(found: FieldSet) -> list[str]:
    """All paths of a set, as messages show them."""
    return [shown_path(path) for path in paths(found)]


def config_map(data: Document | None = None, **metadata: Any) -> Document:
    document: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return document if data is None else {**document, "data": data}


def thing(**spec: Any) -> Document:
    return {"apiVersion": THING_VERSION, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def created(kind_schema: KindSchema, document: Document, manager: str = "creator", now: str = MONDAY) -> Document:
    """The stored object after a create by this manager."""
    new = {**document, "metadata": dict(document["metadata"])}
    write_managed_fields(kind_schema, None, new, manager_id(manager, UPDATE, document["apiVersion"], ""), now, STATUS)
    new["metadata"]["uid"] = "u-1"
    return new


def updated(
    kind_schema: KindSchema,
    live: Document,
    document: Document,
    manager: str,
    *,
    now: str = TUESDAY,
    subresource: str = "",
) -> Document:
    """The stored object after an update by this manager."""
    new = {**document, "metadata": {**document["metadata"], "uid": "u-1"}}
    ignored = (("spec",),) if subresource else STATUS
    write_managed_fields(
        kind_schema, live, new, manager_id(manager, UPDATE, document["apiVersion"], subresource), now, ignored
    )
    return new


def applied(
    kind_schema: KindSchema,
    live: Document | None,
    document: Document,
    manager: str,
    *,
    now: str = TUESDAY,
    force: bool = False,
) -> Document:
    """The stored object after an apply by this manager."""
    new = apply_as(
        kind_schema,
        live,
        document,
        manager=manager,
        api_version=kind_schema.empty["apiVersion"],
        kind=kind_schema.empty["kind"],
        subresource="",
        now=now,
        ignored=STATUS,
        is_forced=force,
    )
    new["metadata"]["uid"] = "u-1"
    return new


def owners(document: Document) -> dict[str, list[str]]:
    """The owned fields of each manager, by `manager operation`."""
    found: dict[str, list[str]] = {}
    for entry in document["metadata"].get("managedFields", ()):
        manager_text = " ".join(filter(None, (entry.get("manager", ""), entry["operation"], entry.get("subresource"))))
        found[manager_text] = shown(entry["fieldsV1"])
    return found


def times(document: Document) -> dict[str, str | None]:
    return {entry["manager"]: entry.get("time") for entry in document["metadata"].get("managedFields", ())}


def call(manager: str, *, kind: str = "ConfigMap", subresource: str = "", is_forced: bool = False) -> Call:
    return Call(
        verb="patch",
        kind=kind_named("v1", kind),
        user=User("anna"),
        now_s=0.0,
        now=TUESDAY,
        name="c",
        subresource=subresource,
        field_manager=manager,
        is_forced=is_forced,
    )
