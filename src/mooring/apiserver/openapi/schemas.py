"""Schemas of built-in types, from the types of `mooring.api.schema`.

Input: a struct. Output: its schema and those of all types that it refers to.

1. A value that is always written has its zero value as default, a struct `{}`; an optional one has none.
2. Descriptions are our own texts (`mooring/api/schema/descriptions`), for the fields that people ask about most. What
   every object has is described once, as `TypeMeta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api.document import Document
from mooring.api.schema.model import Basic, Field, ListOf, MapOf, Scalar, Struct, Type
from mooring.api.schema.tables import api_version_of_package, description_of
from mooring.apiserver.openapi.special import SPECIAL, WATCH_EVENT, Dialect, special_schema

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED = {
    Basic.TIME: f"{_META}.Time",
    Basic.MICRO_TIME: f"{_META}.MicroTime",
    Basic.DURATION: f"{_META}.Duration",
    Basic.QUANTITY: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    Basic.INT_OR_STRING: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    Basic.RAW_EXTENSION: "io.k8s.apimachinery.pkg.runtime.RawExtension",
    Basic.FIELDS_V1: f"{_META}.FieldsV1",
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
"""Structs of which one field says which other one is set."""
_OF_EVERY_OBJECT = "TypeMeta"


class Schemas:
    """The schemas of one document, gathered as they are needed."""

    def __init__(self, dialect: Dialect, api_versions: Iterable[str]) -> None:
        """`api_versions` are those that the document is about."""
        self.dialect = dialect
        self._api_versions = ("v1", *(version for version in api_versions if version != "v1"))
        self.found: dict[str, Document] = {}

    def reference(self, struct: Struct) -> Document:
        return self.dialect.reference(self.need(struct))

    def need(self, struct: Struct) -> str:
        """Makes the schema of a struct, and of all that it refers to, if that has not been done; its name."""
        name = struct.openapi_name
        if name not in self.found:
            self.found[name] = {}  # it may refer to itself
            self.found[name] = self._struct(struct)
        return name

    def need_special(self, name: str) -> str:
        """The same for a schema that has no struct."""
        if name not in self.found:
            self.found[name], others = special_schema(name, self.dialect)
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
        if "$ref" in schema and self.dialect.is_third:
            schema = {"allOf": [schema]}
        if field.default is not None and self.dialect.is_third:
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
                return self.dialect.wrapped(self.need(type_), default={})
            case ListOf():
                return {"type": "array", "items": self._type(type_.item, is_always_written=True, name=name)}
            case MapOf():
                inside = self._type(type_.value, is_always_written=True, name=name)
                return {"type": "object", "additionalProperties": inside}
            case Scalar():
                return self._scalar(type_, is_always_written=is_always_written, name=name)

    def _scalar(self, scalar: Scalar, *, is_always_written: bool, name: str) -> Document:
        if scalar.basic is Basic.ANY:
            return self.dialect.reference(self.need_special(_JSON_NAMES.get(name, _JSON)))
        if scalar.basic in _NAMED:
            return self.dialect.reference(self.need_special(_NAMED[scalar.basic]))
        type_name, form, zero = _PLAIN[scalar.basic]
        schema: Document = {"type": type_name}
        if form:
            schema["format"] = form
        if is_always_written and zero is not None and self.dialect.is_third:
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


assert all(name in SPECIAL for name in (*_NAMED.values(), _JSON, *_JSON_NAMES.values())), "a special schema is missing"
