"""The StatefulSet controller runs pods with ordinals, each with its own name and claims.

Inputs: StatefulSets, pods, claims and ControllerRevisions, from informers. Outputs: pods and claims created,
corrected and deleted; revisions of templates; the status of StatefulSets.

1. Expectations are not needed: a pod has a fixed name, so that a second creation fails and a second deletion has no
   effect.
2. The status is written and the history is trimmed also after a failure.
3. Pod events of a large StatefulSet are batched.

A `StatefulSetHistory` has the revisions of the current and of the updated template. A new template gets a revision, and
old revisions are deleted:

1. The current revision is that of the status until an update is complete. Without one it is the newest.
2. A rollback to an old template gives its revision the next number.
3. A revision with pods is never deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import place_of
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.meta import controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import ControllerRevision, StatefulSet, StatefulSetStatus
from mooring.api.well_known import CONTROLLER_HASH_LABEL
from mooring.client.errors import ClientError, ConflictError
from mooring.client.informer import Informer
from mooring.client.interface import Client
from mooring.controllers.context import DONE, ControllerContext, Failed, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.owner_controller import AdoptionError, PodOwnerController, claim_objects
from mooring.controllers.pod_control import PodControlError
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
from mooring.controllers.statefulset.members import (
    is_made_of_current,
    is_member,
    member_document,
    member_of,
    revision_of,
)
from mooring.controllers.statefulset.plan import (
    Action,
    CorrectClaims,
    CorrectMember,
    CreateMember,
    DeleteMember,
    EnsureClaims,
    StatefulSetPlan,
    count_status,
    is_parallel,
    is_status_stale,
    is_update_complete,
    plan,
    status_document,
)
from mooring.controllers.statefulset.pods import ClaimsError, StatefulPods

LARGE_SET = 100
"""Number of pods from which on pod events are batched."""
BATCH_S_PER_POD = 20e-6
STATUS_TRIES_MAX = 5

logger = logging.getLogger(__name__)


class StatefulSetController(PodOwnerController[StatefulSet]):
    """Keys are StatefulSets."""

    name: ClassVar[str] = "statefulset-controller"
    view = StatefulSet

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_statefulset_syncs
        claims = context.informers.informer(PersistentVolumeClaim)
        self._history = StatefulSetRevisions(context.client, context.informers.informer(ControllerRevision))
        self._stateful_pods = StatefulPods(context.client, self._recorder, claims.lister)

    def selector(self, owner: StatefulSet) -> LabelMatcher:
        return compile_selector(owner.spec.selector)

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        stateful_set = self._owners.lister.by_key(key)
        if stateful_set is None:
            return DONE
        try:
            selector = self.selector(stateful_set)
        except LabelSelectorError as error:
            logger.error("StatefulSet %s has an invalid selector: %s", key, error)
            return DONE
        try:
            await self._history.adopt(stateful_set, selector)
            pods = await self.claim_pods(
                stateful_set,
                selector,
                is_match=lambda pod: selector.matches(pod.metadata.labels) and is_member(stateful_set, pod),
            )
            return await self._sync_stateful_set(stateful_set, selector, pods)
        except (ClientError, AdoptionError, ClaimsError, PodControlError) as error:
            return Failed(str(error))

    async def _sync_stateful_set(self, stateful_set: StatefulSet, selector: LabelMatcher, pods: list[Pod]) -> Outcome:
        now_s = self.clock.wall_s()
        namespace = stateful_set.metadata.namespace
        history = await self._history.construct(stateful_set, selector)
        current, update, collisions = history.current_name, history.update_name, history.collision_count
        status = count_status(stateful_set, pods, current, update, collisions, now_s)
        planned = plan(stateful_set, pods, update, lambda name: self._stateful_pods.find_claim(namespace, name), now_s)
        failure = await self._execute(stateful_set, planned, history)
        if failure is None and planned.update is not None:
            status = msgspec.structs.replace(status, current_replicas=status.current_replicas - 1)
        try:
            await self._write_status(stateful_set, status)
        finally:
            await self._history.truncate(stateful_set, history, pods)
        if failure is not None:
            return Failed(str(failure))
        if status.ready_replicas == status.available_replicas:
            return DONE
        return self.outcome_until_available(pods, stateful_set.spec.min_ready_seconds, now_s)

    # -------------------------------------------------------------------------------------------- executing

    async def _execute(
        self, stateful_set: StatefulSet, planned: StatefulSetPlan, history: StatefulSetHistory
    ) -> Exception | None:
        """Execute the phases of a plan. The first error ends the sync and is returned."""
        updates: list[Action] = [planned.update] if planned.update is not None else []
        phases: list[list[list[Action]]] = [
            planned.members,
            [[action] for action in planned.claims],
            [[action] for action in planned.condemned],
            [updates],
        ]
        for phase in phases:
            error = await self._run_phase(stateful_set, phase, history)
            if error is not None:
                return error
        return None

    async def _run_phase(
        self, stateful_set: StatefulSet, phase: list[list[Action]], history: StatefulSetHistory
    ) -> Exception | None:
        if not is_parallel(stateful_set):
            for actions in phase:
                try:
                    await self._act_all(stateful_set, actions, history)
                except (ClientError, ClaimsError) as error:
                    return error
            return None

        async def act_on(number: int) -> None:
            try:
                await self._act_all(stateful_set, phase[number], history)
            except ClaimsError as error:
                raise PodControlError(str(error)) from error

        _, first = await self._pod_control.slow_start_batch(len(phase), act_on)
        return first

    async def _act_all(self, stateful_set: StatefulSet, actions: Sequence[Action], history: StatefulSetHistory) -> None:
        for action in actions:
            await self._act(stateful_set, action, history)

    async def _act(self, stateful_set: StatefulSet, action: Action, history: StatefulSetHistory) -> None:
        match action:
            case CreateMember(ordinal):
                if is_made_of_current(stateful_set, ordinal):
                    template, revision = history.current_template(), history.current_name
                else:
                    template, revision = history.update_template(), history.update_name
                pod = member_document(stateful_set, template, revision, ordinal)
                await self._stateful_pods.create(stateful_set, pod, ordinal)
            case DeleteMember(pod):
                await self._stateful_pods.delete(stateful_set, pod)
            case EnsureClaims(pod):
                await self._stateful_pods.ensure_claims(stateful_set, pod)
            case CorrectMember(pod):
                await self._stateful_pods.correct(stateful_set, pod)
            case CorrectClaims(pod):
                await self._stateful_pods.correct_claims(member_of(stateful_set, pod))

    async def _write_status(self, stateful_set: StatefulSet, status: StatefulSetStatus) -> None:
        if is_update_complete(stateful_set, status):
            status = msgspec.structs.replace(
                status, current_replicas=status.updated_replicas, current_revision=status.update_revision
            )
        if not is_status_stale(stateful_set.status, status):
            return

        def set_status(document: Document) -> None:
            document["status"] = status_document(status)

        await self.write_status(stateful_set, set_status, tries_max=STATUS_TRIES_MAX, retry_on=ConflictError)

    # ----------------------------------------------------------------------------------------------- events

    def on_owned_pod_updated(self, owner: StatefulSet, old: Pod, new: Pod) -> None:
        self.enqueue(owner)
        self.enqueue_when_available(owner.key, owner.spec.min_ready_seconds, old, new)

    def on_pod_released(self, former: StatefulSet, pod: Pod) -> None:
        self.enqueue(former)

    def enqueue(self, owner: StatefulSet) -> None:
        """Now, or for a large StatefulSet after a batch period."""
        size = owner.status.replicas
        self.queue.add_after(owner.key, size * BATCH_S_PER_POD if size >= LARGE_SET else 0.0)


# --- revisions ------------------------------------------------------------------------------------------------


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
        orphans = [
            revision for revision in self._list(stateful_set, selector) if controller_of(revision.metadata) is None
        ]
        if orphans:
            await claim_objects(self._client, stateful_set, orphans, lambda revision: True)

    async def construct(self, stateful_set: StatefulSet, selector: LabelMatcher) -> StatefulSetHistory:
        """Find or create the revision of the present template. Raises `ClientError`."""
        revisions = in_order(self._list(stateful_set, selector))
        document = document_of(stateful_set)
        data = revision_data(document)
        number = revisions[-1].revision + 1 if revisions else 1
        collision_count = stateful_set.status.collision_count or 0
        equal = [revision for revision in revisions if data_of(revision) == data]
        if equal and equal[-1] is revisions[-1]:
            update = equal[-1]
        elif equal:
            update = await renumber_revision(self._client, equal[-1], number)
        else:
            update, collision_count = await self._create(stateful_set, document, data, number, collision_count)
        named = (revision for revision in revisions if revision.metadata.name == stateful_set.status.current_revision)
        return StatefulSetHistory(next(named, update), update, collision_count, revisions)

    async def truncate(self, stateful_set: StatefulSet, history: StatefulSetHistory, pods: Iterable[Pod]) -> None:
        """Delete the revisions beyond the limit. Raises `ClientError`."""
        limit = stateful_set.spec.revision_history_limit
        limit = limit if limit is not None else 10
        used = {history.current_name, history.update_name, *(revision_of(pod) for pod in pods)}
        unused = [revision for revision in history.revisions if revision.metadata.name not in used]
        if limit < 0 or len(unused) <= limit:
            return
        for revision in unused[: len(unused) - limit]:
            await self._client.delete(*place_of(revision))

    def _list(self, stateful_set: StatefulSet, selector: LabelMatcher) -> list[ControllerRevision]:
        own = self._revisions.lister.by_index(BY_CONTROLLER, stateful_set.metadata.uid)
        orphans = self._revisions.lister.by_index(BY_CONTROLLER, orphan_key(stateful_set.metadata.namespace))
        return [revision for revision in (*own, *orphans) if selector.matches(revision.metadata.labels)]

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
