"""Views of Jobs and CronJobs.

1. Both keep their JSON: controllers write their status back, and create pods and jobs from their templates.
2. Of a pod template, only the fields that controllers check before they create a pod are decoded.
"""

from typing import ClassVar

from mooring.api.views.meta import (
    NO_METADATA,
    Int32,
    Int64,
    LabelSelector,
    ObjectMeta,
    ObjectReference,
    ObjectWithRaw,
    Timestamp,
    View,
)


class OnExitCodes(View):
    container_name: str | None = None
    operator: str = ""
    values: tuple[Int32, ...] = ()


class OnPodCondition(View):
    type: str = ""
    status: str = ""


class PodFailurePolicyRule(View):
    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] | None = None


class PodFailurePolicy(View):
    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(View):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(View):
    rules: tuple[SuccessPolicyRule, ...] = ()


class JobTemplatePodSpec(View):
    restart_policy: str = ""


class JobPodTemplate(View):
    metadata: ObjectMeta = NO_METADATA
    spec: JobTemplatePodSpec = JobTemplatePodSpec()


class JobSpec(View):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    template: JobPodTemplate = JobPodTemplate()
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: bool = False
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobCondition(View):
    type: str = ""
    status: str = ""
    last_probe_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None
    reason: str = ""
    message: str = ""


class UncountedTerminatedPods(View):
    """The uids of finished pods whose finalizer is not removed yet; the counts of the status do not include them."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(View):
    conditions: tuple[JobCondition, ...] = ()
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Int32 | None = None


class Job(ObjectWithRaw):
    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "Job"

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(View):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ""
    suspend: bool = False
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(View):
    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: Timestamp | None = None
    last_successful_time: Timestamp | None = None


class CronJob(ObjectWithRaw):
    api_version: ClassVar[str] = "batch/v1"
    kind: ClassVar[str] = "CronJob"

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
