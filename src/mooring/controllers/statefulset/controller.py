"""The StatefulSet controller: pods with numbers, and claims that stay theirs.

Comes in   StatefulSets, pods, claims and ControllerRevisions, from informers
Goes out   pods and claims created, corrected and deleted; revisions of templates; the status of StatefulSets

 1. There are no expectations: a member has a name, so that creating it twice fails, and deleting it twice does nothing.
 2. The status is written even if something in the round failed, and the history is cut even then.
 3. What the pods of a large set tell is gathered for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import STATEFUL_SET
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.ownership import controller_of
from mooring.api.views.daemon_sets import ControllerRevision
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import StatefulSet, StatefulSetStatus
from mooring.client.cache.lister import BY_NAMESPACE, namespace_of
from mooring.client.errors import ClientError, ConflictError
from mooring.controllers.adoption import AdoptionError, claim_objects
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import document_of, read_document
from mooring.controllers.pod_control import PodControl, PodControlError
from mooring.controllers.pods import (
    BY_CONTROLLER,
    add_controller_index,
    is_ready,
    next_availability_s,
    orphan_key,
)
from mooring.controllers.statefulset.history import History, StatefulHistory
from mooring.controllers.statefulset.members import (
    is_made_of_current,
    is_member,
    member_document,
    member_of,
)
from mooring.controllers.statefulset.plan import (
    Action,
    CorrectClaims,
    CorrectMember,
    CreateMember,
    DeleteMember,
    EnsureClaims,
    Plan,
    count_status,
    is_parallel,
    is_status_stale,
    is_update_complete,
    plan,
    status_document,
)
from mooring.controllers.statefulset.pods import ClaimsError, StatefulPods

LARGE_SET = 100
BATCH_S_PER_POD = 20e-6
STATUS_TRIES_MAX = 5

logger = logging.getLogger(__name__)


class StatefulSetController(Controller):
    name = "statefulset-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_statefulset_syncs
        recorder = context.recorder(self.name)
        self._sets = context.informers.informer(StatefulSet)
        self._pods = context.informers.informer(Pod)
        claims = context.informers.informer(PersistentVolumeClaim)
        self._history = StatefulHistory(context.client, context.informers.informer(ControllerRevision))
        self._stateful_pods = StatefulPods(context.client, recorder, claims.lister)
        self._pod_control = PodControl(context.client, recorder, context.clock)
        self._sets.add_index(BY_NAMESPACE, namespace_of)
        add_controller_index(self._pods)
        self._sets.add_handler(
            self.name, on_add=self._on_set_added, on_update=self._on_set_updated, on_delete=self._on_set_deleted
        )
        self._pods.add_handler(
            self.name, on_add=self._on_pod_added, on_update=self._on_pod_updated, on_delete=self._on_pod_going
        )

    # ---------------------------------------------------------------------------------------------- one key

    async def sync(self, key: str) -> Outcome:
        wanted = self._sets.lister.by_key(key)
        if wanted is None:
            return DONE
        try:
            selector = compile_selector(wanted.spec.selector)
        except LabelSelectorError as error:
            logger.error("StatefulSet %s has a selector that cannot be used: %s", key, error)
            return DONE
        try:
            await self._history.adopt(wanted, selector)
            pods = await self._claim_pods(wanted, selector)
            return await self._work_on(wanted, selector, pods)
        except (ClientError, AdoptionError, ClaimsError, PodControlError) as error:
            return Failed(str(error))

    async def _claim_pods(self, wanted: StatefulSet, selector: LabelMatcher) -> list[Pod]:
        own = self._pods.lister.by_index(BY_CONTROLLER, wanted.metadata.uid)
        orphans = self._pods.lister.by_index(BY_CONTROLLER, orphan_key(wanted.metadata.namespace))
        return await claim_objects(
            self.client,
            wanted,
            (*own, *orphans),
            lambda pod: selector.matches(pod.metadata.labels) and is_member(wanted, pod),
        )

    async def _work_on(self, wanted: StatefulSet, selector: LabelMatcher, pods: list[Pod]) -> Outcome:
        now_s = self.clock.wall_s()
        namespace = wanted.metadata.namespace
        history = await self._history.construct(wanted, selector)
        status = count_status(wanted, pods, history.current_name, history.update_name, history.collision_count, now_s)
        planned = plan(
            wanted, pods, history.update_name, lambda name: self._stateful_pods.find_claim(namespace, name), now_s
        )
        failure = await self._carry_out(wanted, planned, history)
        if failure is None and planned.update is not None:
            status = msgspec.structs.replace(status, current_replicas=status.current_replicas - 1)
        try:
            await self._write_status(wanted, status)
        finally:
            await self._history.truncate(wanted, history, pods)
        if failure is not None:
            return Failed(str(failure))
        return self._when_next(wanted, status, pods, now_s)

    def _when_next(self, wanted: StatefulSet, status: StatefulSetStatus, pods: Sequence[Pod], now_s: float) -> Outcome:
        min_ready_s = wanted.spec.min_ready_seconds
        if min_ready_s <= 0 or status.ready_replicas == status.available_replicas:
            return DONE
        after_s = next_availability_s(pods, min_ready_s, now_s, self.clock.wall_s())
        return Later(after_s if after_s is not None else float(min_ready_s))

    # ------------------------------------------------------------------------------------------------- acting

    async def _carry_out(self, wanted: StatefulSet, planned: Plan, history: History) -> Exception | None:
        """Phase after phase; the first error ends it."""
        updates: list[Action] = [planned.update] if planned.update is not None else []
        phases: list[list[list[Action]]] = [
            planned.members,
            [[action] for action in planned.claims],
            [[action] for action in planned.condemned],
            [updates],
        ]
        for phase in phases:
            error = await self._run_phase(wanted, phase, history)
            if error is not None:
                return error
        return None

    async def _run_phase(self, wanted: StatefulSet, phase: list[list[Action]], history: History) -> Exception | None:
        if not is_parallel(wanted):
            for actions in phase:
                try:
                    await self._act_all(wanted, actions, history)
                except (ClientError, ClaimsError) as error:
                    return error
            return None

        async def act_on(number: int) -> None:
            try:
                await self._act_all(wanted, phase[number], history)
            except ClaimsError as error:
                raise PodControlError(str(error)) from error

        _, first = await self._pod_control.slow_start_batch(len(phase), act_on)
        return first

    async def _act_all(self, wanted: StatefulSet, actions: Sequence[Action], history: History) -> None:
        for action in actions:
            await self._act(wanted, action, history)

    async def _act(self, wanted: StatefulSet, action: Action, history: History) -> None:
        match action:
            case CreateMember(ordinal):
                if is_made_of_current(wanted, ordinal):
                    template, revision = history.current_template(), history.current_name
                else:
                    template, revision = history.update_template(), history.update_name
                pod = member_document(wanted, template, revision, ordinal)
                await self._stateful_pods.create(wanted, pod, ordinal)
            case DeleteMember(pod):
                await self._stateful_pods.delete(wanted, pod)
            case EnsureClaims(pod):
                await self._stateful_pods.ensure_claims(wanted, pod)
            case CorrectMember(pod):
                await self._stateful_pods.correct(wanted, pod)
            case CorrectClaims(pod):
                await self._stateful_pods.correct_claims(member_of(wanted, pod))

    async def _write_status(self, wanted: StatefulSet, status: StatefulSetStatus) -> None:
        if is_update_complete(wanted, status):
            status = msgspec.structs.replace(
                status, current_replicas=status.updated_replicas, current_revision=status.update_revision
            )
        if not is_status_stale(wanted.status, status):
            return
        metadata = wanted.metadata
        document = document_of(wanted)
        for attempt in range(1, STATUS_TRIES_MAX + 1):
            document["status"] = status_document(status)
            try:
                await self.client.update(
                    STATEFUL_SET, metadata.namespace, metadata.name, document, subresource="status"
                )
                return
            except ConflictError:
                if attempt == STATUS_TRIES_MAX:
                    raise
            document = await read_document(self.client, wanted)

    # ------------------------------------------------------------------------------------------ what is heard

    def _on_set_added(self, wanted: StatefulSet, is_initial: bool) -> None:
        self.queue.add(wanted.key)

    def _on_set_updated(self, old: StatefulSet, new: StatefulSet) -> None:
        self.queue.add(new.key)

    def _on_set_deleted(self, wanted: StatefulSet) -> None:
        self.queue.add(wanted.key)

    def _on_pod_added(self, pod: Pod, is_initial: bool) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._on_pod_going(pod)
            return
        reference = controller_of(pod.metadata)
        if reference is None:
            self._add_all_that_select(pod)
        else:
            self._add_owner(pod.metadata.namespace, reference)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        if is_owner_changed and reference_before is not None:
            self._add_owner(old.metadata.namespace, reference_before)
        if reference is None:
            if is_owner_changed or new.metadata.labels != old.metadata.labels:
                self._add_all_that_select(new)
            return
        owner = self._add_owner(new.metadata.namespace, reference)
        if owner is not None and owner.spec.min_ready_seconds > 0 and is_ready(new) and not is_ready(old):
            self.queue.add_after(owner.key, float(owner.spec.min_ready_seconds))

    def _on_pod_going(self, pod: Pod) -> None:
        reference = controller_of(pod.metadata)
        if reference is not None:
            self._add_owner(pod.metadata.namespace, reference)

    def _add_owner(self, namespace: str, reference: OwnerReference) -> StatefulSet | None:
        if reference.kind != StatefulSet.kind:
            return None
        owner = self._sets.lister.get(namespace, reference.name)
        if owner is None or owner.metadata.uid != reference.uid:
            return None
        size = owner.status.replicas
        self.queue.add_after(owner.key, size * BATCH_S_PER_POD if size >= LARGE_SET else 0.0)
        return owner

    def _add_all_that_select(self, pod: Pod) -> None:
        for each in self._sets.lister.list(pod.metadata.namespace):
            try:
                selector = compile_selector(each.spec.selector)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(pod.metadata.labels):
                self.queue.add(each.key)
