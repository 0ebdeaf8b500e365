"""A profile's wishes change the default plugins, and nothing else does."""

import pytest

from mooring.scheduler.config.arguments import NodeAffinityArgs
from mooring.scheduler.config.defaults import DEFAULT_PLUGINS, default_profile, merged_with_defaults, with_defaults
from mooring.scheduler.config.types import Plugin, PluginConfig, Plugins, PluginSet, Profile

DEFAULTS = tuple(plugin.name for plugin in DEFAULT_PLUGINS)


def listed(*names: str) -> tuple[Plugin, ...]:
    """Plugins by name, or by name and weight: "Gpu=5"."""
    parts = [name.partition("=") for name in names]
    return tuple(Plugin(name=name, weight=int(weight or 0)) for name, _, weight in parts)


def merged(enabled: tuple[Plugin, ...] = (), disabled: tuple[Plugin, ...] = ()) -> tuple[Plugin, ...]:
    wishes = Plugins(multi_point=PluginSet(enabled=enabled, disabled=disabled))
    return merged_with_defaults(wishes).multi_point.enabled


def test_the_default_plugins_are_those_of_kube_scheduler() -> None:
    assert [(plugin.name, plugin.weight) for plugin in DEFAULT_PLUGINS] == [
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
        ("NodeDeclaredFeatures", 0),
    ]


def test_without_wishes_there_are_the_defaults() -> None:
    assert merged() == DEFAULT_PLUGINS


def test_a_new_plugin_comes_after_the_defaults() -> None:
    assert merged(listed("Gpu=5", "Rack")) == (*DEFAULT_PLUGINS, *listed("Gpu=5", "Rack"))


def test_a_default_enabled_again_keeps_its_place_and_takes_the_weight() -> None:
    found = merged(listed("Gpu", "NodeAffinity=7"))
    assert found.index(Plugin(name="NodeAffinity", weight=7)) == DEFAULTS.index("NodeAffinity")
    assert [plugin.name for plugin in found] == [*DEFAULTS, "Gpu"]


def test_enabled_again_without_a_weight_it_loses_its_own() -> None:
    assert Plugin(name="TaintToleration", weight=0) in merged(listed("TaintToleration"))


def test_a_disabled_plugin_drops_out() -> None:
    assert [plugin.name for plugin in merged(disabled=listed("NodeName"))] == [
        name for name in DEFAULTS if name != "NodeName"
    ]


def test_a_star_drops_them_all() -> None:
    assert merged(listed("Gpu"), listed("*")) == listed("Gpu")


@pytest.mark.parametrize("disabled", ["*", "NodeName"])
def test_enabling_is_stronger_than_disabling_and_moves_to_the_end(disabled: str) -> None:
    assert merged(listed("NodeName=4"), listed(disabled))[-1] == Plugin(name="NodeName", weight=4)


def test_a_plugin_enabled_twice_stays_twice_for_expansion_to_refuse() -> None:
    found = merged(listed("NodeName=4", "NodeName=5"))
    assert [plugin for plugin in found if plugin.name == "NodeName"] == list(listed("NodeName=5", "NodeName=4"))


def test_lists_of_single_points_stand_as_they_are() -> None:
    score = PluginSet(enabled=listed("ImageLocality=9"), disabled=listed("NodeAffinity"))
    assert merged_with_defaults(Plugins(score=score)).score == score


def test_enabled_plugins_that_take_arguments_get_the_defaults_after_what_was_written() -> None:
    written = PluginConfig(name="NodeAffinity", args=NodeAffinityArgs())
    profile = with_defaults(Profile(plugin_config=(PluginConfig(name="Gpu"), written)))
    assert [config.name for config in profile.plugin_config] == [
        "Gpu",
        "NodeAffinity",
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ]


def test_a_plugin_that_is_off_gets_no_arguments() -> None:
    wishes = Plugins(multi_point=PluginSet(enabled=listed("VolumeBinding"), disabled=listed("*")))
    assert [config.name for config in with_defaults(Profile(plugins=wishes)).plugin_config] == ["VolumeBinding"]


def test_the_default_profile_answers_to_the_default_name() -> None:
    assert default_profile().scheduler_name == "default-scheduler"
    assert default_profile().plugins.multi_point.enabled == DEFAULT_PLUGINS
