"""The ReplicaSet controller: as many pods of a template as are wanted. And the ReplicationController's, the same.

Comes in   ReplicaSets and pods, from informers
Goes out   pods created, deleted, adopted and released; the status of ReplicaSets

 1. Pods are created and deleted only when the informer shows what was asked for last (`expectations`).
 2. Pods are looked at one by one only where it matters who they are: when some are to be deleted, adopted or released,
    or become available after a while. Otherwise the counts_by_labels has counted them.
 3. The changes of a large set are gathered for a while, and of small ones when there are many: pods change all the
    time, and nobody needs each state of a status. What the next creation waits for is never put off.
 4. A set that is gone gets no more pods, also while the informer still shows it: as soon as the API says that it is not
    there, or that another one has its name, it is left alone until the informer agrees.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar, cast

from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import REPLICA_SET, REPLICATION_CONTROLLER, Kind
from mooring.api.labels import LabelMatcher
from mooring.api.ownership import controller_of
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ReplicaSet, ReplicaSetStatus, ReplicationController
from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import BY_NAMESPACE, namespace_of
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.ratelimit import TokenBucket
from mooring.controllers.adoption import AdoptionError, claim_objects
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import document_of, is_namespace_terminating, read_document
from mooring.controllers.expectations import RESYNC_S, Expectations
from mooring.controllers.pod_control import PodControl, PodControlError, pod_of_template
from mooring.controllers.pod_ranking import pods_to_delete
from mooring.controllers.pods import (
    BY_CONTROLLER,
    add_controller_index,
    is_active,
    is_ready,
    is_terminating,
    matching_orphans,
    next_availability_s,
    ready_condition,
)
from mooring.controllers.replicaset.plan import (
    AnySet,
    CreatePods,
    DeletePods,
    PodCounts,
    count_from_index,
    count_pods,
    plan_size,
    plan_status,
    selector_of,
    status_document,
)
from mooring.kit.clock import format_rfc3339

LARGE_SET = 100
"""From how many pods on the changes of a set are gathered for a while."""
BATCH_S_PER_POD = 20e-6
COUNTS_PER_S = 50.0
COUNTS_BURST = 200
"""How often small sets are looked at only to count pods that became ready; beyond that they are gathered as well."""
BATCH_BUSY_S = 0.2
STATUS_TRIES_MAX = 2

logger = logging.getLogger(__name__)


class _NotWantedError(PodControlError):
    """Nobody wants more pods: their set goes, or is gone."""


class _SetController(Controller):
    """What both have in common."""

    view: ClassVar[type[ReplicaSet] | type[ReplicationController]]
    kind: ClassVar[Kind]
    component: ClassVar[str]

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._gone_uids: dict[str, str] = {}
        """Sets that the API has no more although the informer still shows them, by key."""
        self._patience = TokenBucket(context.clock, rate_per_s=COUNTS_PER_S, burst=COUNTS_BURST)
        self._pod_control = PodControl(context.client, context.recorder(self.component), context.clock)
        self._sets = cast(Informer[AnySet], context.informers.informer(self.view))
        self._pods = context.informers.informer(Pod)
        self._expectations = Expectations(context.clock, self._pods.has_seen)
        self._pod_counts = context.pod_counts()
        self._sets.add_index(BY_NAMESPACE, namespace_of)
        add_controller_index(self._sets)
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
            self._expectations.forget(key)
            return DONE
        if self._gone_uids.get(key) == wanted.metadata.uid:
            return DONE
        try:
            selector = selector_of(wanted)
        except LabelSelectorError as error:
            logger.error("%s %s has a selector that cannot be used: %s", wanted.kind, key, error)
            return DONE
        are_expectations_met = self._expectations.are_met(key)
        now_s = self.clock.wall_s()
        try:
            counts, active = await self._look(wanted, selector, now_s)
        except AdoptionError as error:
            return Failed(str(error))
        failure: Exception | None = None
        if are_expectations_met and wanted.metadata.deletion_timestamp is None:
            failure = await self._resize(key, wanted, counts, active)
        now_s = self.clock.wall_s() if active is None else now_s
        status = plan_status(wanted, counts, str(failure) if failure is not None else None, format_rfc3339(now_s))
        try:
            await self._write_status(wanted, status)
        except NotFoundError:
            self._gone_uids[key] = wanted.metadata.uid
            return DONE
        except ClientError as error:
            return Failed(str(error))
        if failure is not None:
            return Failed(str(failure))
        if not are_expectations_met:
            return Later(RESYNC_S)
        return self._when_next(wanted, counts, active, now_s)

    async def _look(
        self, wanted: AnySet, selector: LabelMatcher, now_s: float
    ) -> tuple[PodCounts, Sequence[Pod] | None]:
        """The set's pods counted; and they themselves, if they had to be looked at."""
        uid, namespace = wanted.metadata.uid, wanted.metadata.namespace
        orphans = matching_orphans(self._pods.lister, namespace, selector)
        if not orphans:
            counts = count_from_index(wanted, selector, self._pod_counts.of(uid))
            if counts is not None:
                return counts, None
        own = self._pods.lister.by_index(BY_CONTROLLER, uid)
        candidates = [pod for pod in (*own, *orphans) if is_active(pod)]
        active = await claim_objects(self.client, wanted, candidates, lambda pod: selector.matches(pod.metadata.labels))
        terminating = sum(is_terminating(pod) and selector.matches(pod.metadata.labels) for pod in own)
        return count_pods(wanted, active, terminating, now_s), active

    async def _resize(
        self, key: str, wanted: AnySet, counts: PodCounts, active: Sequence[Pod] | None
    ) -> Exception | None:
        """Creates or deletes pods; the first error, if there was one."""
        match plan_size(wanted, counts.active):
            case CreatePods(count):
                return await self._create(key, wanted, count)
            case DeletePods(count):
                if active is None:
                    own = self._pods.lister.by_index(BY_CONTROLLER, wanted.metadata.uid)
                    active = [pod for pod in own if is_active(pod)]
                chosen = pods_to_delete(active, self._related_pods(wanted), count, self.clock.wall_s())
                return await self._delete(key, wanted, chosen)
            case None:
                return None

    async def _create(self, key: str, wanted: AnySet, count: int) -> Exception | None:
        self._expectations.expect_creations(key, count)
        document = document_of(wanted)
        pod = pod_of_template(document["spec"].get("template") or {}, wanted)
        namespace = wanted.metadata.namespace
        attempted = 0

        async def create_one(number: int) -> None:
            nonlocal attempted
            if not self._is_still_there(key, wanted):
                raise _NotWantedError
            attempted += 1
            try:
                created = await self._pod_control.create(namespace, pod, wanted)
            except (ClientError, PodControlError) as error:
                if is_namespace_terminating(error):
                    return  # and go on expecting it: nothing can be created any more, so there is no hurry
                self._expectations.creation_failed(key)
                raise
            self._expectations.creation_answered(key, created.resource_version)

        _, error = await self._pod_control.slow_start_batch(count, create_one)
        if attempted < count:
            self._expectations.creation_failed(key, count - attempted)
        return error if not isinstance(error, _NotWantedError) else None

    def _is_still_there(self, key: str, wanted: AnySet) -> bool:
        """Whether it is still the same, as far as the informer knows by now: a burst takes its time."""
        present = self._sets.lister.by_key(key)
        return (
            present is not None
            and present.metadata.uid == wanted.metadata.uid
            and present.metadata.deletion_timestamp is None
        )

    async def _delete(self, key: str, wanted: AnySet, chosen: Sequence[Pod]) -> Exception | None:
        self._expectations.expect_deletions(key, [pod.key for pod in chosen])

        async def delete_one(pod: Pod) -> None:
            try:
                await self._pod_control.delete(pod.metadata.namespace, pod.metadata.name, wanted)
            except NotFoundError:
                self._expectations.deletion_seen(key, pod.key)
            except PodControlError:
                self._expectations.deletion_seen(key, pod.key)
                raise

        errors = await self._pod_control.run_all([*chosen], delete_one)
        return errors[0] if errors else None

    def _related_pods(self, wanted: AnySet) -> list[Pod]:
        """The active pods of all sets that have the same owner; of nobody, if the set has none."""
        owner = controller_of(wanted.metadata)
        if owner is None:
            return []
        found: dict[str, Pod] = {}
        lister = self._pods.lister
        for related in self._sets.lister.by_index(BY_CONTROLLER, owner.uid):
            try:
                selector = selector_of(related)
            except LabelSelectorError:
                continue
            own = lister.by_index(BY_CONTROLLER, related.metadata.uid)
            orphans = matching_orphans(lister, wanted.metadata.namespace, selector)
            found |= {pod.key: pod for pod in (*own, *orphans) if selector.matches(pod.metadata.labels)}
        return [*found.values()]

    async def _write_status(self, wanted: AnySet, status: ReplicaSetStatus) -> None:
        """If it differs. Once more on the newest object if that fails: counts are worth more than a conflict.

        Raises `NotFoundError` as well if another set has its name by now.
        """
        if status == wanted.status:
            return
        document = document_of(wanted)
        namespace, name = wanted.metadata.namespace, wanted.metadata.name
        for attempt in range(1, STATUS_TRIES_MAX + 1):
            document["status"] = status_document(status)
            try:
                await self.client.update(self.kind, namespace, name, document, subresource="status")
                return
            except ClientError:
                if attempt == STATUS_TRIES_MAX:
                    raise
            document = await read_document(self.client, wanted)
            if document["metadata"]["uid"] != wanted.metadata.uid:
                raise NotFoundError(f"another {self.view.kind} is called {wanted.key} by now")

    def _when_next(self, wanted: AnySet, counts: PodCounts, active: Sequence[Pod] | None, now_s: float) -> Outcome:
        min_ready_s = wanted.spec.min_ready_seconds
        if min_ready_s <= 0 or counts.ready == counts.available:
            return DONE
        after_s = next_availability_s(active or (), min_ready_s, now_s, self.clock.wall_s())
        return Later(after_s if after_s is not None else float(min_ready_s))

    # ------------------------------------------------------------------------------------- what handlers hear

    def _on_set_added(self, added: AnySet, is_initial: bool) -> None:
        self.queue.add(added.key)

    def _on_set_updated(self, old: AnySet, new: AnySet) -> None:
        if new.spec == old.spec and new.metadata.deletion_timestamp == old.metadata.deletion_timestamp:
            self._add(new)  # most likely the status that we wrote ourselves
        else:
            self.queue.add(new.key)

    def _on_set_deleted(self, gone: AnySet) -> None:
        self._expectations.forget(gone.key)
        self._gone_uids.pop(gone.key, None)
        self.queue.add(gone.key)

    def _on_pod_added(self, pod: Pod, is_initial: bool) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._on_pod_going(pod)
            return
        reference = controller_of(pod.metadata)
        if reference is None:
            self._add_all_that_select(pod)
            return
        owner = self._owner(pod.metadata.namespace, reference)
        if owner is not None:
            self._expectations.creation_seen(owner.key)
            self._add(owner)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        are_labels_changed = old.metadata.labels != new.metadata.labels
        if new.metadata.deletion_timestamp is not None:
            self._on_pod_going(new)
            if are_labels_changed:
                self._on_pod_going(old)
            return
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        if is_owner_changed and reference_before is not None:
            owner_before = self._owner(old.metadata.namespace, reference_before)
            if owner_before is not None:
                self.queue.add(owner_before.key)
        if reference is not None:
            owner = self._owner(new.metadata.namespace, reference)
            if owner is None:
                return
            if are_labels_changed or is_owner_changed or is_active(old) != is_active(new):
                self._add(owner)
            elif ready_condition(old) != ready_condition(new):
                self._add(owner, is_urgent=False)
            min_ready_s = owner.spec.min_ready_seconds
            if min_ready_s > 0 and is_ready(new) and not is_ready(old):
                self.queue.add_after(owner.key, float(min_ready_s))
        elif are_labels_changed or is_owner_changed:
            self._add_all_that_select(new)

    def _on_pod_going(self, pod: Pod) -> None:
        reference = controller_of(pod.metadata)
        owner = self._owner(pod.metadata.namespace, reference) if reference is not None else None
        if owner is not None:
            self._expectations.deletion_seen(owner.key, pod.key)
            self._add(owner)

    def _add(self, owner: AnySet, *, is_urgent: bool = True) -> None:
        """Now; of a large set with the next changes, unless pods are waiting to be created or deleted."""
        size = owner.status.replicas
        if not is_urgent and size < LARGE_SET and not self._patience.try_take():
            self.queue.add_after(owner.key, BATCH_BUSY_S)
        elif size < LARGE_SET or (owner.spec.replicas != size and self._expectations.are_met(owner.key)):
            self.queue.add(owner.key)
        else:
            self.queue.add_after(owner.key, size * BATCH_S_PER_POD)

    def _owner(self, namespace: str, reference: OwnerReference) -> AnySet | None:
        if reference.kind != self.view.kind:
            return None
        owner = self._sets.lister.get(namespace, reference.name)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def _add_all_that_select(self, pod: Pod) -> None:
        for each in self._sets.lister.list(pod.metadata.namespace):
            try:
                selector = selector_of(each)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(pod.metadata.labels):
                self.queue.add(each.key)


class ReplicaSetController(_SetController):
    name = "replicaset-controller"
    view = ReplicaSet
    kind = REPLICA_SET
    component = "replicaset-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_replicaset_syncs


class ReplicationControllerController(_SetController):
    name = "replicationcontroller-controller"
    view = ReplicationController
    kind = REPLICATION_CONTROLLER
    component = "replication-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_rc_syncs
