"""The DaemonSet controller runs one pod on each node that fits.

Inputs: DaemonSets, pods, nodes and ControllerRevisions, from informers. Outputs: pods created, deleted, adopted and
released; revisions of templates; the status of DaemonSets. The scheduler binds the pods: each has a node affinity
to one node.

1. Pods are created and deleted only while the expectations are met: the informer shows the previous requests.
2. A sync creates at most `BURST_MAX` pods and deletes as many.
3. A deleted node enqueues nothing. The pod garbage collector deletes its pods, and their deletion enqueues the
   DaemonSet.
4. Pod events of a large DaemonSet are batched, because each sync reads every node.

`DaemonSetRevisions` finds or creates the revision of the present template, and deletes old revisions:

1. A template has one revision. Of several, the highest stays, and pods of the others are relabelled.
2. A rollback to an old template gives its revision the next number.
3. Only revisions without pods are deleted, the oldest first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import CONTROLLER_REVISION, place_of
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.views.meta import ApiObject, LabelSelector, controller_of
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ControllerRevision, DaemonSet
from mooring.api.well_known import CONTROLLER_REVISION_HASH_LABEL
from mooring.client.errors import AlreadyExistsError, ClientError
from mooring.client.informer import Informer
from mooring.client.interface import Client, PatchForm
from mooring.controllers.context import DONE, ControllerContext, Failed, Outcome
from mooring.controllers.daemonset.plan import (
    DaemonSetPlan,
    DaemonSetSync,
    FailedPodsBackoff,
    FitCache,
    count_status,
    daemon_pod,
    is_same_status,
    pin_to_node,
    plan_nodes,
    plan_update,
    status_document,
    target_node,
)
from mooring.controllers.documents import document_of, read_document
from mooring.controllers.expectations import RESYNC_S
from mooring.controllers.owner_controller import AdoptionError, PodOwnerController, claim_objects
from mooring.controllers.pod_control import PodControlError
from mooring.controllers.pods import BY_CONTROLLER, BY_NODE, add_node_index, controller_index, is_finished, orphan_key
from mooring.controllers.revisions import (
    data_of,
    in_order,
    new_revision,
    read_revision,
    renumber_revision,
    revision_data,
    revision_hash,
)

BURST_MAX = 250
LARGE_SET = 100
"""Number of nodes from which on pod events are batched."""
BATCH_S_PER_NODE = 20e-6
STATUS_TRIES_MAX = 2
AVAILABILITY_MARGIN_S = 1.0
"""Added to minReadySeconds: timestamps have whole seconds."""

_EVERYTHING = LabelSelector()

PodsByNode: TypeAlias = dict[str, list[Pod]]


class DaemonSetController(PodOwnerController[DaemonSet]):
    """Keys are DaemonSets."""

    name: ClassVar[str] = "daemonset-controller"
    view = DaemonSet

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_daemonset_syncs
        self._failed_pods = FailedPodsBackoff()
        self._fits = FitCache()
        self._nodes = context.informers.informer(Node)
        revisions = context.informers.informer(ControllerRevision)
        self._history = DaemonSetRevisions(context.client, revisions)
        add_node_index(self._pods)
        self._nodes.add_handler(
            self.name, on_add=self._enqueue_for_node, on_update=self._on_node_updated, on_delete=self._on_node_deleted
        )
        self.handle_dependents(revisions)

    def selector(self, owner: DaemonSet) -> LabelMatcher:
        return compile_selector(owner.spec.selector)

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        daemon_set = self._owners.lister.by_key(key)
        if daemon_set is None:
            self._expectations.forget(key)
            return DONE
        if daemon_set.spec.selector == _EVERYTHING:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(daemon_set, "Warning", "SelectingAll", message)
            return DONE
        if daemon_set.metadata.deletion_timestamp is not None:
            return DONE  # its revisions may be gone, so its pods cannot be classified
        try:
            await self._sync_daemon_set(daemon_set, self.selector(daemon_set))
        except (ClientError, AdoptionError, HistoryError, LabelSelectorError, PodControlError) as error:
            return Failed(str(error))
        return DONE

    async def _sync_daemon_set(self, daemon_set: DaemonSet, selector: LabelMatcher) -> None:
        key = daemon_set.key
        history = await self._history.construct(daemon_set, selector, lambda: self.claim_pods(daemon_set, selector))
        state = self._new_state(daemon_set, history.hashed)
        # Before the pods are read: what arrives afterwards must not count as the result of an older request.
        are_expectations_met = self._expectations.are_met(key)
        pods = await self.claim_pods(daemon_set, selector)
        if not are_expectations_met:
            self.queue.add_after(key, RESYNC_S)
            await self._write_status(state, _by_node(pods), is_observed=False)
            return
        failure = None
        try:
            is_changed = await self._update_pods(state, pods, history, selector)
        except (ClientError, AdoptionError, PodControlError) as error:
            failure, is_changed = error, True
        if is_changed:
            pods = await self.claim_pods(daemon_set, selector)
            state = self._new_state(daemon_set, history.hashed)
        await self._write_status(state, _by_node(pods), is_observed=True)
        if failure is not None:
            raise failure

    async def _update_pods(
        self, state: DaemonSetSync, pods: Sequence[Pod], history: DaemonSetHistory, selector: LabelMatcher
    ) -> bool:
        """Create and delete pods, then do the next step of an update, then trim the history.

        Returns whether pods were created or deleted.
        """
        daemon_set, now_s = state.daemon_set, state.now_s
        key = daemon_set.key
        plan = plan_nodes(
            state, _by_node(pods), lambda node: self._failed_pods.wait_s(_failed_key(daemon_set, node), now_s)
        )
        for node in plan.failed_on:
            self._failed_pods.record(_failed_key(daemon_set, node), now_s)
        for type, reason, message in plan.events:
            self._recorder.event(daemon_set, type, reason, message)
        if plan.later_s is not None:
            self.queue.add_after(key, plan.later_s)
        is_changed = await self._execute(state, plan)
        if self._expectations.are_met(key) and daemon_set.spec.update_strategy.type == "RollingUpdate":
            pods = await self.claim_pods(daemon_set, selector) if is_changed else pods
            is_changed |= await self._execute(state, plan_update(state, _by_node(pods)))
        pods = await self.claim_pods(daemon_set, selector) if is_changed else pods
        await self._history.clean_up(daemon_set, history.old, pods)
        return is_changed

    def _new_state(self, daemon_set: DaemonSet, hashed: str) -> DaemonSetSync:
        fits = {node.metadata.name: self._fits.fit(daemon_set, node) for node in self._nodes.lister}
        return DaemonSetSync(daemon_set, fits, hashed, self.clock.wall_s())

    async def _execute(self, state: DaemonSetSync, plan: DaemonSetPlan) -> bool:
        """Create and delete the pods of a plan. Returns whether there were any. Raises the first error at the end."""
        daemon_set, nodes, to_delete = state.daemon_set, plan.nodes[:BURST_MAX], plan.to_delete[:BURST_MAX]
        self._expectations.expect(daemon_set.key, creations=len(nodes), deletions=[pod.key for pod in to_delete])
        errors: list[Exception] = []
        if nodes:
            pod = daemon_pod(daemon_set, state.hashed)
            _, error = await self._pod_control.create_pods(
                daemon_set, len(nodes), lambda number: {**pod, "spec": pin_to_node(pod["spec"], nodes[number])}
            )
            errors += [error] if error is not None else []
        if to_delete:
            errors += await self._pod_control.delete_pods(daemon_set, to_delete)
        if errors:
            raise errors[0]
        return bool(nodes or to_delete)

    async def _write_status(self, state: DaemonSetSync, by_node: PodsByNode, *, is_observed: bool) -> None:
        """Write the status if it differs. `is_observed`: the pods of the present generation were handled."""
        daemon_set, counts = state.daemon_set, count_status(state, by_node)
        min_ready_s = daemon_set.spec.min_ready_seconds
        if min_ready_s > 0 and counts.number_ready != counts.number_available:
            self.queue.add_after(daemon_set.key, float(min_ready_s))
        if is_same_status(daemon_set, counts):
            return

        def set_status(document: Document) -> None:
            document["status"] = status_document(document.get("status") or {}, counts)
            if is_observed:
                document["status"]["observedGeneration"] = daemon_set.metadata.generation

        await self.write_status(daemon_set, set_status, tries_max=STATUS_TRIES_MAX)

    # ----------------------------------------------------------------------------------------------- events

    def _on_owner_deleted(self, owner: DaemonSet) -> None:
        self._fits.forget_daemon_set(owner.metadata.uid)
        super()._on_owner_deleted(owner)

    def on_owned_pod_updated(self, owner: DaemonSet, old: Pod, new: Pod) -> None:
        self.enqueue(owner)
        min_ready_s = owner.spec.min_ready_seconds
        if min_ready_s > 0:
            self.enqueue_when_available(owner.key, min_ready_s + AVAILABILITY_MARGIN_S, old, new)

    def enqueue(self, owner: DaemonSet) -> None:
        """Now, or for a large DaemonSet after a batch period, unless an expectation waits for the event."""
        size = owner.status.desired_number_scheduled
        if size < LARGE_SET or not self._expectations.are_met(owner.key):
            self.queue.add(owner.key)
        else:
            self.queue.add_after(owner.key, size * BATCH_S_PER_NODE)

    def _on_node_updated(self, old: Node, new: Node) -> None:
        if old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints:
            self._enqueue_for_node(new)

    def _on_node_deleted(self, node: Node) -> None:
        self._fits.forget_node(node.metadata.name)

    def _enqueue_for_node(self, node: Node) -> None:
        """Enqueue the DaemonSets that have to create or delete a pod on a node."""
        references = [controller_of(pod.metadata) for pod in self._pods.lister.by_index(BY_NODE, node.metadata.name)]
        uids = {reference.uid for reference in references if reference is not None and reference.kind == DaemonSet.kind}
        for daemon_set in self._owners.lister:
            fit = self._fits.fit(daemon_set, node)
            has_pod = daemon_set.metadata.uid in uids
            is_misplaced = has_pod and (not fit.may_stay or daemon_set.status.number_misscheduled > 0)
            if is_misplaced or (fit.should_run and not has_pod):
                self.queue.add(daemon_set.key)

    def _on_dependent_added(self, revision: ApiObject) -> None:
        metadata = revision.metadata
        if controller_of(metadata) is None and metadata.deletion_timestamp is None:
            self.enqueue_selecting(metadata)


def _by_node(pods: Sequence[Pod]) -> PodsByNode:
    """Pods by the node that they are on or meant for, without terminating pods that have finished."""
    found: PodsByNode = {}
    for pod in pods:
        if is_finished(pod) and pod.metadata.deletion_timestamp is not None:
            continue
        node = target_node(pod)
        if node is not None:
            found.setdefault(node, []).append(pod)
    return found


def _failed_key(daemon_set: DaemonSet, node_name: str) -> str:
    return f"{daemon_set.metadata.uid}/{daemon_set.status.observed_generation}/{node_name}"


# --- revisions ------------------------------------------------------------------------------------------------


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
            self._client, daemon_set, (*own, *orphans), lambda revision: selector.matches(revision.metadata.labels)
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
        label = CONTROLLER_REVISION_HASH_LABEL
        used = {pod.metadata.labels.get(label) for pod in pods}
        unused = [revision for revision in in_order(old) if revision.metadata.labels.get(label) not in used]
        for revision in unused[:excess]:
            await self._client.delete(*place_of(revision))

    async def _create(
        self, daemon_set: DaemonSet, document: Document, data: Document, number: int
    ) -> ControllerRevision:
        metadata = daemon_set.metadata
        hashed = revision_hash(data, daemon_set.status.collision_count)
        name = f"{metadata.name}-{hashed}"
        labels = {**daemon_set.spec.template.metadata.labels, CONTROLLER_REVISION_HASH_LABEL: hashed}
        annotations = document["metadata"].get("annotations") or {}
        document = new_revision(daemon_set, data, number, name, labels, annotations)
        try:
            answer = await self._client.create(CONTROLLER_REVISION, metadata.namespace, document)
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
        await self._client.update(*place_of(daemon_set), fresh, subresource="status")

    async def _single_out(self, present: list[ControllerRevision], find_pods: FindPods) -> ControllerRevision:
        if len(present) == 1:
            return present[0]
        newest = max(present, key=lambda revision: revision.revision)
        hashed = newest.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL, "")
        patch = {"metadata": {"labels": {CONTROLLER_REVISION_HASH_LABEL: hashed}}}
        for pod in await find_pods():
            if pod.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL) != hashed:
                await self._client.patch(*place_of(pod), patch, form=PatchForm.MERGE)
        for revision in present:
            if revision is not newest:
                await self._client.delete(*place_of(revision))
        return newest

    async def _label(self, revision: ControllerRevision) -> ControllerRevision:
        """Label a revision that an old version of Kubernetes created."""
        document = document_of(revision)
        metadata = document["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), CONTROLLER_REVISION_HASH_LABEL: revision.metadata.name}
        answer = await self._client.update(*place_of(revision), document)
        return decode_as(ControllerRevision, answer)
