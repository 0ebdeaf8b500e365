"""The cluster and the workload of a scenario: dumps and traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import SweepTask, simulate
from mooring.simulator.sources import SimulationInput, read_input
from tests.simulator.test_traces import CPU_INSTANCE, GPU_INSTANCE, HEADER, deployment, event, trace, written

ROOT = Path(__file__).parents[2]
NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "200"}},
}
DUMP = "cluster: {dump: dump.json}\nworkload: {dump: {arrivals: replayed}}\n"
DLRM_POOL = (
    "cluster: {pools: [{name: p, count: 4, cpu: '96', memory: 512Gi, labels: {role: CN}, resources:"
    " {ephemeral-storage: 1Ti, mooring.dev/rdma-percent: '100'}}]}\n"
)


def a_pod(name: str, created: str | None, owner: str = "ReplicaSet") -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "w", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [reference]}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata | ({"creationTimestamp": created} if created is not None else {}),
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }


def read(folder: Path, text: str, *pods: dict[str, Any]) -> SimulationInput:
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE, *pods]}))
    (folder / "scenario.yaml").write_text(text)
    return read_input(read_scenario(folder / "scenario.yaml", {}), 1)


def test_a_replayed_dump_has_the_distances_of_creation_times(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        DUMP,
        a_pod("a", "2026-01-01T10:00:00Z"),
        a_pod("b", "2026-01-01T09:00:00Z"),
        a_pod("undated", None),
        a_pod("agent", "2020-01-01T00:00:00Z", owner="DaemonSet"),
    )
    assert [(arrival.at_s, arrival.pod.metadata.name) for arrival in found.workload.arrivals] == [
        (0.0, "b"),
        (3600.0, "a"),
    ]
    assert [arrival.pod.metadata.name for arrival in found.placed] == ["undated", "agent"]


def test_a_sampled_dump_leaves_pods_without_an_age_alone(tmp_path: Path) -> None:
    text = DUMP.replace("replayed", "sampled") + "duration: 24h\n"
    found = read(tmp_path, text, a_pod("a", "2026-01-01T10:00:00Z"), a_pod("undated", None))
    lifetimes = {arrival.pod.metadata.name: arrival.lifetime_s for arrival in found.placed}
    assert lifetimes["undated"] == float("inf") > lifetimes["a"]
    assert {arrival.owner for arrival in found.workload.arrivals} == {"shop/web"}


def test_a_dump_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"dump.json: pod shop/a: creationTimestamp: .*yesterday"):
        read(tmp_path, DUMP, a_pod("a", "yesterday"))
    (tmp_path / "scenario.yaml").write_text(DUMP)
    (tmp_path / "dump.json").write_text((tmp_path / "dump.json").read_text()[:-30])
    with pytest.raises(ScenarioError, match=r"dump.json"):
        read_input(read_scenario(tmp_path / "scenario.yaml", {}), 1)


def test_a_dlrm_trace_is_simulated(tmp_path: Path) -> None:
    written(tmp_path, HEADER + CPU_INSTANCE + GPU_INSTANCE)
    text = DLRM_POOL + "workload: {dlrm: {trace: trace.csv}}\n"
    (tmp_path / "scenario.yaml").write_text(text)
    scenario = read_scenario(tmp_path / "scenario.yaml", {})
    figures = simulate(scenario, "default", 1).figures
    assert (figures["placed"], figures["pending"]) == (1, 1), "no node has GPUs"


def test_the_plugin_of_the_example_limits_the_pods_of_an_application(tmp_path: Path) -> None:
    instances = [CPU_INSTANCE.replace("instance_9", f"instance_{n}").replace("-1", "2") for n in range(3)]
    instances = [line.replace(",64,64,", ",1,1,").replace("320.5,320.5,255.0,300.0", "1,1,1,1") for line in instances]
    other = instances[0].replace("instance_0", "instance_9").replace("app_130", "app_7")
    written(tmp_path, HEADER + "".join(instances) + other)
    text = DLRM_POOL.replace("count: 4", "count: 1") + "workload: {dlrm: {trace: trace.csv}}\n"
    (tmp_path / "scenario.yaml").write_text(
        text + f"plugins: ['{ROOT / 'examples/simulations/dlrm/max_per_node.py'}']\n"
    )
    figures = simulate(read_scenario(tmp_path / "scenario.yaml", {}), "default", 1).figures
    assert (figures["placed"], figures["pending"]) == (3, 1)


def test_the_example_can_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + CPU_INSTANCE + GPU_INSTANCE)
    scenario = read_scenario(ROOT / "examples/simulations/dlrm/experiment.yaml", {"trace": str(path)})
    assert list(scenario.policies) == ["default", "packing"]
    found = read_input(scenario, 1)
    roles = {node.metadata.labels["role"] for node in found.nodes}
    assert roles == {arrival.pod.spec.node_selector["role"] for arrival in found.workload.arrivals}


def test_a_simkube_trace_is_simulated_and_belongs_to_the_identity(tmp_path: Path) -> None:
    trace(tmp_path, event(0, deployment(3)), event(60, deployment(5)))
    text = "cluster: {pools: [{name: p, count: 2, cpu: '1', memory: 1Gi}]}\n"
    text += "workload: {simkube: {trace: cluster.sktrace}}\n"
    (tmp_path / "scenario.yaml").write_text(text)
    scenario = read_scenario(tmp_path / "scenario.yaml", {})
    figures = simulate(scenario, "default", 1).figures
    assert (figures["placed"], figures["pending"]) == (4, 1)
    identity = SweepTask(scenario, "default", 1).identity()
    trace(tmp_path, event(0, deployment(3)), event(60, deployment(4)))
    assert SweepTask(scenario, "default", 1).identity() != identity


def test_pods_are_deleted_whether_they_run_or_wait(tmp_path: Path) -> None:
    trace(tmp_path, event(0, deployment(6)), event(60, deployment(5)), event(90, deployment(1)), event(120))
    text = "cluster: {pools: [{name: p, count: 2, cpu: '1', memory: 1Gi}]}\nduration: 100s\nsamples: {every: 50s}\n"
    (tmp_path / "scenario.yaml").write_text(text + "workload: {simkube: {trace: cluster.sktrace}}\n")
    result = simulate(read_scenario(tmp_path / "scenario.yaml", {}), "default", 1)
    assert [(sample["running"], sample["pending"]) for sample in result.samples] == [(4, 2), (4, 2), (1, 0)]


def test_resources_of_pools_are_checked(tmp_path: Path) -> None:
    text = DLRM_POOL.replace("1Ti", "large") + "workload: {dlrm: {trace: trace.csv}}\n"
    (tmp_path / "scenario.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=r"yaml:1: cluster.pools\[0\].resources.ephemeral-storage: 'large' is no"):
        read_scenario(tmp_path / "scenario.yaml", {})
