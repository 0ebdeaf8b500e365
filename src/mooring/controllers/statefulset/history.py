"""The revisions of a StatefulSet: the current and the updated template.

Inputs: a StatefulSet and its ControllerRevisions, from an informer. Outputs: a `StatefulSetHistory`, with a
revision created for a new template; old revisions deleted.

1. The current revision is that of the status until an update is complete. Without one it is the newest.
2. A rollback to an old template gives its revision the next number.
3. A revision with pods is never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION
from mooring.api.labels import LabelMatcher
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ControllerRevision, StatefulSet
from mooring.api.well_known import CONTROLLER_HASH_LABEL
from mooring.client.cache.informer import Informer
from mooring.client.interface import Client
from mooring.controllers.adoption import claim_objects
from mooring.controllers.documents import document_of
from mooring.controllers.pods import BY_CONTROLLER, controller_index, orphan_key
from mooring.controllers.revisions import (
    create_revision,
    data_of,
    in_order,
    new_revision,
    renumber_revision,
    revision_data,
    revision_hash,
    revision_name,
    template_of,
)
from mooring.controllers.statefulset.members import revision_of


@dataclass(frozen=True, slots=True)
class StatefulSetHistory:
    """The revisions of one StatefulSet."""

    current: ControllerRevision
    update: ControllerRevision
    collision_count: int
    revisions: Sequence[ControllerRevision]
    """All revisions in order, without one that this sync created."""

    @property
    def current_name(self) -> str:
        return self.current.metadata.name

    @property
    def update_name(self) -> str:
        return self.update.metadata.name

    def current_template(self) -> Document:
        return template_of(data_of(self.current))

    def update_template(self) -> Document:
        return template_of(data_of(self.update))


class StatefulSetRevisions:
    """The revisions of all StatefulSets."""

    def __init__(self, client: Client, revisions: Informer[ControllerRevision]) -> None:
        self._client = client
        self._revisions = revisions
        revisions.add_index(BY_CONTROLLER, controller_index)

    async def adopt(self, stateful_set: StatefulSet, selector: LabelMatcher) -> None:
        """Adopt orphaned revisions. Raises `AdoptionError`."""
        orphans = [each for each in self._list(stateful_set, selector) if controller_of(each.metadata) is None]
        if orphans:
            await claim_objects(self._client, stateful_set, orphans, lambda each: True)

    async def construct(self, stateful_set: StatefulSet, selector: LabelMatcher) -> StatefulSetHistory:
        """Find or create the revision of the present template. Raises `ClientError`."""
        revisions = in_order(self._list(stateful_set, selector))
        document = document_of(stateful_set)
        data = revision_data(document)
        number = revisions[-1].revision + 1 if revisions else 1
        collision_count = stateful_set.status.collision_count or 0
        equal = [each for each in revisions if data_of(each) == data]
        if equal and equal[-1] is revisions[-1]:
            update = equal[-1]
        elif equal:
            update = await renumber_revision(self._client, equal[-1], number)
        else:
            update, collision_count = await self._create(stateful_set, document, data, number, collision_count)
        named = (each for each in revisions if each.metadata.name == stateful_set.status.current_revision)
        return StatefulSetHistory(next(named, update), update, collision_count, revisions)

    async def truncate(self, stateful_set: StatefulSet, history: StatefulSetHistory, pods: Iterable[Pod]) -> None:
        """Delete the revisions beyond the limit. Raises `ClientError`."""
        limit = stateful_set.spec.revision_history_limit
        limit = limit if limit is not None else 10
        alive = {history.current_name, history.update_name, *(revision_of(pod) for pod in pods)}
        dead = [each for each in history.revisions if each.metadata.name not in alive]
        if limit < 0 or len(dead) <= limit:
            return
        for revision in dead[: len(dead) - limit]:
            metadata = revision.metadata
            await self._client.delete(CONTROLLER_REVISION, metadata.namespace, metadata.name)

    def _list(self, stateful_set: StatefulSet, selector: LabelMatcher) -> list[ControllerRevision]:
        own = self._revisions.lister.by_index(BY_CONTROLLER, stateful_set.metadata.uid)
        orphans = self._revisions.lister.by_index(BY_CONTROLLER, orphan_key(stateful_set.metadata.namespace))
        return [each for each in (*own, *orphans) if selector.matches(each.metadata.labels)]

    async def _create(
        self, stateful_set: StatefulSet, document: Document, data: Document, number: int, collision_count: int
    ) -> tuple[ControllerRevision, int]:
        hashed = revision_hash(data, collision_count)
        labels = {**stateful_set.spec.template.metadata.labels, CONTROLLER_HASH_LABEL: hashed}
        name = revision_name(stateful_set.metadata.name, hashed)
        annotations = document["metadata"].get("annotations") or {}
        revision = new_revision(stateful_set, data, number, name, labels, annotations)
        return await create_revision(
            self._client, stateful_set.metadata.namespace, revision, stateful_set.metadata.name, collision_count
        )
