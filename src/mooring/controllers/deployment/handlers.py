"""What the Deployment controller hears: which Deployment has to be looked at after which change.

Comes in   changes of Deployments, ReplicaSets and pods, from informers
Goes out   keys of Deployments, to the queue

 1. A ReplicaSet wakes the Deployment that controls it, or all that select it if nobody does.
 2. Of pods only the last one to go matters, and only to a Deployment that waits for that: with strategy Recreate.
"""

from __future__ import annotations

from mooring.api.errors import LabelSelectorError
from mooring.api.labels import compile_selector
from mooring.api.ownership import controller_of
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet
from mooring.client.cache.informer import Informer
from mooring.client.workqueue import WorkQueue
from mooring.controllers.deployment.sizes import RECREATE
from mooring.controllers.pod_indexes import PodCountIndex
from mooring.controllers.pods import BY_CONTROLLER


class DeploymentHandlers:
    """Registers itself."""

    def __init__(
        self,
        name: str,
        queue: WorkQueue[str],
        deployments: Informer[Deployment],
        sets: Informer[ReplicaSet],
        pods: Informer[Pod],
        counts_by_labels: PodCountIndex,
    ) -> None:
        self._queue = queue
        self._deployments = deployments.lister
        self._sets = sets.lister
        self._pod_counts = counts_by_labels
        deployments.add_handler(
            name,
            on_add=lambda added, is_initial: queue.add(added.key),
            on_update=lambda old, new: queue.add(new.key),
            on_delete=lambda gone: queue.add(gone.key),
        )
        sets.add_handler(name, on_add=self._on_set_added, on_update=self._on_set_updated, on_delete=self._on_set_going)
        pods.add_handler(name, on_delete=self._on_pod_deleted)

    def _on_set_added(self, added: ReplicaSet, is_initial: bool) -> None:
        if added.metadata.deletion_timestamp is not None:
            self._on_set_going(added)
            return
        reference = controller_of(added.metadata)
        if reference is None:
            self._add_all_that_select(added)
        else:
            self._add(added.metadata.namespace, reference)

    def _on_set_updated(self, old: ReplicaSet, new: ReplicaSet) -> None:
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        if is_owner_changed and reference_before is not None:
            self._add(old.metadata.namespace, reference_before)
        if reference is not None:
            self._add(new.metadata.namespace, reference)
        elif is_owner_changed or old.metadata.labels != new.metadata.labels:
            self._add_all_that_select(new)

    def _on_set_going(self, going: ReplicaSet) -> None:
        reference = controller_of(going.metadata)
        if reference is not None:
            self._add(going.metadata.namespace, reference)

    def _on_pod_deleted(self, pod: Pod) -> None:
        reference = controller_of(pod.metadata)
        if reference is None or reference.kind != ReplicaSet.kind:
            return
        owner = self._sets.get(pod.metadata.namespace, reference.name)
        if owner is None or owner.metadata.uid != reference.uid:
            return
        above = controller_of(owner.metadata)
        deployment = self._deployment(pod.metadata.namespace, above) if above is not None else None
        if deployment is None or deployment.spec.strategy.type != RECREATE:
            return
        sets = self._sets.by_index(BY_CONTROLLER, deployment.metadata.uid)
        if not any(self._pod_counts.of(each.metadata.uid) for each in sets):
            self._queue.add(deployment.key)

    def _add(self, namespace: str, reference: OwnerReference) -> None:
        deployment = self._deployment(namespace, reference)
        if deployment is not None:
            self._queue.add(deployment.key)

    def _deployment(self, namespace: str, reference: OwnerReference) -> Deployment | None:
        if reference.kind != Deployment.kind:
            return None
        deployment = self._deployments.get(namespace, reference.name)
        return deployment if deployment is not None and deployment.metadata.uid == reference.uid else None

    def _add_all_that_select(self, orphan: ReplicaSet) -> None:
        labels = orphan.metadata.labels
        if not labels:
            return
        for each in self._deployments.list(orphan.metadata.namespace):
            try:
                selector = compile_selector(each.spec.selector)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(labels):
                self._queue.add(each.key)
