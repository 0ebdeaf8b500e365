"""Cron jobs."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.workloads import default_cron_job
from mooring.apiserver.strategies.job import job_warnings
from mooring.apiserver.strategies.workload import WorkloadStrategy, pod_name_warnings
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.validation.cron_job import cron_job_faults, cron_job_name_faults
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.values import means_the_same

_JOB = "spec.jobTemplate.spec"
_ZONE_IN_SCHEDULE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


class CronJobStrategy(WorkloadStrategy):
    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": CronJobStatusStrategy(self.kind, self)}

    def template(self, obj: Document) -> Document:
        template: Document = obj["spec"]["jobTemplate"]["spec"]["template"]
        return template

    def default(self, obj: Document) -> None:
        default_cron_job(obj)

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["spec"], old["spec"], "batch", "CronJobSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return cron_job_faults(obj["spec"], None, "spec") + cron_job_name_faults(obj["metadata"].get("name", ""))

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return cron_job_faults(obj["spec"], old["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        warnings = pod_name_warnings(obj["metadata"]["name"])
        return warnings + job_warnings(obj["spec"]["jobTemplate"]["spec"], _JOB)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        warnings = []
        if obj["metadata"].get("generation") != old["metadata"].get("generation"):
            warnings += job_warnings(obj["spec"]["jobTemplate"]["spec"], _JOB)
        if "TZ" in obj["spec"].get("schedule", ""):
            warnings.append(_ZONE_IN_SCHEDULE)
        return warnings


class CronJobStatusStrategy(StatusStrategy):
    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """Anything goes; the registry still looks at the metadata."""
        return []
