"""The strategies of workloads, and of the smaller groups around them."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONTROLLER_REVISION,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    JOB,
    LEASE,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    REPLICA_SET,
    ROLE,
    ROLE_BINDING,
    RUNTIME_CLASS,
    STATEFUL_SET,
    Kind,
)
from mooring.apiserver.kinds.controller_revision import ControllerRevisionStrategy
from mooring.apiserver.kinds.cron_job import CronJobStrategy
from mooring.apiserver.kinds.daemon_set import DaemonSetStrategy
from mooring.apiserver.kinds.deployment import DeploymentStrategy
from mooring.apiserver.kinds.endpoint_slice import EndpointSliceStrategy
from mooring.apiserver.kinds.job.strategy import JobStrategy
from mooring.apiserver.kinds.lease import LeaseStrategy
from mooring.apiserver.kinds.pod_disruption_budget import PodDisruptionBudgetStrategy
from mooring.apiserver.kinds.priority_class import PriorityClassStrategy
from mooring.apiserver.kinds.replica_set import ReplicaSetStrategy
from mooring.apiserver.kinds.role import RoleStrategy
from mooring.apiserver.kinds.role_binding import RoleBindingStrategy
from mooring.apiserver.kinds.runtime_class import RuntimeClassStrategy
from mooring.apiserver.kinds.stateful_set import StatefulSetStrategy
from mooring.apiserver.strategy import Strategy

STRATEGIES: Mapping[Kind, type[Strategy]] = {
    DEPLOYMENT: DeploymentStrategy,
    REPLICA_SET: ReplicaSetStrategy,
    STATEFUL_SET: StatefulSetStrategy,
    DAEMON_SET: DaemonSetStrategy,
    CONTROLLER_REVISION: ControllerRevisionStrategy,
    JOB: JobStrategy,
    CRON_JOB: CronJobStrategy,
    POD_DISRUPTION_BUDGET: PodDisruptionBudgetStrategy,
    PRIORITY_CLASS: PriorityClassStrategy,
    LEASE: LeaseStrategy,
    ENDPOINT_SLICE: EndpointSliceStrategy,
    RUNTIME_CLASS: RuntimeClassStrategy,
    ROLE: RoleStrategy,
    CLUSTER_ROLE: RoleStrategy,
    ROLE_BINDING: RoleBindingStrategy,
    CLUSTER_ROLE_BINDING: RoleBindingStrategy,
}
