"""The fields of metadata that the server sets or removes.

Input: the metadata of the request.
Output: the same, with the system's fields as they must be.

 1. uid, creation and deletion are the server's: a creator's values are dropped, an updater's are overruled.
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
    """What only the server can give to a new object."""
    metadata["creationTimestamp"] = call.now
    metadata["uid"] = entropy.uuid()


def ensure_namespace(kind: Kind, metadata: Document, namespace: str) -> None:
    """An object need not say its namespace, but what it says must be right. One that can have none loses it."""
    if not kind.is_namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace")
    if not given:
        metadata["namespace"] = namespace
    elif given != namespace:
        raise other_namespace()


def ensure_name(metadata: Document, call: Call) -> None:
    """What is written through an address must be the object of that address."""
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
    """Overrule what an update says of the system's fields."""
    if not metadata.get("uid"):
        metadata["uid"] = old["uid"]
    metadata.pop("selfLink", None)
    metadata["creationTimestamp"] = old["creationTimestamp"]
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old and "deletionGracePeriodSeconds" not in metadata:
        metadata["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]
