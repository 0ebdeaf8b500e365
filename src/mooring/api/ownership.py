"""Find the controller of an object: the owner reference with `controller: true`, of which there is at most one."""

from __future__ import annotations

from mooring.api.views.meta import ObjectMeta, OwnerReference


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The first owner reference with `controller: true`."""
    for reference in metadata.owner_references:
        if reference.controller:
            return reference
    return None
