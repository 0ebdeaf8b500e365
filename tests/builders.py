"""Builders that speak of clusters: nodes, pods and what surrounds them, in as few words as a test needs.

node("n1", cpu=4, zone="a", taints=["gpu=true:NoSchedule"])
pod("web-1", cpu="500m", labels={"app": "web"}, on="n1")
pod("db", near=[pods_like(ZONE, app="web")], spread=[spread(HOSTNAME, app="db")])

All of them return views. What is written as text in an API object stays text here: taints and tolerations, host ports
("80", "53/UDP", "127.0.0.1:80"), and the expressions of selectors ("stage In test,beta").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.storage import BIND_COMPLETED
from mooring.api.views.meta import (
    Condition,
    LabelSelector,
    NodeSelector,
    ObjectMeta,
    OwnerReference,
    PreferredSchedulingTerm,
    RawQuantity,
)
from mooring.api.views.node import ContainerImage, Node, NodeSpec, NodeStatus
from mooring.api.views.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.api.views.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    Volume,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResourceRequirements,
)
from mooring.api.views.workloads import (
    Namespace,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
)
from mooring.kit.clock import format_rfc3339
from tests.api.builders import amounts, selector, taint, term, toleration

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
MIB = 1024 * 1024

WeighedTerm = tuple[int, PodAffinityTerm]


def node(
    name: str = "n1",
    *,
    cpu: RawQuantity = 4,
    memory: RawQuantity = "8Gi",
    pods: int = 110,
    others: Mapping[str, RawQuantity] | None = None,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
) -> Node:
    """A node with its host name label, and its zone's if it has one."""
    placed = {HOSTNAME: name} | ({ZONE: zone} if zone is not None else {})
    return Node(
        metadata=ObjectMeta(name=name, labels=placed | dict(labels or {})),
        spec=NodeSpec(taints=tuple(taint(text) for text in taints), unschedulable=unschedulable),
        status=NodeStatus(
            allocatable={"cpu": cpu, "memory": memory, "pods": pods, **(others or {})},
            images=tuple(ContainerImage(names=(name,), size_bytes=size) for name, size in (images or {}).items()),
            declared_features=tuple(features),
        ),
    )


def pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    cpu: RawQuantity | None = None,
    memory: RawQuantity | None = None,
    others: Mapping[str, RawQuantity] | None = None,
    image: str = "app:1",
    ports: Sequence[str] = (),
    containers: Sequence[Container] | None = None,
    init: Sequence[Container] = (),
    on: str = "",
    nominated: str = "",
    priority: int | None = None,
    preemption_policy: str | None = None,
    tolerations: Sequence[str] = (),
    node_labels: Mapping[str, str] | None = None,
    nodes: NodeSelector | None = None,
    prefers_nodes: Sequence[PreferredSchedulingTerm] = (),
    near: Sequence[PodAffinityTerm] = (),
    apart: Sequence[PodAffinityTerm] = (),
    prefers_near: Sequence[WeighedTerm] = (),
    prefers_apart: Sequence[WeighedTerm] = (),
    spread: Sequence[TopologySpreadConstraint] = (),
    volumes: Sequence[Volume] = (),
    claims: Sequence[str] = (),
    gates: Sequence[str] = (),
    owner: OwnerReference | None = None,
    scheduler: str = "",
    grace_s: int | None = None,
    phase: str = "",
    started_s: float | None = None,
    terminating: bool = False,
    preempted: bool = False,
) -> Pod:
    """A pod with one container, unless `containers` says otherwise; `preempted` is on its way out for another pod."""
    extended = {name: amount for name, amount in (others or {}).items() if "/" in name}  # need equal limits
    main = Container(
        name="main",
        image=image,
        resources=ResourceRequirements(requests=amounts(cpu, memory) | dict(others or {}), limits=extended),
        ports=tuple(host_port(text) for text in ports),
    )
    by_preemption = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            labels=labels or {},
            owner_references=(owner,) if owner is not None else (),
            deletion_timestamp=format_rfc3339(0.0) if terminating or preempted else None,
        ),
        spec=PodSpec(
            node_name=on,
            scheduler_name=scheduler,
            termination_grace_period_seconds=grace_s,
            containers=(main,) if containers is None else tuple(containers),
            init_containers=tuple(init),
            priority=priority,
            preemption_policy=preemption_policy,
            tolerations=tuple(toleration(text) for text in tolerations),
            node_selector=node_labels or {},
            affinity=_affinity(nodes, prefers_nodes, near, apart, prefers_near, prefers_apart),
            topology_spread_constraints=tuple(spread),
            volumes=(*volumes, *(claim_volume(claim) for claim in claims)),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
        ),
        status=PodStatus(
            phase=phase,
            nominated_node_name=nominated,
            start_time=format_rfc3339(started_s) if started_s is not None else None,
            conditions=(by_preemption,) if preempted else (),
        ),
    )


def host_port(text: str) -> ContainerPort:
    """`80`, `53/UDP`, `127.0.0.1:80/TCP`: the port is asked for on the host."""
    where, _, protocol = text.partition("/")
    address, _, number = where.rpartition(":")
    return ContainerPort(host_port=int(number), container_port=int(number), host_ip=address, protocol=protocol)


