"""The scenario file: parameters, paths, and errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import Scenario, rate_per_h, seconds, seeds_of
from mooring.simulator.scenario.reading import read_scenario

GOOD = """\
cluster:
  pools:
    - {name: small, count: 2, cpu: "4", memory: 8Gi}
workload:
  pods:
    - {name: web, replicas: 2, cpu: "1", memory: 1Gi}
events:
  - {at: 1h, scale: {workload: web, replicas: 3}}
duration: 2h
"""


SCALE = "scale: {workload: web, replicas: 3}"


def read(folder: Path, text: str, **values: str) -> Scenario:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return read_scenario(path, values)


def test_a_scenario_without_policies_has_the_default_one(tmp_path: Path) -> None:
    scenario = read(tmp_path, GOOD)
    assert list(scenario.policies) == ["default"]
    assert scenario.duration_s == 7200.0


def test_parameters_and_paths(tmp_path: Path) -> None:
    text = (
        "parameters: {nodes: nodes.csv, pods: pods.csv}\n"
        'cluster: {openb: {nodes: "${nodes}"}}\n'
        'workload: {openb: {pods: "${pods}"}}\n'
        "policies: {own: {config: own.yaml, plugins: [own.py, 'pkg.module:Class']}}\n"
    )
    scenario = read(tmp_path, text, pods="/data/pods.csv")
    assert scenario.cluster.openb is not None
    assert scenario.workload.openb is not None
    assert scenario.cluster.openb.nodes == str(tmp_path / "nodes.csv")
    assert scenario.workload.openb.pods == "/data/pods.csv"
    assert scenario.policies["own"].config == str(tmp_path / "own.yaml")
    assert scenario.policies["own"].plugins == [str(tmp_path / "own.py"), "pkg.module:Class"]
    with pytest.raises(ScenarioError, match="has no parameter node; it has nodes, pods"):
        read(tmp_path, text, node="x.csv")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("count: 2", "count: two", 3, "cluster.pools[0].count: Expected `int`, got `str`"),
        ("count: 2", "size: 2", 3, "unknown field `size`"),
        ('cpu: "4"', "cpu: four", 3, "cluster.pools[0].cpu: 'four' is no quantity"),
        ("replicas: 2,", "", 6, "wanted either replicas or rate"),
        ("replicas: 2,", "rate: often,", 6, "'often' is no rate"),
        ("replicas: 2,", "rate: 9999999/s,", 6, "at most 10000000"),
        ("at: 1h", "at: soon", 8, "events[0].at"),
        ("workload: web, ", "workload: api, ", 8, "no pods with replicas are called api"),
        ("scale: {workload: web, replicas: 3}", "remove: {pool: big}", 8, "no pool is called big"),
        ("scale: {workload: web, replicas: 3}", "add: {pool: small}", 8, "wanted pool and count"),
        (
            "scale: {workload: web, replicas: 3}",
            "remove: {pool: small, for: 1h}",
            8,
            "belongs to fail, cordon and drain",
        ),
        (SCALE, "drain: {pool: small, timeout: soon}", 8, "events[0].drain.timeout"),
        (SCALE, "drain: {count: 1}", 8, "wanted either pool or nodes"),
        (SCALE, "upgrade: {pool: big}", 8, "no pool is called big"),
        (SCALE, "upgrade: {pool: small, surge: -1}", 8, "events[0].upgrade.surge: Expected `int` >= 0"),
        (SCALE, "upgrade: {pool: small, delay: soon}", 8, "events[0].upgrade.delay"),
        (SCALE, "fail: {pool: small, mtbf: 0s}", 8, "events[0].fail.mtbf: is 0"),
        (SCALE, "fail: {nodes: [small-0], mtbf: 3h}", 8, "random failures want pool and mtbf"),
        (SCALE, "remove: {pool: small, mtbf: 3h}", 8, "unknown field `mtbf`"),
        (SCALE, "rollout: {workload: web, cpu: 2}", 8, "events[0].rollout.cpu: Expected `str`, got `int`"),
        (SCALE, "rollout: {workload: web, cpu: 200m}", 8, "only the cluster level has rollouts"),
        (SCALE, "fail: {pool: small}, drain: {pool: small}", 8, "wanted exactly one of add, remove,"),
        ("replicas: 2,", "replicas: 2, minAvailable: 1, maxUnavailable: 1,", 6, "not both"),
        ("replicas: 2,", "replicas: 2, minAvailable: some,", 6, "neither a number nor a share"),
        ("replicas: 2,", "rate: 1/h, maxUnavailable: 1,", 6, "can have a number minAvailable"),
        ("replicas: 2,", "replicas: 2, labels: {app: x},", 6, "app is the name of the pods"),
        ("replicas: 2,", "replicas: 2, startup: soon,", 6, "workload.pods[0].startup"),
        ("duration: 2h", "duration: 2h\nlevel: pods", 10, "level: Invalid enum value 'pods'"),
        ("duration: 2h", "", 1, "duration is missing"),
        ("duration: 2h", "duration: 2h\nsamples: {every: 1ms}", 10, "samples.every: wanted at least 1 s"),
        ("duration: 2h", "duration: 9999h\nsamples: {every: 1s}", 10, "35996400 times in 35996400 s; at most 1000000"),
        ("at: 1h", "at: 1h, every: 0s", 8, "events[0].every: wanted at least 1 s"),
        ("duration: 2h", "duration: 2h\nseeds: 5..1", 10, "seeds"),
        ("duration: 2h", "duration: 2h\nties: random", 10, "ties"),
        ("duration: 2h", "duration: 2h\nconfig: ${file}", 10, "config: there is no parameter file"),
        ("count: 2", "count: 2, autoscale: {}", 3, "missing required field `max`"),
        ("count: 2", "count: 2, autoscale: {max: 1}", 3, "count 2 is not between min 0 and max 1"),
        ("count: 2", "count: 2, autoscale: {min: 4, max: 3}", 3, "count 2 is not between min 4 and max 3"),
        ("count: 2", "count: 2, autoscale: {max: 3, delay: soon}", 3, "cluster.pools[0].autoscale.delay"),
        ("duration: 2h", "duration: 2h\nautoscaler: {expander: random}", 10, "no pool has autoscale"),
        ("workload:\n", "workload:\n  dump: {}\n", 4, "wanted exactly one of openb, dump, dlrm, simkube and pods"),
    ],
)
def test_errors_have_a_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as error:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert words in error.value.text
    assert error.value.where == f"{tmp_path / 'scenario.yaml'}:{line}"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("scanInterval: 0s", "autoscaler.scanInterval: wanted at least 1 s"),
        ("scaleDownUnneededTime: soon", "autoscaler.scaleDownUnneededTime: "),
        ("scaleDownDelayAfterAdd: -1s", "autoscaler.scaleDownDelayAfterAdd: -1s is negative"),
        ("scaleDownUtilizationThreshold: 2", "autoscaler.scaleDownUtilizationThreshold: Expected `float` <= 1.0"),
        ("expander: cheapest", "autoscaler.expander: Invalid enum value 'cheapest'"),
        ("expander: price", "autoscaler.expander: a pool with autoscale has no price"),
    ],
)
def test_errors_of_the_autoscaler_have_a_line(tmp_path: Path, more: str, words: str) -> None:
    text = GOOD.replace("count: 2", "count: 2, autoscale: {max: 3}") + f"autoscaler: {{{more}}}\n"
    with pytest.raises(ScenarioError) as error:
        read(tmp_path, text)
    assert words in f"{error.value.text}"
    assert error.value.where == f"{tmp_path / 'scenario.yaml'}:10"
    with pytest.raises(ScenarioError, match="of no use to pods that are not tried again"):
        read(tmp_path, text.replace(f"autoscaler: {{{more}}}", "retry: false"))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("name: web, replicas", "name: Web, replicas", 6, "'Web' is no name of API objects"),
        ("name: small", "name: big_one", 3, "'big_one' is no name of API objects"),
        ("duration: 2h", "duration: 2h\nretry: false", 10, "always tries again"),
        ("replicas: 2,", "replicas: 2, lifetime: 1h,", 8, "web is no Deployment at the cluster level"),
        (SCALE, "rollout: {workload: web}", 8, "wanted cpu, memory or labels"),
        (SCALE, "rollout: {workload: web, labels: {app: b}}", 8, "the label app cannot change"),
        (SCALE, "rollout: {workload: web, cpu: much}", 8, "'much' is no quantity"),
    ],
)
def test_errors_of_the_cluster_level_have_a_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    path = tmp_path / "scenario.yaml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ScenarioError) as error:
        read_scenario(path, {}, "cluster")
    assert words in error.value.text
    assert error.value.where == f"{path}:{line}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        read_scenario(tmp_path / "none.yaml", {})


def test_texts() -> None:
    assert seconds("1d12h") == 36 * 3600
    assert seconds("90s") == 90
    assert rate_per_h("2/m") == 120
    assert seeds_of("42..44,7") == [42, 43, 44, 7]
    assert seeds_of(3) == [3]
