"""The node autoscaler: when pools grow and shrink, at both levels."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mooring.api.decode import convert_as
from mooring.api.views.pod import Pod
from mooring.kit.entropy import Entropy
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.plan.slices import run_to_end
from mooring.scheduler.plan.what_if import WhatIf
from mooring.simulator.autoscaler import ScaleUpOption, choose_option, scale_up_options
from mooring.simulator.scenario.fields import Pool
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import SimulationResult, simulate
from mooring.simulator.sources import NodePools

LEVELS = pytest.mark.parametrize("level", ["engine", "cluster"])
POOL = 'cluster: {pools: [{name: node, count: 1, cpu: "4", memory: 16Gi, price: 0.5, autoscale: AUTOSCALE}]}\n'


def run(
    folder: Path, level: str, workload: str, events: str = "", more: str = "", limits: str = "max: 3", seed: int = 1
) -> SimulationResult:
    path = folder / "scenario.yaml"
    pool = POOL.replace("AUTOSCALE", f"{{{limits}}}")
    path.write_text(f"{pool}workload: {{pods: [{workload}]}}\nevents: [{events}]\nsamples: {{every: 1m}}\n{more}\n")
    return simulate(read_scenario(path, {}, level), "default", seed)


def samples(result: SimulationResult, name: str, minutes: tuple[int, ...]) -> list[float]:
    return [result.samples[minute][name] for minute in minutes]


WEB = "{name: web, replicas: 4, cpu: '1', memory: 1Gi, startup: 0s}"


def scaled(minute: int, replicas: int) -> str:
    return f"{{at: {minute}m, scale: {{workload: web, replicas: {replicas}}}}}"


@LEVELS
def test_nodes_are_added_for_pending_pods_and_are_there_after_their_delay(tmp_path: Path, level: str) -> None:
    result = run(tmp_path, level, WEB, scaled(5, 9), "duration: 15m", "max: 9, delay: 3m")
    # Nine pods need three nodes: two are requested together, by the scan after 5 min.
    assert samples(result, "nodes", (5, 7, 9, 14)) == [1, 1, 3, 3]
    assert samples(result, "pending", (7, 9, 14)) == [5, 0, 0]
    assert 180 < result.figures["p99_wait_s"] <= 205
    assert (result.figures["nodes_added"], result.figures["nodes_removed"]) == (2, 0)
    assert result.figures["cost"] == pytest.approx(0.5 * result.figures["node_hours"])


@LEVELS
def test_a_pool_does_not_exceed_its_maximum(tmp_path: Path, level: str) -> None:
    result = run(tmp_path, level, WEB, scaled(5, 40), "duration: 30m", "max: 3")
    assert max(sample["nodes"] for sample in result.samples) == 3
    assert (result.figures["nodes_added"], result.figures["pending"]) == (2, 28)


@LEVELS
@pytest.mark.parametrize(
    "pod", ["cpu: '5', memory: 1Gi", "cpu: '1', memory: 17Gi", "cpu: '1', memory: 1Gi, priority: -11"]
)
def test_no_node_is_added_for_a_pod_that_fits_on_none_or_is_expendable(tmp_path: Path, level: str, pod: str) -> None:
    result = run(tmp_path, level, f"{WEB}, {{name: large, replicas: 2, {pod}}}", more="duration: 20m")
    assert (result.figures["nodes_added"], result.figures["pending"]) == (0, 2)


@LEVELS
def test_no_node_is_added_while_requested_ones_suffice(tmp_path: Path, level: str) -> None:
    result = run(tmp_path, level, WEB, f"{scaled(5, 6)}, {scaled(7, 8)}", "duration: 20m", "max: 9, delay: 5m")
    assert result.figures["nodes_added"] == 1


@LEVELS
def test_unneeded_nodes_are_removed_after_ten_minutes_(tmp_path: Path, level: str) -> None:
    events = f"{scaled(5, 16)}, {scaled(30, 3)}"
    result = run(tmp_path, level, WEB, events, "duration: 90m", "max: 4")
    assert samples(result, "nodes", (29, 39)) == [4, 4]
    # Three pods fit on one node; if two had been on one and one on another, a drain follows the removal of empty nodes.
    assert result.samples[-1]["nodes"] == 1
    assert (result.figures["nodes_added"], result.figures["nodes_removed"], result.figures["pending"]) == (3, 3, 0)
    later = run(tmp_path, level, WEB, events, "duration: 90m\nautoscaler: {scaleDownUnneededTime: 1h}", "max: 4")
    assert later.figures["nodes_removed"] == 0


@LEVELS
def test_the_minimum_stays(tmp_path: Path, level: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        'cluster: {pools: [{name: node, count: 4, cpu: "4", memory: 16Gi, autoscale: {min: 2, max: 4}}]}\n'
        "workload: {pods: [{name: web, replicas: 1, cpu: '1', memory: 1Gi}]}\nduration: 1h\n"
    )
    figures = simulate(read_scenario(path, {}, level), "default", 1).figures
    # From 10 min on two nodes instead of four; the removal takes seconds.
    assert figures["node_hours"] == pytest.approx(2 + 2 / 6, abs=0.02)
    assert figures["nodes_removed"] == 2


@LEVELS
def test_nodes_stay_for_ten_minutes_after_a_scale_up(tmp_path: Path, level: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "cluster:\n  pools:\n"
        '    - {name: idle, count: 2, cpu: "1", memory: 16Gi, autoscale: {min: 1, max: 2}}\n'
        '    - {name: node, count: 0, cpu: "4", memory: 16Gi, autoscale: {max: 2}}\n'
        "workload: {pods: [{name: web, replicas: 0, cpu: '2', memory: 1Gi}]}\n"
        "events: [{at: 9m, scale: {workload: web, replicas: 1}}]\nduration: 30m\nsamples: {every: 1m}\n"
    )
    result = simulate(read_scenario(path, {}, level), "default", 1)
    # An idle node is unneeded after 10 min, but a node of the other pool was requested after 9 min.
    assert samples(result, "nodes", (8, 12, 18, 21)) == [2, 3, 3, 2]


@LEVELS
@pytest.mark.parametrize(
    ("more", "removed"),
    [("priority: 0", 1), ("maxUnavailable: 1", 1), ("minAvailable: 2", 0), ("maxUnavailable: 0", 0), ("bare: true", 0)],
)
def test_pods_are_moved_if_budgets_and_controllers_allow_it(
    tmp_path: Path, level: str, more: str, removed: int
) -> None:
    """Two nodes have a pod each, which would fit on one of them."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        'cluster: {pools: [{name: node, count: 2, cpu: "4", memory: 16Gi, autoscale: {max: 2}}]}\n'
        f"workload: {{pods: [{{name: web, replicas: 2, cpu: '1', memory: 1Gi, {more}}}]}}\nduration: 1h\n"
    )
    figures = simulate(read_scenario(path, {}, level), "default", 1).figures
    assert (figures["nodes_removed"], figures["evictions"], figures["pending"]) == (removed, removed, 0)


