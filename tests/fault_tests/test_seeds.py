"""Simulations with faults end in the wished state, and find mistakes that are made on purpose."""

from __future__ import annotations

import gc

import pytest

from tests.fault_tests.every_step import rehearse
from tests.fault_tests.faults import WRITES, Death
from tests.fault_tests.mutations import MUTATIONS, Mutation
from tests.fault_tests.plane import COMPONENTS
from tests.fault_tests.run import cast_of, collecting_between, run_seed, run_seeds

SEEDS = 1_000
"""As many as fit into less than a minute; more by hand: `python -m tests.fault_tests 1 10000`."""
SEEDS_AT_ONCE = 25


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
def test_nothing_is_broken_and_everything_converges(first: int) -> None:
    bad = [outcome for outcome in run_seeds(range(first, first + SEEDS_AT_ONCE)) if not outcome.is_good]
    assert not bad, "\n".join(str(outcome) for outcome in bad)


@pytest.mark.parametrize("seed", [10, 11])
def test_a_seed_replays_bit_for_bit(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)


# --- A component may die at any of its requests: nothing is broken by it, and everything is as it was wished ---------


PARTS = 4
"""Of the deaths of a component, to be played beside each other."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_death_at_every_step(component: str, part: int) -> None:
    """Before the request was carried out, and after it where that is a difference."""
    whole = rehearse(component)
    assert not whole.broken
    assert set(whole.verbs) & set(WRITES), f"{component} writes nothing, so its deaths prove nothing"
    deaths = [Death(number, False) for number in range(len(whole.verbs))]
    deaths += [Death(number, True) for number, verb in enumerate(whole.verbs) if verb in WRITES]
    broken = {}
    with collecting_between():
        for death in deaths[part::PARTS]:
            found = rehearse(component, death)
            gc.collect()
            assert found.deaths == 1, f"{component} was to die at {death}"
            if found.broken:
                broken[death] = found.broken
    assert not broken, broken


# --- The seeds notice mistakes that are made on purpose --------------------------------------------------------------


SEEDS_MAX = 300


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.mistake) for each in MUTATIONS])
def test_a_mistake_is_noticed(mutation: Mutation) -> None:
    first = mutation.first_seed
    seeds = (each for each in range(first, first + SEEDS_MAX) if mutation.cast in (None, cast_of(each).other))
    with mutation.make():
        broken = (each for outcome in run_seeds(seeds) for each in outcome.broken)
        assert any(mutation.told in each for each in broken), f"{SEEDS_MAX} seeds have not noticed it"
