"""OpenAPI documents, created on demand and cached as bytes.

Input: the table of resources. Output: the v2 document; the v3 index and its documents.

1. A document is created when it is first requested, never at start. When a custom kind is added or removed, the
   documents that contain it are created again.
2. The hash of a document is part of its path in the index, so that clients can cache it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.discovery import Discovery
from mooring.apiserver.openapi.writing import ROOTS, second_document, third_document, third_plain_document
from mooring.apiserver.resources import Resource, ResourceTable

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document as it is sent."""

    body: bytes
    digest: str


class OpenApi:
    """Writes OpenAPI documents, and remembers them."""

    def __init__(self, resources: ResourceTable, discovery: Discovery) -> None:
        self._resources = resources
        self._discovery = discovery
        self._second: tuple[int, tuple[Kind, ...], EncodedDocument] | None = None
        self._third: dict[str, tuple[tuple[Resource, ...], EncodedDocument]] = {}

    def second(self) -> EncodedDocument:
        """Everything in one document."""
        generation, virtual = self._resources.generation, self._discovery.virtual_kinds()
        if self._second is None or self._second[:2] != (generation, virtual):
            self._second = generation, virtual, _written(second_document(self._resources, virtual))
        return self._second[2]

    def third(self, name: str) -> EncodedDocument | None:
        """The document with this name in the index: `api/v1`, `apis/apps/v1`, `version`."""
        if name not in self._names():
            return None
        resources, api_version = self._about(name)
        # A changed definition makes new resources, so that the same resources mean the same document.
        state = tuple(resources)
        known = self._third.get(name)
        if known is None or known[0] != state:
            known = self._third[name] = state, _written(self._made(name, api_version, resources))
        return known[1]

    def index(self) -> Document:
        """Where the documents are."""
        paths: Document = {}
        for name in sorted(self._names()):
            written = self.third(name)
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
            return third_plain_document(name)
        virtual = [kind for kind in self._discovery.virtual_kinds() if kind.api_version == api_version]
        return third_document(api_version, resources, virtual)


def _written(document: Document) -> EncodedDocument:
    body = _encode(document)
    return EncodedDocument(body, hashlib.sha512(body).hexdigest().upper())
