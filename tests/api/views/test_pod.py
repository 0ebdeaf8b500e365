"""Views of pods and nodes: the fields that components read, under the names of Kubernetes."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.meta import (
    Condition,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    PreferredSchedulingTerm,
)
from mooring.api.views.node import AttachedVolume, ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus, Taint
from mooring.api.views.pod import (
    Affinity,
    Container,
    ContainerExtendedResourceRequest,
    ContainerPort,
    ContainerRestartRule,
    ContainerStatus,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodExtendedResourceClaimStatus,
    PodOS,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    ResourceClaimUse,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"nodeName": "n1", "schedulerName": "mine"}, PodSpec(node_name="n1", scheduler_name="mine")),
        (
            {"priority": 7, "priorityClassName": "high", "preemptionPolicy": "Never"},
            PodSpec(priority=7, priority_class_name="high", preemption_policy="Never"),
        ),
        ({"hostNetwork": True, "hostUsers": False}, PodSpec(host_network=True, host_users=False)),
        (
            {"os": {"name": "linux"}, "nodeSelector": {"a": "b"}},
            PodSpec(os=PodOS(name="linux"), node_selector={"a": "b"}),
        ),
        ({"overhead": {"cpu": "10m", "memory": 5}}, PodSpec(overhead={"cpu": "10m", "memory": 5})),
        ({"resources": {"requests": {"cpu": 1.5}}}, PodSpec(resources=ResourceRequirements(requests={"cpu": 1.5}))),
        ({"schedulingGates": [{"name": "wait"}]}, PodSpec(scheduling_gates=(PodSchedulingGate(name="wait"),))),
        ({"schedulingGroup": {"podGroupName": "g"}}, PodSpec(scheduling_group=PodSchedulingGroup(pod_group_name="g"))),
        ({"terminationGracePeriodSeconds": 0}, PodSpec(termination_grace_period_seconds=0)),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]},
            PodSpec(tolerations=(Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=300),)),
        ),
        (
            {
                "resourceClaims": [
                    {"name": "a", "resourceClaimName": "b"},
                    {"name": "c", "resourceClaimTemplateName": "d"},
                ]
            },
            PodSpec(
                resource_claims=(
                    PodResourceClaim(name="a", resource_claim_name="b"),
                    PodResourceClaim(name="c", resource_claim_template_name="d"),
                )
            ),
        ),
        (
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 2,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"a": "b"}},
                        "minDomains": 3,
                        "nodeAffinityPolicy": "Honor",
                        "nodeTaintsPolicy": "Ignore",
                        "matchLabelKeys": ["hash"],
                    }
                ]
            },
            PodSpec(
                topology_spread_constraints=(
                    TopologySpreadConstraint(
                        max_skew=2,
                        topology_key="zone",
                        when_unsatisfiable="DoNotSchedule",
                        label_selector=LabelSelector(match_labels={"a": "b"}),
                        min_domains=3,
                        node_affinity_policy="Honor",
                        node_taints_policy="Ignore",
                        match_label_keys=("hash",),
                    ),
                )
            ),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_view_of_a_pod_spec(written: dict[str, object], read: PodSpec) -> None:
    assert convert_as(Pod, {"spec": written}).spec == read


def test_view_of_a_container() -> None:
    written = {
        "name": "main",
        "image": "web:1",
        "restartPolicy": "Always",
        "restartPolicyRules": [{"action": "RestartAllContainers"}],
        "ports": [{"name": "http", "containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": 1}, "limits": {"cpu": "2"}, "claims": [{"name": "gpu", "request": "r"}]},
        "command": ["sleep"],
    }
    main = Container(
        name="main",
        image="web:1",
        restart_policy="Always",
        restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),),
        ports=(ContainerPort(name="http", container_port=80, host_port=8080, host_ip="10.0.0.1", protocol="TCP"),),
        resources=ResourceRequirements(
            requests={"cpu": 1}, limits={"cpu": "2"}, claims=(ResourceClaimUse(name="gpu", request="r"),)
        ),
    )
    spec = {"containers": [written], "initContainers": [written], "ephemeralContainers": [written]}
    read = convert_as(Pod, {"spec": spec}).spec
    assert read == PodSpec(containers=(main,), init_containers=(main,), ephemeral_containers=(main,))


def test_view_of_an_affinity() -> None:
    pod_term = {
        "topologyKey": "zone",
        "labelSelector": {},
        "namespaces": ["a"],
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "matchLabelKeys": ["k"],
        "mismatchLabelKeys": ["m"],
    }
    node_term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    written = {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [node_term]},
            PREFERRED: [{"weight": 5, "preference": node_term}],
        },
        "podAffinity": {REQUIRED: [pod_term], PREFERRED: [{"weight": 7, "podAffinityTerm": pod_term}]},
        "podAntiAffinity": {REQUIRED: [pod_term], PREFERRED: [{"weight": 9, "podAffinityTerm": pod_term}]},
    }
    wanted_node = NodeSelectorTerm(
        match_fields=(NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",)),)
    )
    wanted_pods = PodAffinityTerm(
        topology_key="zone",
        label_selector=LabelSelector(),
        namespaces=("a",),
        namespace_selector=LabelSelector(match_labels={"team": "x"}),
        match_label_keys=("k",),
        mismatch_label_keys=("m",),
    )
    assert convert_as(Affinity, written) == Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=(wanted_node,)),
            preferred_during_scheduling_ignored_during_execution=(
                PreferredSchedulingTerm(weight=5, preference=wanted_node),
            ),
        ),
        pod_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(wanted_pods,),
            preferred_during_scheduling_ignored_during_execution=(
                WeightedPodAffinityTerm(weight=7, pod_affinity_term=wanted_pods),
            ),
        ),
        pod_anti_affinity=PodAntiAffinity(
            required_during_scheduling_ignored_during_execution=(wanted_pods,),
            preferred_during_scheduling_ignored_during_execution=(
                WeightedPodAffinityTerm(weight=9, pod_affinity_term=wanted_pods),
            ),
        ),
    )


def test_view_of_a_pod_status() -> None:
    written = {
        "phase": "Running",
        "nominatedNodeName": "n2",
        "startTime": "2024-06-12T22:21:21Z",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
        ],
        "initContainerStatuses": [{"name": "init", "ready": True}],
        "resize": "Deferred",
        "resources": {"requests": {"cpu": "3"}},
        "allocatedResources": {"cpu": "4"},
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}],
        "extendedResourceClaimStatus": {
            "resourceClaimName": "p-ext",
            "requestMappings": [{"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r0"}],
        },
    }
    assert convert_as(Pod, {"status": written}).status == PodStatus(
        phase="Running",
        nominated_node_name="n2",
        start_time="2024-06-12T22:21:21Z",
        conditions=(Condition(type="PodResizePending", status="True", reason="Infeasible"),),
        container_statuses=(
            ContainerStatus(
                name="main",
                resources=ResourceRequirements(requests={"cpu": "1"}),
                allocated_resources={"cpu": "2"},
            ),
        ),
        init_container_statuses=(ContainerStatus(name="init"),),
        resize="Deferred",
        resources=ResourceRequirements(requests={"cpu": "3"}),
        allocated_resources={"cpu": "4"},
        resource_claim_statuses=(PodResourceClaimStatus(name="gpu", resource_claim_name="p-gpu-x"),),
        extended_resource_claim_status=PodExtendedResourceClaimStatus(
            resource_claim_name="p-ext",
            request_mappings=(
                ContainerExtendedResourceRequest(
                    container_name="main", resource_name="example.com/gpu", request_name="r0"
                ),
            ),
        ),
    )


def test_absent_fields_have_the_defaults_of_kubernetes() -> None:
    bare = convert_as(Pod, {})
    assert bare == Pod()
    assert (bare.spec.priority, bare.spec.preemption_policy, bare.spec.resources) == (None, None, None)
    assert (bare.spec.containers, bare.spec.overhead, bare.metadata.labels) == ((), {}, {})


# --- The view of a node ----------------------------------------------------------------------------------------------


def test_view_of_a_node() -> None:
    written = {
        "metadata": {"name": "n1"},
        "spec": {
            "unschedulable": True,
            "podCIDR": "10.0.0.0/24",
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": "2024-06-12T22:21:21Z"}],
        },
        "status": {
            "capacity": {"cpu": "4"},
            "allocatable": {"cpu": "3920m", "pods": 110},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2024-06-12T22:21:21Z"}],
            "images": [{"names": ["web:1", "web@sha256:x"], "sizeBytes": 5}, {"names": None}],
            "volumesAttached": [{"name": "kubernetes.io/csi/x", "devicePath": ""}],
            "declaredFeatures": ["A"],
        },
    }
    assert convert_as(Node, written) == Node(
        metadata=ObjectMeta(name="n1"),
        spec=NodeSpec(
            unschedulable=True,
            taints=(Taint(key="a", value="b", effect="NoSchedule", time_added="2024-06-12T22:21:21Z"),),
        ),
        status=NodeStatus(
            capacity={"cpu": "4"},
            allocatable={"cpu": "3920m", "pods": 110},
            conditions=(NodeCondition(type="Ready", status="True", last_heartbeat_time="2024-06-12T22:21:21Z"),),
            images=(ContainerImage(names=("web:1", "web@sha256:x"), size_bytes=5), ContainerImage()),
            volumes_attached=(AttachedVolume(name="kubernetes.io/csi/x"),),
            declared_features=("A",),
        ),
    )
