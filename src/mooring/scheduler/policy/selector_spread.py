"""SelectorSpread: spread the pods of a service or controller over nodes and zones.

Input: the pod's services and controller, the number of their pods on each node, the zones of nodes. Output: a higher
score for nodes and zones with fewer of these pods.

The plugin replaces SelectorSpreadPriority. kube-scheduler dropped it in 1.29: PodTopologySpread spreads by its default
constraints. A profile with both plugins should set the defaulting type `List` of PodTopologySpread.

1. Pods with topology spread constraints are skipped.
2. Terminating pods and pods of other namespaces do not count.
3. A zone is identified by region and zone. On a node with both, the beta labels take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Float64s, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import zone_of
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature
from mooring.scheduler.cache.selectors import MatchCounter, PodSelector
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, PreScore, Score, Skip
from mooring.scheduler.plugins.spread_constraints import SelectorChanges, default_selector
from mooring.scheduler.policy.types import reject_arguments

ZONE_WEIGHT = 2.0 / 3.0
"""Weight of the zone's score on nodes with a zone; the rest is the node's own score."""
NO_ZONE = 0


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
