"""Schemas without a struct (scalars, discovery documents), and the differences of OpenAPI v2 and v3.

1. v2 is one document for all; v3 has one for each API version.
2. v3 has defaults and values of several types. Nothing may stand next to a `$ref`, so that a reference with a default
   is wrapped in `allOf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.api.document import Document


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a document is written."""

    is_third: bool
    prefix: str
    """Of references to schemas."""

    def reference(self, name: str) -> Document:
        return {"$ref": f"{self.prefix}{name}"}

    def wrapped(self, name: str, **beside: object) -> Document:
        """A reference with something beside it."""
        if not self.is_third:
            return {**self.reference(name), **{key: value for key, value in beside.items() if key != "default"}}
        return {**beside, "allOf": [self.reference(name)]}


SECOND = Dialect(is_third=False, prefix="#/definitions/")
THIRD = Dialect(is_third=True, prefix="#/components/schemas/")


META = "io.k8s.apimachinery.pkg.apis.meta.v1"
WATCH_EVENT = f"{META}.WatchEvent"
_JSON = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_TEXT: Document = {"type": "string"}
_NUMBER: Document = {"type": "number"}
_INTEGER: Document = {"type": "integer"}
_ALWAYS_TEXT: Document = {"type": "string", "default": ""}
_ALWAYS_FLAG: Document = {"type": "boolean", "default": False}


def special_schema(name: str, dialect: Dialect) -> tuple[Document, list[str]]:
    """A schema by its name, and the names of those that it refers to."""
    schema = SPECIAL[name]
    if not dialect.is_third:
        schema = _SECOND.get(name, schema)
    others: list[str] = []
    return _translated(schema, dialect, others), others


def _translated(schema: Document, dialect: Dialect, others: list[str]) -> Document:
    """In the words of a dialect: `@` is a reference, and the second dialect has no defaults."""
    made: Document = {}
    for key, value in schema.items():
        if key == "@":
            others.append(value)
            beside = {"default": schema["default"]} if "default" in schema else {}
            return dialect.wrapped(value, **beside)
        if key == "default" and not dialect.is_third:
            continue
        made[key] = _translated(value, dialect, others) if isinstance(value, dict) else value
    return made


def _list_of(items: Document, **extensions: str) -> Document:
    return {"type": "array", "items": items, **{f"x-kubernetes-{name}": value for name, value in extensions.items()}}


def _atomic(items: Document) -> Document:
    return {"type": "array", "items": items, "x-kubernetes-list-type": "atomic"}


def _of(name: str, *, has_default: bool = True) -> Document:
    reference: Document = {"@": f"{META}.{name}"}
    return {"default": {}, **reference} if has_default else reference


def _object(kind: str, required: list[str], **properties: Document) -> Document:
    """A discovery document. All API versions have it; it is listed in the core group."""
    known: Document = {"apiVersion": _TEXT, "kind": _TEXT, **properties}
    return {
        "type": "object",
        "required": required,
        "properties": dict(sorted(known.items())),
        "x-kubernetes-group-version-kind": [{"group": "", "kind": kind, "version": "v1"}],
    }


SPECIAL: Mapping[str, Document] = {
    f"{META}.Time": {"type": "string", "format": "date-time"},
    f"{META}.MicroTime": {"type": "string", "format": "date-time"},
    f"{META}.Duration": _TEXT,
    f"{META}.FieldsV1": {"type": "object"},
    f"{META}.Patch": {"type": "object"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [_TEXT, _NUMBER]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string", "oneOf": [_INTEGER, _TEXT]},
    _JSON: {},
    f"{_JSON}SchemaPropsOrArray": {},
    f"{_JSON}SchemaPropsOrBool": {},
    f"{_JSON}SchemaPropsOrStringArray": {},
    WATCH_EVENT: {
        "type": "object",
        "required": ["type", "object"],
        "properties": {"object": {"@": "io.k8s.apimachinery.pkg.runtime.RawExtension"}, "type": _ALWAYS_TEXT},
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "WatchEvent", "version": "v1"}],
    },
    f"{META}.APIResource": {
        "type": "object",
        "required": ["name", "singularName", "namespaced", "kind", "verbs"],
        "properties": {
            "categories": _atomic(_ALWAYS_TEXT),
            "group": _TEXT,
            "kind": _ALWAYS_TEXT,
            "name": _ALWAYS_TEXT,
            "namespaced": _ALWAYS_FLAG,
            "shortNames": _atomic(_ALWAYS_TEXT),
            "singularName": _ALWAYS_TEXT,
            "storageVersionHash": _TEXT,
            "verbs": _list_of(_ALWAYS_TEXT),
            "version": _TEXT,
        },
    },
    f"{META}.APIResourceList": _object(
        "APIResourceList",
        ["groupVersion", "resources"],
        groupVersion=_ALWAYS_TEXT,
        resources=_atomic(_of("APIResource")),
    ),
    f"{META}.GroupVersionForDiscovery": {
        "type": "object",
        "required": ["groupVersion", "version"],
        "properties": {"groupVersion": _ALWAYS_TEXT, "version": _ALWAYS_TEXT},
    },
    f"{META}.ServerAddressByClientCIDR": {
        "type": "object",
        "required": ["clientCIDR", "serverAddress"],
        "properties": {"clientCIDR": _ALWAYS_TEXT, "serverAddress": _ALWAYS_TEXT},
    },
    f"{META}.APIGroup": _object(
        "APIGroup",
        ["name", "versions"],
        name=_ALWAYS_TEXT,
        preferredVersion=_of("GroupVersionForDiscovery"),
        serverAddressByClientCIDRs=_atomic(_of("ServerAddressByClientCIDR")),
        versions=_atomic(_of("GroupVersionForDiscovery")),
    ),
    f"{META}.APIGroupList": _object("APIGroupList", ["groups"], groups=_atomic(_of("APIGroup"))),
    f"{META}.APIVersions": _object(
        "APIVersions",
        ["versions", "serverAddressByClientCIDRs"],
        serverAddressByClientCIDRs=_atomic(_of("ServerAddressByClientCIDR")),
        versions=_atomic(_ALWAYS_TEXT),
    ),
    "io.k8s.apimachinery.pkg.version.Info": {
        "type": "object",
        "required": [
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ],
        "properties": {
            name: _TEXT if name.startswith(("emulation", "minCompatibility")) else _ALWAYS_TEXT
            for name in (
                "buildDate",
                "compiler",
                "emulationMajor",
                "emulationMinor",
                "gitCommit",
                "gitTreeState",
                "gitVersion",
                "goVersion",
                "major",
                "minCompatibilityMajor",
                "minCompatibilityMinor",
                "minor",
                "platform",
            )
        },
    },
}
_SECOND: Mapping[str, Document] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _TEXT,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
}
"""What the second dialect cannot say: values of more than one type."""
