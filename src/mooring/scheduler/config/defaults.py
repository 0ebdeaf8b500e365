"""What a scheduler does when nobody says otherwise: the default plugins, and how a profile's wishes change them.

Comes in   a profile as it was written
Goes out   the same profile with the default plugins merged in, and arguments for every plugin that takes some

 1. The default plugins are enabled at every point that they serve (`multiPoint`); at single points nothing is enabled
    by default, so there the profile's own lists stand as they are.
 2. A default plugin that the profile enables again keeps its place in the order and takes the profile's weight.
    Every other plugin of the profile comes after the defaults.
 3. A disabled plugin drops out of the defaults; `*` drops them all. Enabling is stronger than disabling.
 4. The list is that of kube-scheduler v1.36 with its feature gates as they are shipped: DynamicResources and
    NodeDeclaredFeatures are in it; GangScheduling, TopologyPlacementGenerator and PodGroupPodsCount, whose gates are
    off, can be enabled by name.
"""

import msgspec

from mooring.scheduler.config.arguments import ARGUMENTS
from mooring.scheduler.config.types import ALL_PLUGINS, Plugin, PluginConfig, Plugins, PluginSet, Profile

DEFAULT_PLUGINS: tuple[Plugin, ...] = (
    Plugin(name="SchedulingGates"),
    Plugin(name="PrioritySort"),
    Plugin(name="NodeUnschedulable"),
    Plugin(name="NodeName"),
    Plugin(name="TaintToleration", weight=3),
    Plugin(name="NodeAffinity", weight=2),
    Plugin(name="NodePorts"),
    Plugin(name="NodeResourcesFit", weight=1),
    Plugin(name="VolumeRestrictions"),
    Plugin(name="NodeVolumeLimits"),
    Plugin(name="VolumeBinding"),
    Plugin(name="VolumeZone"),
    Plugin(name="PodTopologySpread", weight=2),
    Plugin(name="InterPodAffinity", weight=2),
    # Before preemption, because taking an idle device back is kinder than evicting a pod.
    Plugin(name="DynamicResources", weight=2),
    Plugin(name="DefaultPreemption"),
    Plugin(name="NodeResourcesBalancedAllocation", weight=1),
    Plugin(name="ImageLocality", weight=1),
    Plugin(name="DefaultBinder"),
    Plugin(name="NodeDeclaredFeatures"),
)


def default_profile() -> Profile:
    """The profile of a scheduler without a configuration, under the name that pods have by default."""
    return with_defaults(Profile())


def with_defaults(profile: Profile) -> Profile:
    plugins = merged_with_defaults(profile.plugins)
    return msgspec.structs.replace(
        profile, plugins=plugins, plugin_config=_completed(profile.plugin_config, plugins.enabled_names())
    )


def merged_with_defaults(plugins: Plugins) -> Plugins:
    wanted = plugins.multi_point
    disabled = {plugin.name for plugin in wanted.disabled}
    # Of a plugin that is enabled twice, the last one replaces the default; expansion will refuse the first.
    replacement = {plugin.name: index for index, plugin in enumerate(wanted.enabled)}
    enabled: list[Plugin] = []
    taken: set[int] = set()
    for default in DEFAULT_PLUGINS:
        if default.name in disabled or ALL_PLUGINS in disabled:
            continue
        if default.name in replacement:
            taken.add(replacement[default.name])
            enabled.append(wanted.enabled[replacement[default.name]])
        else:
            enabled.append(default)
    enabled += [plugin for index, plugin in enumerate(wanted.enabled) if index not in taken]
    return msgspec.structs.replace(
        plugins, multi_point=PluginSet(enabled=tuple(enabled), disabled=tuple(_unweighted(wanted.disabled)))
    )


def _unweighted(plugins: tuple[Plugin, ...]) -> list[Plugin]:
    return [Plugin(name=plugin.name) for plugin in plugins]


def _completed(written: tuple[PluginConfig, ...], enabled: tuple[str, ...]) -> tuple[PluginConfig, ...]:
    """The arguments that were written, then the default arguments of every other enabled plugin that takes some."""
    known = {config.name for config in written}
    missing = (name for name in enabled if name in ARGUMENTS and name not in known)
    return written + tuple(PluginConfig(name=name, args=ARGUMENTS[name]()) for name in missing)
