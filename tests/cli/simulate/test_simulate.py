"""`mooring simulate` from the outside."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mooring.cli.simulate import run as simulate_run
from tests.cli.screens import ROOT, run

WEEKEND = "examples/simulations/weekend.yaml"
ROLLOUT = "examples/simulations/rollout.yaml"
FGD = "examples/simulations/fgd/experiment.yaml"
NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n-{n},32000,131072,4,T4\n" for n in range(6))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"p-{n},{1000 * (1 + n % 4)},4096,{(1, 1, 2, 0)[n % 4]},{(300 + 50 * (n % 7), 1000, 1000, 0)[n % 4]}\n"
    for n in range(24)
)


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return ["--set", f"nodes={tmp_path / 'nodes.csv'}", "--set", f"pods={tmp_path / 'pods.csv'}", "--workers", "1"]


def test_the_weekend_prints_policies_side_by_side() -> None:
    result = run("simulate", WEEKEND, "--seeds", "1..2", "--workers", "1")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["default", "packing"]
    assert max(map(len, lines)) <= 80
    figures = {line.split()[0] for line in lines[1:] if line}
    assert figures >= {"placed", "pending", "p99_wait_s", "nodes_used", "evictions", "cost", "fragmentation_percent"}
    assert lines[-1] == "Means over 2 seeds ± standard deviation."


def test_the_rollout_runs_at_the_cluster_level() -> None:
    arguments = ("simulate", ROLLOUT, "--seeds", "1", "--policy", "default", "--workers", "1")
    result = run(*arguments, "--assert", "rollout_s < 300", "--assert", "pending == 0")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines[1:] if line} >= {"rollout_s", "drain_s", "upgrade_s", "evictions", "cost"}
    engine = run(*arguments, "--level", "engine")
    assert engine.exit_code == 2
    assert f"mooring: {ROLLOUT}:15: events[0].rollout: only the cluster level has rollouts" in engine.stderr


@pytest.mark.parametrize("policy", ["Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"])
def test_the_fgd_rows(policy: str, trace: list[str]) -> None:
    result = run("simulate", FGD, *trace, "--policy", policy, "--seeds", "42..43", "-o", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(row["policy"], row["seed"]) for row in rows] == [(policy, 42), (policy, 43)]
    for row in rows:
        assert 50 < row["gpu_allocation_percent_at_100"] <= row["gpu_allocation_percent_at_130"] <= 100
        assert 0 <= row["fragmentation_percent_at_100"] < 50


def test_assertions_decide_the_exit_code() -> None:
    arguments = ("simulate", WEEKEND, "--policy", "packing", "--seeds", "1", "--workers", "1")
    assert run(*arguments, "--assert", "placed > 100", "--assert", "packing.nodes_used <= 30").exit_code == 0
    failed = run(*arguments, "--assert", "placed < 100")
    assert failed.exit_code == 1
    assert "assertion failed: placed < 100: placed of packing is " in failed.stderr
    unknown = run(*arguments, "--assert", "p98_wait_s <= 30")
    assert unknown.exit_code == 2
    assert "there is no p98_wait_s; found placed, pending, p50_wait_s" in unknown.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((WEEKEND, "--policy", "none"), f"mooring: {WEEKEND}: has no policy none; it has default, packing"),
        ((WEEKEND, "--seeds", "a"), "mooring: --seeds: 'a' are no seeds"),
        ((WEEKEND, "--set", "a=b"), f"mooring: {WEEKEND}: has no parameter a; it has none"),
        ((WEEKEND, "--assert", "soon"), "mooring: --assert 'soon': wanted a figure"),
        ((WEEKEND, "--assert", "other.placed > 1"), "names the policy other, which is not simulated"),
        ((FGD, "--policy", "FGD"), "openb_node_list_gpu_node.csv: cannot be read: No such file or directory"),
        (("none.yaml",), "mooring: none.yaml: cannot be read: No such file or directory"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], words: str) -> None:
    result = run("simulate", *arguments, "--workers", "1")
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_folder_gets_results_samples_and_plots(tmp_path: Path, trace: list[str]) -> None:
    folder = tmp_path / "out"
    arguments = ("simulate", FGD, *trace, "--policy", "FGD", "--policy", "BestFit", "--seeds", "42")
    first = run(*arguments, "--output", str(folder), "-o", "json")
    assert first.exit_code == 0, first.output
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert [row["policy"] for row in rows] == ["FGD", "BestFit"]
    samples = list(csv.DictReader((folder / "samples.csv").read_text().splitlines()))
    assert [row["demand_percent"] for row in samples] == ["50.0", "90.0", "100.0", "130.0"] * 2
    plot = ElementTree.parse(folder / "gpu_allocation_percent.svg").getroot()
    assert len(plot.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    assert len(list((folder / "runs").iterdir())) == 2
    resumed = run(*arguments, "--output", str(folder), "--resume", "-o", "json")
    assert resumed.stdout == first.stdout
    assert run(*arguments, "--resume").exit_code == 2


def test_an_interrupted_sweep_shows_what_has_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    original = simulate_run.run_sweep

    def interrupted(*arguments: object, **options: object) -> object:
        yield next(iter(original(*arguments, **options)))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate_run, "run_sweep", interrupted)
    result = run("simulate", WEEKEND, "--seeds", "1..2", "--workers", "1", "--output", str(tmp_path), "-o", "json")
    assert result.exit_code == 130
    assert len(json.loads(result.stdout)) == 1
    assert "interrupted: 3 of 4 simulations are missing; --resume goes on" in result.stderr
