"""The server writes a status itself: what is used of a quota, what is left of a disruption budget.

Comes in   an object as it was read, and its new status
Goes out   the object in the store, with `kube-apiserver` as the manager of what changed; or `WriteConflict`

 1. kube-apiserver makes such writes through its own front door. Here they go straight to the shelf, under the condition
    that nobody wrote since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.api.document import Document
from mooring.api.kinds import RESOURCE_QUOTA, Kind
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.update import stamp
from mooring.apiserver.registry.shelf import Shelf
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.store.interface import WriteConflict

OWN_MANAGER = "kube-apiserver"


class OwnStatus:
    """Writes statuses for the server. Keeps the promise of `admission.promise.QuotaLedger`."""

    def __init__(self, shelf: Shelf, resources: ResourceTable, shape_of: Callable[[Resource], Shape]) -> None:
        self._shelf = shelf
        self._resources = resources
        self._shape_of = shape_of

    async def write(self, kind: Kind, live: Document, status: Document, now: str) -> None:
        """Replace the status of an object that is still as it was read. `live` is not changed."""
        resource = self._resources.of_kind(kind)
        new: Document = {**live, "metadata": dict(live["metadata"]), "status": status}
        writer = manager_id(OWN_MANAGER, UPDATE, kind.api_version, "status")
        stamp(self._shape_of(resource), live, new, writer, now, resource.strategies["status"].ignored_fields)
        await self._shelf.put(kind, new, if_revision=int(live["metadata"]["resourceVersion"]))

    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        try:
            await self.write(RESOURCE_QUOTA, quota, {**quota["status"], "used": dict(used)}, now)
        except WriteConflict:
            return False
        return True
