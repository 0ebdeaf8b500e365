"""Workloads in a table: deployments, sets, jobs, controllers, and what they are made from."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.tables.cells import (
    NONE,
    UNSET,
    age,
    bare_selector_text,
    between,
    containers_and_images,
    labels_text,
    selector_text,
    since,
    template_spec,
)
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, boolean, column, integer, wide


def _parts(obj: Document) -> tuple[str, Document, Document]:
    return obj["metadata"]["name"], obj.get("spec") or {}, obj.get("status") or {}


def _deployment(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = _parts(obj)
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
    name, spec, _ = _parts(obj)
    return [
        name,
        *_replicas(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        selector_text(spec.get("selector")),
    ]


def _replication_controller(obj: Document, now_s: float) -> list[Cell]:
    name, spec, _ = _parts(obj)
    return [
        name,
        *_replicas(obj),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        labels_text(spec.get("selector")),
    ]


def _replicas(obj: Document) -> tuple[int, int, int]:
    _, spec, status = _parts(obj)
    return spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)


def _stateful_set(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = _parts(obj)
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
    name, spec, status = _parts(obj)
    pod_spec = template_spec(spec.get("template")) or {}
    return [
        name,
        *(status.get(count, 0) for count in _DAEMON_COUNTS),
        labels_text(pod_spec.get("nodeSelector")),
        age(obj, now_s),
        *containers_and_images(pod_spec),
        selector_text(spec.get("selector")),
    ]


def _job(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = _parts(obj)
    return [
        name,
        _job_status(obj, status),
        _completions(spec, status),
        _job_duration(status, now_s),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        selector_text(spec.get("selector")),
    ]


def _job_status(job: Document, status: Document) -> str:
    holding: dict[str, bool] = {}
    for condition in status.get("conditions") or ():
        holding.setdefault(condition["type"], condition.get("status") == "True")
    for name in ("Complete", "Failed"):
        if holding.get(name):
            return name
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if holding.get(name):
            return name
    return "Running"


def _completions(spec: Document, status: Document) -> str:
    succeeded, wanted, parallelism = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    return f"{succeeded}/1 of {parallelism}" if parallelism is not None and parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Document, now_s: float) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return between(start, end) if end else since(start, now_s)


def _cron_job(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = _parts(obj)
    suspend, last = spec.get("suspend"), status.get("lastScheduleTime")
    job_spec = template_spec(spec.get("jobTemplate")) or {}
    return [
        name,
        spec.get("schedule", ""),
        spec["timeZone"] if spec.get("timeZone") is not None else NONE,
        str(suspend) if suspend is not None else UNSET,
        len(status.get("active") or ()),
        since(last, now_s) if last else NONE,
        age(obj, now_s),
        *containers_and_images(template_spec(job_spec.get("template"))),
        selector_text(job_spec.get("selector")),
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
    name, spec, status = _parts(obj)
    bounds = (spec.get("minAvailable"), spec.get("maxUnavailable"))
    return [
        name,
        *("N/A" if bound is None else str(bound) for bound in bounds),
        status.get("disruptionsAllowed", 0),
        age(obj, now_s),
    ]


_CONTAINERS = wide("Containers", "The names of the containers of its pods.")
_IMAGES = wide("Images", "What these containers run.")
_SELECTOR = wide("Selector", "Which pods are its own.")
_REPLICA_COLUMNS = (
    NAME,
    integer("Desired", "How many pods it should have."),
    integer("Current", "How many it has."),
    integer("Ready", "How many of them are ready."),
    AGE,
    _CONTAINERS,
    _IMAGES,
    _SELECTOR,
)
_READY = column("Ready", "How many of its pods are ready, of how many wanted.")

DEPLOYMENT_TABLE = KindTable(
    (
        NAME,
        _READY,
        column("Up-to-date", "How many pods are made from the newest template."),
        column("Available", "How many have been ready for long enough."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _deployment,
)

REPLICA_SET_TABLE = KindTable(_REPLICA_COLUMNS, _replica_set)

REPLICATION_CONTROLLER_TABLE = KindTable(_REPLICA_COLUMNS, _replication_controller)

STATEFUL_SET_TABLE = KindTable((NAME, _READY, AGE, _CONTAINERS, _IMAGES), _stateful_set)

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
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _daemon_set,
)

JOB_TABLE = KindTable(
    (
        NAME,
        column("Status", "How it goes."),
        column("Completions", "How many pods have succeeded, of how many."),
        column("Duration", "How long it took, or takes until now."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _job,
)

CRON_JOB_TABLE = KindTable(
    (
        NAME,
        column("Schedule", "When its jobs are made."),
        column("Timezone", "In which zone the schedule is read."),
        boolean("Suspend", "Whether it makes none for now."),
        integer("Active", "How many of its jobs run."),
        column("Last Schedule", "How long ago the last job was due."),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _cron_job,
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
