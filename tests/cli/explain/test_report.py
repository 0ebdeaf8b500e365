"""The report of explain: order and limits, and its JSON and YAML."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError

import pytest
import yaml

from mooring.api.kinds import kind_of_view
from mooring.cli.cluster_source.live import KINDS_READ
from mooring.cli.explain.command import explain
from mooring.cli.explain.report import Outcome, PodExplanation, Preemption, Report, Victim, as_data, as_json, as_yaml
from mooring.cli.explain.text import HEADINGS, as_lines
from mooring.cli.terminal import Terminal
from mooring.scheduler.framework.obstacle import Obstacle, ObstacleKind
from tests.builders import node, pod
from tests.cli.explain.test_run import explanations
from tests.cli.screens import PROMPT, ROOT, command_of, run, screen_of

SMALL = [node(f"small-{number}", cpu=1) for number in range(6)]
TAINTED = [node(f"tainted-{number}", cpu=8, taints=["gpu:NoSchedule"]) for number in range(3)]
FREE = [node("free-1", cpu=4), node("free-2", cpu=8), node("free-3", cpu=16), node("free-4", cpu=16)]


def placed(limit: int | None = None) -> PodExplanation:
    (explanation,) = explanations(*FREE, *SMALL, pod("web", cpu=2), limit=limit)
    assert explanation.outcome is Outcome.PLACED
    return explanation


def refused(limit: int | None = None) -> PodExplanation:
    (explanation,) = explanations(*SMALL, *TAINTED, pod("web", cpu=2), limit=limit)
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


def test_an_explanation_is_immutable() -> None:
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


def written(pod: PodExplanation) -> dict[str, object]:
    data = as_data(Report((pod,), node_count=2, placed_count=0, pending_count=1, seed=3, decided_at_s=0.0))
    assert {key: data[key] for key in ("version", "seed", "nodes")} == {"version": 1, "seed": 3, "nodes": 2}
    pods = data["pods"]
    assert isinstance(pods, list)
    entry: dict[str, object] = pods[0]
    return entry


@pytest.mark.parametrize(
    ("pod", "fields"),
    [
        pytest.param(PodExplanation("a/b", Outcome.GATED, message="x"), ["message"], id="gated"),
        pytest.param(PodExplanation("a/b", Outcome.RUNNING, node="n1"), ["node"], id="running"),
        pytest.param(
            PodExplanation("a/b", Outcome.UNSCHEDULABLE, message="x", preemption=Preemption(why_not="no")),
            ["message", "preemption"],
            id="unschedulable",
        ),
        pytest.param(
            PodExplanation("a/b", Outcome.UNSCHEDULABLE, everywhere=(Obstacle("P", ObstacleKind.OTHER, "x"),)),
            ["obstaclesEverywhere", "otherwiseFeasible"],
            id="whatever the node",
        ),
    ],
)
def test_fields_that_do_not_apply_are_left_out(pod: PodExplanation, fields: list[str]) -> None:
    assert list(written(pod)) == ["pod", "outcome", "priority", "scheduler", *fields]


@pytest.mark.parametrize(
    ("preemption", "data"),
    [
        pytest.param(Preemption(why_not="no"), {"helps": False, "reason": "no"}, id="does not help"),
        pytest.param(
            Preemption("n1", (Victim("a/c", 3, None, ()), Victim("a/d", 2, "2026-01-01T00:00:00Z", ("a/x",)))),
            {
                "helps": True,
                "node": "n1",
                "victims": [
                    {"pod": "a/c", "priority": 3, "budgetsViolated": []},
                    {"pod": "a/d", "priority": 2, "startTime": "2026-01-01T00:00:00Z", "budgetsViolated": ["a/x"]},
                ],
            },
            id="helps",
        ),
    ],
)
def test_preemption(preemption: Preemption, data: dict[str, object]) -> None:
    assert written(PodExplanation("a/b", Outcome.UNSCHEDULABLE, preemption=preemption))["preemption"] == data


def test_both_formats_read_back_to_the_same() -> None:
    pod = PodExplanation("a/b", Outcome.ERROR, message="übel: « … »")
    report = Report((pod,), node_count=2, placed_count=0, pending_count=1, seed=3, decided_at_s=0.0)
    assert json.loads(as_json(report)) == yaml.safe_load(as_yaml(report)) == as_data(report)


# --- docs/explain.md, held against the command


PAGE = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("screen", SHOWN, ids=[command_of(screen) for screen in SHOWN])
def test_what_the_page_shows_is_what_happens(screen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert screen.startswith(PROMPT)
    assert screen_of(command_of(screen)) == screen


@pytest.mark.parametrize(
    "word",
    [
        *(f"`{option}" for parameter in explain.params for option in parameter.opts if option.startswith("-")),
        *(f"| `{outcome.value}` |" for outcome in Outcome),
        *(f"| `{kind.value}` |" for kind in ObstacleKind),
        *(f"| {heading} | {plugin} |" for plugin, heading in HEADINGS.items()),
        "`POD`",
    ],
)
def test_the_page_names_everything(word: str) -> None:
    assert word in PAGE


def test_the_page_shows_screens() -> None:
    assert len(SHOWN) >= 2


def test_the_dump_that_is_documented_holds_every_kind_that_is_read() -> None:
    wanted = {kind_of_view(view).plural for view in KINDS_READ}
    command = next(line for line in PAGE.splitlines() if line.startswith("kubectl get -A -o json nodes,"))
    assert set(command.split()[5].split(",")) == wanted
    shown = run("explain", "--help").stdout.partition("kubectl get -A -o json ")[2].partition(" > cluster.json")[0]
    assert set(re.sub(r"[\s\\]", "", shown).split(",")) == wanted
