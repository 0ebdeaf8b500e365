"""Bodies of custom objects: decoded, pruned, defaulted.

Comes in   bytes and their content type, or the result of a patch
Goes out   a document that the registry can take

    decoded (`wire.custom_bodies`) · pruned · embedded metadata made canonical · strict errors told · defaulted ·
    is it the version of the address?

 1. What claims to be of another version is pruned by the schema of that one, and refused in the end.
 2. What claims to be of another kind is not touched: whoever validates it refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.custom.defaulting import fill_defaults
from mooring.apiserver.custom.metadata import EmbeddedResourceError, coerce_embedded
from mooring.apiserver.custom.pruning import prune, prune_nulls
from mooring.apiserver.custom.schema import Schema
from mooring.apiserver.registry.refusals import internal
from mooring.apiserver.resources import Reading
from mooring.apiserver.validation.fields import go_json
from mooring.apiserver.wire.custom_bodies import custom_metadata, decode_custom, read_numbers
from mooring.apiserver.wire.decode import cannot_be_handled
from mooring.apiserver.wire.examine import DecodingError
from mooring.apiserver.wire.identity import IdentityError, identity_of
from mooring.apiserver.wire.strict import apply_field_validation
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

    def read_document(self, plain: Document) -> Reading:
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
        return Reading(document, tuple(unknown))

    def fitted(self, document: Document) -> list[str]:
        """Make a document fit the schema of its version; what is unknown is dropped and told."""
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
