"""The extension points: what a plugin need not write itself."""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import Filter, Proceed, Score
from mooring.scheduler.framework.status import Reason


class RowNumbers(Filter[int], Score[int]):
    """Refuses odd rows, and scores each with its number."""

    name = "RowNumbers"
    filter_reasons = (Reason("node(s) were odd"),)

    def pre_filter(self, pod: PodInfo) -> Proceed[int]:
        return Proceed(8)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> int:
        return 8

    def filter(self, state: int, rows: Rows) -> Int64s:
        return self.score(state, rows) % 2

    def score(self, state: int, rows: Rows) -> Int64s:
        return np.arange(state)[rows] if isinstance(rows, slice) else np.asarray(rows)


def test_an_answer_for_one_row_is_the_one_for_many() -> None:
    plugin = RowNumbers()
    assert [plugin.filter_row(8, row) for row in range(4)] == plugin.filter(8, slice(0, 4)).tolist() == [0, 1, 0, 1]
    assert [plugin.score_row(8, row) for row in range(4)] == plugin.score(8, slice(0, 4)).tolist() == [0, 1, 2, 3]


def test_scores_are_what_they_are_unless_the_plugin_normalises() -> None:
    scores = np.array([3, 1])
    assert RowNumbers().normalize(8, scores, np.array([0, 1])).tolist() == [3, 1]
    assert RowNumbers().reasons(8) == RowNumbers.filter_reasons
    assert RowNumbers().epoch() is None


def test_proceeding_names_all_nodes_unless_it_says_otherwise() -> None:
    assert Proceed(1).node_names is None
    assert length_of(slice(2, 5)) == 3
