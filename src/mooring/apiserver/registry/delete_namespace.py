"""Deleting a namespace: it is marked first, emptied by others, and gone when nobody holds it any more.

Comes in   a call and options, as for every deletion
Goes out   the namespace, terminating; or nothing special: the ordinary deletion goes on

 1. The first deletion marks the namespace as terminating. From then on nothing new can be created in it.
 2. While `spec.finalizers` names anybody, further deletions change nothing.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.registry.object_storage import Stored
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.resources import Resource
from mooring.apiserver.storage.errors import conflict
from mooring.apiserver.validation.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER


async def terminating(
    parts: Parts,
    resource: Resource,
    call: Call,
    found: Stored,
    *,
    uid: str | None,
    revision: str | None,
    collector_finalizer: str,
) -> Document | None:
    """The namespace that terminates; None if nothing holds it any more and it can be deleted."""
    namespace, metadata = found.document, found.document["metadata"]
    check_preconditions(resource, call, found, uid, revision)
    if "deletionTimestamp" in metadata:
        return namespace if namespace["spec"].get("finalizers") else None
    await parts.admission.check_deletion(Attempt(Operation.DELETE, call, None, namespace))
    others = [name for name in metadata.get("finalizers") or () if name not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    finalizers = [*others, collector_finalizer] if collector_finalizer else others
    changed: Document = {
        **namespace,
        "metadata": {**metadata, "deletionTimestamp": call.now},
        "status": {**namespace.get("status", {}), "phase": "Terminating"},
    }
    if finalizers:
        changed["metadata"]["finalizers"] = finalizers
    else:
        changed["metadata"].pop("finalizers", None)
    if not call.is_dry_run:
        written = await parts.object_storage.put(resource.kind, changed, if_revision=found.revision)
        changed["metadata"]["resourceVersion"] = str(written)
    return changed


def check_preconditions(resource: Resource, call: Call, found: Stored, uid: str | None, revision: str | None) -> None:
    """Refuses a deletion that is meant for another state, in the words of the kinds that are marked first."""
    metadata = found.document["metadata"]
    if uid is not None and uid != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        raise conflict(resource.kind, call.name, why)
    if revision is not None and revision != str(found.revision):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {revision}, "
            f"ResourceVersion in object meta: {found.revision}"
        )
        raise conflict(resource.kind, call.name, why)
