"""The old names: each leads to plugins that there are, and the sets of names are sound."""

from collections.abc import Iterable

import pytest

from mooring.scheduler.catalogue import default_registry
from mooring.scheduler.config.types import ExtensionPoint
from mooring.scheduler.policy.names import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY_PREDICATES,
    NODE_RESOURCES_FIT,
    PREDICATES,
    PRIORITIES,
    STRATEGIES,
    STRATEGY_PLUGINS,
)

IMPLEMENTS = default_registry().implements


@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_is_done_by_filters(name: str) -> None:
    assert PREDICATES[name]
    assert [plugin for plugin in PREDICATES[name] if not IMPLEMENTS(plugin, ExtensionPoint.FILTER)] == []


@pytest.mark.parametrize("name", PRIORITIES)
def test_a_priority_is_done_by_a_score_or_by_nobody(name: str) -> None:
    plugin = PRIORITIES[name]
    assert plugin is None or IMPLEMENTS(plugin, ExtensionPoint.SCORE)


@pytest.mark.parametrize(
    ("some", "known"),
    [(DEFAULT_PREDICATES, PREDICATES), (MANDATORY_PREDICATES, PREDICATES), (DEFAULT_PRIORITIES, PRIORITIES)],
    ids=["default predicates", "mandatory predicates", "default priorities"],
)
def test_sets_of_names_hold_known_names(some: Iterable[str], known: Iterable[str]) -> None:
    assert set(some) <= set(known)


def test_strategies_are_those_of_one_plugin() -> None:
    assert set(STRATEGIES) == {name for name, plugin in PRIORITIES.items() if plugin == NODE_RESOURCES_FIT}


def test_every_strategy_has_a_plugin_of_its_own() -> None:
    assert set(STRATEGY_PLUGINS) == set(STRATEGIES.values())
    assert [plugin for plugin in STRATEGY_PLUGINS.values() if not IMPLEMENTS(plugin, ExtensionPoint.SCORE)] == []
