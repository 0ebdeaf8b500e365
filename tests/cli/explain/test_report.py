"""Explanations as data: in the order in which people want them, and the same for both printers."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from mooring.cli.explain.report import Outcome, PodExplanation, Report, as_data
from mooring.cli.explain.text import as_lines
from mooring.cli.terminal import Terminal
from tests.builders import node, pod
from tests.cli.explain.test_decide import explained

SMALL = [node(f"small-{number}", cpu=1) for number in range(6)]
TAINTED = [node(f"tainted-{number}", cpu=8, taints=["gpu:NoSchedule"]) for number in range(3)]
FREE = [node("free-1", cpu=4), node("free-2", cpu=8), node("free-3", cpu=16), node("free-4", cpu=16)]


def placed(limit: int | None = None) -> PodExplanation:
    (explanation,) = explained(*FREE, *SMALL, pod("web", cpu=2), limit=limit)
    assert explanation.outcome is Outcome.PLACED
    return explanation


def refused(limit: int | None = None) -> PodExplanation:
    (explanation,) = explained(*SMALL, *TAINTED, pod("web", cpu=2), limit=limit)
    assert explanation.outcome is Outcome.UNSCHEDULABLE
    return explanation


def test_scores_come_best_first_and_of_equal_ones_the_chosen_first() -> None:
    explanation = placed()
    assert explanation.scores is not None
    totals = [row.total for row in explanation.scores.rows]
    assert totals == sorted(totals, reverse=True)
    assert explanation.scores.rows[0].node == explanation.node
    assert explanation.scores.tied_count == totals.count(totals[0])
    assert (len(totals), explanation.feasible_count, explanation.node_count) == (4, 4, 10)


def test_a_total_is_the_sum_of_what_the_plugins_gave() -> None:
    scores = placed().scores
    assert scores is not None
    for row in scores.rows:
        assert row.total == sum(row.by_plugin.values())
        assert {plugin: row.by_plugin[plugin] for plugin in scores.same_for_all} == scores.same_for_all
    for plugin in scores.differing:
        assert len({row.by_plugin[plugin] for row in scores.rows}) > 1
    assert not set(scores.differing) & set(scores.same_for_all)


def test_obstacles_come_nearest_first() -> None:
    explanation = refused()
    counts = [len(each.obstacles) for each in explanation.nearest]
    assert counts == sorted(counts)
    assert all(counts)
    assert {each.node for each in explanation.nearest} <= {view.metadata.name for view in (*SMALL, *TAINTED)}


@pytest.mark.parametrize("limit", [1, 2])
def test_at_most_as_many_nodes_as_were_asked_for_and_rejections_in_full(limit: int) -> None:
    scores = placed(limit).scores
    assert scores is not None
    assert len(scores.rows) == limit
    explanation = refused(limit)
    assert len(explanation.nearest) == limit
    assert explanation.rejections == refused().rejections


def test_rejections_are_complete_and_grouped_by_what_was_said() -> None:
    explanation = refused()
    said = {(group.plugin, group.reasons): group.nodes for group in explanation.rejections}
    assert {key: len(nodes) for key, nodes in said.items()} == {
        ("NodeResourcesFit", ("Insufficient cpu",)): 6,
        ("TaintToleration", ("node(s) had untolerated taint(s)",)): 3,
    }
    assert list(explanation.reasons.values()) == [6, 3], "the most frequent first"
    everybody = [name for nodes in said.values() for name in nodes]
    assert sorted(everybody) == sorted(view.metadata.name for view in (*SMALL, *TAINTED)), "each node once"


@pytest.mark.parametrize("outcome", Outcome, ids=lambda outcome: outcome.value)
def test_every_outcome_can_be_printed_by_both_printers(outcome: Outcome) -> None:
    explanation = PodExplanation("team/web", outcome, node="n1" if outcome is Outcome.RUNNING else None, message="so")
    report = Report((explanation,), node_count=1, placed_count=0, pending_count=1, seed=1, decided_at_s=0.0)
    pods = as_data(report)["pods"]
    assert isinstance(pods, list)
    assert [entry["outcome"] for entry in pods] == [outcome.value]
    assert any("team/web" in line for line in as_lines(report, Terminal(100)))


def test_nobody_changes_an_explanation() -> None:
    with pytest.raises(FrozenInstanceError):
        placed().node = "elsewhere"  # type: ignore[misc]


def report_of(*outcomes: Outcome) -> Report:
    pods = tuple(PodExplanation("a/b", outcome) for outcome in outcomes)
    return Report(pods, node_count=1, placed_count=0, pending_count=len(pods), seed=1, decided_at_s=0.0)


@pytest.mark.parametrize(
    ("outcomes", "nowhere"),
    [
        pytest.param([], False, id="no pods"),
        pytest.param(
            [Outcome.PLACED, Outcome.GATED, Outcome.LEFT_ALONE, Outcome.RUNNING], False, id="all accounted for"
        ),
        pytest.param([Outcome.PLACED, Outcome.UNSCHEDULABLE], True, id="one goes nowhere"),
        pytest.param([Outcome.ERROR], True, id="one could not be decided"),
    ],
)
def test_whether_anything_goes_nowhere(outcomes: list[Outcome], nowhere: bool) -> None:
    assert report_of(*outcomes).has_unplaced_pods is nowhere


def test_outcomes_are_counted() -> None:
    assert report_of(Outcome.PLACED, Outcome.PLACED, Outcome.GATED).outcomes() == {Outcome.PLACED: 2, Outcome.GATED: 1}
