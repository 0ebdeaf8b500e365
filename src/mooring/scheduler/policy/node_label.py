"""NodeLabel: labels that every node must have, or must not have, and labels that make a node better.

Comes in   the profile's arguments, and which nodes carry the labels
Goes out   refusals for nodes that lack a label or carry a forbidden one, a preference for the others

It comes from the days of `Policy` (`labelsPresence`, `labelPreference`); kube-scheduler dropped it in 1.23. It says the
same to every pod, and a label's value does not matter. Today a node selector speaks of values for one pod, and
NodeAffinity's `addedAffinity` for all pods of a profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Filter, Proceed, Scope, Score, Skip
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.policy.arguments import node_label_arguments

Wishes = tuple[tuple[LabelColumn, bool], ...]
"""Labels, each with whether it should be there."""


class NodeLabel(Filter[Wishes], Score[Wishes]):
    name = "NodeLabel"
    filter_scope = Scope.NODE
    filter_reasons = (Reason("node(s) didn't have the requested labels", Code.UNRESOLVABLE),)
    score_scope = Scope.NODE

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        labels, wanted = columns.labels, node_label_arguments(arguments)
        self._demands: Wishes = (
            *((labels.column(key), True) for key in wanted.present_labels),
            *((labels.column(key), False) for key in wanted.absent_labels),
        )
        self._preferences: Wishes = (
            *((labels.column(key), True) for key in wanted.present_labels_preference),
            *((labels.column(key), False) for key in wanted.absent_labels_preference),
        )

    def pre_filter(self, pod: PodInfo) -> Proceed[Wishes] | Skip:
        return Proceed(self._demands) if self._demands else SKIP

    def filter(self, state: Wishes, rows: Rows) -> Int64s:
        is_met = np.ones(length_of(rows), dtype=np.bool_)
        for wish in state:
            is_met &= _is_met(wish, rows)
        return np.where(is_met, 0, 1)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> Wishes | Skip:
        return self._preferences or SKIP

    def score(self, state: Wishes, rows: Rows) -> Int64s:
        met = np.zeros(length_of(rows), dtype=np.int64)
        for wish in state:
            met += _is_met(wish, rows)
        return met * SCORE_MAX // len(state)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),)


def _is_met(wish: tuple[LabelColumn, bool], rows: Rows) -> Bools:
    column, should_be_there = wish
    answer: Bools = (column.codes[rows] != ABSENT) == should_be_there
    return answer
