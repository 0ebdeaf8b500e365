"""TaintToleration: reject nodes with untolerated taints, and prefer nodes with fewer PreferNoSchedule taints.

Nodes with the same taints share a set (see `TaintColumns`). The plugin evaluates tolerations once for each set and
gathers the results to rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.api.tolerations import (
    HARD_EFFECTS,
    UNSCHEDULABLE_TAINT,
    count_intolerable_preferences,
    find_untolerated_taint,
    is_tolerated,
    tolerations_of_preferences,
)
from mooring.api.views.node import Node, Taint
from mooring.api.views.pod import Toleration
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
    queue_on_own_update,
)
from mooring.scheduler.framework.obstacle import HARDNESS, Distances, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import Filter, PreScore, Proceed, Scope, Score, scaled_to_best
from mooring.scheduler.framework.status import Code, Reason

Tolerations = tuple[Toleration, ...]
RESULTS_MAX = 1024
"""Maximum number of cached lists of tolerations."""


class TaintToleration(Filter[Tolerations], PreScore[Tolerations], Score[Tolerations]):
    name = "TaintToleration"
    obstacle_kind = ObstacleKind.TAINT
    filter_scope = Scope.NODE
    filter_reasons = (Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE),)
    score_scope = Scope.NODE
    normalizes = True

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._taints = columns.taints
        self._results: dict[tuple[bool, Tolerations], Int64s] = {}

    def pre_filter(self, pod: PodInfo) -> Proceed[Tolerations]:
        return Proceed(pod.signature.spec.tolerations)

    def filter(self, state: Tolerations, rows: Rows) -> Int64s:
        if len(self._taints.sets) == 1:  # no node has taints
            return np.zeros(length_of(rows), dtype=np.int64)
        return self._result_by_set(True, state)[self._taints.set_of_row[rows]]

    def explain(self, state: Tolerations, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        taints = self._taints.sets[self._taints.set_of_row[row]]
        is_cordoned = self._columns.unschedulable[row] and ObstacleKind.CORDON in context.kinds
        return [_obstacle(taint) for taint in _untolerated(taints, state) if not (is_cordoned and _is_cordon(taint))]

    def distances(self, state: Tolerations, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
        """Each taint is one obstacle. The taint of a cordoned node counts as part of the cordon."""
        sets = self._taints.set_of_row[rows]
        counts = self._taints.evaluate(lambda taints: len(_untolerated(taints, state)), np.int64)[sets]
        if ObstacleKind.CORDON in context.kinds:
            without_cordon = self._taints.evaluate(
                lambda taints: sum(not _is_cordon(taint) for taint in _untolerated(taints, state)), np.int64
            )[sets]
            counts = np.where(self._columns.unschedulable[rows], without_cordon, counts)
        return Distances(counts, counts.astype(np.float64) * HARDNESS[ObstacleKind.TAINT])

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Tolerations:
        return tolerations_of_preferences(pod.signature.spec.tolerations)

    def score(self, state: Tolerations, rows: Rows) -> Int64s:
        if len(self._taints.sets) == 1:
            return np.zeros(length_of(rows), dtype=np.int64)
        return self._result_by_set(False, state)[self._taints.set_of_row[rows]]

    def normalize(self, state: Tolerations, scores: Int64s, rows: Rows) -> Int64s:
        return scaled_to_best(scores, reverse=True)

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                _becomes_tolerable,
                per_signature=True,
            ),
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION, queue_on_own_update
            ),
        )

    def _result_by_set(self, is_hard: bool, tolerations: Tolerations) -> Int64s:
        """For each set of taints: whether it rejects the pod, or how many PreferNoSchedule taints are not tolerated."""
        known = self._results.get((is_hard, tolerations))
        if known is None or len(known) != len(self._taints.sets):
            if len(self._results) >= RESULTS_MAX:
                self._results.clear()
            known = self._results[is_hard, tolerations] = self._taints.evaluate(
                (lambda taints: find_untolerated_taint(taints, tolerations) is not None)
                if is_hard
                else (lambda taints: count_intolerable_preferences(taints, tolerations)),
                np.int64,
            )
        return known


def _untolerated(taints: Sequence[Taint], tolerations: Tolerations) -> list[Taint]:
    """All taints that reject the pod."""
    return [taint for taint in taints if taint.effect in HARD_EFFECTS and not is_tolerated(taint, tolerations)]


def _is_cordon(taint: Taint) -> bool:
    """Whether the node lifecycle controller adds this taint to cordoned nodes."""
    return taint.key == UNSCHEDULABLE_TAINT.key


def _obstacle(taint: Taint) -> Obstacle:
    label = f"{taint.key}={taint.value}" if taint.value else taint.key
    details = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return Obstacle(TaintToleration.name, ObstacleKind.TAINT, f"tolerate {label}:{taint.effect}", details)


def _becomes_tolerable(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """Whether the pod tolerates an added or changed node, and did not tolerate it before."""
    tolerations = pod.signature.spec.tolerations
    if find_untolerated_taint(new.spec.taints, tolerations) is not None:
        return QueueingHint.SKIP
    return queue_if(old is None or find_untolerated_taint(old.spec.taints, tolerations) is not None)
