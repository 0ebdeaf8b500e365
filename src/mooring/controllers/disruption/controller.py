"""The disruption controller writes the status of PodDisruptionBudgets, by which evictions are granted.

Inputs: budgets, pods and the owners of pods, from informers. Outputs: the status of budgets; events; the condition
DisruptionTarget reset on pods that were not deleted.

1. A budget is synced when it or a pod that it selects changes. A new size of an owner is noticed with the next pod
   event, as in kube-controller-manager.
2. A pod that several budgets select causes an event. All of them are synced; kube-controller-manager takes any one.
3. The scale of a ReplicaSet of a Deployment is that of the Deployment. The scale of a custom kind is read at the
   path of its scale subresource. An owner that does not exist has no scale; a kind without a scale is an error,
   which the condition shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import Kind, place_of
from mooring.api.labels import compile_selector
from mooring.api.views.administration import CustomResourceDefinition
from mooring.api.views.meta import OwnerReference, controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import (
    Deployment,
    PodDisruptionBudget,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.client.errors import ClientError, ConflictError, NotFoundError
from mooring.client.interface import PatchForm
from mooring.client.workqueue import run_workers
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Later, Outcome, split_key
from mooring.controllers.disruption.plan import (
    Scale,
    disrupted_pods,
    expected_pods,
    healthy_pods,
    needs_scales,
    plan_failure,
    plan_status,
    selector_text,
    stale_target_in_s,
    status_document,
)
from mooring.controllers.documents import DISRUPTION_TARGET, decode_document, document_of
from mooring.controllers.pod_indexes import PodGroup, SelectorIndex
from mooring.controllers.pods import replicas_of
from mooring.controllers.served_kinds import ServedKinds
from mooring.kit.clock import format_rfc3339
from mooring.kit.tasks import TaskGroup

_APPS = ("apps", "extensions")
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found "
    "to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined "
    'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)


class ScaleError(Exception):
    """The scale of an owner is unknown."""


class OwnerScales:
    """The desired numbers of pods of owners."""

    def __init__(self, context: ControllerContext) -> None:
        informers = context.informers
        self._client = context.client
        self._replication_controllers = informers.informer(ReplicationController).lister
        self._replica_sets = informers.informer(ReplicaSet).lister
        self._deployments = informers.informer(Deployment).lister
        self._stateful_sets = informers.informer(StatefulSet).lister
        definitions = informers.informer(CustomResourceDefinition)
        self._definitions = definitions.lister
        self._kinds = ServedKinds("disruption-controller", definitions)

    async def scale_of(self, owner: OwnerReference, namespace: str) -> Scale | None:
        """The scale of an owner. None if it does not exist. Raises `ScaleError`, `ClientError`."""
        group = owner.api_version.rpartition("/")[0]
        if owner.kind == "ReplicationController" and group == "":
            return _scale(self._replication_controllers.get(namespace, owner.name), owner.uid)
        if owner.kind == "ReplicaSet" and group in _APPS:
            return self._scale_of_replica_set(owner, namespace)
        if owner.kind == "StatefulSet" and group == "apps":
            return _scale(self._stateful_sets.get(namespace, owner.name), owner.uid)
        return await self._scale_of_any(owner, namespace)

    def _scale_of_replica_set(self, owner: OwnerReference, namespace: str) -> Scale | None:
        replica_set = self._replica_sets.get(namespace, owner.name)
        if replica_set is None or replica_set.metadata.uid != owner.uid:
            return None
        deployment_reference = controller_of(replica_set.metadata)
        if deployment_reference is None or deployment_reference.kind != "Deployment":
            return _scale(replica_set, owner.uid)
        return _scale(self._deployments.get(namespace, deployment_reference.name), deployment_reference.uid)

    async def _scale_of_any(self, owner: OwnerReference, namespace: str) -> Scale | None:
        kind = self._kinds.find(owner.api_version, owner.kind)
        if kind is None:
            raise ScaleError(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')
        path = self._replicas_path(kind)
        if path is None:
            raise ScaleError(f"{kind.resource} does not implement the scale subresource")
        try:
            found = decode_document(await self._client.get(kind, namespace, owner.name))
        except NotFoundError:
            return None
        metadata = cast(Mapping[str, object], found["metadata"])
        if metadata.get("uid") != owner.uid:
            return None
        return Scale(owner.uid, _number_at(found, path))

    def _replicas_path(self, kind: Kind) -> str | None:
        """The path of the replicas in a custom kind. None without a scale subresource."""
        definition = self._definitions.get("", kind.resource)
        if definition is None:
            return None
        for version in definition.spec.versions:
            if f"{definition.spec.group}/{version.name}" == kind.api_version:
                scale = version.subresources.scale
                return scale.spec_replicas_path if scale is not None else None
        return None


def _scale(owner: ReplicationController | ReplicaSet | Deployment | StatefulSet | None, uid: str) -> Scale | None:
    if owner is None or owner.metadata.uid != uid:
        return None
    return Scale(uid, replicas_of(owner))


def _number_at(found: object, path: str) -> int:
    """The number at a path such as `.spec.replicas`. 0 if there is none."""
    for part in path.strip(".").split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) else 0


class DisruptionController(Controller):
    """Keys are PodDisruptionBudgets. A second queue has pods with a stale DisruptionTarget."""

    name: ClassVar[str] = "disruption-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder("controllermanager")
        self._budgets = context.informers.informer(PodDisruptionBudget)
        self._pods = context.informers.informer(Pod)
        self._groups = context.pod_groups()
        self._owners = OwnerScales(context)
        self._stale_targets = context.queue("stale pod disruptions")
        self._selectors = SelectorIndex(self.name, self._budgets, lambda budget: compile_selector(budget.spec.selector))
        self.handle_changes(self._budgets, lambda budget: self.queue.add(budget.key))
        self.handle_changes(self._pods, self._on_pod, self._add_budgets_of)

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        run_workers(self._stale_targets, self._clear_disruption_target, workers=1, group=group)

    def stop(self) -> None:
        super().stop()
        self._stale_targets.shut_down()

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        budget = self._budgets.lister.by_key(key)
        if budget is None:
            return DONE
        try:
            return await self._sync_budget(budget)
        except ConflictError as error:
            return Failed(str(error))
        except (ClientError, ScaleError, LabelSelectorError) as error:
            failure = plan_failure(budget, str(error), format_rfc3339(self.clock.wall_s()))
        await self._write(budget, failure)
        return DONE

    async def _sync_budget(self, budget: PodDisruptionBudget) -> Outcome:
        """Raises `ClientError`, `ScaleError`, `LabelSelectorError`."""
        groups = self._groups_of(budget)
        if not groups:
            self._recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        expected = expected_pods(budget, groups, await self._scales(budget, groups))
        if expected.has_unmanaged_pods:
            message = _UNMANAGED.format(selector_text(budget.spec.selector))
            self._recorder.event(budget, "Warning", "UnmanagedPods", message)
        groups = self._groups_of(budget)  # again: reading the owners may have taken a while
        now_s = self.clock.wall_s()
        disrupted = disrupted_pods(budget, self._pods_named_in(budget, groups), now_s)
        for pod in disrupted.overdue:
            namespace = budget.metadata.namespace  # twice, as kube-controller-manager writes it
            message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._recorder.event(pod, "Warning", "NotDeleted", message)
        healthy = healthy_pods(groups, disrupted, now_s)
        await self._write(budget, plan_status(budget, expected, healthy, disrupted.since, format_rfc3339(now_s)))
        return Later(max(0.0, disrupted.next_s - now_s)) if disrupted.next_s is not None else DONE

    def _groups_of(self, budget: PodDisruptionBudget) -> list[PodGroup]:
        try:
            selector = compile_selector(budget.spec.selector)
        except LabelSelectorError as error:
            self._recorder.event(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
            raise
        return self._groups.selected(budget.metadata.namespace, selector)

    async def _scales(self, budget: PodDisruptionBudget, groups: list[PodGroup]) -> dict[str, Scale]:
        """The scales by uid of the owner. Raises `ClientError`, `ScaleError`, after an event."""
        scales: dict[str, Scale] = {}
        if not needs_scales(budget):
            return scales
        try:
            for group in groups:
                if group.owner is None or group.owner.uid in scales:
                    continue
                pod_name = next(iter(group.names))
                scale = await self._owners.scale_of(group.owner, budget.metadata.namespace)
                if scale is None:
                    raise ScaleError(f'found no controllers for pod "{pod_name}"')
                scales[group.owner.uid] = scale
        except (ClientError, ScaleError) as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", message)
            raise
        return scales

    def _pods_named_in(self, budget: PodDisruptionBudget, groups: list[PodGroup]) -> list[Pod]:
        """The pods that the status lists as disrupted and the selector still matches."""
        named = [name for name in budget.status.disrupted_pods if any(name in group.names for group in groups)]
        pods = (self._pods.lister.get(budget.metadata.namespace, name) for name in named)
        return [pod for pod in pods if pod is not None]

    async def _write(self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus | None) -> None:
        """Raises `ClientError`."""
        if status is None:
            return
        document = document_of(budget)
        document["status"] = status_document(status)
        await self.client.update(*place_of(budget), document, subresource="status")

    # ----------------------------------------------------------------------------- stale disruption targets

    async def _clear_disruption_target(self, key: str) -> Outcome:
        """Set the condition DisruptionTarget of a pod to False if the pod was not deleted in time."""
        pod = self._pods.lister.by_key(key)
        left_s = stale_target_in_s(pod, self.clock.wall_s()) if pod is not None else None
        if pod is None or left_s is None:
            return DONE
        if left_s > 0:
            return Later(left_s)
        condition: dict[str, object] = {
            "type": DISRUPTION_TARGET,
            "status": "False",
            "reason": None,
            "message": None,
            "lastTransitionTime": format_rfc3339(self.clock.wall_s()),
        }
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
        patch = {"metadata": metadata, "status": {"conditions": [condition]}}
        try:
            await self.client.patch(*place_of(pod), patch, form=PatchForm.STRATEGIC, subresource="status")
        except NotFoundError:
            return DONE
        except ClientError as error:
            return Failed(str(error))
        return DONE

    # ----------------------------------------------------------------------------------------------- events

    def _on_pod(self, pod: Pod) -> None:
        self._add_budgets_of(pod)
        left_s = stale_target_in_s(pod, self.clock.wall_s())
        if left_s is not None:
            self._stale_targets.add_after(pod.key, left_s)

    def _add_budgets_of(self, pod: Pod) -> None:
        metadata = pod.metadata
        keys = self._selectors.keys(metadata)
        if len(keys) > 1:
            first = split_key(keys[0])[1]
            self._recorder.event(
                pod,
                "Warning",
                "MultiplePodDisruptionBudgets",
                f'Pod "{metadata.namespace}"/"{metadata.name}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{first}" arbitrarily.',
            )
        for key in keys:
            self.queue.add(key)
