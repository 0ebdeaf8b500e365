"""The DaemonSet controller: one pod on each node that fits.

Comes in   DaemonSets, pods, nodes and ControllerRevisions, from informers
Goes out   pods created, deleted, adopted and released; revisions of templates; the status of DaemonSets

The scheduler places the pods: each is made with an affinity to its one node.

 1. Pods are created and deleted only when the informer shows what was asked for last (`expectations`).
 2. At most `BURST_MAX` pods are created and as many deleted in one round.
 3. A node that vanishes wakes nobody: its pods are collected by others, and their going wakes the DaemonSet.
 4. What the pods of a large DaemonSet tell is gathered for a while: each round looks at every node.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import DAEMON_SET
from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.ownership import controller_of
from mooring.api.views.daemon_sets import ControllerRevision, DaemonSet
from mooring.api.views.meta import ObjectMeta, OwnerReference
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.selectors import LabelSelector
from mooring.client.cache.lister import BY_NAMESPACE, namespace_of
from mooring.client.errors import ClientError, NotFoundError
from mooring.controllers.adoption import AdoptionError, claim_objects
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.daemonset.history import DaemonHistory, History, HistoryError
from mooring.controllers.daemonset.nodes import FitCache, daemon_pod, pin_to_node, target_node
from mooring.controllers.daemonset.plan import (
    FailedPodsBackoff,
    Plan,
    Target,
    count_status,
    is_same_status,
    plan_nodes,
    plan_update,
    status_document,
)
from mooring.controllers.documents import document_of, is_namespace_terminating, read_document
from mooring.controllers.expectations import RESYNC_S, Expectations
from mooring.controllers.pod_control import PodControl, PodControlError
from mooring.controllers.pods import (
    BY_CONTROLLER,
    BY_NODE,
    add_controller_index,
    add_node_index,
    is_finished,
    is_ready,
    orphan_key,
)

BURST_MAX = 250
LARGE_SET = 100
"""From how many nodes on the changes of pods are gathered for a while."""
BATCH_S_PER_NODE = 20e-6
STATUS_TRIES_MAX = 2

_EVERYTHING = LabelSelector()

PodsByNode: TypeAlias = dict[str, list[Pod]]

logger = logging.getLogger(__name__)


class DaemonSetController(Controller):
    name = "daemonset-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_daemonset_syncs
        self._recorder = context.recorder(self.name)
        self._pod_control = PodControl(context.client, self._recorder, context.clock)
        self._failed_pods = FailedPodsBackoff()
        self._fits = FitCache()
        self._sets = context.informers.informer(DaemonSet)
        self._pods = context.informers.informer(Pod)
        self._expectations = Expectations(context.clock, self._pods.has_seen)
        self._nodes = context.informers.informer(Node)
        self._revisions = context.informers.informer(ControllerRevision)
        self._history = DaemonHistory(context.client, self._revisions)
        self._add_handlers()

    def _add_handlers(self) -> None:
        self._sets.add_index(BY_NAMESPACE, namespace_of)
        add_controller_index(self._pods)
        add_node_index(self._pods)
        self._sets.add_handler(
            self.name, on_add=self._on_set_added, on_update=self._on_set_updated, on_delete=self._on_set_deleted
        )
        self._pods.add_handler(
            self.name, on_add=self._on_pod_added, on_update=self._on_pod_updated, on_delete=self._on_pod_going
        )
        self._nodes.add_handler(
            self.name, on_add=self._on_node_added, on_update=self._on_node_updated, on_delete=self._on_node_deleted
        )
        self._revisions.add_handler(
            self.name,
            on_add=self._on_revision_added,
            on_update=self._on_revision_updated,
            on_delete=self._on_revision_deleted,
        )

    # ---------------------------------------------------------------------------------------------- one key

    async def sync(self, key: str) -> Outcome:
        wanted = self._sets.lister.by_key(key)
        if wanted is None:
            self._expectations.forget(key)
            return DONE
        if wanted.spec.selector == _EVERYTHING:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(wanted, "Warning", "SelectingAll", message)
            return DONE
        if wanted.metadata.deletion_timestamp is not None:
            return DONE  # its history may be gone already, so nothing can be events about its pods
        try:
            selector = compile_selector(wanted.spec.selector)
            await self._work_on(key, wanted, selector)
        except (ClientError, AdoptionError, HistoryError, LabelSelectorError, PodControlError) as error:
            return Failed(str(error))
        return DONE

    async def _work_on(self, key: str, wanted: DaemonSet, selector: LabelMatcher) -> None:
        history = await self._history.construct(wanted, selector, lambda: self._claim_pods(wanted, selector))
        target = self._target(wanted, history.hashed)
        # Before the pods are looked at: what is seen afterwards must not look like an answer to an older question.
        are_expectations_met = self._expectations.are_met(key)
        pods = await self._claim_pods(wanted, selector)
        if not are_expectations_met:
            self.queue.add_after(key, RESYNC_S)
            await self._write_status(key, target, _by_node(pods), is_observed=False)
            return
        failure = None
        try:
            is_changed = await self._update(key, target, pods, history, selector)
        except (ClientError, AdoptionError, PodControlError) as error:
            failure, is_changed = error, True
        if is_changed:
            pods = await self._claim_pods(wanted, selector)
            target = self._target(wanted, history.hashed)
        await self._write_status(key, target, _by_node(pods), is_observed=True)
        if failure is not None:
            raise failure

    async def _update(
        self, key: str, target: Target, pods: Sequence[Pod], history: History, selector: LabelMatcher
    ) -> bool:
        """Pods on all nodes; then, if nothing is under way, the next step of an update; then the history.

        Whether anything was asked of the API.
        """
        wanted, now_s = target.daemon_set, target.now_s
        plan = plan_nodes(
            target, _by_node(pods), lambda node: self._failed_pods.wait_s(_failed_key(wanted, node), now_s)
        )
        for node in plan.failed_on:
            self._failed_pods.note(_failed_key(wanted, node), now_s)
        for type, reason, message in plan.events:
            self._recorder.event(wanted, type, reason, message)
        if plan.later_s is not None:
            self.queue.add_after(key, plan.later_s)
        is_changed = await self._carry_out(key, target, plan)
        if self._expectations.are_met(key) and wanted.spec.update_strategy.type == "RollingUpdate":
            pods = await self._claim_pods(wanted, selector) if is_changed else pods
            is_changed |= await self._carry_out(key, target, plan_update(target, _by_node(pods)))
        pods = await self._claim_pods(wanted, selector) if is_changed else pods
        await self._history.clean_up(wanted, history.old, pods)
        return is_changed

    async def _claim_pods(self, wanted: DaemonSet, selector: LabelMatcher) -> list[Pod]:
        own = self._pods.lister.by_index(BY_CONTROLLER, wanted.metadata.uid)
        orphans = self._pods.lister.by_index(BY_CONTROLLER, orphan_key(wanted.metadata.namespace))
        return await claim_objects(
            self.client, wanted, (*own, *orphans), lambda pod: selector.matches(pod.metadata.labels)
        )

    def _target(self, wanted: DaemonSet, hashed: str) -> Target:
        fits = {node.metadata.name: self._fits.fit(wanted, node) for node in self._nodes.lister}
        return Target(wanted, fits, hashed, self.clock.wall_s())

    # ------------------------------------------------------------------------------------------------- acting

    async def _carry_out(self, key: str, target: Target, plan: Plan) -> bool:
        """Whether there was something to do. Raises the first error, after everything was tried."""
        wanted, nodes, to_delete = target.daemon_set, plan.nodes[:BURST_MAX], plan.to_delete[:BURST_MAX]
        self._expectations.expect(key, len(nodes), [pod.key for pod in to_delete])
        error = await self._create(key, wanted, nodes, target.hashed) if nodes else None
        errors = await self._delete(key, wanted, to_delete) if to_delete else []
        first = error if error is not None else errors[0] if errors else None
        if first is not None:
            raise first
        return bool(nodes or to_delete)

    async def _create(self, key: str, wanted: DaemonSet, nodes: Sequence[str], hashed: str) -> Exception | None:
        pod = daemon_pod(wanted, hashed)
        namespace = wanted.metadata.namespace
        attempted = 0

        async def create_one(number: int) -> None:
            nonlocal attempted
            attempted += 1
            try:
                document = {**pod, "spec": pin_to_node(pod["spec"], nodes[number])}
                created = await self._pod_control.create(namespace, document, wanted)
            except (ClientError, PodControlError) as error:
                if is_namespace_terminating(error):
                    return  # and go on expecting it: nothing can be created any more, so there is no hurry
                self._expectations.creation_failed(key)
                raise
            self._expectations.creation_answered(key, created.resource_version)

        _, error = await self._pod_control.slow_start_batch(len(nodes), create_one)
        if attempted < len(nodes):
            self._expectations.creation_failed(key, len(nodes) - attempted)
        return error

    async def _delete(self, key: str, wanted: DaemonSet, pods: Sequence[Pod]) -> list[Exception]:
        async def delete_one(pod: Pod) -> None:
            try:
                await self._pod_control.delete(pod.metadata.namespace, pod.metadata.name, wanted)
            except NotFoundError:
                self._expectations.deletion_seen(key, pod.key)
            except PodControlError:
                self._expectations.deletion_seen(key, pod.key)
                raise

        return await self._pod_control.run_all([*pods], delete_one)

    async def _write_status(self, key: str, target: Target, by_node: PodsByNode, *, is_observed: bool) -> None:
        """If it differs. `is_observed` says that this generation was worked on."""
        wanted, counts = target.daemon_set, count_status(target, by_node)
        min_ready_s = wanted.spec.min_ready_seconds
        if min_ready_s > 0 and counts.number_ready != counts.number_available:
            self.queue.add_after(key, float(min_ready_s))
        if is_same_status(wanted, counts):
            return
        document = document_of(wanted)
        metadata = wanted.metadata
        for attempt in range(1, STATUS_TRIES_MAX + 1):
            document["status"] = status_document(document.get("status") or {}, counts)
            if is_observed:
                document["status"]["observedGeneration"] = metadata.generation
            try:
                await self.client.update(DAEMON_SET, metadata.namespace, metadata.name, document, subresource="status")
                return
            except ClientError:
                if attempt == STATUS_TRIES_MAX:
                    raise
            document = await read_document(self.client, wanted)

    # ------------------------------------------------------------------------------------------ what is heard

    def _on_set_added(self, wanted: DaemonSet, is_initial: bool) -> None:
        self.queue.add(wanted.key)

    def _on_set_updated(self, old: DaemonSet, new: DaemonSet) -> None:
        self.queue.add(new.key)

    def _on_set_deleted(self, wanted: DaemonSet) -> None:
        self._expectations.forget(wanted.key)
        self._fits.forget_daemon_set(wanted.metadata.uid)
        self.queue.add(wanted.key)

    def _on_pod_added(self, pod: Pod, is_initial: bool) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._on_pod_going(pod)
            return
        reference = controller_of(pod.metadata)
        if reference is None:
            self._add_all_that_select(pod.metadata)
            return
        owner = self._owner(pod.metadata.namespace, reference)
        if owner is not None:
            self._expectations.creation_seen(owner.key)
            self.enqueue(owner)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        if new.metadata.deletion_timestamp is not None:
            self._on_pod_going(new)
            return
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        if is_owner_changed and reference_before is not None:
            self._add_owner(old.metadata.namespace, reference_before)
        if reference is None:
            if is_owner_changed or new.metadata.labels != old.metadata.labels:
                self._add_all_that_select(new.metadata)
            return
        owner = self._owner(new.metadata.namespace, reference)
        if owner is not None:
            self.enqueue(owner)
            min_ready_s = owner.spec.min_ready_seconds
            if min_ready_s > 0 and is_ready(new) and not is_ready(old):
                self.queue.add_after(owner.key, min_ready_s + 1.0)  # stamps are cut to whole seconds

    def _on_pod_going(self, pod: Pod) -> None:
        reference = controller_of(pod.metadata)
        owner = self._owner(pod.metadata.namespace, reference) if reference is not None else None
        if owner is not None:
            self._expectations.deletion_seen(owner.key, pod.key)
            self.enqueue(owner)

    def _on_node_added(self, node: Node, is_initial: bool) -> None:
        self._enqueue_for_node(node)

    def _on_node_updated(self, old: Node, new: Node) -> None:
        if old.metadata.labels != new.metadata.labels or old.spec.taints != new.spec.taints:
            self._enqueue_for_node(new)

    def _on_node_deleted(self, node: Node) -> None:
        self._fits.forget_node(node.metadata.name)

    def _enqueue_for_node(self, node: Node) -> None:
        """Wake the DaemonSets for which the node matters now."""
        references = [controller_of(pod.metadata) for pod in self._pods.lister.by_index(BY_NODE, node.metadata.name)]
        uids = {reference.uid for reference in references if reference is not None and reference.kind == DaemonSet.kind}
        for each in self._sets.lister:
            fit = self._fits.fit(each, node)
            is_there = each.metadata.uid in uids
            is_misplaced = is_there and (not fit.may_stay or each.status.number_misscheduled > 0)
            if is_misplaced or (fit.should_run and not is_there):
                self.queue.add(each.key)

    def _on_revision_added(self, revision: ControllerRevision, is_initial: bool) -> None:
        if controller_of(revision.metadata) is None and revision.metadata.deletion_timestamp is None:
            self._add_all_that_select(revision.metadata)

    def _on_revision_updated(self, old: ControllerRevision, new: ControllerRevision) -> None:
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        if is_owner_changed and reference_before is not None:
            self._add_owner(old.metadata.namespace, reference_before)
        if reference is not None:
            self._add_owner(new.metadata.namespace, reference)
        elif is_owner_changed or new.metadata.labels != old.metadata.labels:
            self._add_all_that_select(new.metadata)

    def _on_revision_deleted(self, revision: ControllerRevision) -> None:
        reference = controller_of(revision.metadata)
        if reference is not None:
            self._add_owner(revision.metadata.namespace, reference)

    def enqueue(self, owner: DaemonSet) -> None:
        """Now, or with the next changes; what an expectation waits for is never put off."""
        size = owner.status.desired_number_scheduled
        if size < LARGE_SET or not self._expectations.are_met(owner.key):
            self.queue.add(owner.key)
        else:
            self.queue.add_after(owner.key, size * BATCH_S_PER_NODE)

    def _add_owner(self, namespace: str, reference: OwnerReference) -> None:
        owner = self._owner(namespace, reference)
        if owner is not None:
            self.queue.add(owner.key)

    def _owner(self, namespace: str, reference: OwnerReference) -> DaemonSet | None:
        if reference.kind != DaemonSet.kind:
            return None
        owner = self._sets.lister.get(namespace, reference.name)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def _add_all_that_select(self, metadata: ObjectMeta) -> None:
        for each in self._sets.lister.list(metadata.namespace):
            try:
                selector = compile_selector(each.spec.selector)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(metadata.labels):
                self.queue.add(each.key)


def _by_node(pods: Sequence[Pod]) -> PodsByNode:
    """Pods that have ended and are going are left out: there is nothing more to do about them."""
    found: PodsByNode = {}
    for pod in pods:
        if is_finished(pod) and pod.metadata.deletion_timestamp is not None:
            continue
        node = target_node(pod)
        if node is not None:
            found.setdefault(node, []).append(pod)
    return found


def _failed_key(wanted: DaemonSet, node_name: str) -> str:
    return f"{wanted.metadata.uid}/{wanted.status.observed_generation}/{node_name}"
