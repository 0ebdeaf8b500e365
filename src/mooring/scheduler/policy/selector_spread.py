"""SelectorSpread: the pods of a service or a controller are spread over nodes and, more so, over zones.

Comes in   the pod's services and its controller, how many of their pods each node has, the zones of the nodes
Goes out   a preference for nodes, and zones, with few of them

It is what the old SelectorSpreadPriority did; kube-scheduler dropped it in 1.29. Today PodTopologySpread does it with
its default constraints; a profile that has both should give that one the defaulting type `List`.

 1. A pod with spread constraints of its own is not this plugin's business.
 2. Pods that are being deleted do not count, nor do those of other namespaces.
 3. A zone is a region and a zone together, and the labels of before 1.17 go first where a node has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from mooring.api.views.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.scheduler.cache.arrays import Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cache.selectors import Counter, Part
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, PreScore, Score, Skip
from mooring.scheduler.plugins.spread_constraints import ZONE, default_selector
from mooring.scheduler.policy.arguments import refuse_arguments

Selecting: TypeAlias = "Service | ReplicationController | ReplicaSet | StatefulSet"

REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"

ZONE_WEIGHT = 2.0 / 3.0
"""How much of the score is the zone's, where there is one; the rest is the node's own."""
NO_ZONE = 0


class Fellows(NamedTuple):
    """The pods that a pod is spread against: a counter of them, or None where nobody is meant."""

    counter: Counter | None


class SelectorSpread(PreScore[Fellows], Score[Fellows]):
    name = "SelectorSpread"
    normalizes = True

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        refuse_arguments(self.name, arguments)
        self._columns = columns
        self._zones = Zones(columns)
        self._selectors_version = 0
        columns.objects.of(Service).listen(self._selectors_changed)
        columns.objects.of(ReplicationController).listen(self._selectors_changed)
        columns.objects.of(ReplicaSet).listen(self._selectors_changed)
        columns.objects.of(StatefulSet).listen(self._selectors_changed)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Fellows | Skip:
        signature = pod.signature
        if signature.spec.topology_spread_constraints:
            return SKIP
        known = signature.memo.get(self)
        if known is None or known[0] != self._selectors_version:  # type: ignore[index]
            known = signature.memo[self] = (self._selectors_version, self._fellows(signature))
        fellows: Fellows = known[1]  # type: ignore[index]
        if fellows.counter is None:
            return fellows
        return Fellows(self._columns.selectors.fresh(fellows.counter))

    def score(self, state: Fellows, rows: Rows) -> Int64s:
        if state.counter is None:
            return np.zeros(length_of(rows), dtype=np.int64)
        return state.counter.rows[rows]

    def normalize(self, state: Fellows, scores: Int64s, rows: Rows) -> Int64s:
        return spread_score(scores, self._zones.codes()[rows])

    def _fellows(self, signature: PodSignature) -> Fellows:
        selector = default_selector(self._columns.objects, signature)
        if selector.matches_everything:
            return Fellows(None)
        part = Part(frozenset((signature.namespace,)), selector)
        return Fellows(self._columns.selectors.counter((part,), wants_terminating=False))

    def _selectors_changed(self, old: Selecting | None, new: Selecting | None) -> None:
        if old is None or new is None or old.spec.selector != new.spec.selector:
            self._selectors_version += 1


class Zones:
    """The zone of each row as a small number, `NO_ZONE` where a node names neither zone nor region."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._zone = (columns.labels.column(OLD_ZONE), columns.labels.column(ZONE))
        self._region = (columns.labels.column(OLD_REGION), columns.labels.column(REGION))
        self._known: tuple[int, Int64s] = (-1, np.zeros(0, dtype=np.int64))

    def codes(self) -> Int64s:
        """Over all rows; kept until a node changes."""
        position = self._columns.fact_changes.position
        if self._known[0] != position:
            self._known = (position, self._found())
        return self._known[1]

    def _found(self) -> Int64s:
        number_of = {"": 0}
        zones = _numbered(*self._zone, self._columns.height, number_of)
        regions = _numbered(*self._region, self._columns.height, number_of)
        pairs = regions * len(number_of) + zones
        # The pair of two empty texts is 0; with it in front, 0 it stays.
        return np.unique(np.concatenate(([NO_ZONE], pairs)), return_inverse=True)[1][1:]


def spread_score(counts: Int64s, zones: Int64s) -> Int64s:
    """Per node: its distance from the most, a third its own and two thirds its zone's if it has one, cut off."""
    has_zone = zones != NO_ZONE
    points = _distance_from_most(counts)
    if has_zone.any():
        in_zone = np.bincount(zones[has_zone], weights=counts[has_zone]).astype(np.int64)
        of_zone = _distance_from_most(in_zone)[np.where(has_zone, zones, NO_ZONE)]
        points = np.where(has_zone, points * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * of_zone, points)
    return points.astype(np.int64)


def _distance_from_most(counts: Int64s) -> Float64s:
    """Per count: 100 * (most - count) / most, and 100 where there is nobody at all."""
    most = int(counts.max(initial=0))
    if most == 0:
        return np.full(len(counts), float(SCORE_MAX))
    return float(SCORE_MAX) * ((most - counts) / float(most))


def _numbered(first: LabelColumn, second: LabelColumn, height: int, number_of: dict[str, int]) -> Int64s:
    """Per row: the number of the first label's value, or else of the second's; 0 for an empty one or none."""

    def numbers(column: LabelColumn) -> Int64s:
        values = [number_of.setdefault(value or "", len(number_of)) for value in column.values]
        return np.array(values, dtype=np.int64)[column.codes[:height]]

    return np.where(first.codes[:height] != ABSENT, numbers(first), numbers(second))
