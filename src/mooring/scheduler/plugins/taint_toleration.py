"""TaintToleration: a node with a taint that the pod does not tolerate refuses it, or is liked less.

Taint sets are interned (see `cache.taints`), so a toleration is weighed once for each distinct set of taints in the
cluster, and the verdicts are gathered to the rows.
"""

from __future__ import annotations

import numpy as np

from mooring.api.tolerations import count_intolerable_preferences, find_untolerated_taint, tolerations_of_preferences
from mooring.api.views.node import Node
from mooring.api.views.pod import Toleration
from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.framework.hints import is_about_itself
from mooring.scheduler.framework.normalise import scaled_to_best
from mooring.scheduler.framework.plugin import Filter, PreScore, Reads, Score
from mooring.scheduler.framework.status import Code, Reason

Tolerations = tuple[Toleration, ...]
VERDICTS_MAX = 1024
"""How many different lists of tolerations are remembered."""


class TaintToleration(Filter[Tolerations], PreScore[Tolerations], Score[Tolerations]):
    name = "TaintToleration"
    filter_reads = Reads.FACTS
    filter_reasons = (Reason("node(s) had untolerated taint(s)", Code.UNRESOLVABLE),)
    score_reads = Reads.FACTS
    normalises = True

    def __init__(self, columns: Columns) -> None:
        self._taints = columns.taints
        self._verdicts: dict[tuple[bool, Tolerations], Int64s] = {}

    def prepare(self, pod: PodRecord) -> Tolerations:
        return pod.shape.spec.tolerations

    def filter(self, state: Tolerations, rows: Rows) -> Int64s:
        if len(self._taints.sets) == 1:  # nobody is tainted
            return np.zeros(length_of(rows), dtype=np.int64)
        return self._verdict(True, state)[self._taints.set_of_row[rows]]

    def pre_score(self, pod: PodRecord, feasible: Rows) -> Tolerations:
        return tolerations_of_preferences(pod.shape.spec.tolerations)

    def score(self, state: Tolerations, rows: Rows) -> Int64s:
        if len(self._taints.sets) == 1:
            return np.zeros(length_of(rows), dtype=np.int64)
        return self._verdict(False, state)[self._taints.set_of_row[rows]]

    def normalise(self, state: Tolerations, scores: Int64s, rows: Rows) -> Int64s:
        return scaled_to_best(scores, reverse=True)

    def wakes(self) -> tuple[Wake, ...]:
        return (
            Wake(Subject.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _becomes_tolerable, by_shape=True),
            Wake(Subject.PENDING_POD, Action.UPDATE_POD_TOLERATION, is_about_itself),
        )

    def _verdict(self, is_hard: bool, tolerations: Tolerations) -> Int64s:
        """For each known set of taints: whether it refuses, or how many of its taints are not tolerated."""
        known = self._verdicts.get((is_hard, tolerations))
        if known is None or len(known) != len(self._taints.sets):
            if len(self._verdicts) >= VERDICTS_MAX:
                self._verdicts.clear()
            known = self._verdicts[is_hard, tolerations] = self._taints.judge(
                (lambda taints: find_untolerated_taint(taints, tolerations) is not None)
                if is_hard
                else (lambda taints: count_intolerable_preferences(taints, tolerations)),
                np.int64,
            )
        return known


def _becomes_tolerable(pod: PodRecord, old: Node | None, new: Node) -> bool:
    """A node came, or changed: does the pod tolerate its taints now, as it did not before?"""
    tolerations = pod.shape.spec.tolerations
    if find_untolerated_taint(new.spec.taints, tolerations) is not None:
        return False
    return old is None or find_untolerated_taint(old.spec.taints, tolerations) is not None
