"""Workloads in a table: deployments, sets, jobs, controllers, and what they are made from."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.kinds.controller_revision import CONTROLLER_REVISION_TABLE
from mooring.apiserver.kinds.cron_job import CRON_JOB_TABLE
from mooring.apiserver.kinds.daemon_set import DAEMON_SET_TABLE
from mooring.apiserver.kinds.deployment import DEPLOYMENT_TABLE
from mooring.apiserver.kinds.job.strategy import JOB_TABLE
from mooring.apiserver.kinds.replica_set import REPLICA_SET_TABLE
from mooring.apiserver.kinds.replication_controller import REPLICATION_CONTROLLER_TABLE
from mooring.apiserver.kinds.stateful_set import STATEFUL_SET_TABLE
from mooring.apiserver.kinds.workloads import name_spec_status
from mooring.apiserver.tables.cells import age, containers_and_images, labels_text
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column, integer


def _pod_template(obj: Document, now_s: float) -> list[Cell]:
    template = obj.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    return [obj["metadata"]["name"], *containers_and_images(template.get("spec")), labels_text(labels)]


def _disruption_budget(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    bounds = (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return [
        name,
        *("N/A" if bound is None else str(bound) for bound in bounds),
        status.get("disruptionsAllowed", 0),
        age(obj, now_s),
    ]


POD_TEMPLATE_TABLE = KindTable(
    (
        NAME,
        column("Containers", "The names of its containers."),
        column("Images", "What they run."),
        column("Pod Labels", "The labels of pods that are made from it."),
    ),
    _pod_template,
)

POD_DISRUPTION_BUDGET_TABLE = KindTable(
    (
        NAME,
        column("Min Available", "How many pods must be available."),
        column("Max Unavailable", "How many may be unavailable."),
        integer("Allowed Disruptions", "How many may be disrupted now."),
        AGE,
    ),
    _disruption_budget,
)

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
