"""The controllers, one row each, and the manager that runs them in one process on a shared set of informers.

Inputs: a client, a clock, entropy, settings, names of controllers as given by the user. They run until `stop` or
cancellation.

1. All controllers request their informers first. Then the informers start and sync, then the controllers start.
2. `stop` finishes the work in progress: queues are drained, events written, then the informers end.
3. A controller that fails as a whole ends the manager with its exception: half a control plane is worse than none.

Names:

4. Flags for kube-controller-manager work here: deprecated names are accepted, and controllers that do not exist
   here are skipped with a warning. kubeadm's `*,bootstrapsigner,tokencleaner` names two of them.
5. A name that kube-controller-manager does not have is an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mooring.client.interface import Client
from mooring.controllers.clusterrole_aggregation import ClusterRoleAggregationController
from mooring.controllers.context import Controller, ControllerContext
from mooring.controllers.cronjob import CronJobController
from mooring.controllers.daemonset.controller import DaemonSetController
from mooring.controllers.deployment.controller import DeploymentController
from mooring.controllers.disruption.controller import DisruptionController
from mooring.controllers.endpoint.endpoints import EndpointsController
from mooring.controllers.endpoint.mirroring import EndpointSliceMirroringController
from mooring.controllers.endpoint.slices import EndpointSliceController
from mooring.controllers.garbagecollector.controller import GarbageCollectorController
from mooring.controllers.job.controller import JobController
from mooring.controllers.namespace import NamespaceController
from mooring.controllers.node.lifecycle import NodeLifecycleController
from mooring.controllers.node.taint_eviction import TaintEvictionController
from mooring.controllers.podgc import PodGarbageController
from mooring.controllers.quota import ResourceQuotaController
from mooring.controllers.replicaset import ReplicaSetController, ReplicationControllerController
from mooring.controllers.resourceclaim import ResourceClaimController
from mooring.controllers.serviceaccount import RootCaCertificatePublisher, ServiceAccountController
from mooring.controllers.settings import ControllerSettings, SettingError
from mooring.controllers.statefulset.controller import StatefulSetController
from mooring.controllers.ttl_after_finished import TtlAfterFinishedController
from mooring.controllers.volume.binder import VolumeBinderController
from mooring.controllers.volume.ephemeral import EphemeralVolumeController
from mooring.controllers.volume.local_provisioner import LocalProvisionerController
from mooring.controllers.volume.protection import (
    AttributesClassProtectionController,
    ClaimProtectionController,
    VolumeProtectionController,
)
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

ControllerFactory: TypeAlias = Callable[[ControllerContext], Controller]

_ALL: tuple[type[Controller], ...] = (
    ReplicaSetController,
    ReplicationControllerController,
    DeploymentController,
    CronJobController,
    StatefulSetController,
    DaemonSetController,
    JobController,
    NodeLifecycleController,
    TaintEvictionController,
    PodGarbageController,
    NamespaceController,
    GarbageCollectorController,
    TtlAfterFinishedController,
    DisruptionController,
    VolumeBinderController,
    LocalProvisionerController,
    EphemeralVolumeController,
    ClaimProtectionController,
    VolumeProtectionController,
    AttributesClassProtectionController,
    ResourceClaimController,
    ServiceAccountController,
    RootCaCertificatePublisher,
    ClusterRoleAggregationController,
    EndpointSliceController,
    EndpointsController,
    EndpointSliceMirroringController,
    ResourceQuotaController,
)
"""In starting order."""

CONTROLLERS: Mapping[str, ControllerFactory] = {controller.name: controller for controller in _ALL}

ALL_CONTROLLERS = "*"
OLD_NAMES: Mapping[str, str] = {
    "attachdetach": "persistentvolume-attach-detach-controller",
    "bootstrapsigner": "bootstrap-signer-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "cronjob": "cronjob-controller",
    "csrapproving": "certificatesigningrequest-approving-controller",
    "csrcleaner": "certificatesigningrequest-cleaner-controller",
    "csrsigning": "certificatesigningrequest-signing-controller",
    "daemonset": "daemonset-controller",
    "deployment": "deployment-controller",
    "disruption": "disruption-controller",
    "endpoint": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslicemirroring": "endpointslice-mirroring-controller",
    "ephemeral-volume": "ephemeral-volume-controller",
    "garbagecollector": "garbage-collector-controller",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler-controller",
    "job": "job-controller",
    "legacy-service-account-token-cleaner": "legacy-serviceaccount-token-cleaner-controller",
    "namespace": "namespace-controller",
    "nodeipam": "node-ipam-controller",
    "nodelifecycle": "node-lifecycle-controller",
    "persistentvolume-binder": "persistentvolume-binder-controller",
    "persistentvolume-expander": "persistentvolume-expander-controller",
    "podgc": "pod-garbage-collector-controller",
    "pv-protection": "persistentvolume-protection-controller",
    "pvc-protection": "persistentvolumeclaim-protection-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "resource-claim-controller": "resourceclaim-controller",
    "resourcequota": "resourcequota-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "serviceaccount": "serviceaccount-controller",
    "serviceaccount-token": "serviceaccount-token-controller",
    "statefulset": "statefulset-controller",
    "storage-version-gc": "storageversion-garbage-collector-controller",
    "svm": "storage-version-migrator-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl": "ttl-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
}
NOT_IMPLEMENTED = frozenset(
    (
        "bootstrap-signer-controller",
        "certificatesigningrequest-approving-controller",
        "certificatesigningrequest-cleaner-controller",
        "certificatesigningrequest-signing-controller",
        "device-taint-eviction-controller",
        "horizontal-pod-autoscaler-controller",
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "legacy-serviceaccount-token-cleaner-controller",
        "node-ipam-controller",
        "persistentvolume-attach-detach-controller",
        "persistentvolume-expander-controller",
        "podcertificaterequest-cleaner-controller",
        "podgroup-protection-controller",
        "resourcepoolstatusrequest-controller",
        "selinux-warning-controller",
        "service-cidr-controller",
        "serviceaccount-token-controller",
        "storage-version-migrator-controller",
        "storageversion-garbage-collector-controller",
        "token-cleaner-controller",
        "ttl-controller",
        "validatingadmissionpolicy-status-controller",
    )
)
logger = logging.getLogger(__name__)


def check_names(typed: Sequence[str], known: Sequence[str]) -> None:
    """Raises `SettingError` for a name that kube-controller-manager does not have."""
    for typed_name in typed:
        name = _current_name(typed_name).removeprefix("-")
        if name not in known and name not in NOT_IMPLEMENTED and typed_name != ALL_CONTROLLERS:
            raise SettingError(f"there is no controller {name!r}; there are {', '.join(known)}")


def enabled_names(typed: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """The enabled controllers, in the order of `known`. Raises `SettingError`."""
    check_names(typed, known)
    chosen = [_current_name(name) for name in typed]
    for name in chosen:
        if name in NOT_IMPLEMENTED:
            logger.warning("controller %s is not implemented and is skipped", name)
    return [name for name in known if _is_enabled(name, chosen)]


def switched_off(settings: ControllerSettings) -> frozenset[str]:
    """The controllers that a flag of their own switches off, whatever `--controllers` names."""
    return frozenset() if settings.enable_garbage_collector else frozenset((GarbageCollectorController.name,))


def _is_enabled(name: str, chosen: Sequence[str]) -> bool:
    """The first mention of a controller decides, as in kube-controller-manager."""
    own = next((mention for mention in chosen if mention.removeprefix("-") == name), "")
    return own == name if own else ALL_CONTROLLERS in chosen


def _current_name(typed: str) -> str:
    name = typed.removeprefix("-")
    return typed.removesuffix(name) + OLD_NAMES.get(name, name)


# --- the manager ----------------------------------------------------------------------------------------------


STOP_S_MAX = 10.0
"""Maximum time for writing the last events."""


class ControllerManager:
    """The controllers of one process."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        settings: ControllerSettings | None = None,
        enabled: Sequence[str] = ("*",),
        *,
        root_ca_pem: str = "",
        local_volumes: str = "",
    ) -> None:
        """`enabled` as kube-controller-manager's `--controllers`: names, `*` for all, `-name` for all but that one."""
        settings = settings or ControllerSettings()
        self.context = ControllerContext(client, clock, entropy, settings, root_ca_pem, local_volumes)
        self.controllers: Sequence[Controller] = [
            CONTROLLERS[name](self.context)
            for name in enabled_names(enabled, tuple(CONTROLLERS))
            if name not in switched_off(settings)
        ]
        self._working = asyncio.Event()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Run until `stop` or cancellation."""
        async with TaskGroup("controllers") as group:
            self.context.events.start(group)
            self.context.informers.start(group)
            await self.context.informers.wait_all_synced()
            for controller in self.controllers:
                controller.start(group)
            logger.info("%d controllers started", len(self.controllers))
            self._working.set()
            await self._stopping.wait()
            for controller in self.controllers:
                controller.stop()
            await self._wait_events_written()

    async def wait_working(self) -> None:
        """Wait until every controller has started."""
        await self._working.wait()

    @property
    def is_working(self) -> bool:
        """Whether the informers have synced and every controller has started."""
        return self._working.is_set()

    def stop(self) -> None:
        self._stopping.set()

    async def _wait_events_written(self) -> None:
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await self.context.events.wait_written()
        except TimeoutError:
            logger.warning("some events were not written before the timeout")
