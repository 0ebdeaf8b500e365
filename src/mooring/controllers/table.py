"""Which controllers there are: one line each, in the order in which they are started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from mooring.controllers.clusterrole_aggregation import ClusterRoleAggregationController
from mooring.controllers.context import Controller, Workshop
from mooring.controllers.cronjob.controller import CronJobController
from mooring.controllers.daemonset.controller import DaemonSetController
from mooring.controllers.deployment.controller import DeploymentController
from mooring.controllers.disruption.controller import DisruptionController
from mooring.controllers.endpoint.endpoints import EndpointsController
from mooring.controllers.endpoint.slices import EndpointSliceController
from mooring.controllers.garbagecollector.controller import GarbageCollectorController
from mooring.controllers.job.controller import JobController
from mooring.controllers.namespace import NamespaceController
from mooring.controllers.node.lifecycle import NodeLifecycleController
from mooring.controllers.node.taint_eviction import TaintEvictionController
from mooring.controllers.podgc import PodGarbageController
from mooring.controllers.quota import ResourceQuotaController
from mooring.controllers.replicaset.controller import ReplicaSetController, ReplicationControllerController
from mooring.controllers.resourceclaim.controller import ResourceClaimController
from mooring.controllers.root_ca_certificate_publisher import RootCaCertificatePublisher
from mooring.controllers.serviceaccount import ServiceAccountController
from mooring.controllers.statefulset.controller import StatefulSetController
from mooring.controllers.ttl_after_finished import TtlAfterFinishedController
from mooring.controllers.volume.binder import VolumeBinderController
from mooring.controllers.volume.ephemeral import EphemeralVolumeController
from mooring.controllers.volume.protection import ClaimProtectionController, VolumeProtectionController

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
