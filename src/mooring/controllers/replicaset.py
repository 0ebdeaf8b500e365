"""Controllers of ReplicaSets and ReplicationControllers: keep the desired number of pods.

Inputs: ReplicaSets and pods, from informers. Outputs: pods created, deleted, adopted and released; the status of
ReplicaSets.

1. Pods are created and deleted only while the expectations are met: the informer shows the previous requests.
2. Pods are read one by one only where their identity matters: to delete, adopt or release some, or while some
   become available later. Otherwise `PodCountIndex` has counted them.
3. Pod events of a large ReplicaSet are batched, and those of small ones when there are many. What the next creation
   waits for is never delayed.
4. A ReplicaSet that is deleted in the API gets no more pods, also while the informer still shows it.

The plan says what a ReplicaSet needs next: more pods, fewer pods, another status. It does no I/O. A
ReplicationController works the same way, but does not count terminating pods.

1. At most `BURST_MAX` pods are created or deleted in one sync.
2. The status has the counts from before the creations of the sync.
3. A failure sets the condition ReplicaFailure with its first message. The next success removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.labels import LabelMatcher, compile_selector, matcher_of_pairs
from mooring.api.views.meta import Condition, controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ReplicaSet, ReplicaSetStatus, ReplicationController
from mooring.client.errors import NotFoundError
from mooring.client.ratelimit import TokenBucket
from mooring.controllers.context import DONE, ControllerContext, Failed, Later, Outcome
from mooring.controllers.documents import REPLICA_FAILURE, document_of, view_document
from mooring.controllers.expectations import RESYNC_S
from mooring.controllers.owner_controller import AdoptionError, PodOwnerController, claim_objects
from mooring.controllers.pod_control import pod_of_template
from mooring.controllers.pod_indexes import LabelsKey, StateCounts
from mooring.controllers.pods import (
    BY_CONTROLLER,
    add_controller_index,
    is_active,
    is_available,
    is_ready,
    is_terminating,
    matching_orphans,
    pods_to_delete,
    ready_condition,
    replicas_of,
)
from mooring.kit.clock import format_rfc3339

BURST_MAX = 500

AnySet: TypeAlias = ReplicaSet | ReplicationController


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Counts of a set's pods. All but `terminating` count active pods."""

    active: int = 0
    fully_labeled: int = 0
    ready: int = 0
    available: int = 0
    terminating: int = 0


def selector_of(owner: AnySet) -> LabelMatcher:
    """The selector of a set. Raises `LabelSelectorError`."""
    if isinstance(owner, ReplicationController):
        return matcher_of_pairs(owner.spec.selector or {})
    return compile_selector(owner.spec.selector)


def pods_to_add(owner: AnySet, active: int) -> int:
    """How many pods to create in one sync; negative: to delete."""
    return max(-BURST_MAX, min(replicas_of(owner) - active, BURST_MAX))


def count_pods(owner: AnySet, active: Iterable[Pod], terminating: int, now_s: float) -> PodCounts:
    """Count pods one by one. `active` are the active pods of the set."""
    template_labels = owner.spec.template.metadata.labels
    min_ready_s = owner.spec.min_ready_seconds
    all_active = fully_labeled = ready = available = 0
    for pod in active:
        all_active += 1
        fully_labeled += carries(pod.metadata.labels, template_labels)
        if is_ready(pod):
            ready += 1
            available += is_available(pod, min_ready_s, now_s)
    return PodCounts(all_active, fully_labeled, ready, available, terminating)


def count_from_index(
    owner: AnySet, selector: LabelMatcher, counts_by_labels: Mapping[LabelsKey, StateCounts]
) -> PodCounts | None:
    """Count pods by the index. None if a pod must be read, because it is released or becomes available later."""
    template_labels = owner.spec.template.metadata.labels
    active = fully_labeled = ready = terminating = 0
    for key, counts in counts_by_labels.items():
        labels = dict(key)
        if not selector.matches(labels):
            if counts.active:
                return None
            continue
        active += counts.active
        ready += counts.ready
        terminating += counts.terminating
        if carries(labels, template_labels):
            fully_labeled += counts.active
    if ready and owner.spec.min_ready_seconds > 0:
        return None
    return PodCounts(active, fully_labeled, ready, ready, terminating)


def plan_status(owner: AnySet, counts: PodCounts, failure: str | None, now: str) -> ReplicaSetStatus:
    """The new status. `failure` is the error of the last creation or deletion."""
    has_terminating = isinstance(owner, ReplicaSet)
    return ReplicaSetStatus(
        replicas=counts.active,
        fully_labeled_replicas=counts.fully_labeled,
        ready_replicas=counts.ready,
        available_replicas=counts.available,
        terminating_replicas=counts.terminating if has_terminating else None,
        observed_generation=owner.metadata.generation,
        conditions=_conditions(owner, counts, failure, now),
    )


