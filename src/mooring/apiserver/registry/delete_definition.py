"""Deleting a definition: it is marked first, its objects are deleted, and then it is gone.

Comes in   a call, as for every deletion; a definition that is not being deleted yet
Goes out   the definition, terminating

 1. The first deletion does nothing but mark it. `custom.establishing` does the rest.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.admission.interface import Attempt
from mooring.apiserver.call import Call, Operation
from mooring.apiserver.custom.naming import condition, with_condition
from mooring.apiserver.registry.object_storage import Stored
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.resources import Resource

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


async def definition_terminating(parts: Parts, resource: Resource, call: Call, found: Stored) -> Document:
    """The definition that terminates."""
    definition, metadata = found.document, found.document["metadata"]
    await parts.admission.check(Attempt(Operation.DELETE, call, None, definition))
    finalizers = list(metadata.get("finalizers") or ())
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    pending = condition("Terminating", is_met=True, reason="InstanceDeletionPending", message=_PENDING)
    changed: Document = {
        **definition,
        "metadata": {**metadata, "deletionTimestamp": call.now, "finalizers": finalizers},
        "status": with_condition(definition.get("status") or {}, pending, call.now),
    }
    if not call.is_dry_run:
        written = await parts.object_storage.put(resource.kind, changed, if_revision=found.revision)
        changed["metadata"]["resourceVersion"] = str(written)
    return changed
