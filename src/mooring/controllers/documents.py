"""Documents: whole objects, to be changed and written back.

Comes in   views that were kept whole (`KeptWhole`)
Goes out   the object as a dictionary of its own, with every field that it has

A view has lost what it does not know; whoever writes an object starts here. The document carries the resourceVersion
of the view, so that a write which would overwrite somebody else's is refused.
"""

from __future__ import annotations

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import kind_of_view
from mooring.api.views.meta import ApiObject, KeptWhole, ObjectMeta
from mooring.client.errors import StatusError
from mooring.client.interface import Client

NAMESPACE_TERMINATING = "NamespaceTerminating"

_decode = msgspec.json.Decoder(dict[str, object]).decode


def document_of(view: KeptWhole) -> Document:
    """The object, all of it, as it was when the view was made. It may be changed."""
    assert view.raw, f"{view.kind} {view.key} was not read from JSON, so there is nothing to write back"
    return _decode(view.raw)


async def read_document(client: Client, view: ApiObject) -> Document:
    """The object as it is now. Raises `ClientError`."""
    return _decode(await client.get(kind_of_view(type(view)), view.metadata.namespace, view.metadata.name))


def owner_reference(owner: ApiObject) -> Document:
    """What says in an object's metadata that it is controlled by `owner`."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_being_deleted(metadata: ObjectMeta) -> bool:
    """Whether somebody has asked for its deletion."""
    return metadata.deletion_timestamp is not None


def is_namespace_terminating(error: Exception) -> bool:
    """Whether it was refused because its namespace goes away: nothing can be made there any more."""
    return isinstance(error, StatusError) and any(cause.reason == NAMESPACE_TERMINATING for cause in error.causes)
