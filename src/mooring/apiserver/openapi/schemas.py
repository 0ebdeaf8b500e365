"""Schemas of built-in types, from the types of `mooring.api.schema`.

Input: a struct. Output: its schema and those of all types that it refers to.

1. A value that is always written has its zero value as default, a struct `{}`; an optional one has none.
2. Descriptions are our own texts (`mooring/api/schema/descriptions`), for the fields that people ask about most. What
   every object has is described once, as `TypeMeta`.

Schemas without a struct (scalars, discovery documents), and the differences of OpenAPI v2 and v3.

1. v2 is one document for all; v3 has one for each API version.
2. v3 has defaults and values of several types. No field may be next to a `$ref`, so that a reference with a default
   is wrapped in `allOf`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.schema.types import (
    Basic,
    Field,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    Type,
    api_version_of_package,
    description_of,
)

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED = {
    Basic.TIME: f"{META}.Time",
    Basic.MICRO_TIME: f"{META}.MicroTime",
    Basic.DURATION: f"{META}.Duration",
    Basic.QUANTITY: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    Basic.INT_OR_STRING: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    Basic.RAW_EXTENSION: "io.k8s.apimachinery.pkg.runtime.RawExtension",
    Basic.FIELDS_V1: f"{META}.FieldsV1",
}
"""Basic types that have a schema of their own."""
_PLAIN: dict[Basic, tuple[str, str, object]] = {
    Basic.STRING: ("string", "", ""),
    Basic.BOOL: ("boolean", "", False),
    Basic.INT32: ("integer", "int32", 0),
    Basic.INT64: ("integer", "int64", 0),
    Basic.INT: ("integer", "int32", 0),
    Basic.FLOAT64: ("number", "double", 0),
    Basic.BYTES: ("string", "byte", None),
}
"""Type, format and zero."""
_JSON = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_JSON_NAMES = {
    "items": f"{_JSON}SchemaPropsOrArray",
    "additionalProperties": f"{_JSON}SchemaPropsOrBool",
    "additionalItems": f"{_JSON}SchemaPropsOrBool",
    "dependencies": f"{_JSON}SchemaPropsOrStringArray",
}
"""What a schema inside of a custom resource definition calls its values of any type."""
_UNIONS: Mapping[str, Document] = {
    "io.k8s.api.core.v1.AppArmorProfile": {
        "discriminator": "type",
        "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
    },
    "io.k8s.api.core.v1.PodSchedulingGroup": {"fields-to-discriminateBy": {"podGroupName": "PodGroupName"}},
    "io.k8s.api.core.v1.SeccompProfile": {
        "discriminator": "type",
        "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
    },
}
"""Unions: structs with a discriminator, a field that names the field that is set."""
_OF_EVERY_OBJECT = "TypeMeta"


class Schemas:
    """The schemas of one document, collected as they are needed."""

    def __init__(self, version: DocumentVersion, api_versions: Iterable[str]) -> None:
        """`api_versions` are the versions of the document."""
        self.version = version
        self._api_versions = ("v1", *(version for version in api_versions if version != "v1"))
        self.found: dict[str, Document] = {}

    def reference(self, struct: Struct) -> Document:
        return self.version.reference(self.need(struct))

    def need(self, struct: Struct) -> str:
        """The name of the schema of a struct, which is added to the document with all schemas that it refers to."""
        name = struct.openapi_name
        if name not in self.found:
            self.found[name] = {}  # it may refer to itself
            self.found[name] = self._struct(struct)
        return name

    def need_special(self, name: str) -> str:
        """As `need`, for a schema without a struct."""
        if name not in self.found:
            self.found[name], others = special_schema(name, self.version)
            if name == WATCH_EVENT:
                self.found[name]["x-kubernetes-group-version-kind"] = self._in_all_groups("WatchEvent")
            for other in others:
                self.need_special(other)
        return name

    # ----------------------------------------------------------------------------------------------- structs

    def _struct(self, struct: Struct) -> Document:
        schema: Document = {"type": "object"}
        if about := description_of(struct.package, struct.name):
            schema["description"] = about
        fields = struct.fields
        required = [field.name for field in fields.values() if field.is_required]
        if required:
            schema["required"] = required
        properties = {name: self._property(fields[name], struct) for name in sorted(fields)}
        if struct.is_object:
            properties = {name: _text_field(name) for name in ("apiVersion", "kind")} | properties
        if properties:
            schema["properties"] = dict(sorted(properties.items()))
        if struct.is_object:
            schema["x-kubernetes-group-version-kind"] = self._group_version_kinds(struct)
        if struct.is_atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        if struct.openapi_name in _UNIONS:
            schema["x-kubernetes-unions"] = [_UNIONS[struct.openapi_name]]
        return schema

    def _group_version_kinds(self, struct: Struct) -> list[Document]:
        if struct.name == "DeleteOptions":
            return self._in_all_groups(struct.name)
        return [group_version_kind(api_version_of_package(struct.package), struct.name)]

    def _in_all_groups(self, kind: str) -> list[Document]:
        """Of the few kinds that every group has."""
        return [group_version_kind(api_version, kind) for api_version in self._api_versions]

    def _property(self, field: Field, struct: Struct) -> Document:
        is_always_written = not field.is_pointer and not field.omits_empty
        schema = self._type(field.type, is_always_written=is_always_written, name=field.name)
        if "$ref" in schema and self.version.is_v3:
            schema = {"allOf": [schema]}
        if field.default is not None and self.version.is_v3:
            schema = {**schema, "default": field.default}
        if field.is_pointer and "default" in schema and field.default is None:
            del schema["default"]
        about = description_of(struct.package, struct.name, field.name)
        if not about and struct.is_object:
            about = description_of("meta", _OF_EVERY_OBJECT, field.name)
        return {**({"description": about} if about else {}), **schema, **_extensions(field)}

    # ------------------------------------------------------------------------------------------------- types

    def _type(self, type_: Type, *, is_always_written: bool, name: str) -> Document:
        """A value; `name` is that of the field which it is in."""
        match type_:
            case Struct():
                return self.version.wrapped(self.need(type_), default={})
            case ListOf():
                return {"type": "array", "items": self._type(type_.item, is_always_written=True, name=name)}
            case MapOf():
                inside = self._type(type_.value, is_always_written=True, name=name)
                return {"type": "object", "additionalProperties": inside}
            case Scalar():
                return self._scalar(type_, is_always_written=is_always_written, name=name)

    def _scalar(self, scalar: Scalar, *, is_always_written: bool, name: str) -> Document:
        if scalar.basic is Basic.ANY:
            return self.version.reference(self.need_special(_JSON_NAMES.get(name, _JSON)))
        if scalar.basic in _NAMED:
            return self.version.reference(self.need_special(_NAMED[scalar.basic]))
        type_name, form, zero = _PLAIN[scalar.basic]
        schema: Document = {"type": type_name}
        if form:
            schema["format"] = form
        if is_always_written and zero is not None and self.version.is_v3:
            schema["default"] = zero
        if scalar.choices:
            schema["enum"] = sorted(scalar.choices)
        return schema


def _text_field(name: str) -> Document:
    return {"description": description_of("meta", _OF_EVERY_OBJECT, name), "type": "string"}


def _extensions(field: Field) -> Document:
    found: Document = {}
    if field.list_keys:
        found["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.list_kind is not None:
        found["x-kubernetes-list-type"] = field.list_kind.value
    if field.is_atomic is not None:
        found["x-kubernetes-map-type"] = "atomic" if field.is_atomic else "granular"
    if field.merge_key:
        found["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.patch_strategy:
        found["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
    return found


def group_version_kind(api_version: str, kind: str) -> Document:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "kind": kind, "version": version}


# --- schemas without a struct ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """The version of OpenAPI in which a document is written."""

    is_v3: bool
    prefix: str
    """Of references to schemas."""

    def reference(self, name: str) -> Document:
        return {"$ref": f"{self.prefix}{name}"}

    def wrapped(self, name: str, **siblings: object) -> Document:
        """A reference with other keys next to it."""
        if not self.is_v3:
            return {**self.reference(name), **{key: value for key, value in siblings.items() if key != "default"}}
        return {**siblings, "allOf": [self.reference(name)]}


V2 = DocumentVersion(is_v3=False, prefix="#/definitions/")
V3 = DocumentVersion(is_v3=True, prefix="#/components/schemas/")


WATCH_EVENT = f"{META}.WatchEvent"
_TEXT: Document = {"type": "string"}
_NUMBER: Document = {"type": "number"}
_INTEGER: Document = {"type": "integer"}
_ALWAYS_TEXT: Document = {"type": "string", "default": ""}
_ALWAYS_FLAG: Document = {"type": "boolean", "default": False}


def special_schema(name: str, version: DocumentVersion) -> tuple[Document, list[str]]:
    """A schema by its name, and the names of the schemas that it refers to."""
    schema = SPECIAL[name]
    if not version.is_v3:
        schema = _V2_SCHEMAS.get(name, schema)
    others: list[str] = []
    return _translated(schema, version, others), others


def _translated(schema: Document, version: DocumentVersion, others: list[str]) -> Document:
    """A schema in a version of OpenAPI: `@` is a reference, and v2 has no defaults."""
    made: Document = {}
    for key, value in schema.items():
        if key == "@":
            others.append(value)
            siblings = {"default": schema["default"]} if "default" in schema else {}
            return version.wrapped(value, **siblings)
        if key == "default" and not version.is_v3:
            continue
        made[key] = _translated(value, version, others) if isinstance(value, dict) else value
    return made


def _atomic(items: Document) -> Document:
    return {"type": "array", "items": items, "x-kubernetes-list-type": "atomic"}


def _of(name: str) -> Document:
    return {"default": {}, "@": f"{META}.{name}"}


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
            "verbs": {"type": "array", "items": _ALWAYS_TEXT},
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
_V2_SCHEMAS: Mapping[str, Document] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _TEXT,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
}
"""The types with more than one JSON type, which version 2 cannot express."""


assert all(name in SPECIAL for name in (*_NAMED.values(), _JSON, *_JSON_NAMES.values())), "a special schema is missing"
