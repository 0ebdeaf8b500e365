"""Whatever goes wrong, nothing is broken, and when it is over everything is as it was wished."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.simulation.simulate import Outcome, simulate

SEEDS = 320
"""As many as fit into less than a minute; more by hand: `python -m tests.simulation 1 10000`."""
SEEDS_AT_ONCE = 20


@pytest.fixture(autouse=True)
def _collect_garbage_between_seeds() -> Iterator[None]:
    """A cluster is full of cycles, and walking the whole process for them again and again costs a third of the time."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()
    gc.collect()


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
def test_nothing_is_broken_and_everything_converges(first: int) -> None:
    bad: list[Outcome] = []
    for seed in range(first, first + SEEDS_AT_ONCE):
        outcome = simulate(seed)
        if not outcome.is_good:
            bad.append(outcome)
    assert not bad, "\n".join(str(outcome) for outcome in bad)


@pytest.mark.parametrize(
    "seed", [pytest.param(10, id="through the API server"), pytest.param(11, id="on the store itself")]
)
def test_a_seed_replays_bit_for_bit(seed: int) -> None:
    assert simulate(seed) == simulate(seed)
