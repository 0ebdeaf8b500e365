"""Whole objects as dictionaries, to be changed and written back.

A view drops the fields that it does not know, so every write starts from a document. It carries the resourceVersion
of the view: a write that would overwrite another one fails with a conflict.
"""

from __future__ import annotations

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import kind_of_view
from mooring.api.views.meta import ApiObject, ObjectMeta, ObjectWithRaw
from mooring.client.errors import StatusError
from mooring.client.interface import Client

NAMESPACE_TERMINATING = "NamespaceTerminating"

_decode = msgspec.json.Decoder(dict[str, object]).decode


def document_of(view: ObjectWithRaw) -> Document:
    """The whole object as a new dictionary."""
    assert view.raw, f"{view.kind} {view.key} was not read from JSON, so there is nothing to write back"
    return _decode(view.raw)


async def read_document(client: Client, view: ApiObject) -> Document:
    """The object as the API has it now. Raises `ClientError`."""
    return _decode(await client.get(kind_of_view(type(view)), view.metadata.namespace, view.metadata.name))


def owner_reference(owner: ApiObject) -> Document:
    """The controller reference to an owner."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_being_deleted(metadata: ObjectMeta) -> bool:
    """Whether the object is being deleted."""
    return metadata.deletion_timestamp is not None


def is_namespace_terminating(error: Exception) -> bool:
    """Whether a creation was rejected because its namespace is terminating. Retries cannot succeed."""
    return isinstance(error, StatusError) and any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes)
