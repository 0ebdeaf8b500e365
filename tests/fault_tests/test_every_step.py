"""A component may die at any of its requests: nothing is broken by it, and everything is as it was wished."""

from __future__ import annotations

import gc

import pytest

from tests.fault_tests.every_step import rehearse
from tests.fault_tests.faults import WRITES, Death
from tests.fault_tests.plane import COMPONENTS
from tests.fault_tests.run import collecting_between

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
