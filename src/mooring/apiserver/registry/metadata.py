"""The fields of metadata that the server sets or removes.

1. Only the server sets uid, creation and deletion: values in a create are dropped, values in an update are replaced by
   the stored ones.
"""

from __future__ import annotations

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.errors import other_namespace
from mooring.client.errors import BadRequestError
from mooring.kit.entropy import SUFFIX_LENGTH, Entropy

GENERATED_NAME_LENGTH_MAX = 63

_SYSTEM_FIELDS = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, and "
    "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)

_encode = msgspec.json.Encoder(order="deterministic").encode


def wipe_system_fields(metadata: Document) -> None:
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)


def fill_system_fields(metadata: Document, call: Call, entropy: Entropy) -> None:
    """Set the fields of a new object that only the server sets."""
    metadata["creationTimestamp"] = call.now
    metadata["uid"] = entropy.uuid()


def ensure_namespace(kind: Kind, metadata: Document, namespace: str) -> None:
    """Set the namespace of the request; another one is an error. A cluster-scoped object loses its namespace."""
    if not kind.is_namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace")
    if not given:
        metadata["namespace"] = namespace
    elif given != namespace:
        raise other_namespace()


def ensure_name(metadata: Document, call: Call) -> None:
    """The name of an object must be that of the path."""
    name = metadata.get("name")
    if not name:
        raise BadRequestError(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.name:
        raise BadRequestError(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def generated_name(prefix: str, entropy: Entropy) -> str:
    return prefix[: GENERATED_NAME_LENGTH_MAX - SUFFIX_LENGTH] + entropy.suffix()


def drop_duplicate_owners(metadata: Document, call: Call, *, is_after_admission: bool) -> None:
    """An owner is named once. A second entry causes a warning."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[bytes, Document] = {}
    repeated: list[str] = []
    for owner in owners:
        key = _encode(owner)
        if key in kept:
            repeated.append(owner.get("uid", ""))
        else:
            kept[key] = owner
    if not repeated:
        return
    metadata["ownerReferences"] = list(kept.values())
    after = " after mutating admission happens" if is_after_admission else ""
    call.warn(_DUPLICATE_OWNERS.format(after=after, uids=", ".join(dict.fromkeys(repeated))))


def keep_system_fields(metadata: Document, old: Document) -> None:
    """Replace the fields that only the server sets by the stored ones."""
    if not metadata.get("uid"):
        metadata["uid"] = old["uid"]
    metadata.pop("selfLink", None)
    metadata["creationTimestamp"] = old["creationTimestamp"]
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old and "deletionGracePeriodSeconds" not in metadata:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]
