"""ServiceAffinity: the pods of a service share the values of some labels of their nodes, or are spread over them.

Comes in   the profile's labels, the pod's services, where pods with the pod's labels are
Goes out   refusals for nodes whose labels differ from those of a node with such a pod; a preference for label values
           with few pods of the service

It comes from the days of `Policy` (`serviceAffinity`, `serviceAntiAffinity`); kube-scheduler dropped it in 1.23. Today
inter-pod affinity and topology spread say it of one pod.

 1. A label that the pod's own node selector names has the value that it says. The others take theirs from the first
    node with a pod of the same namespace that carries all of the pod's labels. Such pods should agree; where they do
    not, it matters that nodes are looked at in kube-scheduler's order, in which zones take turns.
 2. Without a service that selects the pod, only its node selector counts.
 3. A nominated pod beside which the pod must fit counts as if it were there. (The old plugin looked up the node of a
    pod that has none yet, and gave up with an error.)
 4. Of several services the first by name is the one whose pods are spread; the old plugin took any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.api.labels import LabelMatcher, matcher_of_pairs
from mooring.api.views.workloads import Service
from mooring.scheduler.cache.arrays import Bools, Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import ABSENT, LabelColumn
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cache.selectors import Counter, Part
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Adjustable, PreFilter, Proceed, Score, Skip
from mooring.scheduler.framework.status import Reason
from mooring.scheduler.policy.arguments import service_affinity_arguments

NOWHERE = -1


class Kin(NamedTuple):
    """What a signature has to do with services: found out once, until a service changes."""

    has_service: bool
    same_labels: Counter
    """Pods with all the labels of this one, in its namespace, also those that are being deleted."""
    of_service: Counter | None
    """Pods of its service that are not; None without a service, or for one that selects everybody."""


class Bonds(NamedTuple):
    """What a node's labels must be like, and where that was found."""

    namespace: str
    selector: LabelMatcher
    """Whoever matches it counts as one of the pod's kind."""
    said: tuple[tuple[LabelColumn, str], ...]
    """Labels with the values that the pod's node selector gives them."""
    unsaid: tuple[LabelColumn, ...]
    """Labels whose values are those of the first node; none without a service."""
    first: int
    """The row of the first node with pods of its kind, or `NOWHERE`."""
    second: int
    """The row that would be the first, if those were not there."""
    count_on_first: int


class Spread(NamedTuple):
    """The pods whose service is spread: a counter, or None where nobody is meant."""

    counter: Counter | None