@LEVELS
def test_pods_are_not_moved_where_they_would_preempt_others(tmp_path: Path, level: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "cluster:\n  pools:\n"
        '    - {name: full, count: 1, cpu: "4", memory: 16Gi}\n'
        '    - {name: node, count: 1, cpu: "16", memory: 16Gi, autoscale: {max: 1}}\n'
        "workload:\n  pods:\n    - {name: low, replicas: 1, cpu: '4', memory: 12Gi}\n"
        "    - {name: high, replicas: 1, cpu: '4', memory: 7Gi, priority: 9}\n"
        "events: [{at: 0s, cordon: {pool: node, count: 1, for: 1s}}]\nduration: 1h\n"
    )
    figures = simulate(read_scenario(path, {}, level), "default", 1).figures
    assert (figures["nodes_removed"], figures["preemptions"]) == (0, 0)


def test_a_drain_that_a_budget_holds_up_ends_and_the_node_is_uncordoned(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        'cluster: {pools: [{name: node, count: 2, cpu: "8", memory: 16Gi, autoscale: {max: 2}}]}\n'
        "workload: {pods: [{name: web, replicas: 4, cpu: '1', memory: 1Gi, startup: 4m, maxUnavailable: 1}]}\n"
        "level: cluster\nduration: 19m\nsamples: {every: 1m}\n"
    )
    result = simulate(read_scenario(path, {}), "default", 1)
    # The second pod of the node may go when the first one is ready elsewhere, after 4 min; the drain ends after 2 min.
    assert (result.figures["evictions"], result.figures["nodes_removed"]) == (1, 0)
    path.write_text(path.read_text().replace("startup: 4m", "startup: 90s"))
    sooner = simulate(read_scenario(path, {}), "default", 1)
    assert (sooner.figures["evictions"], sooner.figures["nodes_removed"]) == (2, 1)


@LEVELS
def test_a_failed_node_is_removed_after_20_minutes_and_counts_until_then(tmp_path: Path, level: str) -> None:
    result = run(
        tmp_path,
        level,
        WEB,
        f"{scaled(1, 8)}, {{at: 15m, fail: {{pool: node, count: 1}}}}",
        "duration: 60m",
        "max: 2",
    )
    # One node of two failed: a third one may come only when the failed one is gone.
    assert samples(result, "nodes", (14, 16, 34, 40)) == [2, 1, 1, 2]
    assert (result.figures["nodes_added"], result.figures["nodes_removed"], result.figures["pending"]) == (2, 1, 0)


