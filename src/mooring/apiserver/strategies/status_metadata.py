"""The metadata that a writer of the status may not touch, where a kind takes that seriously."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.strategy import keep

_KEPT = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def keep_metadata(obj: Document, old: Document) -> None:
    """Make all metadata what it was, but for who manages which field."""
    for field in _KEPT:
        keep(obj["metadata"], old["metadata"], field)
