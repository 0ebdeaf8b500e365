"""Job (batch/v1): defaults, table and strategy.

1. A Job selects its pods by its own uid, unless it asks for a manual selector.
2. A Job without labels shares the label map of its pod template, so labels that the strategy adds to the template
   appear on the Job, too.
3. The defaults run again after validation, so that the Job carries the generated labels.
4. Deleting a Job without a propagation policy returns a warning.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.job.spec import (
    COMPLETIONS_MANY,
    CONTROLLER_UID,
    JOB_NAME,
    LEGACY_CONTROLLER_UID,
    LEGACY_JOB_NAME,
    PARALLELISM_MANY_MAX,
    validate_job,
    validate_job_update,
)
from mooring.apiserver.kinds.job.status import validate_job_status
from mooring.apiserver.kinds.pod.defaults import default_pod_template
from mooring.apiserver.kinds.pod.warnings import pod_template_warnings
from mooring.apiserver.kinds.workloads import (
    CONTAINERS_COLUMN,
    IMAGES_COLUMN,
    SELECTOR_COLUMN,
    WorkloadStrategy,
    name_spec_status,
    pod_name_warnings,
    template_labels,
)
from mooring.apiserver.strategy import DefaultPropagation
from mooring.apiserver.tables import (
    AGE,
    NAME,
    Cell,
    KindTable,
    age,
    between,
    column,
    containers_and_images,
    selector_text,
    since,
    template_spec,
)
from mooring.apiserver.validation.fields import FieldError

BACKOFF_MAX = 6
INT32_MAX = 2**31 - 1

PODS_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_TOO_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)


def default_job_template(spec: Document) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_pod_template(spec["template"])


def _job_cells(obj: Document, now_s: float) -> list[Cell]:
    name, spec, status = name_spec_status(obj)
    return [
        name,
        _job_status_cell(obj, status),
        _completions_cell(spec, status),
        _job_duration_cell(status, now_s),
        age(obj, now_s),
        *containers_and_images(template_spec(spec.get("template"))),
        selector_text(spec.get("selector")),
    ]


def _job_status_cell(job: Document, status: Document) -> str:
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


def _completions_cell(spec: Document, status: Document) -> str:
    succeeded, completions, parallelism = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism")
    if completions is not None:
        return f"{succeeded}/{completions}"
    return f"{succeeded}/1 of {parallelism}" if parallelism is not None and parallelism > 1 else f"{succeeded}/1"


def _job_duration_cell(status: Document, now_s: float) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return between(start, end) if end else since(start, now_s)


class JobStrategy(WorkloadStrategy):
    counts_changes_of_meaning = True
    table = KindTable(
        (
            NAME,
            column("Status", "How it goes."),
            column("Completions", "How many pods have succeeded, of how many."),
            column("Duration", "How long it took, or takes until now."),
            AGE,
            CONTAINERS_COLUMN,
            IMAGES_COLUMN,
            SELECTOR_COLUMN,
        ),
        _job_cells,
    )
    dependents = DefaultPropagation.ORPHAN

    def default(self, obj: Document) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        if "backoffLimit" not in spec:
            spec["backoffLimit"] = INT32_MAX if "backoffLimitPerIndex" in spec else BACKOFF_MAX
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels and not metadata.get("labels"):
            metadata["labels"] = labels
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)
        default_job_template(spec)

    def canonicalize(self, obj: Document) -> None:
        metadata, pods = obj["metadata"], obj["spec"]["template"].get("metadata", {})
        if not metadata.get("labels") and pods.get("labels"):
            metadata["labels"] = dict(pods["labels"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)
        super().prepare_for_create(obj, call)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_job(obj, None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new job, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_job(obj, old)
        errors += self.validate_meta_update(obj, old)
        errors += validate_job_update(obj, old)
        return errors

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_job_status(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return pod_name_warnings(obj["metadata"]["name"]) + job_warnings(obj["spec"], "spec")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        if obj["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return job_warnings(obj["spec"], "spec")

    def warnings_on_delete(self, *, is_propagation_said: bool) -> list[str]:
        return [] if is_propagation_said else [PODS_PRESERVED]

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def job_warnings(spec: Document, path: str) -> list[str]:
    warnings = []
    if (
        spec.get("completionMode") == "Indexed"
        and spec.get("completions", 0) > COMPLETIONS_MANY
        and spec.get("parallelism", 0) > PARALLELISM_MANY_MAX
    ):
        warnings.append(f"{path}: {_TOO_MANY_INDEXES}")
    return warnings + pod_template_warnings(spec["template"], f"{path}.template")


def _generate_selector(obj: Document) -> None:
    """Label the pods with the job's name and uid, and select by the uid. Existing labels stay."""
    metadata, spec = obj["metadata"], obj["spec"]
    template = spec["template"]
    pods, given = template.get("metadata") or {}, template_labels(template)
    uid, name = metadata["uid"], metadata.get("name", "")
    generated = {LEGACY_JOB_NAME: name, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, CONTROLLER_UID: uid}
    labels = dict(sorted({**generated, **(given or {})}.items()))
    if given is not None and metadata.get("labels", given) is given:
        metadata["labels"] = labels
    selector = spec.get("selector") or {}
    match_labels = {CONTROLLER_UID: uid, **(selector.get("matchLabels") or {})}
    # The name may have to be generated again: nothing that came with the request is changed in place.
    obj["spec"] = {
        **spec,
        "selector": {**selector, "matchLabels": dict(sorted(match_labels.items()))},
        "template": {**template, "metadata": {**pods, "labels": labels}},
    }


STRATEGY = JobStrategy
