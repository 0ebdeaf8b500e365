"""The scheduling cycle with extenders: the same steps, with requests to extenders in between.

    PreFilter -> Filter -> extenders filter -> PreScore -> Score -> extenders score -> select
                    \\             \\
                     +-------------+-> PostFilter (preemption -> extenders filter the candidates) -> message

The cycle does not await: it is a generator that yields requests and receives the answers (see `extenders.questions`).

1. Between a request and its answer the columns do not change.
2. Extenders are asked only about nodes that every filter lets through, in the order in which they were found. For a
   pod with a nominated node they are asked about that node first.
3. If only one node is left, extenders are not asked for scores.
4. `decide` asks no extender. Dry runs and explanations use it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.diagnosis import diagnose
from mooring.scheduler.cycle.filter_nodes import search_nodes
from mooring.scheduler.cycle.sampling import Sampling, sampling_for
from mooring.scheduler.cycle.schedule_pod import (
    NowS,
    PostFilterOutcome,
    SchedulingCycle,
    TieBreak,
    failed_decision,
    no_time,
)
from mooring.scheduler.extenders.extender import EXTENDER, Extender, ExtenderFailure, Narrowed
from mooring.scheduler.extenders.questions import Consultation, ConsultsExtenders, consult_filters, consult_scores
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status

logger = logging.getLogger(__name__)


def cycle_of(
    profile: Profile,
    columns: Columns,
    tie_break: TieBreak,
    order: NodeOrder,
    extenders: Sequence[Extender],
    now_s: NowS = no_time,
) -> SchedulingCycle:
    """The cycle of a profile: one that asks, if there is somebody to ask."""
    sampling = sampling_for(
        profile,
        order,
        extenders_filter=any(extender.filters for extender in extenders),
        extenders_score=any(extender.prioritizes for extender in extenders),
    )
    if not extenders:
        return SchedulingCycle(profile, columns, tie_break, sampling, now_s)
    return ExtenderCycle(profile, columns, tie_break, sampling or Sampling(order, None), extenders)


class ExtenderCycle(SchedulingCycle):
    """Decides for the pods of one profile, and asks extenders."""

    def __init__(
        self,
        profile: Profile,
        columns: Columns,
        tie_break: TieBreak,
        sampling: Sampling,
        extenders: Sequence[Extender],
    ) -> None:
        super().__init__(profile, columns, tie_break, sampling)
        self._extenders = extenders

    def decide_with_questions(self, pod: PodInfo, *, in_full: bool = False) -> Consultation[Decision]:
        """Where does this pod go, all things considered?"""
        try:
            held_back = self._run_pre_enqueue(pod)
            return held_back if held_back is not None else (yield from self._decide_with_questions(pod, in_full))
        except PluginError as error:
            return failed_decision(pod, error.status, error.step)

    def _decide_with_questions(self, pod: PodInfo, in_full: bool) -> Consultation[Decision]:
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

    def _filter_with_extenders(self, attempt: Attempt, in_full: bool) -> Consultation[Decision | None]:
        """Leaves the attempt with the nodes that extenders leave; or ends the cycle, if one of them fails."""
        if attempt.found is None:  # a promised node: nobody has searched
            fits = yield from self._filter_nominated_node(attempt)
            if fits:
                return None
            search_nodes(attempt, self._sampling)
            ended = self._failed_decision(attempt, in_full)
            if ended is not None:
                return ended
        assert attempt.found is not None, "a search tells in which order it found nodes"
        asked = self._names(attempt.found)
        narrowed = yield from consult_filters(attempt.pod, asked, self._extenders)
        if isinstance(narrowed, ExtenderFailure):
            return failed_decision(attempt.pod, Status.error(narrowed.text), "extender")
        if len(narrowed.node_names) != len(asked):
            attempt.other_plugins = (EXTENDER,)
        if narrowed.node_names != asked or narrowed.node_to_status or attempt.extender_statuses:
            self._keep_nodes(attempt, narrowed)
        return None

    def _filter_nominated_node(self, attempt: Attempt) -> Consultation[bool]:
        narrowed = yield from consult_filters(attempt.pod, (attempt.pod.nominated_node,), self._extenders)
        if isinstance(narrowed, ExtenderFailure):
            logger.warning(
                "pod %s could not be tried on its nominated node %s: %s",
                attempt.pod.key,
                attempt.pod.nominated_node,
                narrowed.text,
            )
            return False
        if narrowed.node_names:
            attempt.found = self._rows(narrowed.node_names)
            return True
        attempt.extender_statuses = dict(narrowed.node_to_status)
        return False

    def _keep_nodes(self, attempt: Attempt, narrowed: Narrowed) -> None:
        node_to_status = {**attempt.extender_statuses, **narrowed.node_to_status}
        attempt.narrow(self._rows(narrowed.node_names), node_to_status)

    def _score_with_extenders(self, attempt: Attempt, in_full: bool) -> Consultation[Decision]:
        assert attempt.found is not None
        if len(attempt.found) == 1:
            return self._score_and_select(attempt, in_full)
        added = yield from consult_scores(attempt.pod, self._names(attempt.found), self._extenders)
        feasible = self._names(np.arange(self._columns.height)[attempt.feasible])
        advice = {
            name: np.array([scores.get(node_name, 0) for node_name in feasible], dtype=np.int64)
            for name, scores in added.items()
        }
        return self._score_and_select(attempt, in_full, advice)

    def _post_filter_with_extenders(self, attempt: Attempt, in_full: bool) -> Consultation[Decision]:
        diagnosis, outcome = diagnose(attempt), PostFilterOutcome()
        for plugin in self.profile.post_filters:
            if isinstance(plugin, ConsultsExtenders):
                result = yield from plugin.post_filter_with_questions(attempt, self._extenders)
            else:
                result = plugin.post_filter(attempt)
            if outcome.take(plugin, result):
                break
        return self._unschedulable(attempt, diagnosis, outcome, in_full)

    def _names(self, rows: Int64s) -> tuple[str, ...]:
        names = self._columns.node_names
        return tuple([names[row] for row in rows.tolist()])

    def _rows(self, names: Sequence[str]) -> Int64s:
        row_of = self._columns.row_of
        return np.array([row_of[name] for name in names], dtype=np.int64)
