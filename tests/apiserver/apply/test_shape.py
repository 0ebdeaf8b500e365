"""Grains: what is always owned as a whole, and in which versions entries can be read."""

from __future__ import annotations

import pytest

from mooring.api.schema.model import ListKind
from mooring.apiserver.apply.shape import DEDUCED, TEXT, WHOLE, Grain, ListGrain, MapGrain
from tests.apiserver.apply.builders import CONFIG_MAP


@pytest.mark.parametrize(
    ("grain", "is_leaf"),
    [
        pytest.param(TEXT, True, id="a text"),
        pytest.param(WHOLE, True, id="anything as a whole"),
        pytest.param(DEDUCED, False, id="anything, maps by entry"),
        pytest.param(Grain(map=MapGrain(is_atomic=True)), True, id="an atomic map"),
        pytest.param(Grain(map=MapGrain()), False, id="a map"),
        pytest.param(Grain(list=ListGrain(ListKind.ATOMIC, TEXT)), True, id="an atomic list"),
        pytest.param(Grain(list=ListGrain(ListKind.SET, TEXT)), False, id="a set"),
    ],
)
def test_what_is_owned_as_a_whole(grain: Grain, is_leaf: bool) -> None:
    assert grain.is_leaf is is_leaf


def test_entries_of_versions_that_are_not_served_are_unreadable() -> None:
    assert CONFIG_MAP.grain_at("v1", "v1") is CONFIG_MAP.root
    assert CONFIG_MAP.grain_at("v1", "v2") is None
