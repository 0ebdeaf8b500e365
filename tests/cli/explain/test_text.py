"""The width of the text with any names. `screens/` has the text itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cli.explain.report import (
    NodeObstacles,
    NodesRejecting,
    Outcome,
    PodExplanation,
    Preemption,
    Report,
    ScoreRow,
    Scores,
    Victim,
)
from mooring.cli.explain.text import HEADINGS, as_lines, heading_of
from mooring.cli.terminal import Terminal
from mooring.scheduler.catalogue import BUILT_IN
from mooring.scheduler.framework.obstacle import Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import Score

NAMES = st.text("abc-.1", min_size=1, max_size=90)
PLUGIN_NAMES = st.lists(st.sampled_from([*HEADINGS, "AnEspeciallyLongNameOfAPlugin"]), unique=True, max_size=10)


def report(*pods: PodExplanation) -> Report:
    return Report(pods, node_count=9, placed_count=3, pending_count=len(pods), seed=1, decided_at_s=0.0)


@st.composite
def placed(draw: st.DrawFn) -> PodExplanation:
    plugins = draw(PLUGIN_NAMES)
    nodes = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    rows = tuple(
        ScoreRow(node, draw(st.integers(0, 900)), {plugin: draw(st.integers(0, 300)) for plugin in plugins})
        for node in nodes
    )
    scores = Scores(rows, {"ImageLocality": 3}, tuple(plugins), draw(st.integers(1, 2)))
    return PodExplanation(
        draw(NAMES), Outcome.PLACED, draw(st.integers(-9, 2_000_000_000)), node=nodes[0], node_count=9,
        feasible_count=5, scores=scores, reasons={"node(s) were unschedulable": 4},
    )  # fmt: skip


@st.composite
def unschedulable(draw: st.DrawFn) -> PodExplanation:
    nodes = tuple(draw(st.lists(NAMES, min_size=1, max_size=9, unique=True)))
    reason = draw(st.text("abc ", min_size=1, max_size=70).map(str.strip).filter(bool))
    victims = tuple(Victim(name, draw(st.integers(-9, 99)), None, ()) for name in nodes[:3])
    return PodExplanation(
        draw(NAMES), Outcome.UNSCHEDULABLE, node_count=9, message="0/9 nodes are available: no.",
        rejections=(NodesRejecting("P", "Unschedulable", (reason,), nodes),), reasons={reason: len(nodes)},
        nearest=tuple(NodeObstacles(name, (Obstacle("P", ObstacleKind.OTHER, "something else"),)) for name in nodes),
        preemption=Preemption(nodes[0], victims),
    )  # fmt: skip


@given(st.one_of(placed(), unschedulable()))
def test_a_line_is_longer_than_the_terminal_only_for_a_long_name(pod: PodExplanation) -> None:
    too_long = [line for line in as_lines(report(pod), Terminal(80)) if len(line) > 80]
    assert [line for line in too_long if max(map(len, line.split())) <= 40] == []


@given(st.one_of(placed(), unschedulable()))
def test_names_are_never_cut(pod: PodExplanation) -> None:
    text = "\n".join(as_lines(report(pod), Terminal(80)))
    assert pod.pod in text
    assert pod.node is None or pod.node in text
    assert all(entry.node in text for entry in pod.nearest)
    assert all(victim.pod in text for victim in pod.preemption.victims) if pod.preemption else True


@given(st.one_of(placed(), unschedulable()))
def test_colours_change_nothing_but_colours(pod: PodExplanation) -> None:
    coloured = "\n".join(as_lines(report(pod), Terminal(80, coloured=True)))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == "\n".join(as_lines(report(pod), Terminal(80)))


@given(placed())
def test_columns_that_are_left_out_are_summed_up(pod: PodExplanation) -> None:
    assert pod.scores is not None
    lines = list(as_lines(report(pod), Terminal(80)))
    if pod.scores.tied_count == pod.feasible_count:
        return
    at = next(number for number, line in enumerate(lines) if line.startswith("    node"))
    following = iter(lines[at + 1 :])
    for row in pod.scores.rows:
        _, *cells = next(following)[4:].split()
        numbers = [int(cell) for cell in cells or next(following).split()]  # a long name has a line to itself
        assert (numbers[0], sum(numbers[1:])) == (row.total, sum(row.by_plugin.values()))


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        pytest.param({}, 1, id="a replica for the same reasons"),
        pytest.param({"message": "0/9 nodes are available: other."}, 4, id="for another reason"),
        pytest.param({"priority": 1}, 4, id="of another priority"),
    ],
)
def test_a_replica_that_goes_nowhere_gets_one_line(change: dict[str, object], lines: int) -> None:
    first = PodExplanation(
        "default/a", Outcome.UNSCHEDULABLE, message="0/9 nodes are available: no.", node_count=9,
        everywhere=(Obstacle("P", ObstacleKind.OTHER, "x"),),
    )  # fmt: skip
    second = replace(first, pod="default/b", **change)  # type: ignore[arg-type]
    one = list(as_lines(report(first), Terminal(80)))
    both = list(as_lines(report(first, second), Terminal(80)))
    assert len(both) - len(one) - 2 == lines  # two lines more at the end: a blank one and the sum


def test_every_plugin_that_scores_has_a_short_name() -> None:
    scoring = [plugin.name for plugin in BUILT_IN if issubclass(plugin, Score)]
    assert [name for name in scoring if name not in HEADINGS] == []
    assert heading_of("MyVeryOwnPluginForScores") == "MyVeryOwnPl…"
