"""JSON and YAML of `mooring explain` have the documented fields."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from mooring.api.kinds import kind_of_view
from mooring.cli.cluster_source.live import KINDS_READ
from mooring.cli.explain.command import explain
from mooring.cli.explain.report import Outcome, PodExplanation, Preemption, Report, Victim, as_data, as_json, as_yaml
from mooring.cli.explain.text import HEADINGS
from mooring.scheduler.framework.obstacle import Obstacle, ObstacleKind
from tests.cli.screens import PROMPT, ROOT, command_of, run, screen_of


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
def test_the_page_speaks_of_everything(word: str) -> None:
    assert word in PAGE


def test_the_page_shows_screens() -> None:
    assert len(SHOWN) >= 2


def test_the_dump_that_is_documented_holds_every_kind_that_is_read() -> None:
    wanted = {kind_of_view(view).plural for view in KINDS_READ}
    command = next(line for line in PAGE.splitlines() if line.startswith("kubectl get -A -o json nodes,"))
    assert set(command.split()[5].split(",")) == wanted
    shown = run("explain", "--help").stdout.partition("kubectl get -A -o json ")[2].partition(" > cluster.json")[0]
    assert set(re.sub(r"[\s\\]", "", shown).split(",")) == wanted
