"""The namespace controller deletes the content of terminating namespaces, then removes their finalizer.

Inputs: namespaces, from an informer; the served kinds. Outputs: all objects of the namespace deleted; its
conditions; its finalizer removed.

1. Pods are deleted first. Other kinds wait until no pod is left: a pod may need its secrets to terminate.
2. Deletion starts after `DELAY_S`, so that every API server has seen the termination and no object is created at
   the last moment.
3. Objects that remain after their deletion are an error, unless they have finalizers or, for pods, a grace period.
4. The transition time of a condition changes with its status only.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import NAMESPACE, POD, Kind
from mooring.api.views.administration import CustomResourceDefinition
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Namespace
from mooring.api.well_known import NAMESPACE_FINALIZER, TERMINAL_PHASES
from mooring.client.errors import ClientError, ConflictError, NotFoundError
from mooring.client.interface import Deletion, Propagation, Selection
from mooring.client.workqueue import WorkQueue
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import decode_document
from mooring.controllers.served_kinds import ServedKinds
from mooring.kit.backoff import Backoff
from mooring.kit.clock import format_rfc3339, parse_rfc3339
from mooring.kit.tasks import TaskGroup, run_bounded

_CONDITIONS_WHEN_EMPTY = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)
DELAY_S = 5.0
FINALIZER_ESTIMATE_S = 15
"""Time given to finalizers before the next sync."""
DELETIONS_AT_ONCE = 32
PAGE_SIZE = 500
BACKOFF = Backoff(initial_s=0.005, max_s=60.0)
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ContentDeletion:
    """The result of deleting the content of a namespace."""

    errors: list[str] = field(default_factory=list)
    remaining: dict[Kind, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate_s: int = 0
    """Estimated time until the rest is gone."""


def conditions_after(
    conditions: list[Document], deletion: ContentDeletion, now: str, *, with_totals: bool
) -> list[Document]:
    """The conditions of a namespace. The same list if nothing changes. `with_totals`: include what remains."""
    problems = _problems(deletion, with_totals)
    result = [dict(condition) for condition in conditions]
    for type, reason, message in _CONDITIONS_WHEN_EMPTY:
        status = "False"
        if type in problems:
            status, (reason, message) = "True", problems[type]
        new = {"type": type, "status": status, "reason": reason, "message": message}
        old = next((condition for condition in result if condition.get("type") == type), None)
        if old is None:
            result.append({**new, "lastTransitionTime": now})
        else:
            if old.get("status") != status:
                old["lastTransitionTime"] = now
            old.update(new)
    return result if result != conditions else conditions


def _problems(deletion: ContentDeletion, with_totals: bool) -> dict[str, tuple[str, str]]:
    problems = {}
    if deletion.errors:
        count, errors = len(deletion.errors), ", ".join(sorted(deletion.errors))
        message = f"Failed to delete all resource types, {count} remaining: {errors}"
        problems["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if with_totals and deletion.remaining:
        found = sorted(
            f"{kind.plural}.{kind.group} has {count} resource instances" for kind, count in deletion.remaining.items()
        )
        problems["NamespaceContentRemaining"] = (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(found)}",
        )
    if with_totals and deletion.finalizers:
        held = sorted(f"{finalizer} in {count} resource instances" for finalizer, count in deletion.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        problems["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return problems


class _ContentRemainsError(Exception):
    """Objects remain although they were deleted."""


class NamespaceController(Controller):
    """Keys are terminating namespaces."""

    name: ClassVar[str] = "namespace-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_namespace_syncs
        self.queue = WorkQueue(self.name, self.clock, context.entropy.fork(self.name), backoff=BACKOFF)
        self._kinds = ServedKinds(self.name, context.informers.informer(CustomResourceDefinition))
        self._namespaces = context.informers.informer(Namespace)
        self.handle_changes(self._namespaces, self._on_namespace)

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        group.start_background(self._resync_periodically(), name=f"{self.name}: all that are terminating")

    def _on_namespace(self, namespace: Namespace) -> None:
        if namespace.metadata.deletion_timestamp is not None:
            self.queue.add_after(namespace.metadata.name, DELAY_S)

    async def _resync_periodically(self) -> None:
        """What waits for longer, because it failed often, is tried again after each period."""
        period_s = self.context.settings.namespace_sync_period_s
        while period_s > 0:
            await self.clock.wait(period_s)
            for namespace in self._namespaces.lister.list():
                self._on_namespace(namespace)

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        namespace = await self._mark_terminating(key)
        if namespace is None:
            return DONE
        deletion = await self._delete_content(namespace)
        if deletion.errors:
            return Failed(", ".join(deletion.errors))
        if deletion.estimate_s > 0:
            return Later(deletion.estimate_s // 2 + 1)
        await self._finalize(key, namespace["metadata"]["uid"])
        return DONE

    async def _mark_terminating(self, name: str) -> Document | None:
        """The namespace, with phase Terminating. None if there is nothing to do."""
        while True:
            namespace = await self._read(name)
            if namespace["metadata"].get("deletionTimestamp") is None or not namespace["spec"].get("finalizers"):
                return None
            if namespace["status"].get("phase") == "Terminating":
                return namespace
            namespace["status"]["phase"] = "Terminating"
            try:
                await self.client.update(NAMESPACE, "", name, namespace, subresource="status")
            except ConflictError:
                continue

    async def _finalize(self, name: str, uid: str) -> None:
        while True:
            namespace = await self._read(name)
            if namespace["metadata"]["uid"] != uid:
                return
            others = sorted(
                finalizer for finalizer in namespace["spec"].get("finalizers") or () if finalizer != NAMESPACE_FINALIZER
            )
            namespace["spec"]["finalizers"] = others
            try:
                await self.client.update(NAMESPACE, "", name, namespace, subresource="finalize")
                return
            except ConflictError:
                continue

    async def _read(self, name: str) -> Document:
        namespace: Document = decode_document(await self.client.get(NAMESPACE, "", name))
        namespace["spec"] = namespace.get("spec") or {}
        namespace["status"] = namespace.get("status") or {}
        return namespace

    # ---------------------------------------------------------------------------------------------- content

    async def _delete_content(self, namespace: Document) -> ContentDeletion:
        deletion = ContentDeletion()
        await self._delete_kind(POD, namespace, deletion)
        has_pods = POD in deletion.remaining
        if not has_pods:
            for kind in [*self._kinds.built_in(), *self._kinds.custom()]:
                if kind.is_namespaced and kind is not POD:
                    await self._delete_kind(kind, namespace, deletion)
        await self._write_conditions(namespace, deletion, with_totals=not has_pods)
        return deletion

    async def _delete_kind(self, kind: Kind, namespace: Document, deletion: ContentDeletion) -> None:
        name = namespace["metadata"]["name"]
        estimate_s = 0
        try:
            if kind is POD:
                estimate_s = await self._grace_s(name, parse_rfc3339(namespace["metadata"]["deletionTimestamp"]))
            left = await self._delete_all(kind, name)
            if left:
                estimate_s = self._estimate_s(kind, name, left, estimate_s, deletion)
            else:
                estimate_s = 0
        except (ClientError, _ContentRemainsError) as error:
            deletion.errors.append(str(error))
        deletion.estimate_s = max(deletion.estimate_s, estimate_s)

    def _estimate_s(
        self, kind: Kind, namespace: str, left: list[ObjectMeta], estimate_s: int, deletion: ContentDeletion
    ) -> int:
        """Estimated time until the objects are gone. Raises `_ContentRemainsError` if nothing explains why they
        remain."""
        deletion.remaining[kind] = len(left)
        finalizers = [finalizer for metadata in left for finalizer in metadata.finalizers]
        deletion.finalizers.update(finalizers)
        if estimate_s:
            return estimate_s
        if finalizers:
            return FINALIZER_ESTIMATE_S
        version = kind.api_version.rpartition("/")[2]
        where = f"{kind.group}/{version}, Resource={kind.plural}"
        raise _ContentRemainsError(f"unexpected items still remain in namespace: {namespace} for gvr: {where}")

    async def _delete_all(self, kind: Kind, namespace: str) -> list[ObjectMeta]:
        """Delete all objects of a kind. Returns what remains."""
        found = await self._list(kind, namespace)
        if not found:
            return []
        deletion = Deletion(propagation=Propagation.BACKGROUND)

        async def delete_one(metadata: ObjectMeta) -> ClientError | None:
            try:
                await self.client.delete(kind, namespace, metadata.name, deletion)
            except NotFoundError:
                return None
            except ClientError as error:
                return error
            return None

        errors = await run_bounded(delete_one, found, limit=DELETIONS_AT_ONCE, name=f"emptying {namespace}")
        for error in errors:
            if error is not None:
                raise error
        return await self._list(kind, namespace)

    async def _list(self, kind: Kind, namespace: str) -> list[ObjectMeta]:
        found: list[ObjectMeta] = []
        token = ""
        while True:
            try:
                page = await self.client.list(kind, Selection(namespace), limit=PAGE_SIZE, continue_token=token)
            except NotFoundError:
                return []  # the kind is no longer served
            found += [decode_as(ApiObject, raw).metadata for raw in page.items]
            token = page.continue_token
            if not token:
                return found

    async def _grace_s(self, namespace: str, deleted_s: float) -> int:
        """The longest grace period of the pods. 0 if it is over."""
        page = await self.client.list(POD, Selection(namespace))
        pods = [decode_as(Pod, raw) for raw in page.items]
        grace_s = max(
            (pod.spec.termination_grace_period_seconds or 0 for pod in pods if pod.status.phase not in TERMINAL_PHASES),
            default=0,
        )
        return grace_s if self.clock.wall_s() - deleted_s < grace_s else 0

    async def _write_conditions(self, namespace: Document, deletion: ContentDeletion, *, with_totals: bool) -> None:
        status: Document = namespace["status"]
        before: list[Document] = status.get("conditions") or []
        now = format_rfc3339(self.clock.wall_s())
        after = conditions_after(before, deletion, now, with_totals=with_totals)
        if after is before:
            return
        body = {**namespace, "status": {**status, "conditions": after}}
        try:
            await self.client.update(NAMESPACE, "", namespace["metadata"]["name"], body, subresource="status")
        except ClientError as error:
            logger.warning("failed to write the conditions of namespace %s: %s", namespace["metadata"]["name"], error)
