"""The objects that a plan creates: new nodes, and the pods that controllers create in place of evicted ones.

A new node is like a node of the cluster, or like one in a file, and empty.

1. It has the labels, taints and allocatable resources of its example, with a name of its own. Taints that controllers
   set from the state of a node are left out.
2. It has the devices of its example: the ResourceSlices that name the example are copied, into pools of its own.
   Devices that several nodes reach are not copied; a selector of nodes may select the new one, too.
3. It has the CSI drivers and volume limits of its example: the CSINode is copied.

The columns hold a placed pod without its specification: `PodSignature` has what all pods of a template share, `PodInfo`
the name and the volumes. Together they make a pending pod, as far as scheduling reads it.

4. A replacement has no node, no status and a uid of its own. A pod of a StatefulSet has the same name and claims.
5. Pods of DaemonSets and static pods end with their node. A pod without a controller is not created again.
6. A replacement has the ResourceClaims of the pod, which its eviction has released (`what_if`). A claim for extended
   resources is not among them: the scheduler creates it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from mooring.api.nodeselector import NAME_FIELD
from mooring.api.views.devices import ResourceClaim, ResourceSlice
from mooring.api.views.meta import ApiObject, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.views.node import Node, NodeSpec, NodeStatus
from mooring.api.views.pod import Affinity, NodeAffinity, Pod, PodResourceClaim, PodStatus
from mooring.api.views.storage import CSINode
from mooring.api.well_known import HOSTNAME, NODE_BOUND_OWNERS
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.claims import EXTENDED_RESOURCE_ANNOTATION
from mooring.scheduler.engine import Engine

NODE_TAINT_PREFIX = "node.kubernetes.io/"
"""Taints that controllers set from the state of a node: a new node does not have them."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that does not exist, with its ResourceSlices and its CSINode."""

    node: Node
    others: tuple[ApiObject, ...] = ()


def objects_of_nodes(objects: Iterable[ApiObject], names: Collection[str]) -> dict[str, tuple[ApiObject, ...]]:
    """By the name of a node: its ResourceSlices and its CSINode."""
    found: dict[str, list[ApiObject]] = {name: [] for name in names}
    for view in objects:
        name = ""
        if isinstance(view, ResourceSlice):
            name = view.spec.node_name or ""
        elif isinstance(view, CSINode):
            name = view.metadata.name
        if name in found:
            found[name].append(view)
    return {name: tuple(sorted(views, key=lambda view: view.metadata.name)) for name, views in found.items()}


def cluster_objects_of_nodes(columns: Columns, names: Collection[str]) -> dict[str, tuple[ApiObject, ...]]:
    """`objects_of_nodes` of the objects of the cluster."""
    return objects_of_nodes([*columns.objects.of(ResourceSlice), *columns.objects.of(CSINode)], names)


def node_like(example: Node, others: Sequence[ApiObject], name: str) -> NewNode:
    """A new, empty node like another one. `others` are the ResourceSlices and the CSINode of the example."""
    labels = {**example.metadata.labels, HOSTNAME: name}
    taints = tuple(taint for taint in example.spec.taints if not taint.key.startswith(NODE_TAINT_PREFIX))
    status = NodeStatus(
        capacity=example.status.capacity,
        allocatable=example.status.allocatable,
        declared_features=example.status.declared_features,
    )
    metadata = replace(example.metadata, name=name, uid="", resource_version="", labels=labels, creation_timestamp=None)
    node = replace(example, metadata=metadata, spec=NodeSpec(taints=taints), status=status)
    return NewNode(node, tuple(_copied(other, name, number) for number, other in enumerate(others)))


def _copied(view: ApiObject, node_name: str, number: int) -> ApiObject:
    """The object of the example as that of the new node."""
    if isinstance(view, ResourceSlice):
        metadata = replace(view.metadata, name=f"{node_name}-{number}", uid="", resource_version="")
        pool = replace(view.spec.pool, name=f"{node_name}-{view.spec.pool.name}")
        return replace(view, metadata=metadata, spec=replace(view.spec, pool=pool, node_name=node_name))
    return replace(view, metadata=replace(view.metadata, name=node_name, uid="", resource_version=""))


class RemovalOutcome(Enum):
    """What happens to a pod whose node is removed."""

    MOVES = "moves"
    ENDS = "ends"
    """A pod of a DaemonSet, or a static pod."""
    IS_LOST = "is lost"
    """No controller creates it again."""


def removal_outcome(pod: PodInfo) -> RemovalOutcome:
    owner = pod.signature.owner
    if owner is None:
        return RemovalOutcome.IS_LOST
    return RemovalOutcome.ENDS if owner.kind in NODE_BOUND_OWNERS else RemovalOutcome.MOVES


def replacement_of(engine: Engine, pod: PodInfo, claims: Iterable[ResourceClaim] = ()) -> PodInfo:
    """The pending pod that the controller of a placed pod creates in its place."""
    view = pending_view(pod)
    uses = tuple(
        PodResourceClaim(name=claim.metadata.name, resource_claim_name=claim.metadata.name)
        for claim in claims
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) != "true"
    )
    return engine.record(replace(view, spec=replace(view.spec, resource_claims=uses)) if uses else view)


def daemon_pod_for(engine: Engine, pod: PodInfo, node_name: str) -> PodInfo:
    """The pod of the same DaemonSet on another node."""
    return engine.record(view_on(pod, node_name))


def view_on(pod: PodInfo, node_name: str) -> Pod:
    """A pending pod like a placed one that can only go to this node."""
    view = pending_view(pod, name=f"{pod.name}-{node_name}")
    return replace(view, spec=replace(view.spec, affinity=_pinned(view.spec.affinity, node_name)))


def pending_view(pod: PodInfo, name: str = "") -> Pod:
    """A placed pod as it was before it got its node."""
    view = pod.signature.view
    name = name or pod.name
    metadata = replace(
        view.metadata,
        name=name,
        uid=f"replacement of {pod.uid} {name}",
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
    )
    spec = replace(
        view.spec, node_name="", volumes=pod.volumes, scheduling_gates=(), ephemeral_containers=(), resource_claims=()
    )
    return replace(view, metadata=metadata, spec=spec, status=PodStatus())


def _pinned(affinity: Affinity | None, node_name: str) -> Affinity:
    """The DaemonSet controller pins each pod to its node by a field selector."""
    requirement = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node_name,))
    pinned = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
    node_affinity = affinity.node_affinity if affinity is not None else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    if required is not None:
        terms = tuple(replace(term, match_fields=(requirement,)) for term in required.node_selector_terms)
        pinned = NodeSelector(node_selector_terms=terms)
    node_affinity = replace(node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=pinned)
    return replace(affinity or Affinity(), node_affinity=node_affinity)
