"""The scheduling cycle: one pod, one decision, without waiting.

Comes in   a pending pod
Goes out   a `Decision`; nothing is changed yet, `Engine.assume` does that

    PreEnqueue -> PreFilter -> Filter -> PreScore -> Score -> select
                        \\          \\
                         +----------+-> PostFilter (preemption) -> message

 1. The cycle is a function of columns, pod and the die that breaks ties.
 2. A decision made in full takes the same steps as one that is not, and only writes more of them down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.decision import Decision, PreemptionPlan
from mooring.scheduler.cycle.diagnosis import count_reasons, failure_text
from mooring.scheduler.cycle.filtering import ask_everywhere, find_feasible
from mooring.scheduler.cycle.kept import Keeper
from mooring.scheduler.cycle.scoring import best_rows, cluster_scores, scores_in_full
from mooring.scheduler.framework.plugin import InvalidScoreError
from mooring.scheduler.framework.profile import FilterUse, Profile
from mooring.scheduler.framework.status import Code, Refusal, Rejection, failure

TieBreak = Callable[[Sequence[int]], int]
"""Chooses one of several rows that are equally good."""


class Cycle:
    """Decides for the pods of one profile."""

    def __init__(self, profile: Profile, columns: Columns, tie_break: TieBreak) -> None:
        self.profile = profile
        self._columns = columns
        self._tie_break = tie_break
        self._keeper = Keeper(profile, columns)

    def decide(self, pod: PodRecord, *, in_full: bool = False) -> Decision:
        """Where does this pod go?"""
        for gate in self.profile.pre_enqueue:
            rejection = gate.pre_enqueue(pod)
            if rejection is not None:
                return Decision(pod, rejection=Rejection(rejection.code, rejection.reasons, gate.name))
        if pod.terminating:
            return Decision(pod, message=f"skip schedule deleting pod: {pod.key}", error="skip")
        if self._columns.node_count == 0:
            return Decision(pod, message="no nodes available to schedule pods", error="nonodes", clears_nomination=True)
        try:
            kept = self._keeper.kept(pod)
        except InvalidScoreError as error:
            return _failed(pod, failure(str(error)), "score")
        attempt = find_feasible(self.profile, self._columns, kept, pod)
        if attempt.rejection is not None and attempt.rejection.code is Code.ERROR:
            return _failed(pod, attempt.rejection, "prefilter")
        failed = _failed_filter(attempt)
        if failed is not None:
            return self._errored(attempt, failed, in_full)
        if attempt.rejection is None and length_of(attempt.feasible):
            return self._place(attempt, in_full)
        return self._refuse(attempt, in_full)

    def _place(self, attempt: Attempt, in_full: bool) -> Decision:
        asked = cluster_scores(attempt)
        if isinstance(asked, Rejection):
            return _failed(attempt.pod, asked, "prescore")
        try:
            best = best_rows(attempt, self._keeper, asked)
            details = scores_in_full(attempt, asked) if in_full else {}
        except InvalidScoreError as error:
            return _failed(attempt.pod, failure(str(error)), "score")
        row = best[0] if len(best) == 1 else self._tie_break(best)
        return Decision(
            attempt.pod,
            node_name=self._columns.node_names[row],
            feasible_count=length_of(attempt.feasible),
            node_names=attempt.node_names,
            refusals=self._refusals(attempt) if in_full else {},
            scores=self._scores(attempt, details) if in_full else {},
        )

    def _refuse(self, attempt: Attempt, in_full: bool) -> Decision:
        reasons = count_reasons(attempt) if attempt.rejection is None else {}
        messages: list[str] = []
        preemption, clears_nomination = None, not self.profile.post_filters
        for plugin in self.profile.post_filters:
            result = plugin.post_filter(attempt)
            clears_nomination = clears_nomination or result.nominated_node == ""
            if result.rejection is None:
                assert result.nominated_node, f"{plugin.name} succeeded without a node"
                preemption = PreemptionPlan(result.nominated_node, result.victims)
                messages = []
                break
            if result.rejection.code is Code.UNSCHEDULABLE:
                messages += result.rejection.reasons
                continue
            messages = list(result.rejection.reasons)
            break
        return Decision(
            attempt.pod,
            rejection=attempt.rejection,
            node_names=attempt.node_names,
            message=failure_text(attempt, reasons, ", ".join(messages)),
            preemption=preemption,
            refusals=self._refusals(attempt) if in_full and attempt.rejection is None else {},
            clears_nomination=clears_nomination,
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
        return {names[row]: attempt.refusal(row) for row in self._numbers(self._columns.live_rows)}

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


def _failed(pod: PodRecord, rejection: Rejection, error: str) -> Decision:
    """A cycle that ends in an error: what went wrong is what the event says."""
    return Decision(pod, rejection=rejection, message=rejection.message, error=error, clears_nomination=True)


def _failed_filter(attempt: Attempt) -> Refusal | None:
    """The failure of a filter, if one failed; of several the one of the node whose name comes first."""
    may_have_failed = any(use.can_fail and _can_say_error(attempt, use) for use in attempt.asked)
    if attempt.rejection is not None or not may_have_failed:
        return None
    failed: list[int] = np.flatnonzero(attempt.is_refused_with(Code.ERROR)).tolist()
    return attempt.refusal(min(failed, key=attempt.columns.node_names.__getitem__)) if failed else None


def _can_say_error(attempt: Attempt, use: FilterUse) -> bool:
    return any(reason.code is Code.ERROR for reason in attempt.reasons_of(use))
