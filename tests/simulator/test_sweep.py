"""Sweeps: identities, stored results, and worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.simulator.scenario import Scenario, read_scenario
from mooring.simulator.simulation import SimulationResult
from mooring.simulator.sweep import ResultStore, SweepTask, run_sweep

TEXT = """\
cluster: {pools: [{name: node, count: 2, cpu: "4", memory: 8Gi}]}
workload: {pods: [{name: job, rate: 20/h, lifetime: 20m, cpu: "1", memory: 1Gi}]}
duration: 4h
policies: {default: {}, own: {plugins: [own.py]}}
"""
PLUGIN = """\
import os
from pathlib import Path

from mooring.scheduler.framework.node_plugins import ScorePlugin

MARK = Path(__file__).with_suffix(".died")


class Own(ScorePlugin):
    name = "Own"

    def score(self, pod, node_info):
        return 1
"""
DIES_ONCE = """
if not MARK.exists():
    MARK.write_text("")
    os._exit(1)
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "scenario.yaml").write_text(TEXT)
    (tmp_path / "own.py").write_text(PLUGIN)
    return read_scenario(tmp_path / "scenario.yaml", {})


def swept(
    tasks: list[SweepTask], workers: int, store: ResultStore | None = None, *, resumes: bool = False
) -> list[SimulationResult]:
    steps: list[int] = []
    found = list(run_sweep(tasks, workers, store, resumes=resumes, progress=steps.append))
    assert sum(steps) == 100 * len(tasks)
    return sorted(found, key=lambda result: (result.policy, result.seed))


def test_an_identity_covers_everything_that_is_read(scenario: Scenario, tmp_path: Path) -> None:
    own = SweepTask(scenario, "own", 1)
    before = own.identity()
    assert before == SweepTask(read_scenario(tmp_path / "scenario.yaml", {}), "own", 1).identity()
    others = {SweepTask(scenario, "own", 2).identity(), SweepTask(scenario, "default", 1).identity()}
    default = SweepTask(scenario, "default", 1).identity()
    (tmp_path / "own.py").write_text(PLUGIN.replace("return 1", "return 2"))
    assert own.identity() not in {before, *others}
    assert SweepTask(scenario, "default", 1).identity() == default


def test_workers_change_no_result(scenario: Scenario) -> None:
    tasks = [SweepTask(scenario, policy, seed) for policy in ("default", "own") for seed in (1, 2)]
    assert swept(tasks, 1) == swept(tasks, 2)


def test_a_simulation_whose_worker_died_is_run_again(scenario: Scenario, tmp_path: Path) -> None:
    tasks = [SweepTask(scenario, "own", seed) for seed in (1, 2)]
    wanted = swept(tasks, 1)
    (tmp_path / "own.py").write_text(PLUGIN + DIES_ONCE)
    assert swept(tasks, 2) == wanted
    assert (tmp_path / "own.died").exists()


def test_a_sweep_is_resumed(scenario: Scenario, tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "out")
    tasks = [SweepTask(scenario, "default", seed) for seed in (1, 2)]
    first = next(run_sweep(tasks, 1, store, resumes=True, progress=lambda _: None))
    changed = SimulationResult(first.policy, first.seed, {"placed": -1.0}, [])
    store.save(tasks[0], changed)

    resumed = swept(tasks, 1, store, resumes=True)

    assert resumed[0] == changed  # it was not run again
    assert resumed[1].figures["placed"] > 0
    assert swept(tasks, 1, store, resumes=False)[0] == first
