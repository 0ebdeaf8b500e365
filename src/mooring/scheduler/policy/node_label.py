"""NodeLabel: labels that every node must or must not have, and preferred labels.

Input: the profile's arguments, the labels of nodes. Output: rejected nodes that lack a required label or have a
forbidden one; a score by preferences. The result is the same for every pod. Values of labels are ignored.

The plugin belonged to Policy (`labelsPresence`, `labelPreference`). kube-scheduler dropped it in 1.23. Today use a node
selector for one pod, or `addedAffinity` of NodeAffinity for a profile.
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

LabelRules = tuple[tuple[LabelColumn, bool], ...]
"""Labels, each with whether a node should have it."""


class NodeLabel(Filter[LabelRules], Score[LabelRules]):
    name = "NodeLabel"
    filter_scope = Scope.NODE
    filter_reasons = (Reason("node(s) didn't have the requested labels", Code.UNRESOLVABLE),)
    score_scope = Scope.NODE

    def __init__(self, columns: Columns, arguments: Mapping[str, object]) -> None:
        labels, wanted = columns.labels, node_label_arguments(arguments)
        self._required: LabelRules = (
            *((labels.column(key), True) for key in wanted.present_labels),
            *((labels.column(key), False) for key in wanted.absent_labels),
        )
        self._preferences: LabelRules = (
            *((labels.column(key), True) for key in wanted.present_labels_preference),
            *((labels.column(key), False) for key in wanted.absent_labels_preference),
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
    answer: Bools = (column.codes[rows] != ABSENT) == should_exist
    return answer
