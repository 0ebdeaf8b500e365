"""ServiceAffinity: pods of a service share the values of some node labels, or are spread over them.

Input: the profile's labels, the pod's services, the pods with the pod's labels. Output: rejected nodes whose labels
differ from those of a node with such a pod; a higher score for label values with fewer pods of the service.

The plugin belonged to Policy (`serviceAffinity`, `serviceAntiAffinity`). kube-scheduler dropped it in 1.23. Today use
inter-pod affinity or topology spread constraints.

1. A label in the pod's node selector must have the selected value. The other labels inherit the values of the first
   node with a pod of the same namespace that has all of the pod's labels. If several nodes disagree, the first in
   kube-scheduler's order counts, which is round robin over the zones.
2. Without a service that selects the pod, only its node selector counts.
3. A nominated pod counts as if it were on its node. (The old plugin failed for a pod without a node.)
4. Of several services the first by name is spread. The old plugin took any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.labels import LabelMatcher, matcher_of_pairs
from mooring.api.views.workloads import Service
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.cache.nodes import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.selectors import MatchCounter, PodSelector
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Adjustable, PreFilter, Proceed, Score, Skip
from mooring.scheduler.framework.status import Reason
from mooring.scheduler.policy.types import service_affinity_arguments

NO_ROW = -1


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
            _services_of(signature, self._services.in_namespace(signature.namespace)), key=lambda each: each.key
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
    placed = [each for each in (old, new) if each is not None]
    return queue_if(
        any(
            each.namespace == pod.namespace and _selects(pod.signature.labels, each.signature.labels) for each in placed
        )
    )


def _is_in_namespace(pod: PodInfo, old: Service | None, new: Service | None) -> QueueingHint:
    return queue_if(any(each is not None and each.metadata.namespace == pod.namespace for each in (old, new)))
