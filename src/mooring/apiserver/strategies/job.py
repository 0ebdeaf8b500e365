"""Jobs.

1. A job selects its pods by its own uid, unless somebody asks for a selector made by hand.
2. What a job is stored with after all is validated is defaulted once more, so a job that nobody labelled carries the
   labels of its pods, the generated ones included.
3. Whoever deletes a job without saying what becomes of its pods is told.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.workloads import default_job
from mooring.apiserver.strategies.pod_warnings import pod_template_warnings
from mooring.apiserver.strategies.workload import WorkloadStrategy, pod_name_warnings
from mooring.apiserver.strategy import Dependents, StatusStrategy, Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.job import (
    COMPLETIONS_MANY,
    CONTROLLER_UID,
    JOB_NAME,
    LEGACY_CONTROLLER_UID,
    LEGACY_JOB_NAME,
    PARALLELISM_MANY_MAX,
    job_faults,
    job_update_faults,
)
from mooring.apiserver.validation.job_status import job_status_faults
from mooring.apiserver.validation.values import means_the_same
from mooring.apiserver.validation.workloads import template_labels

PODS_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_TOO_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)


class JobStrategy(WorkloadStrategy):
    dependents = Dependents.ORPHAN

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": JobStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_job(obj)

    def canonicalize(self, obj: Document) -> None:
        metadata, pods = obj["metadata"], obj["spec"]["template"].get("metadata", {})
        if not metadata.get("labels") and pods.get("labels"):
            metadata["labels"] = dict(pods["labels"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        if not obj["spec"].get("manualSelector"):
            _generate_selector(obj)
        super().prepare_for_create(obj, call)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["spec"], old["spec"], "batch", "JobSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return job_faults(obj, None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new job, then as a change."""
        faults = self.meta_faults(obj)
        faults += job_faults(obj, old)
        faults += self.meta_update_faults(obj, old)
        faults += job_update_faults(obj, old)
        return faults

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


class JobStatusStrategy(StatusStrategy):
    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return job_status_faults(obj, old)


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
    """Label the pods with the job's name and uid, and select by the uid. What is there already stays."""
    metadata, spec = obj["metadata"], obj["spec"]
    template = spec["template"]
    pods, given = template.get("metadata") or {}, template_labels(template)
    uid, name = metadata["uid"], metadata.get("name", "")
    generated = {LEGACY_JOB_NAME: name, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, CONTROLLER_UID: uid}
    labels = dict(sorted({**generated, **(given or {})}.items()))
    if given is not None and metadata.get("labels", given) is given:
        metadata["labels"] = labels
    selector = spec.get("selector") or {}
    wanted = {CONTROLLER_UID: uid, **(selector.get("matchLabels") or {})}
    # The name may have to be generated again: nothing that came with the request is changed in place.
    obj["spec"] = {
        **spec,
        "selector": {**selector, "matchLabels": dict(sorted(wanted.items()))},
        "template": {**template, "metadata": {**pods, "labels": labels}},
    }
