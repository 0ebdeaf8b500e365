"""The controllers of CustomResourceDefinitions: names, Established, deletion, and the served resources.

Input: definitions, as a watch delivers them. Output: their status; their resources in the `ResourceTable`; after
deletion of a definition, the deletion of its objects.

    written      accept the names, or not                 accepted     set Established
    deleted      delete the objects, one by one           empty        remove the finalizer

1. Definitions are handled one at a time, each step on the stored state. A write conflict is retried when the watch
   delivers the other change.
2. When a definition releases names, all other definitions of its group are handled again.
3. A change without effect on clients, such as the time of a condition, does not rebuild resources.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from mooring.apiserver.call import Call
from mooring.apiserver.custom.naming import (
    approval_status,
    condition,
    established_status,
    is_served,
    is_true,
    named_status,
    names_in_use,
    with_condition,
)
from mooring.apiserver.custom.schema import any_schema
from mooring.apiserver.registry.context import RegistryContext
from mooring.apiserver.registry.delete import CLEANUP_FINALIZER, DeleteOptions, delete
from mooring.apiserver.registry.object_storage import ServerStatusWriter
from mooring.apiserver.registry.reading import ObjectReader
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.storage.stored_form import decoded
from mooring.apiserver.worker import WORKER_BYTES_MIN, WorkerThread
from mooring.client.errors import NotFoundError
from mooring.client.interface import EVERYTHING
from mooring.kit.clock import Clock, format_rfc3339
from mooring.serving.users import User
from mooring.store.interface import WriteConflict

REMAINING_CHECK_S = 5.0
"""The interval of checks whether all objects of a deleted definition are deleted."""

log = logging.getLogger(__name__)

_SERVER = User("system:apiserver", groups=("system:masters", "system:authenticated"))


_encode = msgspec.json.Encoder().encode


class DefinitionController:
    """Follows the definitions, and acts on them."""

    def __init__(
        self, context: RegistryContext, reader: ObjectReader, status_writer: ServerStatusWriter, clock: Clock
    ) -> None:
        self._context = context
        self._reader = reader
        self._status_writer = status_writer
        self._clock = clock
        self._known: dict[str, Document] = {}
        self._due: dict[str, None] = {}
        self._has_changes = asyncio.Event()

    # ------------------------------------------------------------------------------------------------ following

    def put(self, kind: Kind, document: Document) -> None:
        name = document["metadata"]["name"]
        self._known[name] = document
        self._enqueue(name)

    def remove(self, kind: Kind, document: Document) -> None:
        gone = self._known.pop(document["metadata"]["name"], document)
        self._enqueue_others(gone)

    def _enqueue(self, name: str) -> None:
        self._due[name] = None
        self._has_changes.set()

    def _enqueue_others(self, definition: Document) -> None:
        for name, other in self._known.items():
            if other["spec"]["group"] == definition["spec"]["group"] and name != definition["metadata"]["name"]:
                self._enqueue(name)

    # --------------------------------------------------------------------------------------------------- acting

    async def run(self) -> None:
        """Sync the due definitions until cancelled."""
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            while self._due:
                name = next(iter(self._due))
                del self._due[name]
                definition = self._known.get(name)
                if definition is None:
                    continue
                try:
                    await self._sync(definition)
                except WriteConflict:
                    continue  # the watch delivers the conflicting change
                except Exception:
                    log.exception("cannot sync the definition %s", name)

    async def _sync(self, definition: Document) -> None:
        metadata = definition["metadata"]
        if "deletionTimestamp" in metadata:
            if CLEANUP_FINALIZER in (metadata.get("finalizers") or ()):
                await self._clean_up(definition)
            return
        now = self._now()
        group = definition["spec"]["group"]
        others = [other for other in self._known.values() if other["spec"]["group"] == group]
        status = named_status(definition, names_in_use(others), now)
        if status is not None:
            await self._write(definition, status)
            self._enqueue_others(definition)
            return
        for planned in (established_status, approval_status):
            status = planned(definition, now)
            if status is not None:
                await self._write(definition, status)
                return

    async def _write(self, definition: Document, status: Document) -> None:
        await self._status_writer.write(CUSTOM_RESOURCE_DEFINITION, definition, status, self._now())

    # ------------------------------------------------------------------------------------------------- deleting

    async def _clean_up(self, definition: Document) -> None:
        name = definition["metadata"]["name"]
        if is_true(definition, "Established"):
            from mooring.apiserver.custom.serving import stored_resource  # imports CEL: only if there are definitions

            cost_bytes = _cost_bytes(definition, _encode(definition["spec"]))
            resource = await self._context.worker.run(cost_bytes, stored_resource, definition)
            await self._delete_objects(resource)
            if await self._count(resource):
                await self._write_progress(definition)
                self._enqueue_later(name)
                return
        finalizers = [finalizer for finalizer in definition["metadata"]["finalizers"] if finalizer != CLEANUP_FINALIZER]
        object_storage, revision = self._context.object_storage, int(definition["metadata"]["resourceVersion"])
        if not finalizers:
            await object_storage.delete(CUSTOM_RESOURCE_DEFINITION, "", name, if_revision=revision)
            return
        done = condition(
            "Terminating", is_met=False, reason="InstanceDeletionCompleted", message="removed all instances"
        )
        changed: Document = {
            **definition,
            "metadata": {**definition["metadata"], "finalizers": finalizers},
            "status": with_condition(definition["status"], done, self._now()),
        }
        await object_storage.put(CUSTOM_RESOURCE_DEFINITION, changed, if_revision=revision)

    async def _write_progress(self, definition: Document) -> None:
        text = "CustomResource deletion is in progress"
        progress = condition("Terminating", is_met=True, reason="InstanceDeletionInProgress", message=text)
        status = with_condition(definition["status"], progress, self._now())
        if status != definition["status"]:
            await self._write(definition, status)

    async def _delete_objects(self, resource: Resource) -> None:
        now_s = self._clock.wall_s()
        for raw in await self._objects(resource):
            metadata = decoded(raw)["metadata"]
            assert isinstance(metadata, dict), "a stored object has metadata"
            if "deletionTimestamp" in metadata:
                continue
            call = Call(
                verb="delete",
                kind=resource.kind,
                user=_SERVER,
                now_s=now_s,
                now=format_rfc3339(int(now_s)),
                namespace=metadata.get("namespace", ""),
                name=metadata["name"],
            )
            try:
                await delete(self._context, resource, call, DeleteOptions())
            except NotFoundError:
                continue

    async def _count(self, resource: Resource) -> int:
        return len(await self._objects(resource))

    async def _objects(self, resource: Resource) -> list[bytes]:
        listing = await self._reader.list(resource, EVERYTHING, limit=0, continue_token="", revision="", is_exact=None)
        return list(listing.items)

    def _enqueue_later(self, name: str) -> None:
        asyncio.get_running_loop().call_later(REMAINING_CHECK_S, self._enqueue, name)

    def _now(self) -> str:
        return format_rfc3339(int(self._clock.wall_s()))


class CustomKinds:
    """Follows the definitions."""

    def __init__(self, resources: ResourceTable, worker: WorkerThread) -> None:
        self._resources = resources
        self._worker = worker
        self._served: dict[str, list[Resource]] = {}
        self._seen: dict[str, object] = {}

    async def put(self, kind: Kind, document: Document) -> None:
        name = document["metadata"]["name"]
        spec = _encode(document["spec"])
        visible = _visible(document, spec)
        if self._seen.get(name) == visible:
            return
        self._seen[name] = visible
        if is_true(document, "Terminating"):
            self._take_out(name)  # immediately: no object may be created while the objects are deleted
        from mooring.apiserver.custom.serving import resources_of  # imports CEL: only if there are definitions

        try:
            found = await self._worker.run(_cost_bytes(document, spec), resources_of, document)
        except Exception:
            # A definition that was valid once and cannot be read now must not stop the others.
            log.exception("the kind that %s defines cannot be served", name)
            found = []
        self._take_out(name)
        for resource in found:
            self._resources.add(resource)
        if found:
            self._served[name] = found

    def remove(self, kind: Kind, document: Document) -> None:
        name = document["metadata"]["name"]
        self._seen.pop(name, None)
        self._take_out(name)

    def _take_out(self, name: str) -> None:
        for resource in self._served.pop(name, []):
            self._resources.remove(resource)


def _cost_bytes(definition: Document, spec: bytes) -> int:
    """The size of a definition for the `WorkerThread`. Compiling a short rule or pattern can take long."""
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") or {} for version in definition["spec"]["versions"]]
    if len(spec) < WORKER_BYTES_MIN and any(any_schema(schema, _is_compiled) for schema in schemas):
        return WORKER_BYTES_MIN
    return len(spec)


def _is_compiled(schema: Document) -> bool:
    return bool(schema.get("x-kubernetes-validations") or schema.get("pattern"))


def _visible(document: Document, spec: bytes) -> object:
    """What clients can see of a definition. Bytes are compared ten times as fast as a large document."""
    return (
        document["metadata"].get("uid"),
        spec,
        (document.get("status") or {}).get("acceptedNames"),
        is_served(document),
        is_true(document, "Terminating"),
    )
