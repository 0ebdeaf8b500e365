"""The scheduling cycle: one pod, one decision, without waiting.

Comes in   a pending pod
Goes out   a `Decision`; nothing is changed yet, `Engine.assume` does that

    PreEnqueue -> PreFilter -> Filter -> PreScore -> Score -> select
                        \\          \\
                         +----------+-> PostFilter (preemption) -> message

 1. The cycle is a function of columns, pod and the die that breaks ties; and, where only a sample of the nodes is
    looked at, of where the search before it ended.
 2. A decision made in full takes the same steps as one that is not, and only writes more of them down.
 3. A user's plugin that fails ends this one cycle (`PluginError`, see `framework.guard`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import UNSEEN, Attempt
from mooring.scheduler.cycle.decision import Decision, PreemptionPlan
from mooring.scheduler.cycle.diagnosis import Diagnosis, diagnose, failure_text
from mooring.scheduler.cycle.filter_nodes import ask_everywhere, begin, look
from mooring.scheduler.cycle.result_cache import ResultCache
from mooring.scheduler.cycle.sampling import Sampling
from mooring.scheduler.cycle.score_nodes import best_rows, cluster_scores, scores_in_full
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import FollowUp, PostFilter, PostFilterResult
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Refusal, Rejection

TieBreak = Callable[[Sequence[int] | Int64s], int]
"""Chooses one of several rows that are equally good. There may be thousands: they come as they are at hand."""
NO_ADVICE: Mapping[str, Int64s] = {}
NowS = Callable[[], float]


class Steps(NamedTuple):
    """When the steps of a cycle began and ended."""

    started_s: float
    looked_s: float
    ended_s: float

    def words(self, is_placed: bool) -> str:
        """`PreFilter and Filter 80.1 ms, Score 40.0 ms`"""
        last = "PreScore and Score" if is_placed else "PostFilter"
        looked_ms, last_ms = 1000 * (self.looked_s - self.started_s), 1000 * (self.ended_s - self.looked_s)
        return f"PreFilter and Filter {looked_ms:.1f} ms, {last} {last_ms:.1f} ms"


def no_time() -> float:
    """For engines that nobody times."""
    return 0.0


class SchedulingCycle:
    """Decides for the pods of one profile."""

    def __init__(
        self,
        profile: Profile,
        columns: Columns,
        tie_break: TieBreak,
        sampling: Sampling | None = None,
        now_s: NowS = no_time,
    ) -> None:
        self.profile = profile
        self._last_times_s = (0.0, 0.0, 0.0)
        self._now_s = now_s
        self._columns = columns
        self._tie_break = tie_break
        self._sampling = sampling
        self._cache = ResultCache(profile, columns)

    def decide(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        """Where does this pod go, if it may be tried at all?"""
        try:
            return self._held_back(pod) or self.decide_admitted(pod, in_full=in_full)
        except PluginError as error:
            return failed_decision(pod, error.rejection, error.step)

    def decide_admitted(self, pod: PodInfo, *, in_full: bool = False) -> Decision:
        """Where does this pod go? The queue has asked PreEnqueue already."""
        started_s = self._now_s()
        try:
            attempt = self._look(pod, in_full)
            looked_s = self._now_s()
            if isinstance(attempt, Decision):
                decision = attempt
            elif attempt.rejection is None and attempt.feasible_count:
                decision = self._place(attempt, in_full)
            else:
                decision = self._refuse(attempt, in_full)
            self._last_times_s = (started_s, looked_s, self._now_s())
            return decision
        except PluginError as error:
            return failed_decision(pod, error.rejection, error.step)

    @property
    def last_steps(self) -> Steps:
        """Those of the last cycle. Hardly anybody wants to know."""
        return Steps(*self._last_times_s)

    def _held_back(self, pod: PodInfo) -> Decision | None:
        """What PreEnqueue says against it."""
        for gate in self.profile.pre_enqueue:
            rejection = gate.pre_enqueue(pod)
            if rejection is not None:
                rejection = Rejection(rejection.code, rejection.reasons, gate.name)
                return Decision(pod, rejection=rejection, rejectors=frozenset((gate.name,)))
        return None

    def _look(self, pod: PodInfo, in_full: bool) -> Attempt | Decision:
        """Which nodes can take it; or the end of the cycle, if nobody can be asked or somebody failed."""
        if pod.terminating:
            return Decision(pod, message=f"skip schedule deleting pod: {pod.key}", error="skip")
        if self._columns.node_count == 0:
            return Decision(pod, message="no nodes available to schedule pods", error="nonodes", clears_nomination=True)
        results = self._cache.results_for(pod)
        attempt = begin(self.profile, self._columns, results, pod)
        look(attempt, self._sampling)
        if attempt.rejection is None and not attempt.asked:
            return attempt  # cached answers hold no failures
        return self._failure(attempt, in_full) or attempt

    def _failure(self, attempt: Attempt, in_full: bool) -> Decision | None:
        if attempt.rejection is not None:
            is_error = attempt.rejection.code is Code.ERROR
            return failed_decision(attempt.pod, attempt.rejection, "prefilter") if is_error else None
        failed = _failed_filter(attempt)
        return self._errored(attempt, failed, in_full) if failed is not None else None

    def _place(self, attempt: Attempt, in_full: bool, advice: Mapping[str, Int64s] = NO_ADVICE) -> Decision:
        if attempt.feasible_count == 1 and not in_full:
            # As kube-scheduler: where there is no choice nobody is asked for scores, and so nobody can fail at it.
            (row,) = self._numbers(attempt.feasible)
            return self._placed(attempt, row, 1)
        try:
            asked = cluster_scores(attempt)
            if isinstance(asked, Rejection):
                return self._failed_to_score(attempt, asked, "prescore", in_full)
            best = best_rows(attempt, asked, tuple(advice.values()))
            details = {**scores_in_full(attempt, asked), **advice} if in_full else {}
        except PluginError as error:
            return self._failed_to_score(attempt, error.rejection, error.step, in_full)
        placed = self._placed(attempt, self._chosen(best), attempt.feasible_count)
        if not in_full:
            return placed
        return replace(placed, refusals=self._refusals(attempt), scores=self._scores(attempt, details))

    def _chosen(self, best: Sequence[int] | Int64s) -> int:
        return int(best[0] if len(best) == 1 else self._tie_break(best))

    def _placed(self, attempt: Attempt, row: int, feasible_count: int) -> Decision:
        return Decision(
            attempt.pod,
            node_name=self._columns.node_names[row],
            feasible_count=feasible_count,
            node_names=attempt.node_names,
        )

    def _failed_to_score(self, attempt: Attempt, rejection: Rejection, step: str, in_full: bool) -> Decision:
        """PreScore or Score failed: the results of Filter are still reported."""
        failed = failed_decision(attempt.pod, rejection, step)
        refusals = self._refusals(attempt) if in_full else {}
        return replace(failed, node_names=attempt.node_names, refusals=refusals)

    def _refuse(self, attempt: Attempt, in_full: bool) -> Decision:
        diagnosis, ways_out = diagnose(attempt), WaysOut()
        for plugin in self.profile.post_filters:
            if ways_out.end_with(plugin, plugin.post_filter(attempt)):
                break
        return self._refused(attempt, diagnosis, ways_out, in_full)

    def _refused(self, attempt: Attempt, diagnosis: Diagnosis, ways_out: WaysOut, in_full: bool) -> Decision:
        return Decision(
            attempt.pod,
            rejection=attempt.rejection,
            node_names=attempt.node_names,
            message=failure_text(attempt, diagnosis.reasons, ", ".join(ways_out.messages)),
            preemption=ways_out.preemption,
            refusals=self._refusals(attempt) if in_full and attempt.rejection is None else {},
            clears_nomination=ways_out.clears_nomination or not self.profile.post_filters,
            rejectors=diagnosis.rejectors,
            pending=diagnosis.pending,
            follow_ups=tuple(ways_out.follow_ups),
        )

    def _errored(self, attempt: Attempt, refusal: Refusal, in_full: bool) -> Decision:
        rejection = Rejection(Code.ERROR, refusal.reasons, refusal.plugin)
        return Decision(
            attempt.pod,
            node_names=attempt.node_names,
            rejection=rejection,
            message=rejection.message,
            error="filter",
            clears_nomination=True,
            refusals=self._refusals(attempt) if in_full else {},
        )

    def _refusals(self, attempt: Attempt) -> dict[str, Refusal | None]:
        names = self._columns.node_names
        if attempt.pod.nominated_node:
            ask_everywhere(attempt)
        first = attempt.first
        rows = self._numbers(self._columns.live_rows)
        return {names[row]: attempt.refusal(row) for row in rows if first[row] != UNSEEN}

    def _scores(self, attempt: Attempt, details: dict[str, Int64s]) -> dict[str, dict[str, int]]:
        names = self._columns.node_names
        return {
            names[row]: {
                **{name: int(scores[index]) for name, scores in details.items()},
                "total": int(sum(scores[index] for scores in details.values())),
            }
            for index, row in enumerate(self._numbers(attempt.feasible))
        }

    def _numbers(self, rows: Rows) -> list[int]:
        numbers: list[int] = np.arange(self._columns.height)[rows].tolist()
        return numbers


class WaysOut:
    """What the PostFilters could do about it, one after the other."""

    __slots__ = ("clears_nomination", "follow_ups", "messages", "preemption")

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.preemption: PreemptionPlan | None = None
        self.clears_nomination = False
        self.follow_ups: list[FollowUp] = []

    def end_with(self, plugin: PostFilter, result: PostFilterResult) -> bool:
        """Takes over what a plugin answered; whether the others need not be asked any more."""
        self.clears_nomination = self.clears_nomination or result.nominated_node == ""
        if result.follow_up is not None:
            self.follow_ups.append(result.follow_up)
        if result.rejection is None:
            assert result.nominated_node, f"{plugin.name} succeeded without a node"
            self.preemption = PreemptionPlan(result.nominated_node, result.victims)
            self.messages = []
            return True
        if result.rejection.code is Code.UNSCHEDULABLE:
            self.messages += result.rejection.reasons
            return False
        self.messages = list(result.rejection.reasons)
        return True


def failed_decision(pod: PodInfo, rejection: Rejection, error: str) -> Decision:
    """A cycle that ends in an error: what went wrong is what the event says."""
    return Decision(pod, rejection=rejection, message=rejection.message, error=error, clears_nomination=True)


def _failed_filter(attempt: Attempt) -> Refusal | None:
    """The failure of a filter, if one failed; of several the one of the node whose name comes first."""
    if attempt.rejection is not None or not attempt.may_have_failed:
        return None
    failed: list[int] = np.flatnonzero(attempt.is_refused_with(Code.ERROR)).tolist()
    return attempt.refusal(min(failed, key=attempt.columns.node_names.__getitem__)) if failed else None
