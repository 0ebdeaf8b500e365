"""The scheduling cycle with extenders: the same steps, with requests to extenders in between.

    PreFilter -> Filter -> extenders filter -> PreScore -> Score -> extenders score -> select
                    \\             \\
                     +-------------+-> PostFilter (preemption -> extenders filter the candidates) -> message

The cycle does not await: it is a generator that yields requests and receives the responses (see `requests`).

1. Between a request and its response the columns do not change.
2. Extenders are called only for nodes that every filter lets through, in the order in which they were found. For a
   pod with a nominated node they are called for that node first.
3. If only one node is left, no extender scores.
4. `decide` calls no extender. Dry runs and explanations use it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import numpy as np

from mooring.kit.logs import fields
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import SchedulerConfiguration
from mooring.scheduler.cycle.attempt import PodAttempt, diagnose
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.filter_nodes import Sampling, search_nodes
from mooring.scheduler.cycle.schedule_pod import (
    NowS,
    PostFilterOutcome,
    SchedulingCycle,
    TieBreak,
    failed_decision,
)
from mooring.scheduler.engine import CycleFactory, Engine
from mooring.scheduler.extenders.extender import EXTENDER, Extender, ExtenderFailure, FilteredNodes, extenders_of
from mooring.scheduler.extenders.requests import (
    Exchange,
    filter_with_extenders,
    preempt_with_extenders,
    prioritize_with_extenders,
)
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.post_filter import FailedAttempt, FindsCandidates, PostFilterResult, preemption_failed
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status

logger = logging.getLogger(__name__)


def cycle_factory(configuration: SchedulerConfiguration) -> CycleFactory:
    """Makes the cycles of an engine: cycles with extenders, if the configuration has some."""
    extenders = extenders_of(configuration)
    return partial(ExtenderCycle, extenders) if extenders else SchedulingCycle


def decide_with_extenders(engine: Engine, pod: PodInfo, *, in_full: bool = False) -> Exchange[Decision]:
    """As `Engine.decide`, with extenders. The engine must have been made with `cycle_factory`."""
    cycle = engine.prepare(pod)
    assert isinstance(cycle, ExtenderCycle), "this engine has no extenders: use Engine.decide"
    return cycle.decide_with_extenders(pod, in_full=in_full)


class ExtenderCycle(SchedulingCycle):
    """Schedules the pods of one profile with extenders."""

    def __init__(
        self,
        extenders: Sequence[Extender],
        profile: Profile,
        columns: Columns,
        tie_break: TieBreak,
        sampling: Sampling | None,
        now_s: NowS,
    ) -> None:
        super().__init__(profile, columns, tie_break, sampling, now_s)
        self._extenders = extenders

    def decide_with_extenders(self, pod: PodInfo, *, in_full: bool = False) -> Exchange[Decision]:
        """Run PreEnqueue, then schedule the pod."""
        try:
            gated = self._run_pre_enqueue(pod)
            return gated if gated is not None else (yield from self._decide_with_extenders(pod, in_full))
        except PluginError as error:
            return failed_decision(pod, error.status, error.step)

    def _decide_with_extenders(self, pod: PodInfo, in_full: bool) -> Exchange[Decision]:
        attempt = self._find_feasible_nodes(pod, in_full)
        if isinstance(attempt, Decision):
            return attempt
        if attempt.pre_filter_status is None:
            ended = yield from self._filter_with_extenders(attempt, in_full)
            if ended is not None:
                return ended
            if attempt.feasible_count:
                return (yield from self._score_with_extenders(attempt, in_full))
        return (yield from self._post_filter_with_extenders(attempt, in_full))

    def _filter_with_extenders(self, attempt: PodAttempt, in_full: bool) -> Exchange[Decision | None]:
        """Reduce the feasible nodes to those that extenders leave. Returns a decision if an extender fails."""
        if attempt.found is None:  # the nominated node fits, so no search has run
            fits = yield from self._filter_nominated_node(attempt)
            if fits:
                return None
            search_nodes(attempt, self._sampling)
            ended = self._failed_decision(attempt, in_full)
            if ended is not None:
                return ended
        assert attempt.found is not None, "a search records the order in which it found nodes"
        node_names = self._names(attempt.found)
        filtered = yield from filter_with_extenders(attempt.pod, node_names, self._extenders)
        if isinstance(filtered, ExtenderFailure):
            return failed_decision(attempt.pod, Status.error(filtered.text), "extender")
        if len(filtered.node_names) != len(node_names):
            attempt.other_plugins = (EXTENDER,)
        if filtered.node_names != node_names or filtered.node_to_status or attempt.extender_statuses:
            self._narrow(attempt, filtered)
        return None

    def _filter_nominated_node(self, attempt: PodAttempt) -> Exchange[bool]:
        filtered = yield from filter_with_extenders(attempt.pod, (attempt.pod.nominated_node,), self._extenders)
        if isinstance(filtered, ExtenderFailure):
            logger.warning(
                "pod %s could not be tried on its nominated node %s: %s",
                attempt.pod.key,
                attempt.pod.nominated_node,
                filtered.text,
                extra=fields(pod=attempt.pod.key, node=attempt.pod.nominated_node, reason=filtered.text),
            )
            return False
        if filtered.node_names:
            attempt.found = self._rows(filtered.node_names)
            return True
        attempt.extender_statuses = dict(filtered.node_to_status)
        return False

    def _narrow(self, attempt: PodAttempt, filtered: FilteredNodes) -> None:
        node_to_status = {**attempt.extender_statuses, **filtered.node_to_status}
        attempt.narrow(self._rows(filtered.node_names), node_to_status)

    def _score_with_extenders(self, attempt: PodAttempt, in_full: bool) -> Exchange[Decision]:
        assert attempt.found is not None
        if len(attempt.found) == 1:
            return self._score_and_select(attempt, in_full)
        added = yield from prioritize_with_extenders(attempt.pod, self._names(attempt.found), self._extenders)
        feasible = self._names(np.arange(self._columns.height)[attempt.feasible])
        extender_scores = {
            name: np.array([scores.get(node_name, 0) for node_name in feasible], dtype=np.int64)
            for name, scores in added.items()
        }
        return self._score_and_select(attempt, in_full, extender_scores)

    def _post_filter_with_extenders(self, attempt: PodAttempt, in_full: bool) -> Exchange[Decision]:
        diagnosis, outcome = diagnose(attempt), PostFilterOutcome()
        for plugin in self.profile.post_filters:
            if isinstance(plugin, FindsCandidates):
                result = yield from self._preempt_with_extenders(plugin, attempt)
            else:
                result = plugin.post_filter(attempt)
            if outcome.take(plugin, result):
                break
        return self._unschedulable(attempt, diagnosis, outcome, in_full)

    def _preempt_with_extenders(self, plugin: FindsCandidates, attempt: FailedAttempt) -> Exchange[PostFilterResult]:
        """Preemption, whose candidates extenders may remove or change."""
        candidates = plugin.find_candidates(attempt)
        if isinstance(candidates, PostFilterResult):
            return candidates
        left = yield from preempt_with_extenders(attempt.pod, candidates, self._extenders, self._columns)
        if isinstance(left, ExtenderFailure):
            return preemption_failed(Code.ERROR, left.text)
        if not left:
            return preemption_failed(Code.UNSCHEDULABLE, "no candidate node for preemption")
        return plugin.select_candidate(left)

    def _names(self, rows: Int64s) -> tuple[str, ...]:
        names = self._columns.node_names
        return tuple([names[row] for row in rows.tolist()])

    def _rows(self, names: Sequence[str]) -> Int64s:
        row_of = self._columns.row_of
        return np.array([row_of[name] for name in names], dtype=np.int64)
