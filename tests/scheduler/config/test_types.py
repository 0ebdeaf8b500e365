"""The configuration that nobody wrote, and how its lists of plugins are asked."""

import pytest

from mooring.scheduler.config.types import Plugin, Plugins, PluginSet, SchedulerConfiguration
from mooring.scheduler.framework.points import ExtensionPoint


@pytest.mark.parametrize("point", list(ExtensionPoint), ids=lambda point: point.value)
def test_every_point_has_its_list(point: ExtensionPoint) -> None:
    here = PluginSet(enabled=(Plugin(name="Gpu"),))
    plugins = Plugins(**{point.attribute: here})
    assert plugins.at(point) == here
    assert [other for other in ExtensionPoint if plugins.at(other) == here] == [point]


def test_enabled_plugins_are_named_once_in_order() -> None:
    plugins = Plugins(
        multi_point=PluginSet(enabled=(Plugin(name="Z"), Plugin(name="A"))),
        score=PluginSet(enabled=(Plugin(name="M"), Plugin(name="A")), disabled=(Plugin(name="Gone"),)),
    )
    assert plugins.enabled_names() == ("A", "M", "Z")


def test_how_many_nodes_to_score_is_left_open() -> None:
    assert SchedulerConfiguration().percentage_of_nodes_to_score is None
