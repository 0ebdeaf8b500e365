"""The plugins that only Policy needs. kube-scheduler has dropped them.

NodeLabel rejects nodes that lack a required label or have a forbidden one, and scores preferred labels. The result is
the same for every pod. Values of labels are ignored. kube-scheduler dropped it in 1.23. Today use a node selector for
one pod, or `addedAffinity` of NodeAffinity for a profile.

NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio score as NodeResourcesFit with that
strategy. NodeResourcesFit has one strategy, so a profile that weighs two needs these plugins. kube-scheduler made them
strategies in 1.22 and dropped them in 1.23.

SelectorSpread spreads the pods of a service or controller over nodes and zones. kube-scheduler dropped it in 1.29:
PodTopologySpread spreads by its default constraints. A profile with both plugins should set the defaulting type `List`
of PodTopologySpread.

1. Pods with topology spread constraints are skipped.
2. Terminating pods and pods of other namespaces do not count.
3. A zone is identified by region and zone. On a node with both, the beta labels take precedence.

ServiceAffinity (`serviceAffinity`, `serviceAntiAffinity`) rejects nodes whose labels differ from those of a node with a
pod that has the pod's labels, and prefers label values with fewer pods of the service. kube-scheduler dropped it in
1.23. Today use inter-pod affinity or topology spread constraints.

4. A label in the pod's node selector must have the selected value. The other labels inherit the values of the first
   node with a pod of the same namespace that has all of the pod's labels. If several nodes disagree, the first in
   kube-scheduler's order counts, which is round robin over the zones.
5. Without a service that selects the pod, only its node selector counts.
6. A nominated pod counts as if it were on its node. (The old plugin failed for a pod without a node.)
7. Of several services the first by name is spread. The old plugin took any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from mooring.api.labels import LabelMatcher, matcher_of_pairs
from mooring.api.views.workloads import Service
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder, zone_of
from mooring.scheduler.cache.nodes import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.selectors import MatchCounter, PodSelector
from mooring.scheduler.config.types import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.plugin import (
    SCORE_MAX,
    SKIP,
    Adjustable,
    Filter,
    PreFilter,
    PreScore,
    Proceed,
    Scope,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.plugins.node_resources_fit import FitScoreState, NodeResourcesFit
from mooring.scheduler.plugins.spread_constraints import SelectorChanges, default_selector
from mooring.scheduler.policy.types import (
    node_label_arguments,
    reject_arguments,
    service_affinity_arguments,
    strategy_arguments,
)

LabelRules = tuple[tuple[LabelColumn, bool], ...]
"""Labels, each with whether a node should have it."""
ZONE_WEIGHT = 2.0 / 3.0
"""Weight of the zone's score on nodes with a zone; the rest is the node's own score."""
NO_ZONE = 0
NO_ROW = -1


class NodeLabel(Filter[LabelRules], Score[LabelRules]):
    name = "NodeLabel"
    filter_scope = Scope.NODE
    filter_reasons = (Reason("node(s) didn't have the requested labels", Code.UNRESOLVABLE),)
    score_scope = Scope.NODE

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        labels, label_arguments = columns.labels, node_label_arguments(arguments)
        self._required: LabelRules = (
            *((labels.column(key), True) for key in label_arguments.present_labels),
            *((labels.column(key), False) for key in label_arguments.absent_labels),
        )
        self._preferences: LabelRules = (
            *((labels.column(key), True) for key in label_arguments.present_labels_preference),
            *((labels.column(key), False) for key in label_arguments.absent_labels_preference),
        )

    def pre_filter(self, pod: PodInfo) -> Proceed[LabelRules] | Skip:
        return Proceed(self._required) if self._required else SKIP

    def filter(self, state: LabelRules, rows: Rows) -> Int64s:
        is_met = np.ones(length_of(rows), dtype=np.bool_)
        for rule in state:
            is_met &= _is_met(rule, rows)
        return np.where(is_met, 0, 1)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> LabelRules | Skip:
        return self._preferences or SKIP

    def score(self, state: LabelRules, rows: Rows) -> Int64s:
        met = np.zeros(length_of(rows), dtype=np.int64)
        for rule in state:
            met += _is_met(rule, rows)
        return met * SCORE_MAX // len(state)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),)


def _is_met(rule: tuple[LabelColumn, bool], rows: Rows) -> Bools:
    column, should_exist = rule
    is_met: Bools = (column.codes[rows] != ABSENT) == should_exist
    return is_met


class _ResourceStrategy(PreScore[FitScoreState], Score[FitScoreState]):
    score_scope = Scope.NODE_PODS
    strategy: ClassVar[str]

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        self._fit = NodeResourcesFit(columns, strategy_arguments(self.name, self.strategy, arguments))

    def pre_score(self, pod: PodInfo, feasible: Rows) -> FitScoreState:
        return self._fit.pre_score(pod, feasible)

    def epoch(self) -> object:
        return self._fit.epoch()

    def score(self, state: FitScoreState, rows: Rows) -> Int64s:
        return self._fit.score(state, rows)

    def score_row(self, state: FitScoreState, row: int) -> int:
        return self._fit.score_row(state, row)


class NodeResourcesLeastAllocated(_ResourceStrategy):
    name = "NodeResourcesLeastAllocated"
    strategy = LEAST_ALLOCATED


class NodeResourcesMostAllocated(_ResourceStrategy):
    name = "NodeResourcesMostAllocated"
    strategy = MOST_ALLOCATED


class RequestedToCapacityRatio(_ResourceStrategy):
    name = "RequestedToCapacityRatio"
    strategy = REQUESTED_TO_CAPACITY_RATIO


class SelectorSpreadState(NamedTuple):
    """The counter of the pods to spread against; None if no selector matches the pod."""

    counter: MatchCounter | None


class SelectorSpread(PreScore[SelectorSpreadState], Score[SelectorSpreadState]):
    name = "SelectorSpread"
    normalizes = True

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        reject_arguments(self.name, arguments)
        self._columns = columns
        self._zones = ZoneNumbers(columns)
        selectors = SelectorChanges(columns.objects)
        self._states = PerSignature(self._state_of, lambda: selectors.version)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> SelectorSpreadState | Skip:
        signature = pod.signature
        if signature.spec.topology_spread_constraints:
            return SKIP
        state = self._states(signature)
        if state.counter is None:
            return state
        return SelectorSpreadState(self._columns.selectors.fresh(state.counter))

    def score(self, state: SelectorSpreadState, rows: Rows) -> Int64s:
        if state.counter is None:
            return np.zeros(length_of(rows), dtype=np.int64)
        return state.counter.rows[rows]

    def normalize(self, state: SelectorSpreadState, scores: Int64s, rows: Rows) -> Int64s:
        return spread_score(scores, self._zones.codes()[rows])

    def _state_of(self, signature: PodSignature) -> SelectorSpreadState:
        selector = default_selector(self._columns.objects, signature)
        if selector.matches_everything:
            return SelectorSpreadState(None)
        pod_selector = PodSelector(frozenset((signature.namespace,)), selector)
        return SelectorSpreadState(self._columns.selectors.counter((pod_selector,), counts_terminating=False))


class ZoneNumbers:
    """The zone of each row as a number; `NO_ZONE` on nodes without zone and region."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: tuple[int, Int64s] = (-1, np.zeros(0, dtype=np.int64))

    def codes(self) -> Int64s:
        """Over all rows; cached until a node changes."""
        position = self._columns.fact_changes.position
        if self._known[0] != position:
            number_of = {"": NO_ZONE}
            zones = (zone_of(node) if node is not None else "" for node in self._columns.nodes)
            numbers = [number_of.setdefault(zone, len(number_of)) for zone in zones]
            self._known = (position, np.array(numbers, dtype=np.int64))
        return self._known[1]