def status_document(status: ReplicaSetStatus) -> Document:
    """A status in the form of the API, without zeros except for the replicas."""
    return {"replicas": status.replicas, **view_document(status)}


def carries(labels: Mapping[str, str], expected: Mapping[str, str]) -> bool:
    """Whether labels include all wanted ones."""
    return all(labels.get(key) == value for key, value in expected.items())


def _conditions(owner: AnySet, counts: PodCounts, failure: str | None, now: str) -> tuple[Condition, ...]:
    conditions = owner.status.conditions
    has_failed = any(condition.type == REPLICA_FAILURE for condition in conditions)
    if failure is not None and not has_failed:
        missing = replicas_of(owner) - counts.active
        reason = "FailedCreate" if missing > 0 else "FailedDelete" if missing < 0 else ""
        failed = Condition(
            type=REPLICA_FAILURE, status="True", reason=reason, message=failure, last_transition_time=now
        )
        return (*conditions, failed)
    if failure is None and has_failed:
        return tuple(condition for condition in conditions if condition.type != REPLICA_FAILURE)
    return conditions


LARGE_SET = 100
"""Number of pods from which on pod events are batched."""
BATCH_S_PER_POD = 20e-6
COUNTS_PER_S = 50.0
COUNTS_BURST = 200
"""Rate of syncs of small ReplicaSets that only count ready pods. Beyond it their pod events are batched, too."""
BATCH_BUSY_S = 0.2
STATUS_TRIES_MAX = 2

logger = logging.getLogger(__name__)


