"""The garbage collector deletes objects whose owners are all gone.

Inputs: metadata of all objects of all kinds, from informers. Outputs: deletions; references and finalizers removed;
events.

    informers ──> ownership graph ──┬──> to delete: read the object and its owners, and decide
                                    └──> to orphan: remove references from dependents, then the finalizer

    owners of the object                            action
    one exists, others are gone or waiting          remove the references to the others
    none exists, one waits for its dependents       delete in the foreground if it has dependents itself
    none exists                                     delete, in the background unless its finalizers say otherwise

1. The graph may be stale, so the object and its owners are read from the API before a deletion.
2. Events own nothing and have no owners. They are not watched.
3. A custom kind is watched while it is served.
4. A deletion carries uid and resourceVersion, so that an object with another owner by now is not deleted. If other
   fields changed, it is deleted without the version: an object that changes all the time must not live forever.
5. References are removed by strategic merge patches. Custom kinds do not support them; there a merge patch replaces
   the list, with a resourceVersion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import CORE_EVENT, EVENT, Kind
from mooring.api.views.administration import CustomResourceDefinition
from mooring.api.views.meta import ApiObject, ObjectMeta, ObjectReference, OwnerReference
from mooring.api.well_known import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from mooring.client.errors import ClientError, ConflictError, NotFoundError, StatusError
from mooring.client.informer import Informer
from mooring.client.interface import Client, Deletion, PatchForm, Propagation
from mooring.client.reflector import Reflector
from mooring.client.workqueue import WorkQueue, run_workers
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.documents import decode_document
from mooring.controllers.garbagecollector.graph import GraphNode, ObjectIdentity, OwnershipGraph, reference_identity
from mooring.controllers.served_kinds import ServedKinds
from mooring.kit.clock import Clock
from mooring.kit.tasks import TaskGroup, run_bounded

FINALIZER_TRIES_MAX = 4
FINALIZER_RETRY_S = 0.01
FINALIZER_RETRY_FACTOR = 5.0
UNSUPPORTED_MEDIA_TYPE = 415
ORPHANS_AT_ONCE = 32
_NOT_WATCHED = (CORE_EVENT, EVENT)
logger = logging.getLogger(__name__)


class UnknownKind(Exception):
    """The kind is not served."""


class InvalidOwnerReference(Exception):
    """A cluster-scoped object names a namespaced owner. Its namespace is unknown."""


class GarbageClient:
    """Requests of the garbage collector."""

    def __init__(self, client: Client, clock: Clock, kinds: ServedKinds) -> None:
        self._client = client
        self._clock = clock
        self._kinds = kinds

    def locate(self, identity: ObjectIdentity) -> tuple[Kind, str, str]:
        """Kind, namespace and name for requests. Raises `UnknownKind`, `InvalidOwnerReference`."""
        kind = self._kinds.find(identity.api_version, identity.kind)
        if kind is None:
            raise UnknownKind(f"unable to get REST mapping for {identity.api_version}/{identity.kind}.")
        if not kind.is_namespaced:
            return kind, "", identity.name
        if not identity.namespace:
            raise InvalidOwnerReference(f"{identity} is namespaced, but the object that refers to it is cluster-scoped")
        return kind, identity.namespace, identity.name

    async def metadata(self, identity: ObjectIdentity) -> ObjectMeta:
        return decode_as(ApiObject, await self._client.get(*self.locate(identity))).metadata

    async def delete(self, identity: ObjectIdentity, seen: ObjectMeta, propagation: Propagation) -> None:
        locate = self.locate(identity)
        deletion = Deletion(uid=identity.uid, revision=seen.resource_version, propagation=propagation)
        try:
            await self._client.delete(*locate, deletion)
        except ConflictError:
            now = await self.metadata(identity)
            if now.uid != identity.uid or now.owner_references != seen.owner_references:
                raise
            await self._client.delete(*locate, Deletion(uid=identity.uid, propagation=propagation))

    async def remove_owners(self, identity: ObjectIdentity, owner_uids: Collection[str]) -> None:
        """Remove the references to owners. Missing references are no error."""
        removed = [{"$patch": "delete", "uid": uid} for uid in owner_uids]
        if await self._patched(identity, removed):
            return
        metadata, references = await self._references(identity)
        left = [reference for reference in references if reference.get("uid") not in owner_uids]
        await self._replace_references(identity, metadata, left)

    async def unblock_owners(self, identity: ObjectIdentity) -> None:
        """Set blockOwnerDeletion to false in all references."""
        metadata, references = await self._references(identity)
        blocking = [
            {**reference, "blockOwnerDeletion": False}
            for reference in references
            if reference.get("blockOwnerDeletion")
        ]
        if not await self._patched(identity, blocking):
            unblocked = [{**reference, "blockOwnerDeletion": False} for reference in references]
            await self._replace_references(identity, metadata, unblocked)

    async def remove_finalizer(self, identity: ObjectIdentity, finalizer: str) -> None:
        """Remove a finalizer. Raises `ConflictError` after several conflicts."""
        locate = self.locate(identity)
        retry_s = FINALIZER_RETRY_S
        for left in reversed(range(FINALIZER_TRIES_MAX)):
            try:
                metadata = await self.metadata(identity)
                if finalizer not in metadata.finalizers:
                    return
                remaining = [present for present in metadata.finalizers if present != finalizer]
                patch = {"metadata": {"resourceVersion": metadata.resource_version, "finalizers": remaining or None}}
                await self._client.patch(*locate, patch, form=PatchForm.MERGE)
                return
            except NotFoundError:
                return
            except ConflictError:
                if not left:
                    raise
            await self._clock.wait(retry_s)
            retry_s *= FINALIZER_RETRY_FACTOR

    async def _patched(self, identity: ObjectIdentity, references: list[Document]) -> bool:
        """Patch references with a strategic merge patch. Returns False if the kind does not support it."""
        kind, namespace, name = self.locate(identity)
        if not self._kinds.is_built_in(kind):
            return False
        patch = {"metadata": {"uid": identity.uid, "ownerReferences": references}}
        try:
            await self._client.patch(kind, namespace, name, patch, form=PatchForm.STRATEGIC)
        except StatusError as error:
            if error.code != UNSUPPORTED_MEDIA_TYPE:
                raise
            return False
        return True

    async def _references(self, identity: ObjectIdentity) -> tuple[Document, list[Document]]:
        document: Document = decode_document(await self._client.get(*self.locate(identity)))
        metadata: Document = document["metadata"]
        return metadata, metadata.get("ownerReferences") or []

    async def _replace_references(
        self, identity: ObjectIdentity, metadata: Document, references: list[Document]
    ) -> None:
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": references or None}}
        await self._client.patch(*self.locate(identity), patch, form=PatchForm.MERGE)


class GarbageCollectorController(Controller):
    """Two queues of graph nodes: to delete and to orphan."""

    name: ClassVar[str] = "garbage-collector-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        entropy = context.entropy.fork(self.name)
        self._to_delete: WorkQueue[GraphNode] = WorkQueue("garbage to delete", self.clock, entropy.fork("delete"))
        self._to_orphan: WorkQueue[GraphNode] = WorkQueue("garbage to orphan", self.clock, entropy.fork("orphan"))
        self._entropy = entropy
        self._graph = OwnershipGraph(self)
        self._recorder = context.recorder(self.name)
        self._kinds = ServedKinds(self.name, context.informers.informer(CustomResourceDefinition))
        self._garbage = GarbageClient(context.client, context.clock, self._kinds)
        self._group: TaskGroup | None = None
        self._custom_watches: dict[Kind, asyncio.Task[None]] = {}
        for kind in self._kinds.built_in():
            if kind not in _NOT_WATCHED:
                self._follow(kind, context.informers.informer(kind.view or ApiObject, kind=kind))
        self._kinds.on_change(self._follow_custom_kinds)

    def start(self, group: TaskGroup) -> None:
        self._group = group
        workers = self.context.settings.concurrent_gc_syncs
        run_workers(self._to_delete, self._delete_and_yield, workers=workers, group=group)
        run_workers(self._to_orphan, self._orphan, workers=workers, group=group)
        self._follow_custom_kinds()

    def stop(self) -> None:
        super().stop()
        self._to_delete.shut_down()
        self._to_orphan.shut_down()

    async def sync(self, key: str) -> Outcome:
        return DONE  # the queues contain graph nodes instead of keys

    # -------------------------------------------------------------------------------------------- informers

    def _follow(self, kind: Kind, informer: Informer[ApiObject]) -> None:
        def on_add(view: ApiObject) -> None:
            self._graph.observe(_identity(kind, view.metadata), view.metadata, None)

        def on_update(old: ApiObject, new: ApiObject) -> None:
            before, after = old.metadata, new.metadata
            if (
                before.owner_references != after.owner_references
                or before.deletion_timestamp != after.deletion_timestamp
                or before.finalizers != after.finalizers
            ):
                self._graph.observe(_identity(kind, after), after, before)

        def on_delete(view: ApiObject) -> None:
            self._graph.forget(_identity(kind, view.metadata))

        informer.add_handler(self.name, on_add=on_add, on_update=on_update, on_delete=on_delete)

    def _follow_custom_kinds(self) -> None:
        if self._group is None:
            return
        kinds = dict.fromkeys(self._kinds.custom())
        for kind in [kind for kind in self._custom_watches if kind not in kinds]:
            self._custom_watches.pop(kind).cancel()
        for kind in kinds:
            if kind not in self._custom_watches:
                self._custom_watches[kind] = self._watch(kind, self._group)

    def _watch(self, kind: Kind, group: TaskGroup) -> asyncio.Task[None]:
        informer: Informer[ApiObject] = Informer(kind.resource)
        self._follow(kind, informer)
        entropy = self._entropy.fork(f"reflector of {kind}")
        reflector = Reflector(self.client, kind, ApiObject, informer, clock=self.clock, entropy=entropy)
        return group.start_background(reflector.run(), name=f"garbage of {kind.resource}")

    # ------------------------------------------------------------------------------- decisions of the graph

    def attempt_to_delete(self, node: GraphNode) -> None:
        self._to_delete.add(node)

    def attempt_to_delete_later(self, node: GraphNode) -> None:
        self._to_delete.add_rate_limited(node)

    def attempt_to_orphan(self, node: GraphNode) -> None:
        self._to_orphan.add(node)

    def report_other_namespace(self, node: GraphNode, owner: ObjectIdentity) -> None:
        own = node.identity
        reference = ObjectReference(
            api_version=own.api_version, kind=own.kind, namespace=own.namespace, name=own.name, uid=own.uid
        )
        message = f'ownerRef {owner} does not exist in namespace "{own.namespace}"'
        self._recorder.event(reference, "Warning", "OwnerRefInvalidNamespace", message)

    # --------------------------------------------------------------------------------------------- deleting

    async def _delete_and_yield(self, node: GraphNode) -> Outcome:
        outcome = await self._delete(node)
        await self.clock.wait(0)
        return outcome

    async def _delete(self, node: GraphNode) -> Outcome:
        if node.is_virtual and self._graph.get(node.identity.uid) is not node:
            return DONE  # it was observed, or removed from the graph
        if node.is_being_deleted and not node.is_deleting_dependents:
            return DONE  # its dependents are checked after its deletion
        try:
            await self._delete_if_unowned(node)
        except NotFoundError:
            self._graph.forget_absent(node.identity)
            return DONE
        except InvalidOwnerReference as error:
            logger.info("%s is not deleted: %s", node.identity, error)
            return DONE
        except (ClientError, UnknownKind) as error:
            return Failed(str(error))
        # If the object was created and deleted unobserved, no event would remove its virtual node.
        return Failed("it has not been observed yet") if node.is_virtual else DONE

    async def _delete_if_unowned(self, node: GraphNode) -> None:
        """Raises `NotFoundError` if the object does not exist."""
        latest = await self._garbage.metadata(node.identity)
        if latest.uid != node.identity.uid:
            raise NotFoundError(f"{node.identity} is another one by now")
        if node.is_deleting_dependents:
            await self._finish_foreground_deletion(node)
            return
        if not latest.owner_references:
            return
        solid, dangling, waiting = await self._sorted_owners(node, latest)
        if solid:
            if dangling or waiting:
                await self._garbage.remove_owners(node.identity, [owner.uid for owner in (*dangling, *waiting)])
        elif waiting and node.dependents:
            if any(dependent.is_deleting_dependents for dependent in node.dependents):
                # This may be a cycle in which each object waits for the next.
                await self._garbage.unblock_owners(node.identity)
                latest = await self._garbage.metadata(node.identity)
            await self._garbage.delete(node.identity, latest, Propagation.FOREGROUND)
        else:
            await self._garbage.delete(node.identity, latest, _propagation(latest))

    async def _finish_foreground_deletion(self, node: GraphNode) -> None:
        blocking = node.blocking_dependents()
        if not blocking:
            await self._garbage.remove_finalizer(node.identity, FOREGROUND_FINALIZER)
        for dependent in blocking:
            if not dependent.is_deleting_dependents:
                self._to_delete.add(dependent)

    async def _sorted_owners(
        self, node: GraphNode, latest: ObjectMeta
    ) -> tuple[list[OwnerReference], list[OwnerReference], list[OwnerReference]]:
        """Owners that exist, that are gone, and that wait for the deletion of their dependents."""
        solid, dangling, waiting = [], [], []
        for reference in latest.owner_references:
            owner = await self._owner(node, reference)
            if owner is None:
                dangling.append(reference)
            elif owner.deletion_timestamp is not None and FOREGROUND_FINALIZER in owner.finalizers:
                waiting.append(reference)
            else:
                solid.append(reference)
        return solid, dangling, waiting

    async def _owner(self, node: GraphNode, reference: OwnerReference) -> ObjectMeta | None:
        identity = reference_identity(reference, node.identity.namespace)
        if identity._replace(namespace="") in self._graph.absent or identity in self._graph.absent:
            return None
        _, namespace, _ = self._garbage.locate(identity)
        identity = identity._replace(namespace=namespace)
        try:
            owner = await self._garbage.metadata(identity)
        except NotFoundError:
            owner = None
        if owner is None or owner.uid != reference.uid:
            self._graph.absent.add(identity)
            return None
        return owner

    # -------------------------------------------------------------------------------------------- orphaning

    async def _orphan(self, node: GraphNode) -> Outcome:
        errors = await run_bounded(
            lambda dependent: self._orphan_dependent(dependent, node.identity.uid),
            list(node.dependents),
            limit=ORPHANS_AT_ONCE,
            name="orphans",
        )
        failed = [error for error in errors if error is not None]
        if failed:
            return Failed(str(failed[0]))
        try:
            await self._garbage.remove_finalizer(node.identity, ORPHAN_FINALIZER)
        except (ClientError, UnknownKind, InvalidOwnerReference) as error:
            return Failed(str(error))
        return DONE

    async def _orphan_dependent(self, dependent: GraphNode, owner_uid: str) -> Exception | None:
        try:
            await self._garbage.remove_owners(dependent.identity, [owner_uid])
        except NotFoundError:
            return None
        except (ClientError, UnknownKind, InvalidOwnerReference) as error:
            return error
        return None


def _identity(kind: Kind, metadata: ObjectMeta) -> ObjectIdentity:
    return ObjectIdentity(kind.kind, kind.api_version, metadata.namespace, metadata.name, metadata.uid)


def _propagation(metadata: ObjectMeta) -> Propagation:
    """The deletion propagation that the finalizers of an object ask for."""
    if ORPHAN_FINALIZER in metadata.finalizers:
        return Propagation.ORPHAN
    return Propagation.FOREGROUND if FOREGROUND_FINALIZER in metadata.finalizers else Propagation.BACKGROUND
