"""`mooring explain` from the outside: every screen to the letter, and what the flags do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.screens import ROOT, SCREENS, command_of, run, screen_of

HARBOUR = "examples/clusters/harbour.yaml"
CLUSTERS = "tests/cli/clusters"

NODE = (
    '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": 4, "pods": 9}}}'
)


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def explained(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    """What the command says, as data."""
    result = run("explain", *arguments, "-o", "json", "--now", "2026-01-01T00:00:00Z", stdin=stdin)
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


# Screens


@pytest.mark.parametrize("file", sorted(SCREENS.glob("*.txt")), ids=lambda file: file.stem)
def test_a_screen_is_as_it_was(file: Path) -> None:
    screen = file.read_text(encoding="utf-8")
    assert screen_of(command_of(screen)) == screen


FOR_PEOPLE = [file for file in sorted(SCREENS.glob("*.txt")) if " -o " not in file.read_text(encoding="utf-8")]


def has_long_name(line: str) -> bool:
    """Names are never cut: one that takes more than half of the line may make it longer."""
    return max(map(len, line.split())) > 40


@pytest.mark.parametrize("file", FOR_PEOPLE, ids=lambda file: file.stem)
def test_what_people_read_fits_into_80_columns(file: Path) -> None:
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    too_long = [line for line in lines if len(line) > 80 and not line.startswith("mooring: ")]
    too_long = [line for line in too_long if not has_long_name(line)]
    assert too_long == []


def test_the_bundled_example_shows_all_sorts_of_fates() -> None:
    pods = {entry["pod"].removeprefix("harbour/"): entry for entry in explained("-f", HARBOUR)["pods"]}
    assert {name: entry["outcome"] for name, entry in pods.items()} == {
        "coastguard": "unschedulable",
        "tug-2": "placed",
        "pilot-3": "placed",
        "beacon-4": "unschedulable",
        "gantry-2": "unschedulable",
        "tanker": "unschedulable",
    }
    assert pods["coastguard"]["preemption"]["helps"] is True
    assert pods["gantry-2"]["obstacles"][0]["missing"][0]["kind"] == "taint"
    assert pods["tanker"]["obstacles"][0]["missing"][0]["kind"] == "resource"
    assert pods["beacon-4"]["obstacles"][0]["missing"][0]["kind"] == "antiAffinity"


# Input


def test_a_folder_is_read_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "node.json").write_text(NODE)
    (tmp_path / "deep" / "a.yml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    (tmp_path / "deep" / "er" / "b.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: b}}")
    (tmp_path / "notes.txt").write_text("not for us: [")
    assert [pod["pod"] for pod in explained("-f", str(tmp_path))["pods"]] == ["default/a", "default/b"]


def test_standard_input_and_files_go_together(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text(NODE)
    data = explained(
        "-f", "-", "-f", str(tmp_path / "node.json"), stdin="{apiVersion: v1, kind: Pod, metadata: {name: a}}"
    )
    assert data["pods"][0]["node"] == "n1"


def test_a_later_object_replaces_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text(NODE)
    (tmp_path / "changed.json").write_text(NODE.replace('"cpu": 4', '"cpu": 1'))
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{resources: {requests: {cpu: 2}}}]}}"
    arguments = ("explain", "-f", str(tmp_path / "node.json"), "-f", str(tmp_path / "changed.json"), "-f", "-")
    result = run(*arguments, stdin=pod)
    assert "default/a goes nowhere" in result.stdout
    assert f"found twice, the later one counts: Node n1 ({tmp_path / 'changed.json'}:1)" in result.stderr


def test_json_and_yaml_say_the_same() -> None:
    as_yaml = run("explain", "-f", HARBOUR, "-o", "yaml", "--now", "2026-01-01T00:00:00Z")
    assert yaml.safe_load(as_yaml.stdout) == explained("-f", HARBOUR)


# Which pods


@pytest.mark.parametrize("wanted", ["tug-2", "harbour/tug-2"])
def test_a_pod_is_found_by_name_or_by_namespace_and_name(wanted: str) -> None:
    assert [pod["pod"] for pod in explained("-f", HARBOUR, wanted)["pods"]] == ["harbour/tug-2"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        pytest.param("twin", 'found several pods named "twin"; say which one: a/twin, b/twin', id="two of that name"),
        pytest.param("twim", 'found no pod "twim"; did you mean a/twin or b/twin?', id="a typing error"),
        pytest.param("c/twin", 'found no pod "c/twin"; did you mean a/twin or b/twin?', id="another namespace"),
        pytest.param("submarine", 'found no pod "submarine"; there are a/twin, b/twin', id="nothing like it"),
    ],
)
def test_a_pod_that_is_not_clear_is_an_error_with_a_way_out(wanted: str, said: str) -> None:
    same_name = "".join(f"---\n{{apiVersion: v1, kind: Pod, metadata: {{name: twin, namespace: {n}}}}}\n" for n in "ab")
    result = run("explain", "-f", "-", wanted, stdin=f"{NODE}\n{same_name}")
    assert (result.exit_code, result.stderr.startswith(f"mooring: {said}")) == (2, True), result.stderr


def test_pods_before_the_one_that_is_asked_for_are_decided_too() -> None:
    # The coastguard comes first and is promised quay-4; alone, the tanker does not know of that.
    beside = explained("-f", HARBOUR, "tanker")["pods"][0]
    alone = explained("-f", HARBOUR, "tanker", "--alone")["pods"][0]
    assert "4 Insufficient cpu" in beside["message"]
    assert "3 Insufficient cpu" in alone["message"]


def test_the_number_of_nodes_can_be_limited_or_not() -> None:
    counts = {
        limit: len(explained("-f", HARBOUR, "gantry-2", "--nodes", limit)["pods"][0]["obstacles"])
        for limit in ("1", "3", "all")
    }
    assert counts == {"1": 1, "3": 3, "all": 7}


# Exit codes


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param([HARBOUR], 0, id="some go nowhere, and nobody asked"),
        pytest.param([HARBOUR, "--exit-code"], 1, id="some go nowhere"),
        pytest.param([HARBOUR, "tug-2", "--exit-code"], 0, id="the one that is shown has a place"),
        pytest.param([HARBOUR, "tanker", "--exit-code"], 1, id="the one that is shown goes nowhere"),
        pytest.param([HARBOUR, "ferry-1", "--exit-code"], 0, id="it runs already"),
        pytest.param([f"{CLUSTERS}/fates.yaml", "foreign", "--exit-code"], 0, id="another scheduler's"),
    ],
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    assert run("explain", "-f", *arguments).exit_code == code
