"""Score: the totals of the feasible rows, the rows with the highest one, and the scores of the best nodes.

Input: an attempt, after Filter. Output: a `Ranking`, of which the cycle selects a row.

1. The total of a row is the cached total of the row-local plugins plus the scores of the cluster-scoped ones.
   Normalizing depends on which rows are feasible, so cached totals are used only if the feasible rows are those that
   the row-local filters let through, or if no cached score varies between nodes.
2. Totals leave out scores that are equal on all rows. The scores of the best nodes contain them.
3. The scores of the best nodes are read from what ranked the rows: no cluster-scoped plugin is called again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of, places_of_max
from mooring.scheduler.cycle.attempt import PodAttempt
from mooring.scheduler.cycle.decision import NodeScores
from mooring.scheduler.cycle.result_cache import REJECTED
from mooring.scheduler.framework.guard import PluginError
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.framework.profile import ScoreUse
from mooring.scheduler.framework.status import Status

ClusterScore: TypeAlias = tuple[ScoreUse, Any]


def run_pre_scores(attempt: PodAttempt) -> list[ClusterScore] | Status:
    """Run PreScore of the cluster-scoped plugins. Returns those that did not skip, with their state."""
    if attempt.results.states.pre_score_status is not None:
        return _as_error(attempt.results.states.pre_score_status)
    found: list[ClusterScore] = []
    for use in attempt.profile.scores:
        if use.is_row_local or not use.plugin.has_score(attempt.pod):
            continue
        state = use.plugin.pre_score(attempt.pod, attempt.feasible)
        if state is SKIP:
            continue
        if isinstance(state, Status):
            return _as_error(state.with_plugin(use.plugin.name))
        found.append((use, state))
    return found


class Ranking(NamedTuple):
    """The feasible rows in order of their totals."""

    best: Sequence[int] | Int64s
    """The rows with the highest total, ascending."""
    rows: Rows
    """The rows that `total` and `parts` are about, ascending."""
    total: Int64s | None
    """Per row; None: the cached totals of the rows that fit."""
    parts: Sequence[tuple[str, Int64s]]
    """Per plugin and row: the scores that are not row-local, or that were normalized over these rows."""


def rank(attempt: PodAttempt, cluster_scores: list[ClusterScore], extender_scores: Mapping[str, Int64s]) -> Ranking:
    """`extender_scores` holds the scores of extenders by name."""
    results = attempt.results
    is_as_cached = attempt.fits_as_cached or not results.has_varying_scores
    if is_as_cached and not cluster_scores and not extender_scores:
        everywhere = slice(0, attempt.columns.height)
        if attempt.fits_as_cached:
            return Ranking(results.best_rows(), everywhere, None, results.normalized_parts)
        if attempt.fits is not None:
            total = np.where(attempt.fits, results.totals(), REJECTED)
            return Ranking(places_of_max(total), everywhere, total, ())
    rows = attempt.feasible
    parts: list[tuple[str, Int64s]] = []
    if is_as_cached:
        total = results.totals()[rows]
        parts += [(name, scores[rows]) for name, scores in results.normalized_parts]
    else:
        total = results.total_over(rows, parts)
    for use, state in cluster_scores:
        scores = weighted(use, state, rows)
        parts.append((use.plugin.name, scores))
        total = total + scores
    for name, scores in extender_scores.items():
        parts.append((name, scores))
        total = total + scores
    best = places_of_max(total)
    return Ranking(best if isinstance(rows, slice) else rows.take(best), rows, total, parts)


def best_nodes(attempt: PodAttempt, ranking: Ranking, selected: int, count: int) -> tuple[NodeScores, ...]:
    """The scores of at most `count` nodes: the selected one first, then by total."""
    rows = _best_few(attempt, ranking, count)
    if selected in rows:
        rows.remove(selected)
    elif len(rows) == count:
        rows.pop()
    rows.insert(0, selected)
    row_scores = attempt.results.row_scores
    try:
        if not ranking.parts:
            return tuple([row_scores(row) for row in rows])
        return tuple([_with_parts(row_scores(row), ranking, row) for row in rows])
    except PluginError:
        return ()  # a score that decides nothing, because it is equal on all rows, may fail here


def _best_few(attempt: PodAttempt, ranking: Ranking, count: int) -> list[int]:
    best, total = ranking.best, ranking.total
    if len(best) >= count:
        return best[:count].tolist() if isinstance(best, np.ndarray) else [*islice(best, count)]
    if total is None:
        total = np.where(attempt.results.fits, attempt.results.totals(), REJECTED)
    count = min(count, attempt.feasible_count, len(total))
    places = np.argpartition(total, len(total) - count)[len(total) - count :]
    places = places[np.lexsort((places, -total[places]))]
    rows: list[int] = (places if isinstance(ranking.rows, slice) else ranking.rows[places]).tolist()
    return rows


def _with_parts(cached: NodeScores, ranking: Ranking, row: int) -> NodeScores:
    rows = ranking.rows
    place = row - (rows.start or 0) if isinstance(rows, slice) else int(np.searchsorted(rows, row))
    plugins = (*cached.plugins, *[name for name, _ in ranking.parts])
    values = [part.item(place) for _, part in ranking.parts]
    return NodeScores(cached.node_name, plugins, (*cached.values, *values))


def score_details(attempt: PodAttempt, cluster_scores: list[ClusterScore]) -> dict[str, Int64s]:
    """Per plugin: its normalized and weighted score of each feasible row, in the profile's order."""
    rows = attempt.feasible
    states: dict[str, Any] = {use.plugin.name: state for use, state in attempt.results.states.scores}
    states |= {use.plugin.name: state for use, state in cluster_scores}
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
