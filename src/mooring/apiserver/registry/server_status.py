"""Statuses that the server writes itself: the usage of a quota, the disruptions that a budget still allows.

Input: an object as it was read, and its new status. Output: the stored object, with `kube-apiserver` as the manager of
the changed fields; or `WriteConflict`.

1. kube-apiserver sends itself a request. Here the status is stored directly, on the condition that no other write came
   first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.api.document import Document
from mooring.api.kinds import RESOURCE_QUOTA, Kind
from mooring.apiserver.apply.kind_schema import KindSchema
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.update import write_managed_fields
from mooring.apiserver.registry.object_storage import ObjectStorage
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.store.interface import WriteConflict

OWN_MANAGER = "kube-apiserver"


class ServerStatusWriter:
    """Writes statuses for the server. Implements `QuotaStatusWriter`."""

    def __init__(
        self, object_storage: ObjectStorage, resources: ResourceTable, kind_schema_of: Callable[[Resource], KindSchema]
    ) -> None:
        self._object_storage = object_storage
        self._resources = resources
        self._kind_schema_of = kind_schema_of

    async def write(self, kind: Kind, live: Document, status: Document, now: str) -> None:
        """Replace the status of an object that is still as it was read. `live` is not changed."""
        resource = self._resources.of_kind(kind)
        new: Document = {**live, "metadata": dict(live["metadata"]), "status": status}
        writer = manager_id(OWN_MANAGER, UPDATE, kind.api_version, "status")
        write_managed_fields(
            self._kind_schema_of(resource), live, new, writer, now, resource.strategies["status"].ignored_fields
        )
        await self._object_storage.put(kind, new, if_revision=int(live["metadata"]["resourceVersion"]))

    async def write_used(self, quota: Document, used: Mapping[str, str], now: str) -> bool:
        try:
            await self.write(RESOURCE_QUOTA, quota, {**quota["status"], "used": dict(used)}, now)
        except WriteConflict:
            return False
        return True