def spread_score(counts: Int64s, zones: Int64s) -> Int64s:
    """Per node: its distance from the maximum, 1/3 the node's and 2/3 its zone's if it has one, truncated."""
    has_zone = zones != NO_ZONE
    points = _distance_from_most(counts)
    if has_zone.any():
        in_zone = np.bincount(zones[has_zone], weights=counts[has_zone]).astype(np.int64)
        of_zone = _distance_from_most(in_zone)[np.where(has_zone, zones, NO_ZONE)]
        points = np.where(has_zone, points * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * of_zone, points)
    return points.astype(np.int64)


def _distance_from_most(counts: Int64s) -> Float64s:
    """Per count: 100 * (maximum - count) / maximum, or 100 if all counts are 0."""
    most = int(counts.max(initial=0))
    if most == 0:
        return np.full(len(counts), float(SCORE_MAX))
    return float(SCORE_MAX) * ((most - counts) / float(most))


class SignatureServices(NamedTuple):
    """The services of a signature, cached until a service changes."""

    has_service: bool
    same_labels: MatchCounter
    """Pods with all labels of this one in its namespace, also terminating ones."""
    of_service: MatchCounter | None
    """Pods of its service that are not terminating; None without a service or with an empty selector."""


class ServiceAffinityState(NamedTuple):
    """The required labels of a node, and the node that they are inherited from."""

    namespace: str
    selector: LabelMatcher
    """Selects the pods with all labels of this one."""
    selected: tuple[tuple[LabelColumn, str], ...]
    """Labels with the values in the pod's node selector."""
    inherited: tuple[LabelColumn, ...]
    """Labels whose values are inherited from the first node; none without a service."""
    first: int
    """The row of the first node with such pods, or `NO_ROW`."""
    second: int
    """The row that is first without those pods."""
    count_on_first: int


