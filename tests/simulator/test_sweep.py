"""Sweeps: identities, stored results, and the engines that run them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from distributed import LocalCluster

from mooring.simulator import workers
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import Scenario
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import SimulationResult
from mooring.simulator.sweep import ResultStore, SweepTask
from mooring.simulator.workers import run_sweep
from tests.waiting import wait_until

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

MARK = Path(__file__).with_suffix(".hangs")


class Own(ScorePlugin):
    name = "Own"

    def score(self, pod, node_info):
        return 1
"""
HANGS_ONCE = """
import threading

try:
    with MARK.open("x") as file:
        file.write(str(os.getpid()))
except FileExistsError:
    pass
else:
    threading.Event().wait()
"""
"""The first worker that loads the plugin writes its process id, and waits to be killed."""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "scenario.yaml").write_text(TEXT)
    (tmp_path / "own.py").write_text(PLUGIN)
    return read_scenario(tmp_path / "scenario.yaml", {})


def swept(
    tasks: list[SweepTask], workers: int, store: ResultStore | None = None, *, on: str = "", resumes: bool = False
) -> list[SimulationResult]:
    steps: list[int] = []
    found = list(run_sweep(tasks, workers, store, on=on, resumes=resumes, progress=steps.append))
    assert sum(steps) == 100 * len(tasks)
    return sorted(found, key=lambda result: (result.policy, result.seed))


def test_an_identity_covers_everything_that_is_read(scenario: Scenario, tmp_path: Path) -> None:
    own = SweepTask(scenario, "own", 1)
    before = own.identity()
    assert before == SweepTask(read_scenario(tmp_path / "scenario.yaml", {}), "own", 1).identity()
    others = {SweepTask(scenario, "own", 2).identity(), SweepTask(scenario, "default", 1).identity()}
    default = SweepTask(scenario, "default", 1).identity()
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("scenario.yaml", "own.py"):
        (moved / name).write_bytes((tmp_path / name).read_bytes())
    assert before == SweepTask(read_scenario(moved / "scenario.yaml", {}), "own", 1).identity()
    (tmp_path / "own.py").write_text(PLUGIN.replace("return 1", "return 2"))
    assert own.identity() not in {before, *others}
    assert SweepTask(scenario, "default", 1).identity() == default


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An engine with two workers. The Dask cluster was there before, Ray starts one of its own."""
    if request.param == "dask":
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            yield cluster.scheduler_address.replace("tcp://", "dask://")
        return
    # Ray writes a token to the home folder unless it has one.
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", blake2b(str(os.getpid()).encode()).hexdigest())
    yield "ray://local" if request.param == "ray" else ""


@pytest.mark.parametrize("engine", ["processes", "dask", "ray"], indirect=True)
def test_a_killed_worker_and_the_engine_change_no_result(scenario: Scenario, tmp_path: Path, engine: str) -> None:
    tasks = [SweepTask(scenario, policy, seed) for policy in ("own", "default") for seed in (1, 2)]
    wanted = swept(tasks, 1)
    mark = tmp_path / "own.hangs"
    (tmp_path / "own.py").write_text(PLUGIN + HANGS_ONCE)

    def kill() -> None:
        os.kill(int(wait_until(lambda: mark.exists() and mark.read_text())), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert swept(tasks, 2, on=engine) == wanted
    killer.join()


@pytest.mark.parametrize("engine", ["processes", "dask"], indirect=True)  # Ray takes long to start
def test_an_engine_reports_the_error_of_a_simulation(scenario: Scenario, tmp_path: Path, engine: str) -> None:
    (tmp_path / "own.py").write_text("nonsense")
    with pytest.raises(ScenarioError, match=r"policy own: .*own\.py"):
        swept([SweepTask(scenario, "own", seed) for seed in (1, 2)], 2, on=engine)


def test_a_worker_with_other_files_is_an_error(scenario: Scenario) -> None:
    task = SweepTask(scenario, "own", 1)
    with pytest.raises(ScenarioError, match="a worker found other contents"):
        task.run("0" * 32, lambda share: None)


@pytest.mark.parametrize(
    ("on", "words"),
    [
        ("spark://host:1", "--on spark://host:1: wanted dask://HOST:PORT"),
        ("dask://", "--on dask://: wanted dask://HOST:PORT"),
        ("dask://127.0.0.1:1", "no Dask scheduler answers at 127.0.0.1:1"),
    ],
)
def test_wrong_engines(scenario: Scenario, on: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "CONNECT_TIMEOUT_S", 0.1)
    with pytest.raises(ScenarioError, match=words):
        swept([SweepTask(scenario, "default", 1)], 2, on=on)


@pytest.mark.parametrize(("extra", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(scenario: Scenario, extra: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ScenarioError, match=rf"pip install 'mooring\[{extra}\]'"):
        swept([SweepTask(scenario, "default", 1)], 2, on=f"{extra}://local")


def test_a_sweep_is_resumed(scenario: Scenario, tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "out")
    tasks = [SweepTask(scenario, "default", seed) for seed in (1, 2)]
    first = next(run_sweep(tasks, 1, store, resumes=True, progress=lambda _: None))
    changed = SimulationResult(first.policy, first.seed, {"placed": -1.0}, [])
    store.save(tasks[0].identity(), changed)

    resumed = swept(tasks, 1, store, resumes=True)

    assert resumed[0] == changed  # it was not run again
    assert resumed[1].figures["placed"] > 0
    assert swept(tasks, 1, store, resumes=False)[0] == first
