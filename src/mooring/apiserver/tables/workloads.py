"""Workloads in a table: deployments, sets, jobs, controllers, and what they are made from."""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.controller_revision import CONTROLLER_REVISION_TABLE
from mooring.apiserver.kinds.cron_job import CRON_JOB_TABLE
from mooring.apiserver.kinds.daemon_set import DAEMON_SET_TABLE
from mooring.apiserver.kinds.deployment import DEPLOYMENT_TABLE
from mooring.apiserver.kinds.job.strategy import JOB_TABLE
from mooring.apiserver.kinds.pod_disruption_budget import POD_DISRUPTION_BUDGET_TABLE
from mooring.apiserver.kinds.pod_template import POD_TEMPLATE_TABLE
from mooring.apiserver.kinds.replica_set import REPLICA_SET_TABLE
from mooring.apiserver.kinds.replication_controller import REPLICATION_CONTROLLER_TABLE
from mooring.apiserver.kinds.stateful_set import STATEFUL_SET_TABLE

TABLES = {
    kinds.DEPLOYMENT: DEPLOYMENT_TABLE,
    kinds.REPLICA_SET: REPLICA_SET_TABLE,
    kinds.REPLICATION_CONTROLLER: REPLICATION_CONTROLLER_TABLE,
    kinds.STATEFUL_SET: STATEFUL_SET_TABLE,
    kinds.DAEMON_SET: DAEMON_SET_TABLE,
    kinds.JOB: JOB_TABLE,
    kinds.CRON_JOB: CRON_JOB_TABLE,
    kinds.POD_TEMPLATE: POD_TEMPLATE_TABLE,
    kinds.CONTROLLER_REVISION: CONTROLLER_REVISION_TABLE,
    kinds.POD_DISRUPTION_BUDGET: POD_DISRUPTION_BUDGET_TABLE,
}
