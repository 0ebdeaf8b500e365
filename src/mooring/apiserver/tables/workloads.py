"""Workloads in a table: deployments, sets, jobs, controllers, and what they are made from."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.kinds.cron_job import CRON_JOB_TABLE
from mooring.apiserver.kinds.job.strategy import JOB_TABLE
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    IMAGES_COLUMN,
    READY_COLUMN,
    REPLICA_COLUMNS,
    SELECTOR_COLUMN,
    name_spec_status,
    replica_counts,
)
from mooring.apiserver.tables.cells import (
    NONE,
    age,
    bare_selector_text,
    containers_and_images,
    labels_text,
    selector_text,
    template_spec,
)
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column, integer


def _deployment(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    return [
        name,
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        bare_selector_text(spec.get("selector")),
    ]


def _replica_set(obj: Document, now_s: float) -> list[Cell]:
    name, spec, _ = name_spec_status(obj)
    return [
        name,
        *replica_counts(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        selector_text(spec.get("selector")),
    ]


def _replication_controller(obj: Document, now_s: float) -> list[Cell]:
    name, spec, _ = name_spec_status(obj)
    return [
        name,
        *replica_counts(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        labels_text(spec.get("selector")),
    ]


def _stateful_set(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    return [
        name,
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}",
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
    ]


_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _daemon_set(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    pod_spec = template_spec(spec.get("template")) or {}
    return [
        name,
        *(status.get(count, 0) for count in _DAEMON_COUNTS),
        labels_text(pod_spec.get("nodeSelector")),
        age(obj, now_s),
        *containers_and_images(pod_spec),
        selector_text(spec.get("selector")),
    ]


def _pod_template(obj: Document, now_s: float) -> list[Cell]:
    template = obj.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    return [obj["metadata"]["name"], *containers_and_images(template.get("spec")), labels_text(labels)]


def _controller_revision(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], _controller(obj), obj.get("revision", 0), age(obj, now_s)]


def _controller(obj: Document) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group, slash, _ = owner["apiVersion"].partition("/")
            kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return NONE


def _disruption_budget(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    bounds = (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return [
        name,
        *("N/A" if bound is None else str(bound) for bound in bounds),
        status.get("disruptionsAllowed", 0),
        age(obj, now_s),
    ]


DEPLOYMENT_TABLE = KindTable(
    (
        NAME,
        READY_COLUMN,
        column("Up-to-date", "How many pods are made from the newest template."),
        column("Available", "How many have been ready for long enough."),
        AGE,
        CONTAINERS_COLUMN,
        IMAGES_COLUMN,
        SELECTOR_COLUMN,
    ),
    _deployment,
)

REPLICA_SET_TABLE = KindTable(REPLICA_COLUMNS, _replica_set)

REPLICATION_CONTROLLER_TABLE = KindTable(REPLICA_COLUMNS, _replication_controller)

STATEFUL_SET_TABLE = KindTable((NAME, READY_COLUMN, AGE, CONTAINERS_COLUMN, IMAGES_COLUMN), _stateful_set)

DAEMON_SET_TABLE = KindTable(
    (
        NAME,
        integer("Desired", "On how many nodes it should run."),
        integer("Current", "On how many of them it does."),
        integer("Ready", "On how many it is ready."),
        integer("Up-to-date", "On how many it runs from the newest template."),
        integer("Available", "On how many it has been ready for long enough."),
        column("Node Selector", "Which nodes it is for."),
        AGE,
        CONTAINERS_COLUMN,
        IMAGES_COLUMN,
        SELECTOR_COLUMN,
    ),
    _daemon_set,
)

POD_TEMPLATE_TABLE = KindTable(
    (
        NAME,
        column("Containers", "The names of its containers."),
        column("Images", "What they run."),
        column("Pod Labels", "The labels of pods that are made from it."),
    ),
    _pod_template,
)

CONTROLLER_REVISION_TABLE = KindTable(
    (NAME, column("Controller", "Whose history it is."), column("Revision", "Its number in that history."), AGE),
    _controller_revision,
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
