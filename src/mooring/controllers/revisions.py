"""Past templates of DaemonSets and StatefulSets, stored as ControllerRevisions.

Inputs: owners and their ControllerRevisions. Outputs: contents, names and order of revisions; requests.

The data of a revision is a patch that restores its template, as `kubectl rollout undo` sends it. Two templates are
equal if their patches are.

1. The hash in a name is that of kube-controller-manager: FNV-1 of the patch in Go's JSON encoding. An owner can
   move between both without a rollout. Clients compare the patch byte by byte, so it is stored in that order, too.
2. If another template has the name, the collision count is increased, which changes the hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION, place_of
from mooring.api.views.meta import ObjectWithRaw
from mooring.api.views.workloads import ControllerRevision
from mooring.client.errors import AlreadyExistsError
from mooring.client.interface import Client
from mooring.controllers.documents import document_of, owner_reference
from mooring.kit.entropy import SUFFIX_ALPHABET

PATCH_DIRECTIVE = "$patch"
NAME_PREFIX_LENGTH_MAX = 223
COLLISIONS_MAX = 100
"""Maximum number of name collisions."""

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193
_GO_ESCAPES = {b"<": rb"\u003c", b">": rb"\u003e", b"&": rb"\u0026"}


def revision_data(owner: Document) -> Document:
    """The patch that restores the present template."""
    template: Document = owner["spec"].get("template") or {}
    data: Document = {"spec": {"template": {**template, PATCH_DIRECTIVE: "replace"}}}
    return cast(Document, msgspec.json.decode(msgspec.json.encode(data, order="sorted")))


def data_of(revision: ControllerRevision) -> Document:
    return cast(Document, document_of(revision).get("data") or {})


def template_of(data: Document) -> Document:
    """The template in a revision."""
    template: Document = dict((data.get("spec") or {}).get("template") or {})
    template.pop(PATCH_DIRECTIVE, None)
    return template


def revision_hash(data: Document, collision_count: int | None) -> str:
    """A short hash in the alphabet of generated names."""
    text = msgspec.json.encode(data, order="sorted")
    for plain, escaped in _GO_ESCAPES.items():
        text = text.replace(plain, escaped)
    if collision_count is not None:
        text += str(collision_count).encode()
    number = _FNV_OFFSET
    for byte in text:
        number = (number * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(number))


def revision_name(owner_name: str, hashed: str) -> str:
    return f"{owner_name[:NAME_PREFIX_LENGTH_MAX]}-{hashed}"


def new_revision(
    owner: ObjectWithRaw, data: Document, revision: int, name: str, labels: Mapping[str, str], annotations: Document
) -> Document:
    metadata: Document = {"name": name, "labels": dict(labels), "ownerReferences": [owner_reference(owner)]}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": ControllerRevision.api_version,
        "kind": ControllerRevision.kind,
        "metadata": metadata,
        "data": data,
        "revision": revision,
    }


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Sorted by revision number, oldest first."""
    return sorted(
        revisions,
        key=lambda revision: (revision.revision, revision.metadata.creation_timestamp or "", revision.metadata.name),
    )


async def create_revision(
    client: Client, namespace: str, document: Document, owner_name: str, collision_count: int
) -> tuple[ControllerRevision, int]:
    """Create a revision under the first free name, or return an equal one. Also returns the collision count."""
    for count in range(collision_count, collision_count + COLLISIONS_MAX):
        name = revision_name(owner_name, revision_hash(document["data"], count))
        document["metadata"]["name"] = name
        try:
            answer = await client.create(CONTROLLER_REVISION, namespace, document)
        except AlreadyExistsError:
            known = await read_revision(client, namespace, name)
            if data_of(known) == document["data"]:
                return known, count
            continue
        return decode_as(ControllerRevision, answer), count
    raise AssertionError(f"{COLLISIONS_MAX} revisions of {namespace}/{owner_name} have taken each other's names")


async def read_revision(client: Client, namespace: str, name: str) -> ControllerRevision:
    return decode_as(ControllerRevision, await client.get(CONTROLLER_REVISION, namespace, name))


async def renumber_revision(client: Client, known: ControllerRevision, revision: int) -> ControllerRevision:
    """Make a revision the newest after a rollback to its template."""
    document = document_of(known)
    document["revision"] = revision
    return decode_as(ControllerRevision, await client.update(*place_of(known), document))
