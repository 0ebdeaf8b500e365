"""The revisions of a DaemonSet: the present template, and the limit of the history.

Inputs: a DaemonSet and its ControllerRevisions, from an informer. Outputs: the revision of the present template,
created if needed; old revisions deleted.

1. A template has one revision. Of several, the highest stays, and pods of the others are relabelled.
2. A rollback to an old template gives its revision the next number.
3. Only revisions without pods are deleted, the oldest first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION, DAEMON_SET, POD
from mooring.api.labels import LabelMatcher
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ControllerRevision, DaemonSet
from mooring.api.well_known import CONTROLLER_REVISION_HASH_LABEL
from mooring.client.cache.informer import Informer
from mooring.client.errors import AlreadyExistsError
from mooring.client.interface import Client, PatchForm
from mooring.controllers.adoption import claim_objects
from mooring.controllers.documents import document_of, read_document
from mooring.controllers.pods import BY_CONTROLLER, controller_index, orphan_key
from mooring.controllers.revisions import (
    data_of,
    in_order,
    new_revision,
    read_revision,
    renumber_revision,
    revision_data,
    revision_hash,
)

FindPods: TypeAlias = Callable[[], Awaitable[list[Pod]]]
"""Reads the pods of a DaemonSet. Called only if they are needed."""


class HistoryError(Exception):
    """The history could not be determined. Retry."""


@dataclass(frozen=True, slots=True)
class DaemonSetHistory:
    """The revisions of one DaemonSet."""

    hashed: str
    """Hash of the present template, as in the labels of pods."""
    old: Sequence[ControllerRevision]


class DaemonSetRevisions:
    """The revisions of all DaemonSets."""

    def __init__(self, client: Client, revisions: Informer[ControllerRevision]) -> None:
        self._client = client
        self._revisions = revisions
        revisions.add_index(BY_CONTROLLER, controller_index)

    async def construct(self, daemon_set: DaemonSet, selector: LabelMatcher, find_pods: FindPods) -> DaemonSetHistory:
        """Find or create the revision of the present template. Raises `ClientError`, `AdoptionError` and
        `HistoryError`."""
        namespace = daemon_set.metadata.namespace
        own = self._revisions.lister.by_index(BY_CONTROLLER, daemon_set.metadata.uid)
        orphans = self._revisions.lister.by_index(BY_CONTROLLER, orphan_key(namespace))
        claimed = await claim_objects(
            self._client, daemon_set, (*own, *orphans), lambda each: selector.matches(each.metadata.labels)
        )
        document = document_of(daemon_set)
        data = revision_data(document)
        present: list[ControllerRevision] = []
        old: list[ControllerRevision] = []
        for revision in claimed:
            if CONTROLLER_REVISION_HASH_LABEL not in revision.metadata.labels:
                revision = await self._label(revision)
            (present if data_of(revision) == data else old).append(revision)
        number = max((revision.revision for revision in old), default=0) + 1
        if not present:
            current = await self._create(daemon_set, document, data, number)
        else:
            current = await self._single_out(present, find_pods)
            if current.revision < number:
                await renumber_revision(self._client, current, number)
        return DaemonSetHistory(current.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL, ""), old)

    async def clean_up(self, daemon_set: DaemonSet, old: Sequence[ControllerRevision], pods: Iterable[Pod]) -> None:
        """Delete the revisions beyond the limit. Raises `ClientError`."""
        limit = daemon_set.spec.revision_history_limit
        excess = len(old) - (limit if limit is not None else 10)
        if excess <= 0:
            return
        alive = {pod.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL) for pod in pods}
        dead = [each for each in in_order(old) if each.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL) not in alive]
        for revision in dead[:excess]:
            metadata = revision.metadata
            await self._client.delete(CONTROLLER_REVISION, metadata.namespace, metadata.name)

    async def _create(
        self, daemon_set: DaemonSet, document: Document, data: Document, number: int
    ) -> ControllerRevision:
        metadata = daemon_set.metadata
        hashed = revision_hash(data, daemon_set.status.collision_count)
        name = f"{metadata.name}-{hashed}"
        labels = {**daemon_set.spec.template.metadata.labels, CONTROLLER_REVISION_HASH_LABEL: hashed}
        annotations = document["metadata"].get("annotations") or {}
        wanted = new_revision(daemon_set, data, number, name, labels, annotations)
        try:
            answer = await self._client.create(CONTROLLER_REVISION, metadata.namespace, wanted)
        except AlreadyExistsError as error:
            known = await read_revision(self._client, metadata.namespace, name)
            if data_of(known) == data:
                return known
            await self._count_collision(daemon_set)
            raise HistoryError(str(error)) from error
        return decode_as(ControllerRevision, answer)

    async def _count_collision(self, daemon_set: DaemonSet) -> None:
        """Write the next collision count, so that the next sync uses another name."""
        fresh = await read_document(self._client, daemon_set)
        status: Document = fresh.setdefault("status", {})
        known = status.get("collisionCount")
        if known != daemon_set.status.collision_count:
            raise HistoryError(f"found a stale collision count of DaemonSet {daemon_set.key!r}")
        status["collisionCount"] = (known or 0) + 1
        metadata = daemon_set.metadata
        await self._client.update(DAEMON_SET, metadata.namespace, metadata.name, fresh, subresource="status")

    async def _single_out(self, present: list[ControllerRevision], find_pods: FindPods) -> ControllerRevision:
        if len(present) == 1:
            return present[0]
        newest = max(present, key=lambda each: each.revision)
        hashed = newest.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL, "")
        patch = {"metadata": {"labels": {CONTROLLER_REVISION_HASH_LABEL: hashed}}}
        for pod in await find_pods():
            if pod.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL) != hashed:
                metadata = pod.metadata
                await self._client.patch(POD, metadata.namespace, metadata.name, patch, form=PatchForm.MERGE)
        for revision in present:
            if revision is not newest:
                metadata = revision.metadata
                await self._client.delete(CONTROLLER_REVISION, metadata.namespace, metadata.name)
        return newest

    async def _label(self, revision: ControllerRevision) -> ControllerRevision:
        """Label a revision that an old version of Kubernetes created."""
        document = document_of(revision)
        metadata = document["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), CONTROLLER_REVISION_HASH_LABEL: revision.metadata.name}
        namespace, name = revision.metadata.namespace, revision.metadata.name
        answer = await self._client.update(CONTROLLER_REVISION, namespace, name, document)
        return decode_as(ControllerRevision, answer)
