"""NodeLabel, and one plugin for each scoring strategy of NodeResourcesFit. They belonged to Policy.

NodeLabel rejects nodes that lack a required label or have a forbidden one, and scores preferred labels. The result is
the same for every pod. Values of labels are ignored. kube-scheduler dropped it in 1.23. Today use a node selector for
one pod, or `addedAffinity` of NodeAffinity for a profile.

NodeResourcesLeastAllocated, NodeResourcesMostAllocated and RequestedToCapacityRatio score as NodeResourcesFit with that
strategy. NodeResourcesFit has one strategy, so a profile that weighs two needs these plugins. kube-scheduler made them
strategies in 1.22 and dropped them in 1.23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT, LabelColumn
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, Filter, PreScore, Proceed, Scope, Score, Skip
from mooring.scheduler.framework.status import Code, Reason
from mooring.scheduler.plugins.node_resources_fit import FitScoreState, NodeResourcesFit
from mooring.scheduler.policy.types import node_label_arguments, strategy_arguments

LabelRules = tuple[tuple[LabelColumn, bool], ...]
"""Labels, each with whether a node should have it."""


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
