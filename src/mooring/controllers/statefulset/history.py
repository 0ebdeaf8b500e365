"""The history of a StatefulSet: its templates as revisions, the current one and the newest.

Comes in   a StatefulSet, its ControllerRevisions from an informer
Goes out   a `History`, with a revision made if the template is new; old ones deleted

 1. The current revision is what the status says, until an update is complete; without one it is the newest.
 2. Going back to an old template makes its revision the newest: it gets the next number.
 3. A revision that a pod is of is never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION
from mooring.api.labels import LabelMatcher
from mooring.api.ownership import controller_of
from mooring.api.views.daemon_sets import ControllerRevision
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import StatefulSet
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

HASH_LABEL = "controller.kubernetes.io/hash"


@dataclass(frozen=True, slots=True)
class History:
    current: ControllerRevision
    update: ControllerRevision
    collision_count: int
    revisions: Sequence[ControllerRevision]
    """All, in order; without one that was made just now."""

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


class StatefulHistory:
    """Keeps the histories of all StatefulSets."""

    def __init__(self, client: Client, revisions: Informer[ControllerRevision]) -> None:
        self._client = client
        self._revisions = revisions
        revisions.add_index(BY_CONTROLLER, controller_index)

    async def adopt(self, wanted: StatefulSet, selector: LabelMatcher) -> None:
        """Raises `AdoptionError`."""
        orphans = [each for each in self._list(wanted, selector) if controller_of(each.metadata) is None]
        if orphans:
            await claim_objects(self._client, wanted, orphans, lambda each: True)

    async def construct(self, wanted: StatefulSet, selector: LabelMatcher) -> History:
        """Raises `ClientError`."""
        revisions = in_order(self._list(wanted, selector))
        document = document_of(wanted)
        data = revision_data(document)
        number = revisions[-1].revision + 1 if revisions else 1
        collision_count = wanted.status.collision_count or 0
        equal = [each for each in revisions if data_of(each) == data]
        if equal and equal[-1] is revisions[-1]:
            update = equal[-1]
        elif equal:
            update = await renumber_revision(self._client, equal[-1], number)
        else:
            update, collision_count = await self._create(wanted, document, data, number, collision_count)
        named = (each for each in revisions if each.metadata.name == wanted.status.current_revision)
        return History(next(named, update), update, collision_count, revisions)

    async def truncate(self, wanted: StatefulSet, history: History, pods: Iterable[Pod]) -> None:
        """Delete what is more than the limit. Raises `ClientError`."""
        limit = wanted.spec.revision_history_limit
        limit = limit if limit is not None else 10
        alive = {history.current_name, history.update_name, *(revision_of(pod) for pod in pods)}
        dead = [each for each in history.revisions if each.metadata.name not in alive]
        if limit < 0 or len(dead) <= limit:
            return
        for revision in dead[: len(dead) - limit]:
            metadata = revision.metadata
            await self._client.delete(CONTROLLER_REVISION, metadata.namespace, metadata.name)

    def _list(self, wanted: StatefulSet, selector: LabelMatcher) -> list[ControllerRevision]:
        own = self._revisions.lister.by_index(BY_CONTROLLER, wanted.metadata.uid)
        orphans = self._revisions.lister.by_index(BY_CONTROLLER, orphan_key(wanted.metadata.namespace))
        return [each for each in (*own, *orphans) if selector.matches(each.metadata.labels)]

    async def _create(
        self, wanted: StatefulSet, document: Document, data: Document, number: int, collision_count: int
    ) -> tuple[ControllerRevision, int]:
        hashed = revision_hash(data, collision_count)
        labels = {**wanted.spec.template.metadata.labels, HASH_LABEL: hashed}
        name = revision_name(wanted.metadata.name, hashed)
        annotations = document["metadata"].get("annotations") or {}
        revision = new_revision(wanted, data, number, name, labels, annotations)
        return await create_revision(
            self._client, wanted.metadata.namespace, revision, wanted.metadata.name, collision_count
        )
