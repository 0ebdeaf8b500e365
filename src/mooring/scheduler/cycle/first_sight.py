"""Deciding at first sight: a pod of a kind that nobody has seen, and may never see again.

Comes in   an attempt whose PreFilters were asked, and the states of the row-local plugins
Goes out   the rows with the highest total, and the feasible rows: the same as if everything had been kept

What is kept of a kind pays for its second pod. For the first it is enough to know which rows fit and which are best,
not who refuses the others; and nobody needs the score of a row that cannot win any more. Scores that read usage are
the dearest, and their part of a total is bounded. So all other scores are added up first, then usage is asked about
on the rows that lead, and last on those that could still catch up.

 1. Where no row fits, or anybody could fail, there is no answer here: why is not found out.
 2. Only for profiles whose row-local plugins are all ours: they score between 0 and 100, and nobody need check.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, length_of, places_of_max
from mooring.scheduler.cycle.attempt import Attempt
from mooring.scheduler.cycle.filtering import ask_cluster_filters
from mooring.scheduler.cycle.kept import Kept
from mooring.scheduler.cycle.scoring import cluster_scores, weighted
from mooring.scheduler.framework.plugin import SCORE_MAX, Reads
from mooring.scheduler.framework.status import Rejection


def best_at_first_sight(attempt: Attempt) -> Int64s | None:
    """The feasible rows with the highest total, ascending; the attempt's `feasible` rows are set. None: look properly.

    Raises `InvalidScoreError`.
    """
    if attempt.rejection is not None or not attempt.is_ordinary or any(use.can_fail for use in attempt.asked):
        return None
    fits = _fitting(attempt)
    if attempt.asked:
        fits = ask_cluster_filters(attempt, fits)
    count = int(np.count_nonzero(fits))
    if count == 0:
        return None
    attempt.feasible = slice(0, len(fits)) if count == len(fits) else fits.nonzero()[0]
    if count == 1:
        return fits.nonzero()[0]  # as everywhere: where there is no choice nobody is asked for scores
    total = _total_without_usage(attempt)
    return (
        _rows_at(attempt.feasible, _best_places(attempt.kept, attempt.feasible, total)) if total is not None else None
    )


def _fitting(attempt: Attempt) -> Bools:
    """Per row: whether all row-local filters let the pod through."""
    columns, kept = attempt.columns, attempt.kept
    rows = columns.live_rows
    fits = np.ones(length_of(rows), dtype=np.bool_)
    for use, state in (*kept.facts_filters, *kept.row_filters):
        answer = use.plugin.filter(state, rows)
        if np.count_nonzero(answer):
            fits &= answer == 0
    if isinstance(rows, slice):
        return fits
    everywhere = np.zeros(columns.height, dtype=np.bool_)
    everywhere[rows] = fits
    return everywhere


def _total_without_usage(attempt: Attempt) -> Int64s | None:
    """Per feasible row: everything but the scores that read usage. What is the same for all rows is left out."""
    kept, rows = attempt.kept, attempt.feasible
    asked = cluster_scores(attempt)
    if isinstance(asked, Rejection):
        return None
    total = np.zeros(length_of(rows), dtype=np.int64)
    for use, state in kept.score_states:
        if use.plugin.score_reads is Reads.FACTS:
            total += use.weight * use.plugin.score(state, rows)
    for use, state, _ in kept.raw_scores:
        raw = use.plugin.score(state, rows)
        if raw.min() != raw.max():
            total += use.weight * use.plugin.normalise(state, raw, rows)
    for use, state in asked:
        total += weighted(use, state, rows)
    return total


def _best_places(kept: Kept, rows: Rows, total: Int64s) -> Int64s:
    """Where among the rows the total is highest, with the scores that read usage."""
    leading = places_of_max(total)
    if not kept.row_scores:
        return leading
    with_usage = total[leading[0]] + _usage_scores(kept, _rows_at(rows, leading))
    catching_up = SCORE_MAX * sum(use.weight for use, _ in kept.row_scores)
    in_the_running = (total >= with_usage.max() - catching_up).nonzero()[0]
    if len(in_the_running) > len(leading):
        leading = in_the_running
        with_usage = total[leading] + _usage_scores(kept, _rows_at(rows, leading))
    return leading.take(places_of_max(with_usage))


def _usage_scores(kept: Kept, rows: Rows) -> Int64s:
    scores: Int64s | int = 0
    for use, state in kept.row_scores:
        scores = scores + use.weight * use.plugin.score(state, rows)
    assert not isinstance(scores, int), "nobody reads usage"
    return scores


def _rows_at(rows: Rows, places: Int64s) -> Int64s:
    return places if isinstance(rows, slice) else rows.take(places)