@LEVELS
def test_plans_of_the_autoscaler_change_no_decision(tmp_path: Path, level: str) -> None:
    """It asks in every scan which nodes are unneeded, and acts after the end."""
    path = tmp_path / "scenario.yaml"
    text = (
        'cluster: {pools: [{name: node, count: 9, zones: 3, cpu: "4", memory: 16Gi AUTOSCALE}]}\nworkload:\n  pods:\n'
        "    - {name: web, replicas: 4, cpu: '1', memory: 1Gi, maxUnavailable: 1}\n"
        "    - {name: job, rate: 90/h, lifetime: 6m, cpu: '1', memory: 1Gi}\nduration: 1h\n"
    )
    placements = []
    for limits, settings in (("", ""), (", autoscale: {max: 9}", "autoscaler: {scaleDownUnneededTime: 2h}\n")):
        path.write_text(text.replace("AUTOSCALE", limits) + settings)
        placements.append(simulate(read_scenario(path, {}, level), "default", 1, keeps_placements=True).placements)
    assert len(placements[0]) > 50
    assert placements[0] == placements[1]


@LEVELS
def test_a_seed_gives_the_same_bytes(tmp_path: Path, level: str) -> None:
    job = "{name: job, rate: 120/h, lifetime: 6m, cpu: '1', memory: 1Gi}"
    more = "duration: 1h\nautoscaler: {expander: random, scaleDownUnneededTime: 2m, scaleDownDelayAfterAdd: 2m}"
    first, again, other = (
        msgspec.json.encode(run(tmp_path, level, f"{WEB}, {job}", more=more, limits="max: 12", seed=seed))
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


# --- Which pool grows -------------------------------------------------------------------------------------------

SMALL = Pool("small", 0, "4", "16Gi", price=0.2)
LARGE = Pool("large", 0, "16", "64Gi", price=1.0)
LEAN = Pool("lean", 0, "16", "8Gi", price=0.7)


def pending(number: int, cpu: str, zone: str = "") -> Pod:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    selector = {"topology.kubernetes.io/zone": zone} if zone else {}
    spec = {"containers": containers, "nodeSelector": selector, "preemptionPolicy": "Never"}
    return convert_as(Pod, {"metadata": {"name": f"pod-{number}", "namespace": "default"}, "spec": spec})


def options_for(pods: list[Pod], *pools: Pool, room: int = 9, requested: int = 0) -> list[ScaleUpOption]:
    engine = Engine(load_configuration(None), entropy=Entropy(1))
    numbered = NodePools(pools)
    with WhatIf(engine, 1) as what_if:
        steps = scale_up_options(
            what_if,
            [engine.record(pod) for pod in pods],
            numbered.add(pools[0].name, requested),
            {pool.name: numbered.next_nodes(pool.name, room) for pool in pools},
            {pool.name: pool for pool in pools},
        )
        return run_to_end(steps)


@pytest.mark.parametrize(
    ("expander", "cpus", "pool", "nodes"),
    [
        ("", ["1"] * 8, "small", 2),  # 0.4 an hour instead of 0.7 and 1.0
        ("price", ["3"] * 4, "lean", 1),  # 0.7 instead of 0.8 for four small nodes
        ("", ["8"], "lean", 1),  # fits on no small node
        ("least-waste", ["4"], "small", 1),
        ("least-waste", ["8", "8"], "lean", 1),
        ("most-pods", ["8", "1", "1"], "large", 1),
    ],
)
def test_expanders(expander: str, cpus: list[str], pool: str, nodes: int) -> None:
    options = options_for([pending(number, cpu) for number, cpu in enumerate(cpus)], SMALL, LARGE, LEAN)
    chosen = choose_option(options, expander, Entropy(1))
    assert (chosen.pool.name, len(chosen.nodes)) == (pool, nodes)


def test_ties_are_broken_by_the_seed() -> None:
    options = options_for([pending(1, "1")], SMALL, LARGE)
    assert {choose_option(options, "random", Entropy(seed)).pool.name for seed in range(9)} == {"small", "large"}
    assert {choose_option(options, "most-pods", Entropy(seed)).pool.name for seed in range(9)} == {"small", "large"}


def test_a_pool_without_prices_grows_by_the_least_waste() -> None:
    pools = [msgspec.structs.replace(pool, price=0.0) for pool in (LARGE, SMALL)]
    assert choose_option(options_for([pending(1, "2")], *pools), "", Entropy(1)).pool.name == "small"


def test_nodes_are_in_zones_in_turn() -> None:
    zoned = msgspec.structs.replace(SMALL, zones=3)
    (option,) = options_for([pending(1, "1", "zone-2")], zoned)
    assert [node.metadata.name for node in option.nodes] == ["small-0", "small-1", "small-2"]
    assert options_for([pending(1, "1", "zone-3")], zoned) == []
    (after,) = options_for([pending(1, "1", "zone-2")], zoned, requested=1)
    assert [node.metadata.name for node in after.nodes] == ["small-1", "small-2"]
    assert options_for([pending(1, "1", "zone-2")], zoned, requested=3) == []
