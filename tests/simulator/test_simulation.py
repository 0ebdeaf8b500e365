"""Simulations at engine level: time, departures, retries, events and determinism."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.fields import Scenario
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import SimulationResult, simulate

POOL = 'cluster: {pools: [{name: node, count: 2, cpu: "4", memory: 8Gi, price: 0.5}]}\n'


def scenario(folder: Path, text: str) -> Scenario:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return read_scenario(path, {})


def run(folder: Path, text: str, seed: int = 1) -> SimulationResult:
    return simulate(scenario(folder, text), "default", seed)


def test_pods_that_fit_are_placed_at_once(tmp_path: Path) -> None:
    text = POOL + 'workload: {pods: [{name: web, replicas: 5, cpu: "1", memory: 1Gi}]}\nduration: 10h\n'
    figures = run(tmp_path, text).figures
    assert (figures["placed"], figures["pending"], figures["p99_wait_s"]) == (5, 0, 0)
    assert figures["cpu_allocation_percent"] == pytest.approx(62.5)
    assert figures["nodes_used"] == 2
    assert figures["cost"] == pytest.approx(10.0)


def test_pending_pods_wait_until_others_end(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 1, cpu: "1", memory: 8Gi}]}\n'
        'workload: {pods: [{name: job, replicas: 3, cpu: "1", memory: 1Gi, lifetime: 1h}]}\nduration: 2000h\n'
    )
    result = run(tmp_path, text)
    assert (result.figures["placed"], result.figures["pending"]) == (3, 0)
    assert result.figures["p99_wait_s"] > result.figures["p50_wait_s"] > 0
    assert result.samples[-1]["running"] == 0
    without_retry = run(tmp_path, text + "retry: false\n").figures
    assert (without_retry["placed"], without_retry["pending"]) == (1, 2)


def test_a_pod_that_waits_at_the_end_counts(tmp_path: Path) -> None:
    text = POOL + 'workload: {pods: [{name: big, replicas: 1, cpu: "5", memory: 1Gi}]}\nduration: 1h\n'
    figures = run(tmp_path, text).figures
    assert (figures["placed"], figures["pending"], figures["p50_wait_s"]) == (0, 1, 3600)


def test_higher_priority_preempts(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 1, cpu: "4", memory: 8Gi}]}\nworkload:\n  pods:\n'
        '    - {name: low, replicas: 4, cpu: "1", memory: 1Gi}\n'
        '    - {name: high, replicas: 0, cpu: "2", memory: 1Gi, priority: 9}\n'
        "events: [{at: 1h, scale: {workload: high, replicas: 1}}]\nduration: 2h\n"
    )
    figures = run(tmp_path, text).figures
    assert (figures["preemptions"], figures["evictions"], figures["pending"], figures["placed"]) == (1, 2, 2, 5)


def test_pods_of_failed_nodes_are_created_again(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: web, replicas: 8, cpu: "1", memory: 1Gi}]}\n'
        "events: [{at: 1h, fail: {pool: node, count: 1, for: 1h}}]\nduration: 4h\nsamples: {every: 30m}\n"
    )
    result = run(tmp_path, text)
    assert result.figures["evictions"] == 4
    assert [sample["pending"] for sample in result.samples] == [0, 0, 4, 4, 0, 0, 0, 0, 0]
    assert result.figures["placed"] == 8
    assert result.figures["cost"] == pytest.approx(0.5 * 7)


def test_cordoned_nodes_take_no_pods_and_removed_ones_do_not_come_back(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: web, replicas: 4, cpu: "1", memory: 1Gi}]}\nevents:\n'
        "  - {at: 0s, cordon: {nodes: [node-0]}}\n  - {at: 1h, remove: {nodes: [node-1]}}\n"
        "  - {at: 2h, uncordon: {nodes: [node-0]}}\n  - {at: 3h, add: {pool: node, count: 1}}\nduration: 4h\n"
        "samples: {every: 1h}\n"
    )
    samples = run(tmp_path, text).samples
    assert [(sample["nodes_used"], sample["pending"]) for sample in samples] == [(1, 0), (0, 4), (1, 0), (1, 0), (1, 0)]
    with pytest.raises(ScenarioError, match=r"an event at 0 s names node-7, which does not exist"):
        run(tmp_path, text.replace("node-0", "node-7"))


def test_scaling_down_removes_pending_pods_first(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: web, replicas: 10, cpu: "1", memory: 1Gi}]}\n'
        "events: [{at: 1h, scale: {workload: web, replicas: 7}}]\nduration: 2h\nsamples: {every: 1h}\n"
    )
    samples = run(tmp_path, text).samples
    assert [(sample["running"], sample["pending"]) for sample in samples] == [(8, 2), (7, 0), (7, 0)]


def test_an_event_is_repeated(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: web, replicas: 1, cpu: "1", memory: 1Gi}]}\n'
        "events: [{at: 1h, every: 1h, add: {pool: node, count: 1}}]\nduration: 210m\nsamples: {every: 210m}\n"
    )
    # Two nodes for one hour, then three, four, and five for half an hour.
    assert run(tmp_path, text).figures["cost"] == pytest.approx(0.5 * (2 + 3 + 4 + 5 / 2))


def test_a_seed_gives_one_result_and_all_policies_the_same_pods(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: job, rate: 20/h, lifetime: 20m, cpu: "1", memory: 1Gi}]}\n'
        "events: [{at: 2h, fail: {pool: node, count: 1, for: 1h}}]\nduration: 12h\npolicies: {default: {}, other: {}}\n"
    )
    wanted = scenario(tmp_path, text)
    first, again, other = (simulate(wanted, policy, 1) for policy in ("default", "default", "other"))
    assert first == again
    assert first.figures == other.figures
    assert first.figures != simulate(wanted, "default", 2).figures


def test_ties_by_name(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 9, cpu: "4", memory: 8Gi}]}\n'
        'workload: {pods: [{name: web, replicas: 1, cpu: "1", memory: 1Gi}]}\nduration: 1h\nties: name\n'
        "events: [{at: 0s, remove: {nodes: [node-0]}}, {at: 30m, remove: {nodes: [node-1]}}]\n"
    )
    assert run(tmp_path, text, seed=4).figures["evictions"] == 1


def test_a_dump_with_an_arrival_model(tmp_path: Path) -> None:
    node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}
    node["status"] = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "200"}}
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True}]
    pods = [
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": f"web-{number}",
                "namespace": "shop",
                "uid": f"u{number}",
                "ownerReferences": owner,
                "creationTimestamp": f"2026-01-01T{number:02}:00:00Z",
            },
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        }
        for number in range(12)
    ]
    dump = {"kind": "List", "apiVersion": "v1", "items": [node, *pods]}
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    text = "cluster: {dump: dump.json}\nworkload: {dump: {arrivals: sampled}}\nduration: 480h\nsamples: {every: 24h}\n"
    result = run(tmp_path, text)
    # The mean age is 5.5 h, so 12 pods are replaced about 87 times in 480 h, and their number stays about the same.
    assert 700 < result.figures["placed"] < 1400
    assert 8 < sum(sample["running"] for sample in result.samples) / len(result.samples) < 16
    replayed = run(tmp_path, text.replace("sampled", "replayed").replace("480h", "24h").replace("24h}", "1h}"))
    assert [sample["running"] for sample in replayed.samples][:13] == [*range(1, 13), 12]


def test_errors_name_the_policy_and_the_file(tmp_path: Path) -> None:
    text = POOL + "workload: {pods: [{name: web, replicas: 1, cpu: '1', memory: 1Gi}]}\nduration: 1h\n"
    with pytest.raises(ScenarioError, match="there is no such file"):
        run(tmp_path, text + "plugins: [none.py]\n")
    with pytest.raises(ScenarioError) as error:
        (tmp_path / "own.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Wrong\n")
        run(tmp_path, text + "config: own.yaml\n")
    assert error.value.where.startswith(str(tmp_path / "own.yaml"))


def test_skew_is_the_difference_between_zones(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 3, cpu: "4", memory: 8Gi, zones: 3}]}\nworkload:\n  pods:\n'
        '    - {name: web, replicas: 6, cpu: "1", memory: 1Gi}\n    - {name: api, replicas: 1, cpu: "1", memory: 1Gi}\n'
        "duration: 2h\nsamples: {every: 1h}\n"
    )
    result = run(tmp_path, text)
    # Two pods of web are in each zone, and api is in one: its skew is the largest.
    assert [sample["zone_skew"] for sample in result.samples] == [1, 1, 1]
    assert result.figures["zone_skew"] == 1
    cordoned = text + "events: [{at: 0s, cordon: {nodes: [node-0, node-1]}}]\n"
    assert run(tmp_path, cordoned).figures["zone_skew"] == 4
    # Without its node, a zone does not count: three pods of web are in each of the others.
    removed = text.replace("replicas: 1,", "replicas: 0,") + "events: [{at: 90m, remove: {nodes: [node-0]}}]\n"
    assert [sample["zone_skew"] for sample in run(tmp_path, removed).samples] == [0, 0, 0]
    without_zones = run(tmp_path, text.replace(", zones: 3", "")).figures
    assert "zone_skew" not in without_zones


def test_load_counts_pending_pods(tmp_path: Path) -> None:
    text = POOL + 'workload: {pods: [{name: web, replicas: 10, cpu: "1", memory: 1Gi}]}\nduration: 1h\n'
    sample = run(tmp_path, text).samples[-1]
    assert (sample["load_percent"], sample["cpu_allocation_percent"]) == (125, 100)


def test_the_map_of_nodes_shows_their_fullest_resource(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: web, replicas: 1, cpu: "1", memory: 6Gi}]}\n'
        "events: [{at: 0s, cordon: {nodes: [node-0]}}, {at: 1h, remove: {nodes: [node-0]}}]\n"
        "duration: 1h\nsamples: {every: 1h}\n"
    )
    assert run(tmp_path, text).node_maps == [[0, 75], [-1, 75]]
    large = run(tmp_path, text.replace("count: 2", "count: 1000"))
    assert [len(node_map) for node_map in large.node_maps] == [112, 112]  # every ninth


def test_waiting_times_and_placements(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 1, cpu: "1", memory: 8Gi}]}\n'
        'workload: {pods: [{name: job, replicas: 3, cpu: "1", memory: 1Gi, lifetime: 1h}]}\nduration: 2000h\n'
    )
    result = simulate(scenario(tmp_path, text), "default", 1, keeps_placements=True)
    waits = result.wait_percentiles_s
    assert (len(waits), waits[0], waits[50]) == (101, 0.0, result.figures["p50_wait_s"])
    assert waits == sorted(waits)
    assert result.placements == {f"default/job-{number}": "node-0" for number in range(3)}
    assert run(tmp_path, text).placements == {}
