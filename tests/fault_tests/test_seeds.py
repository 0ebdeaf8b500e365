"""Clusters with faults and crashes reach the desired state, and the seeds report mutations of the code.

The scenario is a Deployment that is created, updated and scaled without other faults. Seeds crash components at random
times; in the scenario a component crashes at each of its requests.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass

import pytest

from mooring.api.kinds import DEPLOYMENT
from mooring.client.interface import PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from tests.fault_tests.checker import CheckedStore, InvariantChecker
from tests.fault_tests.control_plane import COMPONENTS, ControlPlane
from tests.fault_tests.faults import WRITES, Crash, FaultInjection
from tests.fault_tests.mutations import MUTATIONS, Mutation
from tests.fault_tests.run import (
    CPU_OF_NODE,
    collect_between,
    converge,
    kinds_of_seed,
    kubelets_of,
    open_clients,
    play,
    run_seed,
    run_seeds,
)
from tests.fault_tests.user import User
from tests.fault_tests.workloads import IMAGES, NAMESPACE, SEED_KINDS, DesiredWorkload, container, document

NODES = 2
STEP_S = 2.5


@dataclass
class ScenarioResult:
    """The outcome of the scenario."""

    violations: list[str]
    verbs: list[str]
    """The requests of the first lifetime of the component, until the last change of the workload."""
    crashes: int


def run_scenario(component: str, crash: Crash | None = None) -> ScenarioResult:
    clock = VirtualClock()
    return play(_run_scenario(component, crash, clock), SEED_KINDS[0], clock)


async def _run_scenario(component: str, crash: Crash | None, clock: VirtualClock) -> ScenarioResult:
    entropy = Entropy(1, "every step")
    checker = InvariantChecker(lambda owner: 0)
    store = CheckedStore(checker)
    injection = FaultInjection(probability=0.0)

    def crash_plan(name: str, number: int, chance: Entropy) -> Crash | None:
        return crash if name == component and number == 0 else None

    async with open_clients(store, clock, entropy) as client_for, TaskGroup("scenario") as group:
        control_plane = ControlPlane(
            client_for, clock, entropy.fork("plane"), injection, kubelets_of(NODES), (), crash_plan
        )
        user = User(client_for("user"), entropy.fork("user"), checker, SEED_KINDS[0], NODES, NODES * CPU_OF_NODE)
        control_plane.start(group)
        await _change_workload(user, clock)
        verbs = [request.verb for request in control_plane.clients[component][0].requests]
        injection.is_off = True
        await converge(control_plane, user)
        return ScenarioResult([*checker.violations, *user.unfinished()], verbs, control_plane.crashes)


async def _change_workload(user: User, clock: VirtualClock) -> None:
    workload = user.workloads["web-1"] = DesiredWorkload(DEPLOYMENT, "web-1", 2)
    await user.client.create(DEPLOYMENT, NAMESPACE, document(workload, surge=1, unavailable=0))
    await clock.wait(STEP_S)
    workload.image = IMAGES[1]
    template = {"spec": {"containers": [container(workload)]}}
    await user.client.patch(DEPLOYMENT, NAMESPACE, "web-1", {"spec": {"template": template}}, form=PatchForm.MERGE)
    await clock.wait(STEP_S)
    workload.replicas = 1
    await user.client.patch(DEPLOYMENT, NAMESPACE, "web-1", {"spec": {"replicas": 1}}, form=PatchForm.MERGE)
    await clock.wait(STEP_S)


SEEDS = 1_000
"""A run of less than a minute; more by hand: `python -m tests.fault_tests 1 10000`."""
SEEDS_AT_ONCE = 25


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
def test_invariants_hold_and_workloads_converge(first: int) -> None:
    bad = [outcome for outcome in run_seeds(range(first, first + SEEDS_AT_ONCE)) if not outcome.is_good]
    assert not bad, "\n".join(str(outcome) for outcome in bad)


@pytest.mark.parametrize("seed", [10, 11])
def test_a_seed_has_one_history(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)


# --- A crash at any request of a component breaks no invariant, and all workloads become complete --------------------


PARTS = 4
"""Parts of the crashes of a component, which run in parallel."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_crash_at_every_request(component: str, part: int) -> None:
    """Before each request is carried out, and after each write."""
    whole = run_scenario(component)
    assert not whole.violations
    assert set(whole.verbs) & set(WRITES), f"{component} writes nothing, so its crashes prove nothing"
    crashes = [Crash(number, False) for number in range(len(whole.verbs))]
    crashes += [Crash(number, True) for number, verb in enumerate(whole.verbs) if verb in WRITES]
    violations = {}
    with collect_between():
        for crash in crashes[part::PARTS]:
            found = run_scenario(component, crash)
            gc.collect()
            assert found.crashes == 1, f"{component} did not crash at {crash}"
            if found.violations:
                violations[crash] = found.violations
    assert not violations, violations


# --- Mutations of the code ------------------------------------------------------------------------------------------


SEEDS_MAX = 300


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.description) for each in MUTATIONS])
def test_a_mutation_is_reported(mutation: Mutation) -> None:
    first = mutation.first_seed
    seeds = (each for each in range(first, first + SEEDS_MAX) if mutation.kind in (None, kinds_of_seed(each).other))
    with mutation.make():
        violations = (violation for outcome in run_seeds(seeds) for violation in outcome.violations)
        assert any(mutation.violation in violation for violation in violations), (
            f"{SEEDS_MAX} seeds have not reported it"
        )