class ServiceSpreadState(NamedTuple):
    """The counter of the service's pods; None without a service."""

    counter: MatchCounter | None


class ServiceAffinity(PreFilter[ServiceAffinityState], Adjustable[ServiceAffinityState], Score[ServiceSpreadState]):
    name = "ServiceAffinity"
    filter_reasons = (Reason("node(s) didn't match service affinity"),)
    normalizes = True

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        self._columns = columns
        label_arguments = service_affinity_arguments(arguments)
        self._shared = tuple(columns.labels.column(key) for key in dict.fromkeys(label_arguments.affinity_labels))
        self._spread_over = tuple(columns.labels.column(key) for key in label_arguments.anti_affinity_labels_preference)
        self._services = columns.objects.of(Service)
        self._service_pods = PerSignature(self._find_service_pods, lambda: self._services.version)
        self._order = NodeOrder(columns)

    # Filter

    def pre_filter(self, pod: PodInfo) -> Proceed[ServiceAffinityState] | Skip:
        if not self._shared:
            return SKIP
        signature, service_pods = pod.signature, self._service_pods(pod.signature)
        chosen = signature.spec.node_selector
        selected = tuple((column, chosen[column.key]) for column in self._shared if column.key in chosen)
        inherited = (
            tuple(column for column in self._shared if column.key not in chosen) if service_pods.has_service else ()
        )
        first, second, count = self._nodes_with_pods(service_pods) if inherited else (NO_ROW, NO_ROW, 0)
        if not selected and first == NO_ROW:
            return SKIP
        selector = service_pods.same_labels.selectors[0].selector
        return Proceed(ServiceAffinityState(signature.namespace, selector, selected, inherited, first, second, count))

    def filter(self, state: ServiceAffinityState, rows: Rows) -> Int64s:
        return np.where(_has_selected_values(state, rows) & _has_values_of(state, state.first, rows), 0, 1)

    def measures(self, state: ServiceAffinityState) -> int:
        return 1

    def contribution(self, state: ServiceAffinityState, pod: PodInfo, row: int) -> Sequence[int]:
        return (int(pod.namespace == state.namespace and state.selector.matches(pod.signature.labels)),)

    def filter_adjusted(self, state: ServiceAffinityState, rows: Int64s, difference: Int64s) -> Int64s:
        # An added pod is last in order, so its node is first only without others, and then has its own values.
        is_vacated = (rows == state.first) & (state.count_on_first + difference[0] <= 0)
        is_like = np.where(
            is_vacated, _has_values_of(state, state.second, rows), _has_values_of(state, state.first, rows)
        )
        return np.where(_has_selected_values(state, rows) & is_like, 0, 1)

    def _nodes_with_pods(self, service_pods: SignatureServices) -> tuple[int, int, int]:
        counts = self._columns.selectors.fresh(service_pods.same_labels).rows[: self._columns.height]
        if not counts.any():
            return NO_ROW, NO_ROW, 0
        first, second = [*self._order.rows_in_order(counts > 0)[:2].tolist(), NO_ROW][:2]
        return first, second, int(counts[first])

    # Score

    def pre_score(self, pod: PodInfo, feasible: Rows) -> ServiceSpreadState | Skip:
        if not self._spread_over:
            return SKIP
        counter = self._service_pods(pod.signature).of_service
        return ServiceSpreadState(self._columns.selectors.fresh(counter) if counter is not None else None)

    def score(self, state: ServiceSpreadState, rows: Rows) -> Int64s:
        if state.counter is None:
            return np.zeros(length_of(rows), dtype=np.int64)
        return state.counter.rows[rows]

    def normalize(self, state: ServiceSpreadState, scores: Int64s, rows: Rows) -> Int64s:
        points = np.zeros(len(scores), dtype=np.float64)
        for column in self._spread_over:
            points += elsewhere_share(scores, column.codes[rows]) / float(len(self._spread_over))
        return points.astype(np.int64)

    # Both

    def _find_service_pods(self, signature: PodSignature) -> SignatureServices:
        services = sorted(
            _services_of(signature, self._services.in_namespace(signature.namespace)), key=lambda service: service.key
        )
        selector = services[0].spec.selector if services else None
        return SignatureServices(
            has_service=bool(services),
            same_labels=self._counter(signature.namespace, signature.labels, counts_terminating=True),
            of_service=self._counter(signature.namespace, selector, counts_terminating=False) if selector else None,
        )

    def _counter(self, namespace: str, labels: Mapping[str, str], *, counts_terminating: bool) -> MatchCounter:
        pod_selector = PodSelector(frozenset((namespace,)), matcher_of_pairs(labels))
        return self._columns.selectors.counter((pod_selector,), counts_terminating=counts_terminating)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._shared:
            return ()
        return (
            # When such a pod is added, deleted or relabelled, another node may become the first.
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                _matches_labels,
                per_signature=True,
            ),
            ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL),
            ClusterEventWithHint(
                EventResource.SERVICE, ActionType.UPDATE | ActionType.DELETE, _is_in_namespace, per_signature=True
            ),
        )


