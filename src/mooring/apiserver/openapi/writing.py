"""Writing documents: paths and schemas in one dialect.

Comes in   the resources and virtual kinds that a document is about
Goes out   the document

 1. Only schemas that a path leads to are in a document.
 2. Parameters of the second dialect stand once, at its end, because there they are referred to some thousand times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.schema.tables import struct_named, struct_of_kind
from mooring.apiserver.openapi.custom import custom_list_schema, custom_schema, schema_name
from mooring.apiserver.openapi.dialect import SECOND, THIRD, Dialect
from mooring.apiserver.openapi.known_versions import KNOWN_API_VERSIONS
from mooring.apiserver.openapi.operations import (
    DELETE_OPTIONS,
    PATCH,
    STATUS,
    TEXT,
    WATCH_EVENT,
    Operation,
    Path,
    Shown,
    base_path,
    resource_paths,
    tag,
    virtual_path,
)
from mooring.apiserver.openapi.parameters import IN_PATH, shown_name, type_of
from mooring.apiserver.openapi.plain_paths import ROOTS, plain_path
from mooring.apiserver.openapi.schemas import Schemas, group_version_kind
from mooring.apiserver.openapi.special import META
from mooring.apiserver.resources import Resource

INFO: Document = {"title": "Kubernetes", "version": "1.36"}
_CUSTOM_INFO: Document = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_SECURITY: Document = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}

_JSON, _YAML, _PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_PRODUCED = (_JSON, _YAML, _PROTOBUF)
_STREAMED = (*_PRODUCED, f"{_JSON};stream=watch", f"{_PROTOBUF};stream=watch")
_CUSTOM_TYPES = (_JSON, _YAML)
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def second_document(resources: Iterable[Resource], virtual: Iterable[Kind]) -> Document:
    """Everything in one document of the second dialect."""
    resources, virtual = list(resources), list(virtual)
    api_versions = dict.fromkeys(each.api_version for each in (*virtual, *(one.kind for one in resources)))
    writer = _Writer(SECOND, KNOWN_API_VERSIONS)
    for api_version in api_versions:
        writer.add(
            api_version,
            [resource for resource in resources if resource.kind.api_version == api_version],
            [kind for kind in virtual if kind.api_version == api_version],
        )
    groups = dict.fromkeys(version.partition("/")[0] for version in writer.built_in if "/" in version)
    for name in (*ROOTS, *(f"apis/{group}" for group in groups)):
        writer.paths |= plain_path(name, writer.schemas)
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": dict(sorted(writer.paths.items())),
        "definitions": dict(sorted(writer.schemas.found.items())),
        "parameters": {name: _second_parameter(name) for name in sorted(writer.parameters)},
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }


def third_document(api_version: str, resources: Sequence[Resource], virtual: Sequence[Kind]) -> Document:
    """One API version in the third dialect."""
    is_custom = any(resource.struct is None for resource in resources)
    writer = _Writer(THIRD, KNOWN_API_VERSIONS if is_custom else (api_version,))
    writer.add(api_version, resources, virtual)
    return _third(writer.paths, writer.schemas, _CUSTOM_INFO if is_custom else INFO)


def third_plain_document(name: str) -> Document:
    """A path that is no resource in the third dialect."""
    schemas = Schemas(THIRD, ())
    return _third(plain_path(name, schemas), schemas)


def _third(paths: Document, schemas: Schemas, info: Document = INFO) -> Document:
    return {
        "openapi": "3.0.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.found.items())), "securitySchemes": _SECURITY},
    }


class _Writer:
    def __init__(self, dialect: Dialect, api_versions: Iterable[str]) -> None:
        self._dialect = dialect
        self.schemas = Schemas(dialect, api_versions)
        self.paths: Document = {}
        self.parameters: dict[str, None] = {}
        self.built_in: list[str] = []
        """The API versions, of those added, that are not custom."""

    def add(self, api_version: str, resources: Sequence[Resource], virtual: Sequence[Kind]) -> None:
        for resource in resources:
            if resource.struct is None:
                self._add_custom(resource)
            for path in resource_paths(resource):
                self._add_path(path, api_version, resource)
        for kind in virtual:
            self._add_path(virtual_path(kind), api_version, None)
        if not any(resource.struct is None for resource in resources):
            self.built_in.append(api_version)
            self.paths |= plain_path(base_path(api_version).removeprefix("/"), self.schemas)

    def _add_custom(self, resource: Resource) -> None:
        for meta in ("ObjectMeta", "ListMeta"):
            self.schemas.need(struct_named("meta", meta))
        found = self.schemas.found
        found[schema_name(resource, resource.kind.kind)] = custom_schema(resource, resource.schema, self._dialect)
        found[schema_name(resource, resource.list_kind)] = custom_list_schema(resource, self._dialect)

    def _add_path(self, path: Path, api_version: str, resource: Resource | None) -> None:
        item: Document = {each.method: self._operation(each, api_version, resource) for each in path.operations}
        item["parameters"] = [self._parameter(name) for name in path.parameters]
        self.paths[path.path] = item

    # -------------------------------------------------------------------------------------------- operations

    def _operation(self, operation: Operation, api_version: str, resource: Resource | None) -> Document:
        is_custom = resource is not None and resource.struct is None
        answer = self._shown(operation.answer, api_version, resource)
        body = None if operation.body is None else self._shown(operation.body, api_version, resource)
        made: Document = {"tags": [tag(api_version)], "operationId": operation.name}
        parameters = [self._parameter(name) for name in operation.parameters]
        produced = _produced(operation, is_custom)
        consumed = _consumed(operation, is_custom)
        if self._dialect.is_third:
            if parameters:
                made["parameters"] = parameters
            if body is not None:
                content = {each: {"schema": body} for each in sorted(consumed)}
                made["requestBody"] = (
                    {"content": content, "required": True} if operation.is_body_required else {"content": content}
                )
            reply: Document = {"description": "OK", "content": {each: {"schema": answer} for each in sorted(produced)}}
        else:
            made |= {"consumes": list(consumed), "produces": list(produced), "schemes": ["https"]}
            if body is not None:
                whole = {"name": "body", "in": "body", "schema": body}
                parameters.insert(0, {**whole, "required": True} if operation.is_body_required else whole)
            if parameters:
                made["parameters"] = parameters
            reply = {"description": "OK", "schema": answer}
        made["responses"] = {**dict.fromkeys(operation.codes, reply), "401": {"description": "Unauthorized"}}
        made["x-kubernetes-action"] = operation.action
        made["x-kubernetes-group-version-kind"] = group_version_kind(
            operation.about.api_version or api_version, operation.about.kind
        )
        return made

    def _shown(self, shown: Shown, api_version: str, resource: Resource | None) -> Document:
        if shown.kind == TEXT:
            return {"type": "string"}
        if shown.kind in (PATCH, WATCH_EVENT):
            return self._dialect.reference(self.schemas.need_special(f"{META}.{shown.kind}"))
        if shown.kind in (DELETE_OPTIONS, STATUS):
            return self.schemas.reference(struct_named("meta", shown.kind))
        if not shown.api_version and resource is not None and resource.struct is None:
            return self._dialect.reference(schema_name(resource, shown.kind))
        struct = struct_of_kind(shown.api_version or api_version, shown.kind)
        assert struct is not None, f"{shown} has no schema"
        return self.schemas.reference(struct)

    def _parameter(self, name: str) -> Document:
        if not self._dialect.is_third:
            self.parameters[name] = None
            return {"$ref": f"#/parameters/{name}"}
        made: Document = {"name": shown_name(name), "in": "path" if name in IN_PATH else "query"}
        if name in IN_PATH:
            made["required"] = True
        return {**made, "schema": {"type": type_of(name), "uniqueItems": True}}


def _second_parameter(name: str) -> Document:
    made: Document = {"uniqueItems": True, "type": type_of(name), "name": shown_name(name)}
    return {**made, "in": "path", "required": True} if name in IN_PATH else {**made, "in": "query"}


def _produced(operation: Operation, is_custom: bool) -> tuple[str, ...]:
    if operation.answer.kind == TEXT:
        return ("text/plain", *_PRODUCED) if operation.action == "get" else ("*/*",)
    if is_custom:
        return _CUSTOM_TYPES
    return _STREAMED if operation.is_streaming else _PRODUCED


def _consumed(operation: Operation, is_custom: bool) -> tuple[str, ...]:
    if operation.method == "patch" and operation.action == "patch":
        return tuple(each for each in _PATCHES if not (is_custom and "strategic" in each))
    return _CUSTOM_TYPES if is_custom else ("*/*",)
