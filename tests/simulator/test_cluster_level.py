"""Simulations at cluster level: rollouts, self-healing, node loss, drains, determinism; the levels agree."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from mooring.kit.entropy import Entropy
from mooring.simulator.errors import ScenarioError
from mooring.simulator.measures import SimulationMeter
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import SimulationResult, simulate

POOL = 'cluster: {pools: [{name: node, count: 3, cpu: "4", memory: 8Gi, price: 0.5}]}\n'
WEB = 'workload: {pods: [{name: web, replicas: 6, cpu: "1", memory: 1Gi, startup: 10s}]}\n'


def run(folder: Path, text: str, seed: int = 1, level: str = "cluster") -> SimulationResult:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return simulate(read_scenario(path, {}, level), "default", seed)


def samples(result: SimulationResult, name: str) -> list[float]:
    return [sample[name] for sample in result.samples]


def test_replicas_are_a_deployment_that_is_scaled(tmp_path: Path) -> None:
    text = (
        POOL + WEB + "events: [{at: 10m, scale: {workload: web, replicas: 9}}]\nduration: 20m\nsamples: {every: 5m}\n"
    )
    result = run(tmp_path, text)
    assert samples(result, "running") == [6, 6, 9, 9, 9]
    figures = result.figures
    assert (figures["placed"], figures["pending"], figures["evictions"]) == (9, 0, 0)
    assert figures["cpu_allocation_percent"] == pytest.approx(100 * (6 + 9) / 2 / 12)
    assert figures["cost"] == pytest.approx(0.5)


def test_a_rollout_replaces_pods_and_its_length_is_a_figure(tmp_path: Path) -> None:
    text = POOL + WEB + "events: [{at: 5m, rollout: {workload: web, cpu: 1500m, labels: {v: two}}}]\nduration: 15m\n"
    figures = run(tmp_path, text).figures
    assert figures["placed"] == 12
    assert figures["evictions"] == 0
    # A quarter of the pods may be missing or too many, so the new ones start in several steps of 10 s.
    assert 20 <= figures["rollout_s"] <= 60


def test_pods_of_a_lost_node_are_evicted_and_created_again(tmp_path: Path) -> None:
    text = (
        POOL + WEB + "events: [{at: 5m, fail: {pool: node, count: 1, for: 20m}}]\nduration: 40m\nsamples: {every: 5m}\n"
    )
    result = run(tmp_path, text)
    # 50 s until the node counts as lost, and 300 s until its pods are evicted; they stay on it until it is back.
    assert samples(result, "running")[:2] == [6, 6]
    assert samples(result, "running")[3:7] == [8, 8, 8, 6]
    assert result.figures["evictions"] == 2
    assert result.figures["placed"] == 8
    assert result.figures["cost"] == pytest.approx(0.5 * (2 * 40 + 20) / 60)


def test_a_pod_with_a_lifetime_has_a_job_and_a_bare_one_has_not(tmp_path: Path) -> None:
    text = (
        POOL + 'workload: {pods: [{name: job, rate: 60/h, lifetime: 5m, cpu: "1", memory: 1Gi}]}\n'
        "events: [{at: 30m, every: 1m, drain: {pool: node, count: 1, for: 30s}}]\nduration: 45m\n"
    )
    again = run(tmp_path, text).figures
    assert again["evictions"] > 0
    lost = run(tmp_path, text.replace("name: job", "name: job, bare: true")).figures
    assert lost["evictions"] > 0
    assert again["placed"] > lost["placed"]


BUDGET = "workload: {pods: [{name: web, replicas: 3, cpu: '2', memory: 1Gi, startup: 1m, LIMIT}]}\n"


@pytest.mark.parametrize(
    ("level", "limit", "expected"),
    [
        # Without a budget the drains follow each other within seconds. With one the next pod has to be ready first.
        ("cluster", "labels: {}", (3, 0, 10)),
        ("cluster", "maxUnavailable: 1", (3, 60, 200)),
        ("cluster", "minAvailable: 3", (0, 1500, 1500)),
        ("engine", "labels: {}", (3, 0, 10)),
        ("engine", "minAvailable: 3", (0, 1500, 1500)),
    ],
)
def test_drains_respect_budgets(tmp_path: Path, level: str, limit: str, expected: tuple[int, float, float]) -> None:
    text = (
        "cluster:\n  pools:\n    - {name: old, count: 3, cpu: '2', memory: 8Gi}\n"
        "    - {name: new, count: 0, cpu: '8', memory: 8Gi}\n"
        + BUDGET.replace("LIMIT", limit)
        + "events: [{at: 5m, add: {pool: new, count: 1}}, {at: 5m, drain: {pool: old}}]\nduration: 30m\n"
    )
    figures = run(tmp_path, text, level=level).figures
    evictions, at_least_s, at_most_s = expected
    assert figures["evictions"] == evictions
    assert at_least_s <= figures["drain_s"] <= at_most_s
    assert figures["pending"] == 0


@pytest.mark.parametrize("level", ["engine", "cluster"])
@pytest.mark.parametrize(("surge", "nodes_at_most"), [(1, 4), (2, 5), (0, 3)])
def test_an_upgrade_replaces_every_node(tmp_path: Path, level: str, surge: int, nodes_at_most: int) -> None:
    text = (
        POOL + WEB + f"events: [{{at: 5m, upgrade: {{pool: node, surge: {surge}, delay: 2m}}}}]\nduration: 30m\n"
        "samples: {every: 30s}\n"
    )
    result = run(tmp_path, text, level=level)
    capacity = [100 * sample["running"] / sample["cpu_allocation_percent"] for sample in result.samples]
    assert round(max(capacity) / 4) == nodes_at_most
    assert capacity[-1] == pytest.approx(12)
    assert result.figures["evictions"] >= 6
    steps = 3 if surge < 2 else 2
    assert 120 * steps <= result.figures["upgrade_s"] <= 120 * steps + 60
    assert (result.figures["pending"], result.samples[-1]["running"]) == (0, 6)


@pytest.mark.parametrize("level", ["engine", "cluster"])
def test_random_failures_follow_their_rate(tmp_path: Path, level: str) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 12, cpu: "4", memory: 8Gi, price: 1.0}]}\n'
        "workload: {pods: [{name: web, replicas: 1, cpu: '1', memory: 1Gi}]}\n"
        "events: [{at: 0s, fail: {pool: node, mtbf: 30m, for: 10m}}]\nduration: 3h\n"
    )
    figures = run(tmp_path, text, level=level).figures
    # A node is down for 10 min after 30 min on average. Failed nodes cost nothing.
    assert figures["cost"] == pytest.approx(12 * 3 * 30 / 40, rel=0.1)
    assert figures["cost"] != run(tmp_path, text, seed=2, level=level).figures["cost"]


def test_higher_priority_preempts(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 1, cpu: "4", memory: 8Gi}]}\nworkload:\n  pods:\n'
        '    - {name: low, replicas: 4, cpu: "1", memory: 1Gi}\n'
        '    - {name: high, replicas: 0, cpu: "2", memory: 1Gi, priority: 9}\n'
        "events: [{at: 10m, scale: {workload: high, replicas: 1}}]\nduration: 20m\n"
    )
    figures = run(tmp_path, text).figures
    assert (figures["preemptions"], figures["evictions"], figures["pending"], figures["placed"]) == (1, 2, 2, 5)


def test_a_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 4, cpu: "4", memory: 8Gi}]}\nworkload:\n  pods:\n'
        '    - {name: web, replicas: 5, cpu: "1", memory: 1Gi, maxUnavailable: 50%}\n'
        '    - {name: job, rate: 120/h, lifetime: 4m, cpu: "1", memory: 1Gi}\n'
        "events:\n  - {at: 3m, rollout: {workload: web, memory: 2Gi}}\n"
        "  - {at: 8m, drain: {pool: node, count: 1, for: 1m}}\n"
        "  - {at: 10m, fail: {pool: node, mtbf: 30m, for: 5m}}\nduration: 30m\n"
    )
    first, again, other = (msgspec.json.encode(run(tmp_path, text, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def dump(folder: Path) -> None:
    nodes = [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": f"n{number}"},
            "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "200"}},
        }
        for number in range(2)
    ]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    owner = {
        "kind": "ReplicaSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": "web", "namespace": "shop", "uid": "w"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True}
    pods = [
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": f"web-{number}",
                "namespace": "shop",
                "uid": f"u{number}",
                "labels": {"app": "web"},
                "ownerReferences": [reference],
                "creationTimestamp": f"2026-01-01T0{number}:00:00Z",
            },
            "spec": {"nodeName": "n0", "containers": [container]},
        }
        for number in range(4)
    ]
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*nodes, owner, *pods]}))


@pytest.mark.parametrize(
    ("workload", "running", "evictions"),
    [
        # The ReplicaSet of the dump creates evicted pods again.
        ("pods: [{name: other, replicas: 1, cpu: '1', memory: 1Gi}]", [5, 5, 5, 5], 4),
        # Pods arrive at the distances of their creation, an hour each.
        ("dump: {arrivals: replayed}", [1, 2, 3, 4], 0),
    ],
)
def test_dumps(tmp_path: Path, workload: str, running: list[float], evictions: int) -> None:
    dump(tmp_path)
    events = "events: [{at: 30m, drain: {nodes: [n0]}}]\n" if evictions else ""
    text = f"cluster: {{dump: dump.json}}\nworkload: {{{workload}}}\n{events}duration: 3h\nsamples: {{every: 1h}}\n"
    result = run(tmp_path, text)
    assert samples(result, "running") == running
    assert result.figures["evictions"] == evictions


def test_what_the_cluster_rejects_is_an_error_of_the_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="an event at 60 s names node-7, which does not exist"):
        run(tmp_path, POOL + WEB + "events: [{at: 1m, cordon: {nodes: [node-7]}}]\nduration: 10m\n")
    with pytest.raises(ScenarioError, match=r"Deployment web: .*Invalid value"):
        run(tmp_path, POOL + WEB.replace("memory: 1Gi,", "memory: 1Gi, labels: {a: b c},") + "duration: 10m\n")
    with pytest.raises(ScenarioError, match="there is no such file"):
        run(tmp_path, POOL + WEB + "duration: 10m\nplugins: [none.py]\n")


def test_pods_are_compared_by_controller_and_order(tmp_path: Path) -> None:
    text = (
        'cluster: {pools: [{name: node, count: 1, cpu: "16", memory: 16Gi}]}\nworkload:\n  pods:\n'
        '    - {name: web, replicas: 2, cpu: "1", memory: 1Gi}\n'
        '    - {name: job, rate: 12/h, lifetime: 1m, cpu: "1", memory: 1Gi}\n'
        '    - {name: bare, rate: 12/h, bare: true, lifetime: 1m, cpu: "1", memory: 1Gi}\n'
        "events: [{at: 5m, scale: {workload: web, replicas: 4}}]\nduration: 10m\nlevel: cluster\n"
    )
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    result = simulate(read_scenario(path, {}), "default", 3, keeps_placements=True)
    names = list(result.placements)
    (replica_set,) = {name.partition(" #")[0] for name in names if name.startswith("default/web-")}
    assert [name for name in names if name.startswith(replica_set)] == [
        f"{replica_set} #{count}" for count in range(1, 5)
    ]
    assert "default/job-0 #1" in names
    assert "default/bare-0" in names
    assert len(names) == result.figures["placed"]


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
EVENTS = (
    "{at: 7m, cordon: {pool: small, count: 1, for: 9m}}",
    "{at: 11m, add: {pool: large, count: 1}}",
    "{at: 23m, drain: {pool: small, count: 1}}",
    "{at: 31m, upgrade: {pool: large, surge: 1, delay: 1m}}",
)


def scenario_text(seed: int) -> str:
    """Three to six kinds of pods on two pools that are never full, and some of the events."""
    chance = Entropy(seed, "scenario")
    groups = [
        f"    - {{name: g{number}, bare: true, startup: 0s, cpu: {100 * (1 + chance.integer_below(9))}m,"
        f" memory: {128 * (1 + chance.integer_below(6))}Mi, rate: {40 + chance.integer_below(60)}/h,"
        f" lifetime: {2 + chance.integer_below(12)}m}}"
        for number in range(3 + chance.integer_below(4))
    ]
    groups.append("    - {name: base, bare: true, startup: 0s, cpu: 300m, memory: 256Mi, replicas: 7}")
    events = [event for event in EVENTS if chance.uniform() < 0.6]
    return "\n".join(
        [
            "cluster:\n  pools:",
            '    - {name: small, count: 5, cpu: "16", memory: 64Gi, zones: 2}',
            '    - {name: large, count: 2, cpu: "48", memory: 192Gi, zones: 2}',
            "workload:\n  pods:",
            *groups,
            f"events: [{', '.join(events)}]",
            "duration: 45m\nties: name",
            "policies: {default: {}, packing: {config: packing.yaml}}",
        ]
    )


@pytest.mark.parametrize(("seed", "policy"), list(enumerate(["default", "packing"] * 3)))
def test_the_same_pods_on_the_same_nodes(
    seed: int, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packing.yaml").write_text(CONFIG)
    (tmp_path / "scenario.yaml").write_text(scenario_text(seed))
    bindings: dict[str, list[tuple[str, str]]] = {"engine": [], "cluster": []}
    results = {}
    for level, found in bindings.items():

        def record(meter: SimulationMeter, key: str, node: str, wait_s: float) -> None:
            assert wait_s == 0, f"{key} waits, so that the levels may differ"
            meter.placed += 1
            found.append((key, node))  # noqa: B023 - called in this round only

        monkeypatch.setattr(SimulationMeter, "pod_placed", record)
        results[level] = simulate(read_scenario(tmp_path / "scenario.yaml", {}, level), policy, seed)
    assert len(bindings["engine"]) > 50
    assert bindings["cluster"] == bindings["engine"]
    # Lifetimes are annotations with nanoseconds.
    assert results["cluster"].figures == pytest.approx(results["engine"].figures, rel=1e-6)
