"""From a definition to its resources, and the decoding of their bodies.

Input: a CustomResourceDefinition. Output: a `Resource` for each served version; none while its names are not
accepted.

    body: decode (`wire.custom_bodies`) · prune · canonical embedded metadata · report strict errors · default ·
    check the version

1. Objects are stored in one version and served in each. Versions differ in the apiVersion only.
2. A stored object was pruned and defaulted by the schema of its time. If the schema may have changed since, objects
   are pruned and defaulted again when they are read.
3. A body of another version is pruned by the schema of that version, and rejected last. A body of another kind is not
   changed: validation rejects it.
4. Requests to a deprecated version get a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.api.document import Document
from mooring.api.field_errors import go_json
from mooring.api.kinds import ALL_VERBS, SCALE, STATUS, Kind
from mooring.apiserver.apply.kind_schema import custom_kind_schemas
from mooring.apiserver.call import Call
from mooring.apiserver.custom.naming import is_served, is_true
from mooring.apiserver.custom.printer_columns import custom_columns
from mooring.apiserver.custom.pruning import (
    DefaultsTooLargeError,
    EmbeddedResourceError,
    coerce_embedded,
    fill_defaults,
    prune,
    prune_nulls,
)
from mooring.apiserver.custom.scaling import scale_rules
from mooring.apiserver.custom.schema import Schema
from mooring.apiserver.custom.strategy import CustomStrategy, CustomVersion, read_version
from mooring.apiserver.discovery import versions_in_order
from mooring.apiserver.errors import internal
from mooring.apiserver.resources import DecodedDocument, Resource
from mooring.apiserver.wire.custom_bodies import custom_metadata, decode_custom, read_numbers
from mooring.apiserver.wire.decode import cannot_be_handled
from mooring.apiserver.wire.examine import DecodingError, apply_field_validation
from mooring.apiserver.wire.identity import IdentityError, identity_of
from mooring.client.errors import BadRequestError

_NO_VERSION = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"


class CustomBodies:
    """Reads the bodies of one kind in one of its versions."""

    def __init__(self, kind: Kind, schemas: Mapping[str, Schema], *, preserves_unknown: bool) -> None:
        self._kind = kind
        self._schemas = schemas
        """Of all versions, by apiVersion."""
        self._preserves_unknown = preserves_unknown

    def read_body(self, data: bytes, content_type: str, call: Call) -> Document:
        body = decode_custom(data, content_type, self._kind)
        document = body.document
        if document.get("apiVersion", "") is None:
            raise BadRequestError(cannot_be_handled(body.identity, self._kind, _NO_VERSION))
        try:
            unknown = self.fitted(document)
        except EmbeddedResourceError as error:
            raise BadRequestError(cannot_be_handled(body.identity, self._kind, str(error))) from None
        strict_error = apply_field_validation([*body.repeated, *body.unknown_metadata, *unknown], call)
        if strict_error is not None:
            raise BadRequestError(cannot_be_handled(body.identity, self._kind, strict_error))
        if document.get("kind") == self._kind.kind:
            fill_defaults(document, self._schemas.get(document.get("apiVersion", "")))
        body.check_version(self._kind)
        return document

    def read_document(self, plain: Document) -> DecodedDocument:
        try:
            identity = identity_of(plain, "", "", b"")
        except IdentityError as error:
            raise DecodingError(str(error)) from None
        if not identity.kind:
            raise DecodingError(f"Object 'Kind' is missing in '{go_json(plain)}'")
        if not identity.api_version:
            raise internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        document: Document = read_numbers(plain)
        metadata, unknown = custom_metadata(document.get("metadata"))
        document["metadata"] = metadata
        try:
            unknown += self.fitted(document)
        except EmbeddedResourceError as error:
            raise DecodingError(str(error)) from None
        return DecodedDocument(document, tuple(unknown))

    def fitted(self, document: Document) -> list[str]:
        """Prune a document by the schema of its version. Returns the unknown fields."""
        api_version = document.get("apiVersion", "")
        if document.get("kind") != self._kind.kind or api_version.rpartition("/")[0] != self._kind.group:
            return []
        schema = self._schemas.get(api_version)
        unknown: list[str] = []
        if not self._preserves_unknown:
            unknown += prune(document, schema, is_root=True)
            prune_nulls(document, schema)
        unknown += sorted(coerce_embedded(document, schema))
        return [f'unknown field "{path}"' for path in unknown]


def deprecation_warning(spec: Document, entry: Document) -> str:
    """The warning of the definition, or the default warning with the recommended version."""
    own = entry.get("deprecationWarning")
    if own is not None:
        return str(own)
    group, kind, name = spec["group"], spec["names"]["kind"], entry["name"]
    text = f"{group}/{name} {kind} is deprecated"
    others = [
        version["name"] for version in spec["versions"] if version.get("served") and not version.get("deprecated")
    ]
    better, *_ = versions_in_order([*others, name])
    return f"{text}; use {group}/{better} {kind}" if better != name else text


TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
"""The verbs in discovery while the definition is being deleted. The other verbs still work."""


def resources_of(definition: Document) -> list[Resource]:
    """The resources of a definition, one for each version that is served."""
    return _Definition(definition).resources() if is_served(definition) else []


def stored_resource(definition: Document) -> Resource:
    """The resource of the version in which objects are stored, whether it is served or not."""
    return _Definition(definition).stored()


class _Definition:
    def __init__(self, definition: Document) -> None:
        self._spec: Document = definition["spec"]
        self._names: Document = definition["status"]["acceptedNames"]
        self._is_settled = definition["metadata"].get("generation", 1) == 1 and len(self._spec["versions"]) == 1
        self._is_terminating = is_true(definition, "Terminating")
        self._preserves_unknown: bool = self._spec.get("preserveUnknownFields", False)
        self._versions = {entry["name"]: read_version(entry) for entry in self._spec["versions"]}
        self._schemas: Mapping[str, Schema] = {
            self._in(name): version.schema for name, version in self._versions.items()
        }
        self._kind_schemas = custom_kind_schemas(
            self._names["kind"],
            {version: schema.raw or None for version, schema in self._schemas.items()},
            preserves_unknown=self._preserves_unknown,
        )
        self._stored = next(entry["name"] for entry in self._spec["versions"] if entry.get("storage"))

    def resources(self) -> list[Resource]:
        stored_kind = self._kind(self._versions[self._stored], None)
        return [self._resource(entry, stored_kind) for entry in self._spec["versions"] if entry.get("served")]

    def stored(self) -> Resource:
        entry = next(entry for entry in self._spec["versions"] if entry["name"] == self._stored)
        return self._resource(entry, self._kind(self._versions[self._stored], None))

    def _in(self, version: str) -> str:
        return f"{self._spec['group']}/{version}"

    def _kind(self, version: CustomVersion, stored_as: Kind | None) -> Kind:
        return Kind(
            self._in(version.name),
            self._names["kind"],
            self._names["plural"],
            is_namespaced=self._spec["scope"] == "Namespaced",
            has_status=version.has_status,
            has_generation=True,
            folder=f"{self._spec['group']}/{self._names['plural']}",
            stored_as=stored_as,
            served=None
            if self._is_settled
            else _conversion(self._in(version.name), self._schemas, self._names["kind"]),
        )

    def _round_trip(self, version: CustomVersion) -> Callable[[Document], Document] | None:
        if version.name == self._stored:
            return None
        to_stored = _conversion(self._in(self._stored), self._schemas, self._names["kind"], fills=False)
        to_served = _conversion(self._in(version.name), self._schemas, self._names["kind"])
        return lambda obj: to_served(to_stored(obj))

    def _resource(self, entry: Document, stored_kind: Kind) -> Resource:
        version = self._versions[entry["name"]]
        kind = self._kind(version, stored_kind if version.name != self._stored else None)
        bodies = CustomBodies(kind, self._schemas, preserves_unknown=self._preserves_unknown)
        return Resource(
            kind,
            CustomStrategy(kind, version, is_terminating=self._is_terminating, stored=self._round_trip(version)),
            None,
            short_names=tuple(self._names.get("shortNames") or ()),
            categories=tuple(self._names.get("categories") or ()),
            singular=self._names.get("singular", ""),
            list_kind=self._names.get("listKind", ""),
            verbs=TERMINATING_VERBS if self._is_terminating else ALL_VERBS,
            subresources={
                subresource.name: subresource
                for subresource, is_there in ((STATUS, version.has_status), (SCALE, version.scale is not None))
                if is_there
            },
            read_body=bodies.read_body,
            read_document=bodies.read_document,
            kind_schema=self._kind_schemas[kind.api_version],
            scale=scale_rules(version.scale) if version.scale is not None else None,
            schema=version.schema.raw or None,
            storage_version=self._stored,
            table=custom_columns(entry.get("additionalPrinterColumns") or ()),
            selectable_fields=frozenset(path.removeprefix(".") for path in version.selectable_paths),
            warnings=(deprecation_warning(self._spec, entry),) if entry.get("deprecated") else (),
        )


def _conversion(
    api_version: str, schemas: Mapping[str, Schema], kind: str, *, fills: bool = True
) -> Callable[[Document], Document]:
    """A conversion of stored objects to a version: pruned by the schema of the stored version, then by this one."""
    reader = CustomBodies(Kind(api_version, kind, ""), schemas, preserves_unknown=False)

    def converted(stored: Document) -> Document:
        try:
            reader.fitted(stored)
            if fills:
                fill_defaults(stored, schemas.get(stored["apiVersion"]))
            if stored["apiVersion"] != api_version:
                stored["apiVersion"] = api_version
                reader.fitted(stored)
        except (EmbeddedResourceError, DefaultsTooLargeError):
            stored["apiVersion"] = api_version  # the stored object was valid once, and can still be read and deleted
        return stored

    return converted
