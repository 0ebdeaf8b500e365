"""NodeResourcesLeastAllocated, NodeResourcesMostAllocated, RequestedToCapacityRatio: one scoring strategy each.

The scores are those of NodeResourcesFit with the same strategy. The plugins belonged to Policy, which could weigh
several of them; kube-scheduler made them strategies of NodeResourcesFit in 1.22 and dropped them in 1.23.
NodeResourcesFit has one strategy, so a profile with two needs these plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from mooring.scheduler.framework.plugin import PreScore, Scope, Score
from mooring.scheduler.plugins.node_resources_fit import FitScoreState, NodeResourcesFit
from mooring.scheduler.policy.arguments import strategy_arguments


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
