"""Scoring: which of the feasible nodes is best.

Comes in   an attempt with feasible rows
Goes out   the best rows; and, when asked in full, what each plugin contributed to each feasible row

Scores of row-local plugins are kept with the signature; a total is those plus what the plugins say that read the
cluster. Which rows a plugin normalises over decides its numbers, so normalised scores are kept only while the
feasible rows are just the ones that the row-local filters let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of, places_of_max
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.result_cache import REJECTED
from mooring.scheduler.framework.plugin import EVEN, SKIP
from mooring.scheduler.framework.profile import ScoreUse
from mooring.scheduler.framework.status import Rejection, failure

ClusterScore: TypeAlias = tuple[ScoreUse, Any]


def cluster_scores(attempt: Attempt) -> list[ClusterScore] | Rejection:
    """The scores that must be asked for this pod alone, with their state: those whose PreScore did not skip."""
    if attempt.results.states.pre_score_rejection is not None:
        return _as_error(attempt.results.states.pre_score_rejection)
    found: list[ClusterScore] = []
    for use in attempt.profile.scores:
        if use.is_row_local:
            continue
        pod, feasible = attempt.pod, attempt.feasible
        state = use.pre_score.pre_score(pod, feasible) if use.pre_score else use.plugin.prepare_score(pod)
        if state is SKIP or state is EVEN:
            continue
        if isinstance(state, Rejection):
            return _as_error(replace(state, plugin=use.plugin.name))
        found.append((use, state))
    return found


def best_rows(attempt: Attempt, asked: list[ClusterScore], advice: Sequence[Int64s] = ()) -> Sequence[int] | Int64s:
    """The feasible rows with the highest total, ascending. What is the same for all rows is left out of the sums.

    `advice` is what others than plugins add to the score of each feasible row.
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


def scores_in_full(attempt: Attempt, asked: list[ClusterScore]) -> dict[str, Int64s]:
    """What each plugin contributes to each feasible row, normalised and weighted, in the profile's order."""
    rows = attempt.feasible
    states: dict[str, Any] = {use.plugin.name: state for use, state in attempt.results.states.scores}
    states |= {use.plugin.name: state for use, state in asked}
    return {
        use.plugin.name: weighted(use, states[use.plugin.name], rows)
        if use.plugin.name in states
        else np.zeros(length_of(rows), dtype=np.int64)
        for use in attempt.profile.scores
        if use.plugin.name in states or _is_even(use, attempt)
    }


def _is_even(use: ScoreUse, attempt: Attempt) -> bool:
    return use.pre_score is None and not use.is_row_local and use.plugin.prepare_score(attempt.pod) is EVEN


def weighted(use: ScoreUse, state: Any, rows: Rows) -> Int64s:
    scores = use.plugin.score(state, rows)
    if use.plugin.normalizes:
        scores = use.plugin.normalize(state, scores, rows)
    return scores if use.weight == 1 else use.weight * scores


def _as_error(rejection: Rejection) -> Rejection:
    return failure(f'running PreScore plugin "{rejection.plugin}": {rejection.message}')
