"""The ResourceQuota controller counts the usage of namespaces and writes it into their quotas.

Inputs: quotas and the objects that they limit, from informers. Outputs: the status of quotas.

1. The API server charges a quota for each creation. This controller counts again after deletions and periodically,
   so it has no handlers for creations.
2. Kinds that are only counted, also custom ones, are watched once a quota names them.
3. A charge during a sync makes the status update fail with a conflict, and the sync is retried. No charge is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from mooring.api.kinds import place_of
from mooring.api.quantity import ZERO, Quantity, parse_quantity
from mooring.api.quota import (
    ONE,
    SERVICE_NAMES,
    Amounts,
    device_claim_usage,
    extended_names,
    is_alive,
    is_charged_to,
    is_device_claim_name,
    is_pod_in_scope,
    is_pod_name,
    is_volume_claim_in_scope,
    is_volume_claim_name,
    kind_counted_as,
    pod_behind,
    pod_usage,
    scopes_of,
    service_usage,
    volume_claim_usage,
)
from mooring.api.views.administration import CustomResourceDefinition, ResourceQuota
from mooring.api.views.devices import DeviceClass, ResourceClaim
from mooring.api.views.meta import ApiObject, ResourceList
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service
from mooring.client.informer import BY_NAMESPACE, AnyObject, Informer, namespace_of
from mooring.controllers.context import DONE, Controller, ControllerContext, Later, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.served_kinds import ServedKinds
from mooring.kit.tasks import TaskGroup

INFORMER_WAIT_S = 0.1
BATCH_S_PER_OBJECT = 20e-6


class _MetadataOnly(ApiObject):
    """The metadata of objects that are only counted."""


class ResourceQuotaController(Controller):
    """Keys are ResourceQuotas."""

    name: ClassVar[str] = "resourcequota-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_resource_quota_syncs
        self._group: TaskGroup | None = None
        self._counted: dict[str, Informer[ApiObject]] = {}
        self._kinds = ServedKinds(self.name, context.informers.informer(CustomResourceDefinition))
        self._kinds.on_change(self._enqueue_all)
        self._quotas = context.informers.informer(ResourceQuota)
        self._quotas.add_index(BY_NAMESPACE, namespace_of)
        self._pods = self._watch_measured(Pod, is_pod_name, self._frees_pod)
        self._services = self._watch_measured(Service, SERVICE_NAMES.__contains__, _frees_service)
        self._claims = self._watch_measured(PersistentVolumeClaim, is_volume_claim_name, _frees_claim)
        self._device_claims = self._watch_measured(ResourceClaim, self._is_device_claim_name, None)
        self._device_classes = context.informers.informer(DeviceClass)
        self._quotas.add_handler(
            self.name,
            on_add=lambda quota: self.queue.add(quota.key),
            on_update=lambda old, new: self.queue.add(new.key) if old.spec.hard != new.spec.hard else None,
        )

    def start(self, group: TaskGroup) -> None:
        self._group = group
        self.context.informers.start(group)
        super().start(group)
        group.start_background(self._resync_periodically(), name=f"{self.name}: counting all")

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        quota = self._quotas.lister.by_key(key)
        if quota is None:
            return DONE
        if not all(self._is_watched(name) for name in quota.spec.hard):
            return Later(INFORMER_WAIT_S)
        used = self._used(quota)
        hard = {name: str(parse_quantity(raw)) for name, raw in quota.spec.hard.items()}
        if _is_same(hard, quota.status.hard) and _is_same(used, quota.status.used):
            return DONE
        document = document_of(quota)
        document["status"] = {"hard": hard, "used": used}
        await self.client.update(*place_of(quota), document, subresource="status")
        return DONE

    def _used(self, quota: ResourceQuota) -> dict[str, str]:
        """The usage of the limited resources. Resources that are not measured keep their value."""
        namespace, now_s = quota.metadata.namespace, self.clock.wall_s()
        scopes = scopes_of(quota.spec)
        totals: dict[str, Quantity] = {}

        def add(names: list[str], usages: Iterable[Amounts]) -> None:
            totals.update({name: totals.get(name, ZERO) for name in names})
            if names:
                for usage in usages:
                    for name in names:
                        if name in usage:
                            totals[name] += usage[name]

        names = [*quota.spec.hard]
        pods = (
            pod
            for pod in self._in_namespace(self._pods, namespace)
            if all(is_pod_in_scope(scope, pod) for scope in scopes)
        )
        add([name for name in names if is_pod_name(name)], (pod_usage(pod, now_s) for pod in pods))
        claims = (
            claim
            for claim in self._in_namespace(self._claims, namespace)
            if all(is_volume_claim_in_scope(scope, claim) for scope in scopes)
        )
        add([name for name in names if is_volume_claim_name(name)], map(volume_claim_usage, claims))
        services = self._in_namespace(self._services, namespace) if not scopes else []
        add([name for name in names if name in SERVICE_NAMES], map(service_usage, services))
        device_claims = self._in_namespace(self._device_claims, namespace) if not scopes else []
        device_names = [name for name in names if self._is_device_claim_name(name)]
        add(device_names, (self._device_claim_usage(claim, now_s) for claim in device_claims))
        for name in names:
            if name in self._counted:
                objects = self._in_namespace(self._counted[name], namespace) if not scopes else []
                add([name], ({name: ONE} for _ in objects))
        before = {name: str(parse_quantity(raw)) for name, raw in quota.status.used.items() if name in quota.spec.hard}
        return {**before, **{name: str(total) for name, total in totals.items()}}

    def _device_claim_usage(self, claim: ResourceClaim, now_s: float) -> Amounts:
        namespace, pod_name = claim.metadata.namespace, pod_behind(claim)
        pod = self._pods.lister.get(namespace, pod_name) if pod_name else None
        charged: Amounts = {}
        if pod is not None and is_charged_to(pod, claim, self._in_namespace(self._device_claims, namespace)):
            charged = pod_usage(pod, now_s)
        return device_claim_usage(claim, self._extended_names(), charged)

    def _is_device_claim_name(self, name: str) -> bool:
        return is_device_claim_name(name, self._extended_names())

    def _extended_names(self) -> dict[str, str]:
        return extended_names(self._device_classes.lister.list())

    def _in_namespace(self, informer: Informer[AnyObject], namespace: str) -> Iterable[AnyObject]:
        return informer.lister.by_index(BY_NAMESPACE, namespace)

    # -------------------------------------------------------------------------------------------- informers

    def _watch_measured(
        self,
        view: type[AnyObject],
        is_name: Callable[[str], bool],
        frees: Callable[[AnyObject, AnyObject], bool] | None,
    ) -> Informer[AnyObject]:
        """An informer of a kind that is measured. Deletions, and updates for which `frees` is true, enqueue quotas."""
        informer = self.context.informers.informer(view)
        informer.add_index(BY_NAMESPACE, namespace_of)

        def on_update(old: AnyObject, new: AnyObject) -> None:
            if frees is not None and frees(old, new):
                self._replenish(new.metadata.namespace, is_name)

        informer.add_handler(
            self.name, on_update=on_update, on_delete=lambda gone: self._replenish(gone.metadata.namespace, is_name)
        )
        return informer

    def _frees_pod(self, old: Pod, new: Pod) -> bool:
        if not self._quotas.lister:
            return False
        now_s = self.clock.wall_s()
        return is_alive(old, now_s) and not is_alive(new, now_s)

    def _replenish(self, namespace: str, is_name: Callable[[str], bool]) -> None:
        """Enqueue the quotas of a namespace that limit a resource of which something became free."""
        for quota in self._quotas.lister.by_index(BY_NAMESPACE, namespace):
            if any(is_name(name) for name in quota.status.hard):
                pods = len(self._pods.lister.by_index(BY_NAMESPACE, namespace))
                self.queue.add_after(quota.key, pods * BATCH_S_PER_OBJECT)

    def _is_watched(self, name: str) -> bool:
        """Whether the objects of a resource are known. Starts an informer for a kind that has none."""
        if is_pod_name(name) or is_volume_claim_name(name) or name in SERVICE_NAMES:
            return True
        if self._is_device_claim_name(name):
            return True
        kind = kind_counted_as(name, self._kinds.custom())
        if kind is None:
            return True  # not measured: the quota keeps its value
        if name in self._counted:
            return self._counted[name].has_synced
        informer: Informer[ApiObject] = self.context.informers.informer(kind.view or _MetadataOnly, kind=kind)
        informer.add_index(BY_NAMESPACE, namespace_of)
        informer.add_handler(
            f"{self.name} {name}",
            on_delete=lambda gone: self._replenish(gone.metadata.namespace, name.__eq__),
        )
        self._counted[name] = informer
        if self._group is not None:
            self.context.informers.start(self._group)
        return informer.has_synced

    async def _resync_periodically(self) -> None:
        period_s = self.context.settings.resource_quota_sync_period_s
        while period_s > 0:
            await self.clock.wait(period_s)
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for quota in self._quotas.lister.list():
            self.queue.add(quota.key)


def _is_same(expected: dict[str, str], found: ResourceList) -> bool:
    if expected.keys() != found.keys():
        return False
    return all(parse_quantity(raw) == parse_quantity(found[name]) for name, raw in expected.items())


def _frees_service(old: Service, new: Service) -> bool:
    return old.spec.type != new.spec.type or len(new.spec.ports) < len(old.spec.ports)


def _frees_claim(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    return volume_claim_usage(old) != volume_claim_usage(new)