class ServiceAffinity(PreFilter[Bonds], Adjustable[Bonds], Score[Spread]):
    name = "ServiceAffinity"
    filter_reasons = (Reason("node(s) didn't match service affinity"),)
    normalizes = True

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        self._columns = columns
        wanted = service_affinity_arguments(arguments)
        self._shared = tuple(columns.labels.column(key) for key in dict.fromkeys(wanted.affinity_labels))
        self._spread_over = tuple(columns.labels.column(key) for key in wanted.anti_affinity_labels_preference)
        self._services = columns.objects.of(Service)
        self._order = NodeOrder(columns)

    # Filter

    def pre_filter(self, pod: PodInfo) -> Proceed[Bonds] | Skip:
        if not self._shared:
            return SKIP
        signature, kin = pod.signature, self._kin(pod.signature)
        chosen = signature.spec.node_selector
        said = tuple((column, chosen[column.key]) for column in self._shared if column.key in chosen)
        unsaid = tuple(column for column in self._shared if column.key not in chosen) if kin.has_service else ()
        first, second, count = self._nodes_of_kin(kin) if unsaid else (NOWHERE, NOWHERE, 0)
        if not said and first == NOWHERE:
            return SKIP
        selector = kin.same_labels.parts[0].selector
        return Proceed(Bonds(signature.namespace, selector, said, unsaid, first, second, count))

    def filter(self, state: Bonds, rows: Rows) -> Int64s:
        return np.where(_says_so(state, rows) & _is_like(state, state.first, rows), 0, 1)

    def measures(self, state: Bonds) -> int:
        return 1

    def contribution(self, state: Bonds, pod: PodInfo, row: int) -> Sequence[int]:
        return (int(pod.namespace == state.namespace and state.selector.matches(pod.signature.labels)),)

    def filter_adjusted(self, state: Bonds, rows: Int64s, difference: Int64s) -> Int64s:
        # A pod that is added comes last, so it is the first only where there is no other, and a node is like itself.
        is_vacated = (rows == state.first) & (state.count_on_first + difference[0] <= 0)
        is_like = np.where(is_vacated, _is_like(state, state.second, rows), _is_like(state, state.first, rows))
        return np.where(_says_so(state, rows) & is_like, 0, 1)

    def _nodes_of_kin(self, kin: Kin) -> tuple[int, int, int]:
        counts = self._columns.selectors.fresh(kin.same_labels).rows[: self._columns.height]
        if not counts.any():
            return NOWHERE, NOWHERE, 0
        first, second = [*self._order.in_turn(counts > 0)[:2].tolist(), NOWHERE][:2]
        return first, second, int(counts[first])

    # Score

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Spread | Skip:
        if not self._spread_over:
            return SKIP
        counter = self._kin(pod.signature).of_service
        return Spread(self._columns.selectors.fresh(counter) if counter is not None else None)

    def score(self, state: Spread, rows: Rows) -> Int64s:
        if state.counter is None:
            return np.zeros(length_of(rows), dtype=np.int64)
        return state.counter.rows[rows]

    def normalize(self, state: Spread, scores: Int64s, rows: Rows) -> Int64s:
        points = np.zeros(len(scores), dtype=np.float64)
        for column in self._spread_over:
            points += elsewhere_share(scores, column.codes[rows]) / float(len(self._spread_over))
        return points.astype(np.int64)

    # Both

    def _kin(self, signature: PodSignature) -> Kin:
        known = signature.memo.get(self)
        if known is None or known[0] != self._services.version:  # type: ignore[index]
            known = signature.memo[self] = (self._services.version, self._find_kin(signature))
        return known[1]  # type: ignore[index,no-any-return]

    def _find_kin(self, signature: PodSignature) -> Kin:
        services = sorted(
            _services_of(signature, self._services.in_namespace(signature.namespace)), key=lambda each: each.key
        )
        selector = services[0].spec.selector if services else None
        return Kin(
            has_service=bool(services),
            same_labels=self._counter(signature.namespace, signature.labels, wants_terminating=True),
            of_service=self._counter(signature.namespace, selector, wants_terminating=False) if selector else None,
        )

    def _counter(self, namespace: str, labels: Mapping[str, str], *, wants_terminating: bool) -> Counter:
        part = Part(frozenset((namespace,)), matcher_of_pairs(labels))
        return self._columns.selectors.counter((part,), wants_terminating=wants_terminating)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        if not self._shared:
            return ()
        return (
            # Where a pod of its kind comes, goes or stops being one, another node may be the one to be like.
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                _is_kin,
                per_signature=True,
            ),
            ClusterEventWithHint(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL),
            ClusterEventWithHint(
                EventResource.SERVICE, ActionType.UPDATE | ActionType.DELETE, _is_in_namespace, per_signature=True
            ),
        )


def elsewhere_share(counts: Int64s, codes: Int64s) -> Float64s:
    """Per node: the share of all pods that are not in its domain, times 100; 0 without the label."""
    total = float(counts.sum())
    in_domain: Float64s = np.bincount(codes, weights=counts).astype(np.float64)
    shares: Float64s = np.full(len(in_domain), float(SCORE_MAX))
    if total > 0:
        shares = float(SCORE_MAX) * ((total - in_domain) / total)
    shares[: ABSENT + 1] = 0.0
    return shares[codes]


def _says_so(state: Bonds, rows: Rows) -> Bools:
    """Per row: whether the node has the values that the pod's node selector names."""
    answer = np.ones(length_of(rows), dtype=np.bool_)
    for column, value in state.said:
        code = column.code_for(value)
        answer &= column.codes[rows] == code if code is not None else False
    return answer


def _is_like(state: Bonds, example: int, rows: Rows) -> Bools:
    """Per row: whether the node has the other labels as the example has them, as far as it has them."""
    answer = np.ones(length_of(rows), dtype=np.bool_)
    if example == NOWHERE:
        return answer
    for column in state.unsaid:
        wanted = column.codes[example]
        if wanted != ABSENT:
            answer &= column.codes[rows] == wanted
    return answer


def _services_of(signature: PodSignature, services: Iterable[Service]) -> list[Service]:
    return [
        each for each in services if each.spec.selector is not None and _selects(each.spec.selector, signature.labels)
    ]


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def _is_kin(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    placed = [each for each in (old, new) if each is not None]
    return queue_if(
        any(
            each.namespace == pod.namespace and _selects(pod.signature.labels, each.signature.labels) for each in placed
        )
    )


def _is_in_namespace(pod: PodInfo, old: Service | None, new: Service | None) -> QueueingHint:
    return queue_if(any(each is not None and each.metadata.namespace == pod.namespace for each in (old, new)))