def elsewhere_share(counts: Int64s, codes: Int64s) -> Float64s:
    """Per node: 100 * the share of pods outside of its domain; 0 without the label."""
    total = float(counts.sum())
    in_domain: Float64s = np.bincount(codes, weights=counts).astype(np.float64)
    shares: Float64s = np.full(len(in_domain), float(SCORE_MAX))
    if total > 0:
        shares = float(SCORE_MAX) * ((total - in_domain) / total)
    shares[: ABSENT + 1] = 0.0
    return shares[codes]


def _has_selected_values(state: ServiceAffinityState, rows: Rows) -> Bools:
    """Per row: whether the node has the values in the pod's node selector."""
    matches = np.ones(length_of(rows), dtype=np.bool_)
    for column, value in state.selected:
        code = column.code_for(value)
        matches &= column.codes[rows] == code if code is not None else False
    return matches


def _has_values_of(state: ServiceAffinityState, example: int, rows: Rows) -> Bools:
    """Per row: whether the node has the inherited labels of the example node, as far as that has them."""
    matches = np.ones(length_of(rows), dtype=np.bool_)
    if example == NO_ROW:
        return matches
    for column in state.inherited:
        code = column.codes[example]
        if code != ABSENT:
            matches &= column.codes[rows] == code
    return matches


def _services_of(signature: PodSignature, services: Iterable[Service]) -> list[Service]:
    return [
        service
        for service in services
        if service.spec.selector is not None and _selects(service.spec.selector, signature.labels)
    ]


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def _matches_labels(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    placed = [changed for changed in (old, new) if changed is not None]
    return queue_if(
        any(
            changed.namespace == pod.namespace and _selects(pod.signature.labels, changed.signature.labels)
            for changed in placed
        )
    )


def _is_in_namespace(pod: PodInfo, old: Service | None, new: Service | None) -> QueueingHint:
    return queue_if(any(changed is not None and changed.metadata.namespace == pod.namespace for changed in (old, new)))
