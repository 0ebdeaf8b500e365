"""The StatefulSet controller runs pods with ordinals, whose claims stay theirs.

Inputs: StatefulSets, pods, claims and ControllerRevisions, from informers. Outputs: pods and claims created,
corrected and deleted; revisions of templates; the status of StatefulSets.

1. Expectations are not needed: a pod has a fixed name, so that a second creation fails and a second deletion has no
   effect.
2. The status is written and the history is trimmed also after a failure.
3. Pod events of a large StatefulSet are batched.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import ControllerRevision, StatefulSet, StatefulSetStatus
from mooring.client.errors import ClientError, ConflictError
from mooring.controllers.adoption import AdoptionError
from mooring.controllers.context import DONE, ControllerContext, Failed, Outcome
from mooring.controllers.owner_controller import PodOwnerController
from mooring.controllers.pod_control import PodControlError
from mooring.controllers.statefulset.history import StatefulSetHistory, StatefulSetRevisions
from mooring.controllers.statefulset.members import is_made_of_current, is_member, member_document, member_of
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
