"""Topology spread constraints: compiled for a signature, with the nodes and domains that count for each.

A constraint comes from the pod, or from the defaults of the profile for a pod of a service or controller.

1. A node counts if it has the labels of all constraints of the pod (where that is required) and satisfies the
   constraint's inclusion policies.
2. Which nodes count depends on nodes alone. It is cached until a node changes, and shared by all signatures with the
   same policies (`eligibility_key`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from mooring.api.labels import EVERYTHING, LabelMatcher, compile_selector, matcher_of_pairs, requirements_with
from mooring.api.nodeselector import required_node_affinity
from mooring.api.tolerations import find_untolerated_taint
from mooring.api.views.pod import TopologySpreadConstraint
from mooring.api.views.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.api.well_known import HOSTNAME, ZONE
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT, LabelColumn
from mooring.scheduler.cache.objects import ObjectStores
from mooring.scheduler.cache.pods import PodSignature
from mooring.scheduler.cache.selectors import MatchCounter, PodSelector

Selecting: TypeAlias = "Service | ReplicationController | ReplicaSet | StatefulSet"

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"

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
    counter: MatchCounter | None
    """None for an empty selector, which matches no pod."""
    min_domains: int
    honours_affinity: bool
    honours_taints: bool
    matches_itself: bool
    """Whether the pod itself matches the selector, and so adds to the count."""
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
    constraints = [constraint for constraint in defaults if constraint.when_unsatisfiable == action]
    if not constraints:
        return ()
    selector = default_selector(columns.objects, signature)
    if selector.matches_everything:
        return ()
    return tuple(_compiled(columns, signature, constraint, selector) for constraint in constraints)


def default_selector(objects: ObjectStores, signature: PodSignature) -> LabelMatcher:
    """Selects the pods that the pod is spread with: the selectors of its services and of its controller, combined."""
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


class SelectorChanges:
    """Counts the changes of selectors of services and controllers, which `default_selector` reads."""

    def __init__(self, objects: ObjectStores) -> None:
        self.version = 0
        objects.of(Service).listen(self._changed)
        objects.of(ReplicationController).listen(self._changed)
        objects.of(ReplicaSet).listen(self._changed)
        objects.of(StatefulSet).listen(self._changed)

    def _changed(self, old: Selecting | None, new: Selecting | None) -> None:
        if old is None or new is None or old.spec.selector != new.spec.selector:
            self.version += 1


def _with_selector_of(owner: ReplicaSet | StatefulSet | None, pairs: Mapping[str, str]) -> LabelMatcher:
    matcher = matcher_of_pairs(pairs)
    if owner is None:
        return matcher
    try:
        own = compile_selector(owner.spec.selector)
    except ValueError:  # an invalid selector of a controller matches no further pods
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
        pod_selector = PodSelector(frozenset((signature.namespace,)), selector)
        counter = columns.selectors.counter((pod_selector,), counts_terminating=False)
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


CACHE_ENTRIES_MAX = 256
"""Maximum number of cached combinations of constraints and policies."""


class EligibleNodes(NamedTuple):
    """Which nodes count for one constraint."""

    is_eligible: Bools
    includes_all: bool
    """Whether every node counts, so that sums over domains leave none out."""
    domains: Int64s
    """The codes of the domains that have a node that counts."""


class PodEligibleNodes(NamedTuple):
    """Which nodes count for each constraint of a pod."""

    labelled: Bools
    """Per row: whether the node has the labels of all constraints."""
    all_labelled: bool
    of_constraint: tuple[EligibleNodes, ...]


class SpreadDomains:
    """Finds the nodes that count for constraints, and caches them."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[object, PodEligibleNodes] = {}
        self._fact_position = -1

    def eligible_nodes(
        self, key: object, signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool
    ) -> PodEligibleNodes:
        """The nodes that count for each constraint, by `eligibility_key`."""
        position = self._columns.fact_changes.position
        if self._fact_position != position:
            self._known.clear()
            self._fact_position = position
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= CACHE_ENTRIES_MAX:
                self._known.clear()
            known = self._known[key] = self._find(signature, constraints, requires_all)
        return known

    def _find(
        self, signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool
    ) -> PodEligibleNodes:
        alive = self._columns.alive[: self._columns.height]
        labelled = alive.copy()
        for constraint in constraints:
            labelled &= constraint.column.codes[: len(alive)] != ABSENT
        candidates = labelled if requires_all else alive
        of_constraints = tuple(self._eligible_for(signature, constraint, candidates) for constraint in constraints)
        return PodEligibleNodes(labelled, bool((labelled == alive).all()), of_constraints)

    def _eligible_for(self, signature: PodSignature, constraint: Constraint, candidates: Bools) -> EligibleNodes:
        eligible = candidates & self._included(signature, constraint)
        codes = constraint.column.codes[: len(eligible)][eligible]
        nodes_in_domain = np.bincount(codes, minlength=constraint.column.codes_max)
        includes_all = int(np.count_nonzero(eligible)) == self._columns.node_count
        return EligibleNodes(eligible, includes_all, np.flatnonzero(nodes_in_domain))

    def _included(self, signature: PodSignature, constraint: Constraint) -> Bools:
        """Per row: whether the node counts under the constraint's inclusion policies."""
        columns = self._columns
        rows = slice(0, columns.height)
        included = np.ones(columns.height, dtype=np.bool_)
        if constraint.honours_affinity and _has_affinity(signature):
            included &= columns.node_selection.required(required_node_affinity(signature.view), rows)
        if constraint.honours_taints:
            tolerations = signature.spec.tolerations
            is_untolerated = columns.taints.evaluate(
                lambda taints: find_untolerated_taint(taints, tolerations) is not None, np.bool_
            )
            included &= ~is_untolerated[columns.taints.set_of_row[rows]]
        return included


def eligibility_key(signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool) -> object:
    """Equal for constraints for which the same nodes count.

    `requires_all`: whether a node without one of the labels counts for none of the constraints.
    """
    return requires_all, tuple([_policy_key(signature, constraint) for constraint in constraints])


def _policy_key(signature: PodSignature, constraint: Constraint) -> object:
    # By the signature's key and not the signature itself, which holds this and could then not be freed at once.
    return (
        constraint.column,
        signature.key if constraint.honours_affinity and _has_affinity(signature) else None,
        signature.spec.tolerations if constraint.honours_taints else None,
    )


def _has_affinity(signature: PodSignature) -> bool:
    affinity = signature.spec.affinity
    return bool(signature.spec.node_selector) or (affinity is not None and affinity.node_affinity is not None)
