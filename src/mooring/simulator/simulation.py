"""One simulation, at the level of its scenario: a pure function of a scenario, a policy and a seed.

1. The identity of a simulation is a hash of everything that it reads: the scenario without other policies and seeds,
   the contents of its files, and the version of Mooring. It does not depend on the names of files.
2. A stored result is used only for the same identity.
3. A result is stored when it is there: an interrupted sweep keeps what has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import msgspec

from mooring import __version__
from mooring.simulator.engine_level import simulate_engine
from mooring.simulator.errors import ScenarioError
from mooring.simulator.inputs import PackedInput, content_hash, unpacked_inputs
from mooring.simulator.measures import Figures, Progress
from mooring.simulator.scenario.fields import Scenario
from mooring.simulator.scenario.reading import with_files


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


# --- simulations of a sweep -----------------------------------------------------------------------------------


RESULTS_FOLDER = "runs"


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One simulation of a sweep."""

    scenario: Scenario
    policy: str
    seed: int
    keeps_placements: bool = False

    def identity(self) -> str:
        """A hash of all inputs. Raises `ScenarioError` if a file cannot be read."""
        own = msgspec.structs.replace(self._own_scenario(), seeds=str(self.seed), parameters={})
        digest = blake2b(digest_size=16)
        digest.update(__version__.encode())
        digest.update(msgspec.json.encode(with_files(own, content_hash)))
        digest.update(b"placements" if self.keeps_placements else b"")
        return digest.hexdigest()

    def input_names(self) -> list[str]:
        """The files and folders that the simulation reads."""
        names: dict[str, str] = {}
        with_files(self._own_scenario(), lambda name: names.setdefault(name, name))
        return list(names)

    def run_with_inputs(self, identity: str, inputs: Mapping[str, PackedInput]) -> SimulationResult:
        """Simulate in a worker that does not have the files. Raises `ScenarioError`."""
        with unpacked_inputs(inputs) as path_of:
            scenario = with_files(self._own_scenario(), path_of.__getitem__)
            return replace(self, scenario=scenario).run(identity, lambda share: None)

    def _own_scenario(self) -> Scenario:
        """Without other policies."""
        policies = {self.policy: self.scenario.policies[self.policy]}
        return msgspec.structs.replace(self.scenario, policies=policies)

    def run(self, identity: str, progress: Progress) -> SimulationResult:
        """Simulate in a worker, which must read what the sender has read. Raises `ScenarioError`."""
        if self.identity() != identity:
            text = (
                "the files of the scenario have changed since the sweep began, or this worker's Mooring is not the same"
            )
            raise ScenarioError("", f"{text}: it has {__version__}")
        return simulate(self.scenario, self.policy, self.seed, progress, keeps_placements=self.keeps_placements)


class ResultStore:
    """Results in a folder, one file for each simulation. Raises `ScenarioError` if nothing can be written there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / RESULTS_FOLDER
        self._write("writable", b"")
        (self._folder / "writable").unlink()

    def load(self, identity: str) -> SimulationResult | None:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._file(identity).read_bytes(), type=SimulationResult)
        return None

    def save(self, identity: str, result: SimulationResult) -> None:
        file = self._file(identity)
        self._write(f"{identity}.tmp", msgspec.json.encode(result))
        file.with_suffix(".tmp").replace(file)

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_bytes(content)
        except OSError as error:
            raise ScenarioError(str(self._folder), f"cannot be written: {error.strerror or error}") from error

    def _file(self, identity: str) -> Path:
        return self._folder / f"{identity}.json"
