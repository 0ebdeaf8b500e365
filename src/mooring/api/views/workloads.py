"""Views of namespaces, services and their endpoints, workloads, jobs, controller revisions, budgets, priority classes.

1. The selector of a service or of a replication controller is a map. `None` selects nothing, `{}` everything.
2. Of a pod template, only the metadata is decoded, except for DaemonSets, whose controller checks nodes with the spec,
   and for Jobs, whose controller checks the restart policy.
3. The data of a revision is not decoded: it is a patch, and history code reads it from the raw JSON.
4. Jobs and CronJobs keep their JSON: controllers write their status back, and create pods and jobs from their
   templates.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.meta import (
    NO_METADATA,
    ApiObject,
    Condition,
    Int32,
    Int64,
    IntOrString,
    LabelSelector,
    ObjectMeta,
    ObjectReference,
    ObjectWithRaw,
    Timestamp,
    View,
)
from mooring.api.views.pod import PodSpec


class NamespaceStatus(View):
    phase: str = ""


class Namespace(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Namespace"

    status: NamespaceStatus = NamespaceStatus()


class ServicePort(View):
    name: str = ""
    protocol: str = ""
    app_protocol: str | None = None
    port: Int32 = 0
    target_port: IntOrString = 0
    node_port: Int32 = 0


class ServiceSpec(View):
    selector: Mapping[str, str] | None = None
    type: str = ""
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(default="", name="clusterIP")
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False
    traffic_distribution: str | None = None
    allocate_load_balancer_node_ports: bool | None = None


class Service(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Service"

    spec: ServiceSpec = ServiceSpec()


class TemplateHead(View):
    """The metadata of a pod template."""

    metadata: ObjectMeta = NO_METADATA


class ReplicaSetStatus(View):
    """Of a ReplicaSet; a ReplicationController has the same."""

    replicas: Int32 = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ReplicationControllerSpec(View):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: Mapping[str, str] | None = None
    template: TemplateHead = TemplateHead()


class ReplicationController(ObjectWithRaw):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ReplicationController"

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicaSetSpec(View):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: TemplateHead = TemplateHead()


class ReplicaSet(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "ReplicaSet"

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdateDeployment(View):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(View):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(View):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None
    template: TemplateHead = TemplateHead()


class DeploymentStatus(View):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    collision_count: Int32 | None = None
    conditions: tuple[Condition, ...] = ()


class Deployment(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "Deployment"

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class StatefulSetOrdinals(View):
    start: Int32 = 0


class RollingUpdateStatefulSet(View):
    partition: Int32 | None = None


class StatefulSetUpdateStrategy(View):
    type: str = ""
    rolling_update: RollingUpdateStatefulSet | None = None


class ClaimRetentionPolicy(View):
    when_deleted: str = ""
    when_scaled: str = ""


class ClaimTemplate(View):
    metadata: ObjectMeta = NO_METADATA


class StatefulSetSpec(View):
    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: TemplateHead = TemplateHead()
    volume_claim_templates: tuple[ClaimTemplate, ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetStatus(View):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    available_replicas: Int32 = 0


class StatefulSet(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "StatefulSet"

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class PodDisruptionBudgetSpec(View):
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(View):
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    observed_generation: Int64 = 0
    disrupted_pods: Mapping[str, Timestamp] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(ObjectWithRaw):
    api_version: ClassVar[str] = "policy/v1"
    kind: ClassVar[str] = "PodDisruptionBudget"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(ApiObject):
    api_version: ClassVar[str] = "scheduling.k8s.io/v1"
    kind: ClassVar[str] = "PriorityClass"

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class DaemonPodTemplate(View):
    metadata: ObjectMeta = NO_METADATA
    spec: PodSpec = PodSpec()


class RollingUpdateDaemonSet(View):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(View):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(View):
    selector: LabelSelector | None = None
    template: DaemonPodTemplate = DaemonPodTemplate()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetStatus(View):
    current_number_scheduled: Int32 = 0
    number_misscheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_ready: Int32 = 0
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "DaemonSet"

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(ObjectWithRaw):
    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "ControllerRevision"

    revision: Int64 = 0


class EndpointConditions(View):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(View):
    name: str = ""


class ForNode(View):
    name: str = ""


class EndpointHints(View):
    for_zones: tuple[ForZone, ...] = ()
    for_nodes: tuple[ForNode, ...] = ()


class Endpoint(View):
    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class EndpointPort(View):
    name: str | None = None
    protocol: str | None = None
    port: Int32 | None = None
    app_protocol: str | None = None


class EndpointSlice(ObjectWithRaw):
    api_version: ClassVar[str] = "discovery.k8s.io/v1"
    kind: ClassVar[str] = "EndpointSlice"

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(ObjectWithRaw):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Endpoints"


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