def pods_like(
    topology_key: str,
    *expressions: str,
    namespaces: Sequence[str] = (),
    namespaces_like: LabelSelector | None = None,
    **labels: str,
) -> PodAffinityTerm:
    """Whom to be near, or apart from: pods with these labels, within the same domain of a topology."""
    return PodAffinityTerm(
        topology_key=topology_key,
        label_selector=selector(*expressions, **labels),
        namespaces=tuple(namespaces),
        namespace_selector=namespaces_like,
    )


def spread(
    topology_key: str,
    *expressions: str,
    max_skew: int = 1,
    hard: bool = True,
    min_domains: int | None = None,
    honours_affinity: bool | None = None,
    honours_taints: bool | None = None,
    match_label_keys: Sequence[str] = (),
    **labels: str,
) -> TopologySpreadConstraint:
    """Pods with these labels are spread evenly over a topology."""
    return TopologySpreadConstraint(
        topology_key=topology_key,
        max_skew=max_skew,
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        label_selector=selector(*expressions, **labels),
        min_domains=min_domains,
        node_affinity_policy=_policy(honours_affinity),
        node_taints_policy=_policy(honours_taints),
        match_label_keys=tuple(match_label_keys),
    )


def claim_volume(claim: str) -> Volume:
    return Volume(name=claim, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))


def disk(name: str, *, read_only: bool = False) -> Volume:
    """A disk that only one node can write to at a time."""
    return Volume(name=name, gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name=name, read_only=read_only))


def claim(
    name: str,
    *,
    namespace: str = "default",
    modes: Sequence[str] = ("ReadWriteOnce",),
    volume: str = "",
    storage_class: str | None = None,
) -> PersistentVolumeClaim:
    """A claim, bound if it names its volume."""
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid of {namespace}/{name}",
            annotations={BIND_COMPLETED: "yes"} if volume else {},
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(modes),
            volume_name=volume,
            storage_class_name=storage_class,
            resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
        ),
        status=PersistentVolumeClaimStatus(phase="Bound" if volume else "Pending"),
    )


def persistent_volume(
    name: str, *, zone: str | None = None, storage_class: str = "", driver: str = ""
) -> PersistentVolume:
    """A volume of 1Gi that only its zone reaches, if it has one."""
    reached_from = NodeSelector(node_selector_terms=(term(f"{ZONE} In {zone}"),)) if zone is not None else None
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": "1Gi"},
            access_modes=("ReadWriteOnce",),
            storage_class_name=storage_class,
            node_affinity=VolumeNodeAffinity(required=reached_from),
            csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name) if driver else None,
            host_path=None if driver else HostPathVolumeSource(path=f"/volumes/{name}"),
        ),
        status=PersistentVolumeStatus(phase="Available"),
    )


def storage_class(name: str, *, waits: bool, provisioner: str = "kubernetes.io/no-provisioner") -> StorageClass:
    """A class whose claims are bound at once, or wait for the first pod that uses them."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode)


def csi_node(name: str, **limits: int) -> CSINode:
    """How many volumes of each driver a node can attach."""
    drivers = (
        CSINodeDriver(name=driver, node_id=name, allocatable=VolumeNodeResources(count=limit))
        for driver, limit in limits.items()
    )
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=tuple(drivers)))


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels=labels))


def service(name: str, namespace: str = "default", **selected: str) -> Service:
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=selected or None))


def replica_set(name: str, selected: LabelSelector | None, namespace: str = "default") -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name=name, namespace=namespace), spec=ReplicaSetSpec(selector=selected))


def stateful_set(name: str, selected: LabelSelector | None, namespace: str = "default") -> StatefulSet:
    return StatefulSet(metadata=ObjectMeta(name=name, namespace=namespace), spec=StatefulSetSpec(selector=selected))


def replication_controller(name: str, namespace: str = "default", **selected: str) -> ReplicationController:
    return ReplicationController(
        metadata=ObjectMeta(name=name, namespace=namespace), spec=ReplicationControllerSpec(selector=selected or None)
    )


def owned_by(kind: str, name: str, api_version: str = "apps/v1") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid of {name}", controller=True)


def budget(
    name: str,
    selected: LabelSelector | None,
    *,
    allowed: int,
    namespace: str = "default",
    disrupted: Sequence[str] = (),
) -> PodDisruptionBudget:
    """A promise that only so many of these pods are evicted; those `disrupted` already are counted elsewhere."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selected),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, format_rfc3339(0.0))
        ),
    )


def _affinity(
    nodes: NodeSelector | None,
    prefers_nodes: Sequence[PreferredSchedulingTerm],
    near: Sequence[PodAffinityTerm],
    apart: Sequence[PodAffinityTerm],
    prefers_near: Sequence[WeighedTerm],
    prefers_apart: Sequence[WeighedTerm],
) -> Affinity | None:
    if not (nodes or prefers_nodes or near or apart or prefers_near or prefers_apart):
        return None
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=nodes,
            preferred_during_scheduling_ignored_during_execution=tuple(prefers_nodes),
        ),
        pod_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=tuple(near),
            preferred_during_scheduling_ignored_during_execution=_weighed(prefers_near),
        ),
        pod_anti_affinity=PodAntiAffinity(
            required_during_scheduling_ignored_during_execution=tuple(apart),
            preferred_during_scheduling_ignored_during_execution=_weighed(prefers_apart),
        ),
    )


def _weighed(terms: Sequence[WeighedTerm]) -> tuple[WeightedPodAffinityTerm, ...]:
    return tuple(WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in terms)


def _policy(honoured: bool | None) -> str | None:
    return None if honoured is None else "Honor" if honoured else "Ignore"
