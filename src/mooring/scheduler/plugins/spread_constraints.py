"""Topology spread constraints, compiled: what a pod, or a profile's defaults, says about spreading.

Comes in   the constraints of a pod; for pods without any, the profile's defaults and the selectors of the services
           and controllers that the pod belongs to
Goes out   `Constraint`s with their counter and their topology's column

 1. A constraint's counter counts the pods of its namespace that match its selector and are not being deleted. With
    an empty selector it counts nobody, although such a selector matches everybody: kube-scheduler does the same.
 2. `matchLabelKeys` narrows the selector to the pod's own values of those labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mooring.api.labels import EVERYTHING, LabelMatcher, compile_selector, matcher_of_pairs, requirements_with
from mooring.api.views.pod import TopologySpreadConstraint
from mooring.api.views.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import LabelColumn
from mooring.scheduler.cache.objects import Objects
from mooring.scheduler.cache.pods import PodSignature
from mooring.scheduler.cache.selectors import Counter, Part

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)


class Constraint(NamedTuple):
    """One constraint, ready to be counted."""

    namespace: str
    max_skew: int
    column: LabelColumn
    selector: LabelMatcher
    counter: Counter | None
    """None for an empty selector: nobody is counted."""
    min_domains: int
    honours_affinity: bool
    honours_taints: bool
    matches_itself: bool
    """Whether the pod that brings the constraint matches its selector, and so adds to what it counts."""
    is_per_host: bool

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace == self.namespace and self.selector.matches(labels)


def own_constraints(columns: Columns, signature: PodSignature, action: str) -> tuple[Constraint, ...]:
    """The pod's own constraints with this action. Raises `LabelSelectorError`."""
    return tuple(
        _compiled(columns, signature, constraint, _narrowed(constraint, signature.labels))
        for constraint in signature.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == action
    )


def default_constraints(
    columns: Columns, signature: PodSignature, defaults: Sequence[TopologySpreadConstraint], action: str
) -> tuple[Constraint, ...]:
    """The profile's constraints with this action, for a pod that belongs to a service or a controller."""
    wanted = [constraint for constraint in defaults if constraint.when_unsatisfiable == action]
    if not wanted:
        return ()
    selector = default_selector(columns.objects, signature)
    if selector.matches_everything:
        return ()
    return tuple(_compiled(columns, signature, constraint, selector) for constraint in wanted)


def default_selector(objects: Objects, signature: PodSignature) -> LabelMatcher:
    """Whom the pod is spread against: the labels of its services and the selector of its controller, together."""
    pairs: dict[str, str] = {}
    for service in objects.of(Service).in_namespace(signature.namespace):
        selector = service.spec.selector
        if selector is not None and all(signature.labels.get(key) == value for key, value in selector.items()):
            pairs |= selector
    owner = signature.owner
    if owner is None:
        return matcher_of_pairs(pairs)
    key = f"{signature.namespace}/{owner.name}"
    if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
        controller = objects.of(ReplicationController).get(key)
        if controller is not None:
            pairs |= controller.spec.selector or {}
        return matcher_of_pairs(pairs)
    owner_set: ReplicaSet | StatefulSet | None = None
    if (owner.api_version, owner.kind) == ("apps/v1", "ReplicaSet"):
        owner_set = objects.of(ReplicaSet).get(key)
    elif (owner.api_version, owner.kind) == ("apps/v1", "StatefulSet"):
        owner_set = objects.of(StatefulSet).get(key)
    return _with_selector_of(owner_set, pairs)


def _with_selector_of(owner: ReplicaSet | StatefulSet | None, pairs: Mapping[str, str]) -> LabelMatcher:
    matcher = matcher_of_pairs(pairs)
    if owner is None:
        return matcher
    try:
        own = compile_selector(owner.spec.selector)
    except ValueError:  # a controller with a selector that nobody can read selects nobody more
        return matcher
    return LabelMatcher((*matcher.requirements, *own.requirements))


def _narrowed(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> LabelMatcher:
    matcher = compile_selector(constraint.label_selector)
    own = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    return requirements_with(matcher, own)


def _compiled(
    columns: Columns, signature: PodSignature, constraint: TopologySpreadConstraint, selector: LabelMatcher
) -> Constraint:
    counter = None
    if selector != EVERYTHING:
        part = Part(frozenset((signature.namespace,)), selector)
        counter = columns.selectors.counter((part,), wants_terminating=False)
    return Constraint(
        namespace=signature.namespace,
        max_skew=constraint.max_skew,
        column=columns.labels.column(constraint.topology_key),
        selector=selector,
        counter=counter,
        min_domains=constraint.min_domains if constraint.min_domains is not None else 1,
        honours_affinity=constraint.node_affinity_policy != "Ignore",
        honours_taints=constraint.node_taints_policy == "Honor",
        matches_itself=selector.matches(signature.labels),
        is_per_host=constraint.topology_key == HOSTNAME,
    )
