"""The seeds notice mistakes that are made on purpose."""

from __future__ import annotations

import pytest

from tests.fault_tests.mutations import MUTATIONS, Mutation
from tests.fault_tests.run import cast_of, run_seeds

SEEDS_MAX = 300


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.mistake) for each in MUTATIONS])
def test_a_mistake_is_noticed(mutation: Mutation) -> None:
    first = mutation.first_seed
    seeds = (each for each in range(first, first + SEEDS_MAX) if mutation.cast in (None, cast_of(each).other))
    with mutation.make():
        broken = (each for outcome in run_seeds(seeds) for each in outcome.broken)
        assert any(mutation.told in each for each in broken), f"{SEEDS_MAX} seeds have not noticed it"
