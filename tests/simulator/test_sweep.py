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
from mooring.simulator.inputs import content_hash, packed_input, unpacked_inputs
from mooring.simulator.scenario.fields import Scenario
from mooring.simulator.scenario.reading import read_scenario, with_files
from mooring.simulator.simulation import ResultStore, SimulationResult, SweepTask
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



class Own(ScorePlugin):
    name = "Own"

    def score(self, pod, node_info):
        return 1
"""
HANGS_ONCE = """
import threading

MARK = Path("MARK_FILE")

try:
    with MARK.open("x") as file:
        file.write(str(os.getpid()))
except FileExistsError:
    pass
else:
    threading.Event().wait()
"""


def hanging(mark: Path) -> str:
    """A plugin file: the first worker that loads it writes its process id to a file, and waits to be killed."""
    return PLUGIN + HANGS_ONCE.replace("MARK_FILE", str(mark))


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
    (tmp_path / "own.py").write_text(hanging(mark))

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


def test_dask_does_not_log_the_error_of_a_scenario(
    scenario: Scenario, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text("nonsense")
    with pytest.raises(ScenarioError, match=r"policy own: .*own\.py"):
        swept([SweepTask(scenario, "own", 1)], 1, on="dask://local")
    assert "own.py" not in capfd.readouterr().err, "the caller prints the error"


def test_files_that_change_during_a_sweep_are_an_error(scenario: Scenario) -> None:
    task = SweepTask(scenario, "own", 1)
    with pytest.raises(ScenarioError, match="the files of the scenario have changed since the sweep began"):
        task.run("0" * 32, lambda share: None)


# --- workers that do not have the files -------------------------------------------------------------------------------

MANY_FILES = """\
cluster: {dump: cluster}
workload: {pods: [{name: job, rate: 20/h, lifetime: 20m, cpu: "1", memory: 1Gi}]}
duration: 4h
plugins: [own.py]
config: config.yaml
policies: {default: {}, packing: {config: packing/config.yaml}}
"""
"""Two configurations with the same name, and a folder."""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: STRATEGY, resources: [{name: cpu, weight: 1}]}}
"""
NODE = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "NAME"}, "status": {"allocatable": RESOURCES}}'
DLRM = """\
cluster: {pools: [{name: node, count: 2, cpu: "4", memory: 8Gi}]}
workload: {dlrm: {trace: traces/month.csv}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the sender."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def written(files: dict[str, str]) -> Scenario:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return read_scenario(Path("scenario.yaml"), {})


def many_files(plugin: str) -> dict[str, str]:
    resources = '{"cpu": "4", "memory": "8Gi", "pods": "20"}'
    node = NODE.replace("RESOURCES", resources)
    nodes = {f"cluster/{name}.json": node.replace("NAME", name) for name in ("a", "b", "c")}
    configs = {"config.yaml": "LeastAllocated", "packing/config.yaml": "MostAllocated"}
    texts = {name: CONFIG.replace("STRATEGY", strategy) for name, strategy in configs.items()}
    return {"scenario.yaml": MANY_FILES, "own.py": plugin, **nodes, **texts}


def test_workers_in_another_folder_get_the_files_and_one_of_them_dies(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers start after the files are gone."""
    mark = tmp_path / "own.hangs"
    scenario = written(many_files(PLUGIN))
    tasks = [SweepTask(scenario, policy, seed) for policy in ("default", "packing") for seed in (1, 2)]
    wanted = swept(tasks, 1)
    Path("own.py").write_text(hanging(mark))
    elsewhere, temporary = tmp_path / "elsewhere", tmp_path / "temporary"
    elsewhere.mkdir()
    temporary.mkdir()
    found: list[SimulationResult] = []
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster:
        on = cluster.scheduler_address.replace("tcp://", "dask://")
        sender = threading.Thread(target=lambda: found.extend(swept(tasks, 2, on=on)), daemon=True)
        sender.start()
        wait_until(lambda: sum("run" in str(key) for key in list(cluster.scheduler.tasks)) == len(tasks))
        sent = [key for key in list(cluster.scheduler.tasks) if str(key).startswith("mooring-input-")]
        assert len(sent) == 4, "a plugin, a folder and two configurations, each once"
        here.rename(tmp_path / "gone")
        monkeypatch.chdir(elsewhere)
        monkeypatch.setenv("TMPDIR", str(temporary))
        cluster.scale(2)
        killed = int(wait_until(lambda: mark.exists() and mark.read_text()))
        os.kill(killed, signal.SIGKILL)
        sender.join()
    assert sorted(found, key=lambda result: (result.policy, result.seed)) == wanted
    assert not list(temporary.glob("mooring-inputs-*")), "also what the dead worker left"


def test_inputs_are_unpacked_once_and_removed_after_the_last_simulation(here: Path) -> None:
    scenario = written(many_files(PLUGIN))
    task = SweepTask(scenario, "packing", 1)
    names = ["cluster", "config.yaml", "packing/config.yaml", "own.py"]
    assert sorted(task.input_names()) == sorted(names)
    inputs = {name: packed_input(name) for name in names}
    assert {packed.hash for packed in inputs.values()} == {content_hash(name) for name in names}
    with unpacked_inputs(inputs) as first:
        with unpacked_inputs(inputs) as second:
            assert first == second
        assert {Path(path).name for path in first.values()} == {Path(name).name for name in names}
        assert Path(first["own.py"]).read_text() == PLUGIN
        assert sorted(file.name for file in Path(first["cluster"]).iterdir()) == ["a.json", "b.json", "c.json"]
        moved = with_files(scenario, first.__getitem__)
        assert SweepTask(moved, "packing", 1).identity() == task.identity()
    assert not Path(first["own.py"]).parents[1].exists()
    with unpacked_inputs(inputs) as again:
        assert again == first, "a plugin file that is loaded again replaces its module"
    wanted = task.run(task.identity(), lambda share: None)
    assert task.run_with_inputs(task.identity(), inputs) == wanted


BAD_INPUTS = {
    "a trace": ({"scenario.yaml": DLRM, "traces/month.csv": "a,b\n1,2\n"}, "traces/month.csv:1: has no column"),
    "a configuration": ({**many_files(PLUGIN), "packing/config.yaml": "a: b: c"}, "packing/config.yaml:1: cannot be"),
    "a plugin": ({**many_files(PLUGIN), "own.py": "x = 1\nnonsense\n"}, "policy packing: own.py:2: fails when it"),
    "a dump": (
        {**many_files(PLUGIN), "cluster/b.json": '{"apiVersion": "v1", "kind": "Node", "spec": 7}'},
        "cluster/b.json:1: ",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_errors_of_workers_name_the_files_of_the_scenario(here: Path, case: str) -> None:
    files, words = BAD_INPUTS[case]
    scenario = written(files)
    task = SweepTask(scenario, list(scenario.policies)[-1], 1)
    inputs = {name: packed_input(name) for name in task.input_names()}
    with pytest.raises(ScenarioError) as caught:
        task.run_with_inputs(task.identity(), inputs)
    assert str(caught.value).startswith(words)


def test_inputs_that_are_too_large_are_not_sent(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = written(many_files(PLUGIN))
    monkeypatch.setattr(workers, "SENT_BYTES_MAX", 10)
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        pytest.raises(ScenarioError, match="the files of a sweep that workers get may have 0 MiB, compressed"),
    ):
        swept([SweepTask(scenario, "default", 1)], 1, on=cluster.scheduler_address.replace("tcp://", "dask://"))


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
