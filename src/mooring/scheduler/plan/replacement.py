"""The pods that controllers create in place of placed ones, as far as scheduling reads them.

The columns hold a placed pod without its specification: `PodSignature` has what all pods of a template share, `PodInfo`
the name and the volumes. Together they make a pending pod.

1. A replacement has no node, no status and a uid of its own. A pod of a StatefulSet has the same name and claims.
2. Pods of DaemonSets and static pods end with their node. A pod without a controller is not created again.
3. A replacement has the ResourceClaims of the pod, which its eviction has released (`what_if`). A claim for extended
   resources is not among them: the scheduler creates it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaim
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.api.views.pod import Affinity, NodeAffinity, Pod, PodResourceClaim, PodStatus
from mooring.api.well_known import NODE_BOUND_OWNERS
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.claims import EXTENDED_RESOURCE_ANNOTATION
from mooring.scheduler.engine import Engine

NAME_FIELD = "metadata.name"


class RemovalOutcome(Enum):
    """What happens to a pod whose node is removed."""

    MOVES = "moves"
    ENDS = "ends"
    """A pod of a DaemonSet, or a static pod."""
    IS_LOST = "is lost"
    """No controller creates it again."""


def fate_of(pod: PodInfo) -> RemovalOutcome:
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
