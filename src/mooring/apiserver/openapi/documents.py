"""OpenAPI documents, created on demand and cached as bytes.

Input: the table of resources. Output: the v2 document; the v3 index and its documents.

1. A document is created when it is first requested, never at start. When a custom kind is added or removed, the
   documents that contain it are created again.
2. The hash of a document is part of its path in the index, so that clients can cache it.

A document has paths and schemas in v2 or v3, custom kinds, and paths that are no resources.

1. A document has only schemas that a path refers to.
2. Parameters of v2 are written once, at the end, because they are referred to some thousand times.
3. v2 can express less of a custom schema: what it cannot express is left open. kubectl, which reads v2, rejects
   values of several types, and fields of a value that may have others.
4. A few kinds belong to all API versions that kube-apiserver knows, served or not: options of deletions, and events
   of watches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.api.schema.types import struct_named, struct_of_kind
from mooring.apiserver.discovery import Discovery
from mooring.apiserver.openapi.operations import (
    DELETE_OPTIONS,
    IN_PATH,
    PATCH,
    STATUS,
    TEXT,
    WATCH_EVENT,
    OpenApiOperation,
    OperationKind,
    Path,
    base_path,
    camel,
    resource_paths,
    shown_name,
    tag,
    type_of,
    virtual_path,
)
from mooring.apiserver.openapi.schemas import META, V2, V3, DocumentVersion, Schemas, group_version_kind
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.wire.media import JSON, SUPPORTED, SUPPORTED_STREAMS, YAML

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """An encoded document."""

    body: bytes
    digest: str


class OpenApi:
    """Encodes OpenAPI documents, and caches them."""

    def __init__(self, resources: ResourceTable, discovery: Discovery) -> None:
        self._resources = resources
        self._discovery = discovery
        self._v2: tuple[int, tuple[Kind, ...], EncodedDocument] | None = None
        self._v3: dict[str, tuple[tuple[Resource, ...], EncodedDocument]] = {}

    def v2(self) -> EncodedDocument:
        """The document of version 2."""
        generation, virtual = self._resources.generation, self._discovery.virtual_kinds()
        if self._v2 is None or self._v2[:2] != (generation, virtual):
            self._v2 = generation, virtual, _written(v2_document(self._resources, virtual))
        return self._v2[2]

    def v3(self, name: str) -> EncodedDocument | None:
        """The document of version 3 with this name in the index: `api/v1`, `apis/apps/v1`, `version`."""
        if name not in self._names():
            return None
        resources, api_version = self._about(name)
        # A changed definition makes new resources, so that the same resources mean the same document.
        state = tuple(resources)
        known = self._v3.get(name)
        if known is None or known[0] != state:
            known = self._v3[name] = state, _written(self._made(name, api_version, resources))
        return known[1]

    def index(self) -> Document:
        """The index of the documents of version 3."""
        paths: Document = {}
        for name in sorted(self._names()):
            written = self.v3(name)
            assert written is not None, f"{name} is no document"
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={written.digest}"}
        return {"paths": paths}

    def _names(self) -> dict[str, None]:
        return dict.fromkeys(self._all_names())

    def _all_names(self) -> Iterator[str]:
        yield from ROOTS
        for api_version in self._discovery.api_versions():
            if "/" not in api_version:
                yield f"api/{api_version}"
                continue
            yield f"apis/{api_version}"
            if not any(resource.struct is None for resource in self._of(api_version)):
                yield f"apis/{api_version.partition('/')[0]}"

    def _about(self, name: str) -> tuple[list[Resource], str]:
        parts = name.split("/")
        if name not in ROOTS and len(parts) == (2 if parts[0] == "api" else 3):
            api_version = "/".join(parts[1:])
            return self._of(api_version), api_version
        return [], ""

    def _of(self, api_version: str) -> list[Resource]:
        return [resource for resource in self._resources if resource.kind.api_version == api_version]

    def _made(self, name: str, api_version: str, resources: list[Resource]) -> Document:
        if not api_version:
            return v3_path_document(name)
        virtual = [kind for kind in self._discovery.virtual_kinds() if kind.api_version == api_version]
        return v3_document(api_version, resources, virtual)


def _written(document: Document) -> EncodedDocument:
    body = _encode(document)
    return EncodedDocument(body, hashlib.sha512(body).hexdigest().upper())


# --- one document ---------------------------------------------------------------------------------------------


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


def custom_schema(resource: Resource, schema: Document | None, version: DocumentVersion) -> Document:
    """The schema of a custom kind."""
    keeps_everything = schema is not None and bool(schema.get(_KEEPS_UNKNOWN)) and not version.is_v3
    if schema is None or keeps_everything:
        made: Document = {"type": "object"}
    else:
        made = _translated(schema, version)
        own = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": version.wrapped(_OBJECT_META)}
        made["properties"] = dict(sorted({**made.get("properties", {}), **own}.items()))
    made["x-kubernetes-group-version-kind"] = [_group_version_kind(resource, resource.kind.kind)]
    fields = sorted(name for name in resource.selectable_fields if not name.startswith("metadata."))
    if fields and version.is_v3:
        made["x-kubernetes-selectable-fields"] = [{"fieldPath": name} for name in fields]
    return made


def custom_list_schema(resource: Resource, version: DocumentVersion) -> Document:
    items = {"type": "array", "items": version.reference(schema_name(resource, resource.kind.kind))}
    metadata = version.wrapped(_LIST_META)
    return {
        "type": "object",
        "required": ["items"],
        "properties": {"apiVersion": _TEXT, "items": items, "kind": _TEXT, "metadata": metadata},
        "x-kubernetes-group-version-kind": [_group_version_kind(resource, resource.list_kind)],
    }


def _group_version_kind(resource: Resource, kind: str) -> Document:
    return {"group": resource.kind.group, "kind": kind, "version": resource.version}


# --- translation ------------------------------------------------------------------------------------------------


def _translated(schema: Document, version: DocumentVersion) -> Document:
    made = dict(schema) if version.is_v3 else _without_what_cannot_be_said(schema)
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: _translated(inner, version) for name, inner in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _translated(made[key], version)
    if version.is_v3 and made.get(_INT_OR_STRING) and "anyOf" not in made and not made.get("allOf"):
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if made.get(_EMBEDDED) and (version.is_v3 or not made.get(_KEEPS_UNKNOWN)):
        _embed(made, version)
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


def _embed(made: Document, version: DocumentVersion) -> None:
    own = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": version.wrapped(_OBJECT_META)}
    made["properties"] = dict(sorted({**(made.get("properties") or {}), **own}.items()))
    required = list(made.get("required") or ())
    made["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]


_VERSIONS = {
    "": "v1",
    "admission.k8s.io": "v1 v1beta1",
    "admissionregistration.k8s.io": "v1 v1alpha1 v1beta1",
    "apiextensions.k8s.io": "v1 v1beta1",
    "apiregistration.k8s.io": "v1 v1beta1",
    "apps": "v1 v1beta1 v1beta2",
    "authentication.k8s.io": "v1 v1alpha1 v1beta1",
    "authorization.k8s.io": "v1 v1beta1",
    "autoscaling": "v1 v2",
    "batch": "v1 v1beta1",
    "certificates.k8s.io": "v1 v1alpha1 v1beta1",
    "coordination.k8s.io": "v1 v1alpha2 v1beta1",
    "discovery.k8s.io": "v1 v1beta1",
    "events.k8s.io": "v1 v1beta1",
    "extensions": "v1beta1",
    "flowcontrol.apiserver.k8s.io": "v1 v1beta1 v1beta2 v1beta3",
    "imagepolicy.k8s.io": "v1alpha1",
    "internal.apiserver.k8s.io": "v1alpha1",
    "networking.k8s.io": "v1 v1beta1",
    "node.k8s.io": "v1 v1alpha1 v1beta1",
    "policy": "v1 v1beta1",
    "rbac.authorization.k8s.io": "v1 v1alpha1 v1beta1",
    "resource.k8s.io": "v1 v1alpha3 v1beta1 v1beta2",
    "scheduling.k8s.io": "v1 v1alpha2 v1beta1",
    "storage.k8s.io": "v1 v1alpha1 v1beta1",
    "storagemigration.k8s.io": "v1beta1",
}

KNOWN_API_VERSIONS = tuple(
    f"{group}/{version}" if group else version for group, versions in _VERSIONS.items() for version in versions.split()
)


ROOTS = (".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version")
"""The documents that belong to no group."""


def plain_path(name: str, schemas: Schemas) -> Document:
    """The path that has the name of a document."""
    match name.split("/"):
        case ["version"]:
            return _path(name, "getCodeVersion", "version", "io.k8s.apimachinery.pkg.version.Info", schemas)
        case [".well-known", _]:
            return _path(name, "getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "", schemas)
        case ["openid", *_]:
            return _path(name, "getServiceAccountIssuerOpenIDKeyset", "openid", "", schemas)
        case ["api"]:
            return _path(name, "getCoreAPIVersions", "core", f"{META}.APIVersions", schemas)
        case ["apis"]:
            return _path(name, "getAPIVersions", "apis", f"{META}.APIGroupList", schemas)
        case ["apis", group]:
            title = camel(f"{group}/")
            return _path(name, f"get{title}APIGroup", f"{title[:1].lower()}{title[1:]}", f"{META}.APIGroup", schemas)
        case [_, *rest]:
            version = "/".join(rest)
            return _path(name, f"get{camel(version)}APIResources", tag(version), f"{META}.APIResourceList", schemas)
    raise AssertionError(f"{name!r} is no path")


def _path(name: str, operation: str, drawer: str, answer: str, schemas: Schemas) -> Document:
    version = schemas.version
    schema = version.reference(schemas.need_special(answer)) if answer else {"type": "string"}
    types = SUPPORTED if answer.startswith(META) else (JSON,)
    if name.startswith("openid"):
        types = ("application/jwk-set+json",)
    get: Document = {"tags": [drawer], "operationId": operation}
    if version.is_v3:
        reply: Document = {"description": "OK", "content": {type_: {"schema": schema} for type_ in sorted(types)}}
    else:
        if answer:
            get["consumes"] = list(types)
        get |= {"produces": list(types), "schemes": ["https"]}
        reply = {"description": "OK", "schema": schema}
    get["responses"] = {"200": reply, "401": {"description": "Unauthorized"}}
    return {f"/{name}/": {"get": get}}


INFO: Document = {"title": "Kubernetes", "version": "1.36"}
_CUSTOM_INFO: Document = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_SECURITY: Document = {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}}

_CUSTOM_TYPES = (JSON, YAML)
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def v2_document(resources: Iterable[Resource], virtual: Iterable[Kind]) -> Document:
    """The document of version 2, with all paths and schemas."""
    resources, virtual = list(resources), list(virtual)
    api_versions = dict.fromkeys(kind.api_version for kind in (*virtual, *(resource.kind for resource in resources)))
    writer = _Writer(V2, KNOWN_API_VERSIONS)
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
        "parameters": {name: _v2_parameter(name) for name in sorted(writer.parameters)},
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }


def v3_document(api_version: str, resources: Sequence[Resource], virtual: Sequence[Kind]) -> Document:
    """The document of version 3 of one API version."""
    is_custom = any(resource.struct is None for resource in resources)
    writer = _Writer(V3, KNOWN_API_VERSIONS if is_custom else (api_version,))
    writer.add(api_version, resources, virtual)
    return _v3(writer.paths, writer.schemas, _CUSTOM_INFO if is_custom else INFO)


def v3_path_document(name: str) -> Document:
    """The document of version 3 of a path that is not a resource."""
    schemas = Schemas(V3, ())
    return _v3(plain_path(name, schemas), schemas)


def _v3(paths: Document, schemas: Schemas, info: Document = INFO) -> Document:
    return {
        "openapi": "3.0.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.found.items())), "securitySchemes": _SECURITY},
    }


class _Writer:
    def __init__(self, version: DocumentVersion, api_versions: Iterable[str]) -> None:
        self._version = version
        self.schemas = Schemas(version, api_versions)
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
        found[schema_name(resource, resource.kind.kind)] = custom_schema(resource, resource.schema, self._version)
        found[schema_name(resource, resource.list_kind)] = custom_list_schema(resource, self._version)

    def _add_path(self, path: Path, api_version: str, resource: Resource | None) -> None:
        item: Document = {
            operation.method: self._operation(operation, api_version, resource) for operation in path.operations
        }
        item["parameters"] = [self._parameter(name) for name in path.parameters]
        self.paths[path.path] = item

    # -------------------------------------------------------------------------------------------- operations

    def _operation(self, operation: OpenApiOperation, api_version: str, resource: Resource | None) -> Document:
        is_custom = resource is not None and resource.struct is None
        answer = self._shown(operation.answer, api_version, resource)
        body = None if operation.body is None else self._shown(operation.body, api_version, resource)
        made: Document = {"tags": [tag(api_version)], "operationId": operation.name}
        parameters = [self._parameter(name) for name in operation.parameters]
        produced = _produced(operation, is_custom)
        consumed = _consumed(operation, is_custom)
        if self._version.is_v3:
            if parameters:
                made["parameters"] = parameters
            if body is not None:
                content = {media_type: {"schema": body} for media_type in sorted(consumed)}
                made["requestBody"] = (
                    {"content": content, "required": True} if operation.is_body_required else {"content": content}
                )
            reply: Document = {
                "description": "OK",
                "content": {media_type: {"schema": answer} for media_type in sorted(produced)},
            }
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

    def _shown(self, shown: OperationKind, api_version: str, resource: Resource | None) -> Document:
        if shown.kind == TEXT:
            return {"type": "string"}
        if shown.kind in (PATCH, WATCH_EVENT):
            return self._version.reference(self.schemas.need_special(f"{META}.{shown.kind}"))
        if shown.kind in (DELETE_OPTIONS, STATUS):
            return self.schemas.reference(struct_named("meta", shown.kind))
        if not shown.api_version and resource is not None and resource.struct is None:
            return self._version.reference(schema_name(resource, shown.kind))
        struct = struct_of_kind(shown.api_version or api_version, shown.kind)
        assert struct is not None, f"{shown} has no schema"
        return self.schemas.reference(struct)

    def _parameter(self, name: str) -> Document:
        if not self._version.is_v3:
            self.parameters[name] = None
            return {"$ref": f"#/parameters/{name}"}
        made: Document = {"name": shown_name(name), "in": "path" if name in IN_PATH else "query"}
        if name in IN_PATH:
            made["required"] = True
        return {**made, "schema": {"type": type_of(name), "uniqueItems": True}}


def _v2_parameter(name: str) -> Document:
    made: Document = {"uniqueItems": True, "type": type_of(name), "name": shown_name(name)}
    return {**made, "in": "path", "required": True} if name in IN_PATH else {**made, "in": "query"}


def _produced(operation: OpenApiOperation, is_custom: bool) -> tuple[str, ...]:
    if operation.answer.kind == TEXT:
        return ("text/plain", *SUPPORTED) if operation.action == "get" else ("*/*",)
    if is_custom:
        return _CUSTOM_TYPES
    return (*SUPPORTED, *SUPPORTED_STREAMS) if operation.is_streaming else SUPPORTED


def _consumed(operation: OpenApiOperation, is_custom: bool) -> tuple[str, ...]:
    if operation.method == "patch" and operation.action == "patch":
        return tuple(media_type for media_type in _PATCHES if not (is_custom and "strategic" in media_type))
    return _CUSTOM_TYPES if is_custom else ("*/*",)
