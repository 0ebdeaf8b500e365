"""View of Pods, as far as scheduling reads them.

1. A field is here if a rule of kube-scheduler v1.36 reads it. Each further field costs time for every pod event, so
   commands, environments, mounts and probes are not.
2. Enumerations stay strings: an unknown value must reach the rule that rejects or ignores it.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.meta import (
    ApiObject,
    Condition,
    Int32,
    Int64,
    LabelSelector,
    NodeSelector,
    PreferredSchedulingTerm,
    ResourceList,
    Timestamp,
    View,
)
from mooring.api.views.storage import Volume


class NodeAffinity(View):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(View):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(View):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(View):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(View):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(View):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(View):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(View):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ContainerPort(View):
    name: str = ""
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ResourceClaimUse(View):
    """A container's use of one of its pod's claims (`resources.claims`)."""

    name: str = ""
    request: str = ""


class ResourceRequirements(View):
    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    claims: tuple[ResourceClaimUse, ...] = ()


NO_RESOURCES = ResourceRequirements()


class ContainerRestartRule(View):
    action: str = ""


class Container(View):
    """A container of any sort: an init container with restart policy `Always` is a sidecar."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = NO_RESOURCES
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class PodSchedulingGate(View):
    name: str = ""


class PodResourceClaim(View):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(View):
    pod_group_name: str | None = None


class PodOS(View):
    name: str = ""


class PodSpec(View):
    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    os: PodOS | None = None
    termination_grace_period_seconds: Int64 | None = None
    hostname: str = ""
    subdomain: str = ""
    active_deadline_seconds: Int64 | None = None


class ContainerStateTerminated(View):
    exit_code: Int32 = 0
    finished_at: Timestamp | None = None


class ContainerState(View):
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(View):
    name: str = ""
    state: ContainerState | None = None
    restart_count: Int32 = 0
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = field(default_factory=dict)


class PodResourceClaimStatus(View):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(View):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(View):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodIP(View):
    ip: str = ""


class PodStatus(View):
    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: Timestamp | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    qos_class: str = ""
    resize: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Pod"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
