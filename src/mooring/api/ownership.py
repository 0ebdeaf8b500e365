"""Who owns an object.

Comes in   an object's metadata
Goes out   the owner that controls it: at most one, and the one that would replace it
"""

from __future__ import annotations

from mooring.api.views.meta import ObjectMeta, OwnerReference


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that calls itself the controller; the first, should several do so."""
    for reference in metadata.owner_references:
        if reference.controller:
            return reference
    return None
