"""Score the feasible nodes and find the best: PreScore, Score and NormalizeScore.

Takes an `Attempt` with feasible rows; returns the best rows and, in full, what each plugin contributes to each row.

The total of a row is the cached total of the row-local plugins plus the scores of the cluster-scoped ones.
Normalizing depends on which rows are feasible, so cached totals are used only if the feasible rows are those that the
row-local filters let through, or if no cached score varies between nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of, places_of_max
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.result_cache import REJECTED
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.framework.profile import ScoreUse
from mooring.scheduler.framework.status import Status

ClusterScore: TypeAlias = tuple[ScoreUse, Any]


def run_pre_scores(attempt: Attempt) -> list[ClusterScore] | Status:
    """Run PreScore of the cluster-scoped plugins. Returns those that did not skip, with their state."""
    if attempt.results.states.pre_score_status is not None:
        return _as_error(attempt.results.states.pre_score_status)
    found: list[ClusterScore] = []
    for use in attempt.profile.scores:
        if use.is_row_local:
            continue
        state = use.plugin.pre_score(attempt.pod, attempt.feasible)
        if state is SKIP:
            continue
        if isinstance(state, Status):
            return _as_error(state.with_plugin(use.plugin.name))
        found.append((use, state))
    return found


def best_rows(attempt: Attempt, asked: list[ClusterScore], advice: Sequence[Int64s] = ()) -> Sequence[int] | Int64s:
    """The feasible rows with the highest total, ascending. Scores that are equal on all rows are left out.

    `advice` holds the scores of extenders, one array per extender.
    """
    results = attempt.results
    is_as_cached = attempt.fits_as_cached or not results.has_varying_scores
    if is_as_cached and not asked and not advice:
        if attempt.fits_as_cached:
            return results.best_rows()
        if attempt.fits is not None:
            return places_of_max(np.where(attempt.fits, results.totals(), REJECTED))
    rows = attempt.feasible
    total = results.totals()[rows] if is_as_cached else results.total_over(rows)
    for use, state in asked:
        total = total + weighted(use, state, rows)
    for scores in advice:
        total = total + scores
    best = places_of_max(total)
    return best if isinstance(rows, slice) else rows.take(best)


def score_details(attempt: Attempt, asked: list[ClusterScore]) -> dict[str, Int64s]:
    """Per plugin: its normalized and weighted score of each feasible row, in the profile's order."""
    rows = attempt.feasible
    states: dict[str, Any] = {use.plugin.name: state for use, state in attempt.results.states.scores}
    states |= {use.plugin.name: state for use, state in asked}
    return {
        use.plugin.name: weighted(use, states[use.plugin.name], rows)
        if use.plugin.name in states
        else np.zeros(length_of(rows), dtype=np.int64)
        for use in attempt.profile.scores
        if use.plugin.name in states or not use.has_pre_score
    }


def weighted(use: ScoreUse, state: Any, rows: Rows) -> Int64s:
    scores = use.plugin.score(state, rows)
    if use.plugin.normalizes:
        scores = use.plugin.normalize(state, scores, rows)
    return scores if use.weight == 1 else use.weight * scores


def _as_error(status: Status) -> Status:
    return Status.error(f'running PreScore plugin "{status.plugin}": {status.message}')
