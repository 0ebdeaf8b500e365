"""One simulation, at the level of its scenario: a pure function of a scenario, a policy and a seed."""

from __future__ import annotations

import msgspec

from mooring.simulator.engine_level import simulate_engine
from mooring.simulator.measures import Figures, Progress
from mooring.simulator.scenario.fields import Scenario


class SimulationResult(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one simulation."""

    policy: str
    seed: int
    figures: Figures
    samples: list[Figures]
    wait_percentiles_s: list[float] = []
    """The percentiles 0 to 100 of the waiting times."""
    node_maps: list[list[int]] = []
    """For each sample, how much of each node is used (`SimulationMeter.node_maps`)."""
    placements: dict[str, str] = {}
    """The first node of each placed pod, if placements are kept."""


def simulate(
    scenario: Scenario,
    policy: str,
    seed: int,
    progress: Progress = lambda share: None,
    *,
    keeps_placements: bool = False,
) -> SimulationResult:
    """Raises `ScenarioError`."""
    if scenario.level == "cluster":
        from mooring.simulator.cluster_level import simulate_cluster  # the whole of Mooring

        found = simulate_cluster(scenario, policy, seed, progress, keeps_placements)
    else:
        found = simulate_engine(scenario, policy, seed, progress, keeps_placements)
    figures, meter, pending_waits_s = found
    return SimulationResult(
        policy,
        seed,
        figures,
        meter.samples,
        meter.wait_percentiles_s(pending_waits_s),
        meter.node_maps(),
        meter.placements or {},
    )
