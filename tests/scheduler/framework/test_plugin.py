"""Defaults of the extension points, obstacles, and Status."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.catalogue import BUILT_IN
from mooring.scheduler.framework.obstacle import HARDNESS, ExplainContext, ObstacleKind
from mooring.scheduler.framework.plugin import Filter, Proceed, Score, by_table, scaled_to_best
from mooring.scheduler.framework.status import Code, Reason, Status, code_of, status_of
from tests.builders import node, pod
from tests.scheduler.harness import engine_of


class RowNumbers(Filter[int], Score[int]):
    """Rejects odd rows, and scores each with its number."""

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


def test_the_result_of_one_row_equals_that_of_many() -> None:
    plugin = RowNumbers()
    assert [plugin.filter_row(8, row) for row in range(4)] == plugin.filter(8, slice(0, 4)).tolist() == [0, 1, 0, 1]
    assert [plugin.score_row(8, row) for row in range(4)] == plugin.score(8, slice(0, 4)).tolist() == [0, 1, 2, 3]


def test_scores_are_what_they_are_unless_the_plugin_normalises() -> None:
    scores = np.array([3, 1])
    assert RowNumbers().normalize(8, scores, np.array([0, 1])).tolist() == [3, 1]
    assert RowNumbers().reasons(8) == RowNumbers.filter_reasons
    assert RowNumbers().epoch() is None


def test_proceed_allows_all_nodes_by_default() -> None:
    assert Proceed(1).node_names is None
    assert length_of(slice(2, 5)) == 3


@pytest.mark.parametrize(
    ("scores", "reverse", "normalised"),
    [
        pytest.param([0, 5, 10], False, [0, 50, 100], id="the best gets 100"),
        pytest.param([0, 5, 10], True, [100, 50, 0], id="reversed it gets 0"),
        pytest.param([1, 2, 3], False, [33, 66, 100], id="shares are cut off, not rounded"),
        pytest.param([1, 2, 3], True, [67, 34, 0], id="and so what is left of them is not"),
        pytest.param([0, 0], False, [0, 0], id="nobody has anything: 0"),
        pytest.param([0, 0], True, [100, 100], id="nobody has anything, reversed: 100"),
        pytest.param([7], False, [100], id="a single node is the best"),
        pytest.param([], True, [], id="no nodes"),
    ],
)
def test_scaled_to_the_best(scores: list[int], reverse: bool, normalised: list[int]) -> None:
    assert scaled_to_best(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == normalised


@given(st.lists(st.integers(0, 10**6), min_size=1), st.booleans())
def test_every_score_is_scaled_by_the_rule_for_one_node(scores: list[int], reverse: bool) -> None:
    best = max(scores)

    def rule(score: int) -> int:
        share = score * 100 // best if best else 0
        return 100 - share if reverse else share

    assert scaled_to_best(np.array(scores), reverse=reverse).tolist() == [rule(score) for score in scores]


@given(st.lists(st.integers(-20, 20), min_size=1))
def test_a_table_gives_what_the_formula_gives(scores: list[int]) -> None:
    values = np.array(scores)
    looked_up = by_table(values, lambda value: value * value - 3, min(scores), max(scores))
    assert looked_up.tolist() == [score * score - 3 for score in scores]


# --- Obstacles: every filter names its kind, and every kind has a size -----------------------------------------------


def test_a_toleration_is_easier_to_add_than_a_label() -> None:
    assert HARDNESS[ObstacleKind.CORDON] < HARDNESS[ObstacleKind.TAINT] < HARDNESS[ObstacleKind.NODE_LABEL]


def test_every_kind_has_a_hardness() -> None:
    assert set(HARDNESS) == set(ObstacleKind)


def test_built_in_filters_name_their_kind() -> None:
    filters = [plugin for plugin in BUILT_IN if issubclass(plugin, Filter)]
    others = [plugin.name for plugin in filters if plugin.obstacle_kind is ObstacleKind.OTHER]
    assert sorted(others) == ["NodeLabel", "NodeName", "ServiceAffinity"]


def test_nominated_pods_of_a_row() -> None:
    engine = engine_of(node("n1"), pod("nominated", nominated="n1"))
    nominated = tuple(engine.columns.nominations.on("n1"))
    context = ExplainContext(engine.record(pod()), {0: nominated})
    assert [nominated.name for nominated in context.nominated_to(0)] == ["nominated"]
    assert context.nominated_to(1) == ()


# --- Status: made of reason bits, with the most severe code among the reasons ----------------------------------------


CPU, MEMORY = Reason("Insufficient cpu"), Reason("Insufficient memory")
NEVER, SILENT = Reason("node(s) were unschedulable", Code.UNRESOLVABLE), Reason(None, Code.UNRESOLVABLE)
BROKEN, WORSE = Reason("looking up x: not found", Code.ERROR), Reason("out of luck", Code.ERROR)


@pytest.mark.parametrize(
    ("bits", "reasons", "code", "said"),
    [
        pytest.param(0b01, [CPU, MEMORY], Code.UNSCHEDULABLE, ["Insufficient cpu"], id="one bit is one reason"),
        pytest.param(
            0b11,
            [CPU, MEMORY],
            Code.UNSCHEDULABLE,
            ["Insufficient cpu", "Insufficient memory"],
            id="several are in the order of the reasons",
        ),
        pytest.param(
            0b101,
            [CPU, MEMORY, SILENT],
            Code.UNRESOLVABLE,
            ["Insufficient cpu"],
            id="a reason without a message only raises the code",
        ),
        pytest.param(
            0b11,
            [CPU, NEVER],
            Code.UNRESOLVABLE,
            ["Insufficient cpu", "node(s) were unschedulable"],
            id="the most severe code counts",
        ),
        pytest.param(
            0b1,
            [BROKEN],
            Code.ERROR,
            ['running "Fit" filter plugin: looking up x: not found'],
            id="an error names the plugin",
        ),
        pytest.param(
            0b11,
            [BROKEN, WORSE],
            Code.ERROR,
            ['running "Fit" filter plugin: looking up x: not found, out of luck'],
            id="several errors are joined",
        ),
        pytest.param(1 << 61, [CPU] * 61 + [MEMORY], Code.UNSCHEDULABLE, ["Insufficient memory"], id="the last bit"),
    ],
)
def test_reason_bits_as_a_status(bits: int, reasons: list[Reason], code: Code, said: list[str]) -> None:
    assert status_of("Fit", bits, reasons) == Status(code, tuple(said), "Fit")
    assert code_of(bits, reasons) is code


def test_no_bits_are_a_success() -> None:
    assert code_of(0, [CPU]) is Code.SUCCESS
    with pytest.raises(AssertionError, match="Fit returned 0b10, but has only 1 reasons"):
        status_of("Fit", 0b10, [CPU])


def test_codes_are_ordered_from_harmless_to_severe() -> None:
    said = [Code.SUCCESS, Code.SKIP, Code.WAIT, Code.PENDING, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR]
    assert sorted(Code, key=lambda code: code.severity) == said


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.unschedulable("no", "never"), Code.UNSCHEDULABLE),
        (Status.unresolvable("no", "never"), Code.UNRESOLVABLE),
        (Status.error("no", "never"), Code.ERROR),
    ],
)
def test_a_message_joins_the_reasons(status: Status, code: Code) -> None:
    assert (status.code, status.message, status.plugin) == (code, "no, never", "")
