"""The scheduling cycle: choose a node for one pod.

Takes a pending pod and returns a `Decision`. The cycle never awaits and changes nothing: `Engine.assume` applies a
decision. The steps are those of kube-scheduler's `schedule_one.go`, and there is no other way through:

    PreEnqueue -> PreFilter -> Filter -> PreScore -> Score -> select
                        \\          \\
                         +----------+-> PostFilter (preemption) -> message

1. A cycle is a function of columns, pod and the tie break; and, if a configuration samples nodes, of where the search
   before it ended.
2. A decision in full takes the same steps and reports more of them.
3. A user's plugin that fails ends this one cycle (`PluginError`, see `framework.guard`).
4. With `best_nodes_max`, a decision has the scores of the best nodes, and the rejections also of a pod with a node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from mooring.scheduler.cache.arrays import Bools, Int64s, row_numbers
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import UNPROCESSED, PodAttempt, diagnose
from mooring.scheduler.cycle.decision import Decision, NodeScores, PreemptionPlan
from mooring.scheduler.cycle.filter_nodes import Sampling, filter_all_nodes, find_feasible_nodes, run_pre_filter_phase
from mooring.scheduler.cycle.result_cache import ResultCache, ReuseCounts
from mooring.scheduler.cycle.scoring import Ranking, best_nodes, rank, run_pre_scores, score_details
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import PostFilter
from mooring.scheduler.framework.post_filter import Candidates, FindsCandidates, FollowUp, PostFilterResult
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Diagnosis, FitError, RejectionCount, Status

TieBreak = Callable[[Sequence[int] | Int64s], int]
"""Selects one of several rows with the same score."""
NO_EXTENDER_SCORES: Mapping[str, Int64s] = {}
NowS = Callable[[], float]


class Steps(NamedTuple):
    """When the steps of a cycle began and ended."""

    started_s: float
    filtered_s: float
    ended_s: float

    def text(self, is_placed: bool) -> str:
        """`PreFilter and Filter 80.1 ms, Score 40.0 ms`"""
        last = "PreScore and Score" if is_placed else "PostFilter"
        filter_ms, last_ms = 1000 * (self.filtered_s - self.started_s), 1000 * (self.ended_s - self.filtered_s)
        return f"PreFilter and Filter {filter_ms:.1f} ms, {last} {last_ms:.1f} ms"


NO_STEPS = Steps(0.0, 0.0, 0.0)
"""Of a cycle that was not timed."""


class SchedulingCycle:
    """Decides for the pods of one profile."""

    def __init__(
        self,
        profile: Profile,
        columns: Columns,
        tie_break: TieBreak,
        sampling: Sampling | None,
        now_s: NowS,
    ) -> None:
        self.profile = profile
        self.last_steps = NO_STEPS
        """When the steps of the last cycle began and ended."""
        self._now_s = now_s
        self._columns = columns
        self._tie_break = tie_break
        self._sampling = sampling
        self._cache = ResultCache(profile, columns)
        self.best_nodes_max = 0
        """Number of best nodes whose scores a decision has. The engine library needs none."""

    def decide(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        """Run PreEnqueue, then schedule the pod."""
        try:
            return self._run_pre_enqueue(pod) or self.decide_admitted(pod, in_full=in_full)
        except PluginError as error:
            return failed_decision(pod, error.status, error.step)

    def decide_admitted(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        """Schedule a pod that has passed PreEnqueue."""
        started_s = self._now_s()
        try:
            attempt = self._find_feasible_nodes(pod, in_full)
            filtered_s = self._now_s()
            if isinstance(attempt, Decision):
                decision = attempt
            elif attempt.pre_filter_status is None and attempt.feasible_count:
                decision = self._score_and_select(attempt, in_full)
            else:
                decision = self._run_post_filters(attempt, in_full)
            self.last_steps = Steps(started_s, filtered_s, self._now_s())
            return decision
        except PluginError as error:
            return failed_decision(pod, error.status, error.step)

    def feasible_rows(self, pod: PodInfo) -> Bools:
        """Per row: whether PreFilter and Filter accept the pod. A failing plugin counts as a rejection."""
        fits: Bools = np.zeros(self._columns.height, dtype=np.bool_)
        try:
            attempt = self._find_feasible_nodes(pod, in_full=False)
        except PluginError:
            return fits
        if isinstance(attempt, PodAttempt) and attempt.pre_filter_status is None:
            fits[attempt.feasible] = True
        return fits

    def preemption_candidates(self, pod: PodInfo) -> Candidates:
        """The nodes on which evicting pods would make the pod fit, with the victims on each. None if it fits."""
        attempt = self._find_feasible_nodes(pod, in_full=False)
        if isinstance(attempt, PodAttempt) and not attempt.feasible_count:
            for plugin in self.profile.post_filters:
                found = plugin.find_candidates(attempt) if isinstance(plugin, FindsCandidates) else None
                if found is not None and not isinstance(found, PostFilterResult):
                    return found
        return {}

    @property
    def reuse_counts(self) -> ReuseCounts:
        """How often this cycle reused the results of an equal pod."""
        return self._cache.counts

    def _run_pre_enqueue(self, pod: PodInfo) -> Decision | None:
        """The decision if a PreEnqueue plugin rejects the pod."""
        for gate in self.profile.pre_enqueue:
            status = gate.pre_enqueue(pod)
            if status is not None:
                return Decision(
                    pod, status=status.with_plugin(gate.name), unschedulable_plugins=frozenset((gate.name,))
                )
        return None

    def _find_feasible_nodes(self, pod: PodInfo, in_full: bool) -> PodAttempt | Decision:
        """Run PreFilter and Filter. Returns a decision if the cycle ends there."""
        if pod.terminating:
            return Decision(pod, message=f"skip schedule deleting pod: {pod.key}", error="skip")
        if self._columns.node_count == 0:
            return Decision(pod, message="no nodes available to schedule pods", error="nonodes", clears_nomination=True)
        results = self._cache.results_for(pod)
        attempt = run_pre_filter_phase(self.profile, self._columns, results, pod)
        find_feasible_nodes(attempt, self._sampling)
        if attempt.pre_filter_status is None and not attempt.cluster_filters:
            return attempt  # cached results have no errors
        return self._decision_if_failed(attempt, in_full) or attempt

    def _decision_if_failed(self, attempt: PodAttempt, in_full: bool) -> Decision | None:
        """The decision if PreFilter or Filter ended in an error."""
        status = attempt.pre_filter_status
        if status is not None:
            return failed_decision(attempt.pod, status, "prefilter") if status.code is Code.ERROR else None
        error = _filter_error(attempt)
        return self._failed(attempt, error, "filter", in_full) if error is not None else None

    def _score_and_select(
        self, attempt: PodAttempt, in_full: bool, extender_scores: Mapping[str, Int64s] = NO_EXTENDER_SCORES
    ) -> Decision:
        if attempt.feasible_count == 1 and not in_full:
            # As in kube-scheduler, a single feasible node is not scored, so that no score plugin can fail.
            (row,) = row_numbers(attempt.feasible)
            return self._place_on(attempt, row, 1)
        try:
            cluster_scores = run_pre_scores(attempt)
            if isinstance(cluster_scores, Status):
                return self._failed(attempt, cluster_scores, "prescore", in_full)
            ranking = rank(attempt, cluster_scores, extender_scores)
            details = {**score_details(attempt, cluster_scores), **extender_scores} if in_full else {}
        except PluginError as error:
            return self._failed(attempt, error.status, error.step, in_full)
        row = self._select_row(ranking.best)
        placed = self._place_on(attempt, row, attempt.feasible_count, ranking)
        if not in_full:
            return placed
        return replace(placed, node_to_status=self._node_to_status(attempt), scores=self._scores(attempt, details))

    def _select_row(self, best: Sequence[int] | Int64s) -> int:
        return int(best[0] if len(best) == 1 else self._tie_break(best))

    def _place_on(self, attempt: PodAttempt, row: int, feasible_count: int, ranking: Ranking | None = None) -> Decision:
        nodes: tuple[NodeScores, ...] = ()
        rejections: tuple[RejectionCount, ...] = ()
        if self.best_nodes_max:
            nodes = best_nodes(attempt, ranking, row, self.best_nodes_max) if ranking is not None else ()
            if feasible_count < self._columns.node_count:
                rejections = attempt.rejected_nodes()
        return Decision(
            attempt.pod,
            node_name=self._columns.node_names[row],
            feasible_count=feasible_count,
            node_names=attempt.node_names,
            best_nodes=nodes,
            rejections=rejections,
        )

    def _failed(self, attempt: PodAttempt, status: Status, step: str, in_full: bool) -> Decision:
        """The decision if a step after PreFilter failed: the results of Filter are still reported."""
        node_to_status = self._node_to_status(attempt) if in_full else {}
        failed = failed_decision(attempt.pod, status, step)
        return replace(failed, node_names=attempt.node_names, node_to_status=node_to_status)

    def _run_post_filters(self, attempt: PodAttempt, in_full: bool) -> Decision:
        diagnosis, outcome = diagnose(attempt), PostFilterOutcome()
        for plugin in self.profile.post_filters:
            if outcome.take(plugin, plugin.post_filter(attempt)):
                break
        return self._unschedulable(attempt, diagnosis, outcome, in_full)

    def _unschedulable(
        self, attempt: PodAttempt, diagnosis: Diagnosis, outcome: PostFilterOutcome, in_full: bool
    ) -> Decision:
        return Decision(
            attempt.pod,
            status=attempt.pre_filter_status,
            node_names=attempt.node_names,
            message=FitError(self._columns.node_count, diagnosis, ", ".join(outcome.messages)).message,
            preemption=outcome.preemption,
            node_to_status=self._node_to_status(attempt) if in_full and attempt.pre_filter_status is None else {},
            clears_nomination=outcome.clears_nomination or not self.profile.post_filters,
            unschedulable_plugins=diagnosis.unschedulable_plugins,
            pending_plugins=diagnosis.pending_plugins,
            rejections=diagnosis.rejections,
            follow_ups=tuple(outcome.follow_ups),
        )

    def _node_to_status(self, attempt: PodAttempt) -> dict[str, Status | None]:
        names = self._columns.node_names
        if attempt.pod.nominated_node:
            filter_all_nodes(attempt)
        first = attempt.first
        rows = row_numbers(self._columns.live_rows)
        return {names[row]: attempt.status_at(row) for row in rows if first[row] != UNPROCESSED}

    def _scores(self, attempt: PodAttempt, details: dict[str, Int64s]) -> dict[str, dict[str, int]]:
        names = self._columns.node_names
        return {
            names[row]: {
                **{name: int(scores[index]) for name, scores in details.items()},
                "total": int(sum(scores[index] for scores in details.values())),
            }
            for index, row in enumerate(row_numbers(attempt.feasible))
        }


class PostFilterOutcome:
    """The combined result of the PostFilter plugins."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.preemption: PreemptionPlan | None = None
        self.clears_nomination = False
        self.follow_ups: list[FollowUp] = []

    def take(self, plugin: PostFilter, result: PostFilterResult) -> bool:
        """Add the result of a plugin. Returns whether it ends PostFilter."""
        self.clears_nomination = self.clears_nomination or result.nominated_node == ""
        if result.follow_up is not None:
            self.follow_ups.append(result.follow_up)
        if result.status is None:
            assert result.nominated_node, f"{plugin.name} succeeded without a node"
            self.preemption = PreemptionPlan(result.nominated_node, result.victims)
            self.messages = []
            return True
        if result.status.code is Code.UNSCHEDULABLE:
            self.messages += result.status.reasons
            return False
        self.messages = list(result.status.reasons)
        return True


def failed_decision(pod: PodInfo, status: Status, error: str) -> Decision:
    """The decision of a cycle that ended in an error. The event shows the error."""
    return Decision(pod, status=status, message=status.message, error=error, clears_nomination=True)


def _filter_error(attempt: PodAttempt) -> Status | None:
    """The error of a filter. If several nodes have one, that of the node whose name comes first."""
    if not attempt.may_have_failed:
        return None
    failed: list[int] = np.flatnonzero(attempt.is_rejected_with(Code.ERROR)).tolist()
    return attempt.status_at(min(failed, key=attempt.columns.node_names.__getitem__)) if failed else None
