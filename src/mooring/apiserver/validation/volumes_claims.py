"""What is wrong with the claim that an ephemeral volume makes.

Comes in   `volumeClaimTemplate`
Goes out   faults

 1. A template's metadata is labels and annotations: everything else is refused, so that nobody believes in it.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.schema.tables import struct_named
from mooring.apiserver.kinds.persistent_volume_claim import claim_spec_faults
from mooring.apiserver.validation.fields import Fault, forbidden
from mooring.apiserver.validation.metadata import annotations_faults, labels_faults


def claim_template_faults(template: Document, path: str) -> list[Fault]:
    """What is wrong with a template of claims."""
    faults = template_metadata_faults(template.get("metadata") or {}, f"{path}.metadata")
    return faults + claim_spec_faults(template.get("spec") or {}, f"{path}.spec")


def template_metadata_faults(metadata: Document, path: str) -> list[Fault]:
    """What is wrong with the metadata of a template that becomes an object of its own."""
    faults = annotations_faults(metadata.get("annotations") or {}, f"{path}.annotations")
    faults += labels_faults(metadata.get("labels") or {}, f"{path}.labels")
    for field in struct_named("meta", "ObjectMeta").fields:
        if field not in ("annotations", "labels") and metadata.get(field):
            told = "uID" if field == "uid" else field
            faults.append(forbidden(f"{path}.{told}", "cannot be set"))
    return faults
