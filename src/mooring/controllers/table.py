"""Which controllers there are: one line each, in the order in which they are started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from mooring.controllers.cluster_roles import ClusterRoleAggregationController
from mooring.controllers.cron_job import CronJobController
from mooring.controllers.daemon_set import DaemonSetController
from mooring.controllers.deployment import DeploymentController
from mooring.controllers.disruption import DisruptionController
from mooring.controllers.endpoint_slices import EndpointSliceController
from mooring.controllers.endpoints import EndpointsController
from mooring.controllers.ephemeral_volume import EphemeralVolumeController
from mooring.controllers.frame import Controller, Workshop
from mooring.controllers.garbage_collector import GarbageCollectorController
from mooring.controllers.job import JobController
from mooring.controllers.namespace import NamespaceController
from mooring.controllers.node_lifecycle import NodeLifecycleController
from mooring.controllers.pod_garbage import PodGarbageController
from mooring.controllers.replica_set import ReplicaSetController, ReplicationControllerController
from mooring.controllers.resource_claim import ResourceClaimController
from mooring.controllers.resource_quota import ResourceQuotaController
from mooring.controllers.root_ca_certificate_publisher import RootCaCertificatePublisher
from mooring.controllers.service_account import ServiceAccountController
from mooring.controllers.stateful_set import StatefulSetController
from mooring.controllers.taint_eviction import TaintEvictionController
from mooring.controllers.ttl_after_finished import TtlAfterFinishedController
from mooring.controllers.volume_binder import VolumeBinderController
from mooring.controllers.volume_protection import ClaimProtectionController, VolumeProtectionController

MakeController: TypeAlias = Callable[[Workshop], Controller]

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
    EphemeralVolumeController,
    ClaimProtectionController,
    VolumeProtectionController,
    ResourceClaimController,
    ServiceAccountController,
    RootCaCertificatePublisher,
    ClusterRoleAggregationController,
    EndpointSliceController,
    EndpointsController,
    ResourceQuotaController,
)

CONTROLLERS: Mapping[str, MakeController] = {controller.name: controller for controller in _ALL}
