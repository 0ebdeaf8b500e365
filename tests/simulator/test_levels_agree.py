"""Both levels place bare pods on the same nodes, as long as no pod has to wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.kit.entropy import Entropy
from mooring.simulator.measures import SimulationMeter
from mooring.simulator.scenario.reading import read_scenario
from mooring.simulator.simulation import simulate

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