class _SetController(PodOwnerController[AnySet]):
    """The common part of both controllers."""

    def __init__(self, context: ControllerContext) -> None:
        self._pod_counts = context.pod_counts()  # first: its handler runs before those of the controller
        super().__init__(context)
        self._deleted_uids: dict[str, str] = {}
        """Uids of sets that the API no longer has although the informer shows them, by key."""
        self._immediate_counts = TokenBucket(context.clock, rate_per_s=COUNTS_PER_S, burst=COUNTS_BURST)
        add_controller_index(self._owners)

    def selector(self, owner: AnySet) -> LabelMatcher:
        return selector_of(owner)

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        owner = self._owners.lister.by_key(key)
        if owner is None:
            self._expectations.forget(key)
            return DONE
        if self._deleted_uids.get(key) == owner.metadata.uid:
            return DONE
        try:
            selector = selector_of(owner)
        except LabelSelectorError as error:
            logger.error("%s %s has an invalid selector: %s", owner.kind, key, error)
            return DONE
        are_expectations_met = self._expectations.are_met(key)
        now_s = self.clock.wall_s()
        try:
            counts, active = await self._count_pods(owner, selector, now_s)
        except AdoptionError as error:
            return Failed(str(error))
        failure: Exception | None = None
        if are_expectations_met and owner.metadata.deletion_timestamp is None:
            failure = await self._resize(owner, counts, active)
        now_s = self.clock.wall_s() if active is None else now_s
        try:
            await self._write_status(owner, counts, str(failure) if failure is not None else None, now_s)
        except NotFoundError:
            self._deleted_uids[key] = owner.metadata.uid
            return DONE
        if failure is not None:
            return Failed(str(failure))
        if not are_expectations_met:
            return Later(RESYNC_S)
        if counts.ready == counts.available:
            return DONE
        return self.outcome_until_available(active or (), owner.spec.min_ready_seconds, now_s)

    async def _count_pods(
        self, owner: AnySet, selector: LabelMatcher, now_s: float
    ) -> tuple[PodCounts, Sequence[Pod] | None]:
        """The counts, and the active pods if they had to be read one by one."""
        uid, namespace = owner.metadata.uid, owner.metadata.namespace
        orphans = matching_orphans(self._pods.lister, namespace, selector)
        if not orphans:
            counts = count_from_index(owner, selector, self._pod_counts.of(uid))
            if counts is not None:
                return counts, None
        own = self._pods.lister.by_index(BY_CONTROLLER, uid)
        candidates = [pod for pod in (*own, *orphans) if is_active(pod)]
        active = await claim_objects(self.client, owner, candidates, lambda pod: selector.matches(pod.metadata.labels))
        terminating = sum(is_terminating(pod) and selector.matches(pod.metadata.labels) for pod in own)
        return count_pods(owner, active, terminating, now_s), active

    async def _resize(self, owner: AnySet, counts: PodCounts, active: Sequence[Pod] | None) -> Exception | None:
        """Create or delete pods. Returns the first error."""
        count = pods_to_add(owner, counts.active)
        if count > 0:
            return await self._create(owner, count)
        if count == 0:
            return None
        if active is None:
            own = self._pods.lister.by_index(BY_CONTROLLER, owner.metadata.uid)
            active = [pod for pod in own if is_active(pod)]
        pods = pods_to_delete(active, self._related_pods(owner), -count, self.clock.wall_s())
        self._expectations.expect(owner.key, deletions=[pod.key for pod in pods])
        errors = await self._pod_control.delete_pods(owner, pods)
        return errors[0] if errors else None

    async def _create(self, owner: AnySet, count: int) -> Exception | None:
        self._expectations.expect(owner.key, creations=count)
        pod = pod_of_template(document_of(owner)["spec"].get("template") or {}, owner)

        def is_wanted() -> bool:
            # A large batch takes time, in which the owner may be deleted.
            present = self._owners.lister.by_key(owner.key)
            return (
                present is not None
                and present.metadata.uid == owner.metadata.uid
                and present.metadata.deletion_timestamp is None
            )

        _, error = await self._pod_control.create_pods(owner, count, lambda number: pod, is_wanted)
        return error

    def _related_pods(self, owner: AnySet) -> list[Pod]:
        """The pods of all sets with the same controller. Empty without a controller."""
        controller = controller_of(owner.metadata)
        if controller is None:
            return []
        found: dict[str, Pod] = {}
        lister = self._pods.lister
        for related in self._owners.lister.by_index(BY_CONTROLLER, controller.uid):
            try:
                selector = selector_of(related)
            except LabelSelectorError:
                continue
            own = lister.by_index(BY_CONTROLLER, related.metadata.uid)
            orphans = matching_orphans(lister, owner.metadata.namespace, selector)
            found |= {pod.key: pod for pod in (*own, *orphans) if selector.matches(pod.metadata.labels)}
        return [*found.values()]

    async def _write_status(self, owner: AnySet, counts: PodCounts, failure: str | None, now_s: float) -> None:
        """Raises `ClientError`; `NotFoundError` if the set is gone."""
        status = plan_status(owner, counts, failure, format_rfc3339(now_s))
        if status == owner.status:
            return

        def set_status(document: Document) -> None:
            document["status"] = status_document(status)

        await self.write_status(owner, set_status, tries_max=STATUS_TRIES_MAX)

    # ----------------------------------------------------------------------------------------------- events

    def _on_owner_updated(self, old: AnySet, new: AnySet) -> None:
        if new.spec == old.spec and new.metadata.deletion_timestamp == old.metadata.deletion_timestamp:
            self.enqueue(new)  # most likely the status that this controller wrote
        else:
            self.queue.add(new.key)

    def _on_owner_deleted(self, owner: AnySet) -> None:
        self._deleted_uids.pop(owner.key, None)
        super()._on_owner_deleted(owner)

    def on_owned_pod_updated(self, owner: AnySet, old: Pod, new: Pod) -> None:
        if (
            old.metadata.labels != new.metadata.labels
            or is_active(old) != is_active(new)
            or controller_of(old.metadata) != controller_of(new.metadata)
        ):
            self.enqueue(owner)
        elif ready_condition(old) != ready_condition(new):
            if owner.status.replicas < LARGE_SET and not self._immediate_counts.try_take():
                self.queue.add_after(owner.key, BATCH_BUSY_S)
            else:
                self.enqueue(owner)
        self.enqueue_when_available(owner.key, owner.spec.min_ready_seconds, old, new)

    def enqueue(self, owner: AnySet) -> None:
        """Now, or for a large set after a batch period, unless pods have to be created or deleted."""
        size = owner.status.replicas
        if size < LARGE_SET or (owner.spec.replicas != size and self._expectations.are_met(owner.key)):
            self.queue.add(owner.key)
        else:
            self.queue.add_after(owner.key, size * BATCH_S_PER_POD)


class ReplicaSetController(_SetController):
    """Keys are ReplicaSets."""

    name: ClassVar[str] = "replicaset-controller"
    view = ReplicaSet

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_replicaset_syncs


class ReplicationControllerController(_SetController):
    """Keys are ReplicationControllers."""

    name: ClassVar[str] = "replicationcontroller-controller"
    view = ReplicationController
    component: ClassVar[str] = "replication-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_rc_syncs
