"""Whatever goes wrong, nothing is broken, and when it is over everything is as it was wished."""

from __future__ import annotations

import pytest

from tests.fault_tests.run import run_seed, run_seeds

SEEDS = 1_000
"""As many as fit into less than a minute; more by hand: `python -m tests.fault_tests 1 10000`."""
SEEDS_AT_ONCE = 25


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_AT_ONCE))
def test_nothing_is_broken_and_everything_converges(first: int) -> None:
    bad = [outcome for outcome in run_seeds(range(first, first + SEEDS_AT_ONCE)) if not outcome.is_good]
    assert not bad, "\n".join(str(outcome) for outcome in bad)


@pytest.mark.parametrize(
    "seed", [pytest.param(10, id="through the API server"), pytest.param(11, id="on the store itself")]
)
def test_a_seed_replays_bit_for_bit(seed: int) -> None:
    assert run_seed(seed) == run_seed(seed)
