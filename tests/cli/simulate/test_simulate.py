"""`mooring simulate` from the outside."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet
import pytest

from mooring.cli.simulate import run as simulate_run
from mooring.cli.simulate.run import as_lines
from mooring.simulator.simulation import SimulationResult
from tests.cli.screens import ROOT, run

WEEKEND = "examples/simulations/weekend.yaml"
ROLLOUT = "examples/simulations/rollout.yaml"
AUTOSCALE = "examples/simulations/autoscale.yaml"
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


def test_differences_between_policies_at_the_cluster_level() -> None:
    result = run("simulate", ROLLOUT, "--seeds", "1", "--workers", "1", "--diff", "default", "packing")
    assert result.exit_code == 0, result.output
    lines = result.stdout.partition("One seed.")[2].splitlines()
    match = re.match(r"packing placed (\d+) of (\d+) pods elsewhere than default", lines[2])
    assert match is not None, lines
    # Most pods are the same ones with both policies, and have a node with both.
    assert 100 < int(match[1]) < int(match[2]) < 250
    assert any(re.match(r"default/shop-\S+ #\d+ +general-\d+ +general-\d+ +1$", line) for line in lines), lines


def test_packing_costs_less_with_an_autoscaler() -> None:
    result = run("simulate", AUTOSCALE, "--seeds", "1", "--workers", "1", "-o", "json")
    assert result.exit_code == 0, result.output
    default, packing = json.loads(result.stdout)
    assert packing["cost"] < 0.95 * default["cost"]
    for row in (default, packing):
        assert row["pending"] == 0
        assert row["nodes_added"] > row["nodes_removed"] > 5
        assert row["node_hours"] > row["nodes_used"] * 24


@pytest.mark.parametrize("policy", ["Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"])
def test_the_fgd_rows(policy: str, trace: list[str]) -> None:
    result = run("simulate", FGD, *trace, "--policy", policy, "--seeds", "42..43", "-o", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(row["policy"], row["seed"]) for row in rows] == [(policy, 42), (policy, 43)]
    for row in rows:
        assert 50 < row["gpu_allocation_percent_at_100"] <= row["gpu_allocation_percent_at_130"] <= 100
        assert 0 <= row["fragmentation_percent_at_100"] < 50


def test_policies_that_do_not_fit_are_in_a_table_below() -> None:
    figures = {"placed": 3.0, "memory_allocation_percent": 50.25}
    results = [SimulationResult(f"policy-{number}", 1, figures, []) for number in range(9)]
    lines = as_lines(results, 60)
    assert max(map(len, lines)) <= 60
    assert [line.split() for line in lines if "policy" in line] == [
        ["policy-0", "policy-1", "policy-2"],
        ["policy-3", "policy-4", "policy-5"],
        ["policy-6", "policy-7", "policy-8"],
    ]
    assert sum(line.startswith("placed") for line in lines) == 3


def test_assertions_decide_the_exit_code() -> None:
    arguments = ("simulate", WEEKEND, "--policy", "packing", "--seeds", "1", "--workers", "1")
    assert run(*arguments, "--assert", "placed > 100", "--assert", "packing.nodes_used <= 30").exit_code == 0
    failed = run(*arguments, "--assert", "placed < 100")
    assert failed.exit_code == 1
    assert "assertion failed: placed < 100: placed of packing is " in failed.stderr
    unknown = run(*arguments, "--assert", "p98_wait_s <= 30")
    assert unknown.exit_code == 2
    assert "there is no p98_wait_s; found placed, pending, p50_wait_s" in unknown.stderr
    assert "cost" in unknown.stdout  # the results are not lost


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
        ((WEEKEND, "--diff", "default", "none"), "--diff names the policy none, which is not simulated"),
        ((WEEKEND, "--on", "spark://host"), "mooring: --on spark://host: wanted dask://HOST:PORT"),
        ((WEEKEND, "--output", WEEKEND), f"mooring: {WEEKEND}/runs: cannot be written: Not a directory"),
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
    assert [row["demand_percent"] for row in samples][1:5] == ["50.0", "90.0", "100.0", "130.0"]  # one is at the start
    stored = pyarrow.parquet.read_table(folder / "samples.parquet").to_pylist()
    assert [row["gpu_allocation_percent"] for row in stored] == [
        float(row["gpu_allocation_percent"]) for row in samples
    ]
    plot = ElementTree.parse(folder / "allocation_over_load.svg").getroot()
    assert len(plot.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    plots = {path.stem for path in folder.glob("*.svg")}
    assert plots >= {"allocation_over_load", "waiting_times", "nodes_FGD", "nodes_BestFit", "fragmentation_percent"}
    assert {path.stem for path in folder.glob("*.png")} == plots
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    assert len(list((folder / "runs").iterdir())) == 2
    resumed = run(*arguments, "--output", str(folder), "--resume", "-o", "json")
    assert resumed.stdout == first.stdout
    assert run(*arguments, "--resume").exit_code == 2


@pytest.fixture
def small(tmp_path: Path) -> tuple[str, ...]:
    """A command for a cluster of two nodes, where one policy packs."""
    (tmp_path / "small.yaml").write_text(
        "cluster:\n  pools:\n"
        "    - {name: a, count: 1, cpu: '8', memory: 8Gi, labels: {topology.kubernetes.io/zone: west}}\n"
        "    - {name: b, count: 1, cpu: '4', memory: 8Gi, labels: {topology.kubernetes.io/zone: east}}\n"
        "workload: {pods: [{name: web, replicas: 12, cpu: '1', memory: 512Mi}]}\n"
        "duration: 1h\npolicies: {default: {}, same: {}, packing: {config: packing.yaml}}\n"
    )
    packing = ROOT / "examples" / "configurations" / "packing.yaml"
    (tmp_path / "packing.yaml").write_bytes(packing.read_bytes())
    return ("simulate", str(tmp_path / "small.yaml"), "--workers", "1", "--output", str(tmp_path / "out"))


def test_the_report_is_one_file(small: tuple[str, ...], tmp_path: Path) -> None:
    result = run(*small, "--seeds", "1..2", "--diff", "default", "packing")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out" / "report.html").read_text()
    assert text.count("<svg") == len(list((tmp_path / "out").glob("*.svg")))
    assert not re.search(r"(src|href)=|@import|url\(|<script", text)
    for words in ("small.yaml", "zone_<wbr>skew", "nodes over time: packing, seed 1", "prefers-color-scheme"):
        assert words in text
    assert "pods elsewhere than default" in text
    assert f"see {tmp_path / 'out' / 'report.html'}" in result.stderr


def test_the_report_needs_no_extra(small: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(*small)
    assert result.exit_code == 0, result.output
    assert "no Parquet and PNG files; pip install 'mooring[report]' adds them" in result.stderr
    assert (tmp_path / "out" / "report.html").exists()
    assert not list((tmp_path / "out").glob("*.png"))


def test_the_difference_between_two_policies(small: tuple[str, ...], tmp_path: Path) -> None:
    same = run(*small, "--diff", "default", "same")
    assert "same placed 0 of 12 pods elsewhere than default." in same.stdout
    other = run(*small, "--diff", "default", "packing", "-o", "json")
    assert json.loads(other.stdout)  # the difference is on standard error
    match = re.search(r"packing placed (\d+) of 12 pods elsewhere than default", other.stderr)
    assert match is not None, other.stderr
    rows = list(csv.DictReader((tmp_path / "out" / "differences.csv").read_text().splitlines()))
    assert len(rows) == int(match[1]) > 0
    assert all({row["default"], row["packing"]} == {"a-0", "b-0"} for row in rows)


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
