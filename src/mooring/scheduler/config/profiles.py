"""Profiles: merge in the default plugins, and expand a profile into a plan.

`with_defaults` adds the default plugins and their arguments to a profile as it was written. `expand_profiles` decides
which plugins are called at each extension point, in which order and with which weight: a `ProfilePlan` for each
profile. It takes `implements(plugin, point)`, which says what the registered plugins serve, and raises
`ConfigurationError`.

Defaults:

1. The list is that of kube-scheduler v1.36 with its feature gates as shipped: DynamicResources and
   NodeDeclaredFeatures are in it; GangScheduling, TopologyPlacementGenerator and PodGroupPodsCount, whose gates are
   off, can be enabled by name.
2. The default plugins are enabled at every point that they serve (`multiPoint`). No plugin is enabled by default at a
   single point, so the profile's lists for single points stay as written.
3. A default plugin that the profile enables again keeps its place in the order and takes the profile's weight. The
   profile's other plugins come after the defaults.
4. A disabled plugin is removed from the defaults; `*` removes them all. Enabling takes precedence over disabling.

Expansion:

5. A plugin enabled for all points (`multiPoint`) runs at every point that it serves. The lists of a single point take
   precedence: there it may be disabled (`*`: no plugin of `multiPoint` runs) or enabled with another place and
   weight.
6. The order at a point: first the plugins of `multiPoint` that the point enables again, in the point's order; then
   the other plugins of `multiPoint`, in theirs; then those that only the point enables.
7. Weights: the point's own before that of `multiPoint`, and 1 where none was given.
8. Exactly one plugin sorts the queue, the same in all profiles, and at least one plugin binds.
9. A plugin that serves no extension point does not exist.
10. NodeResourcesFit ignores, in every profile, the resources that extenders manage with `ignoredByScheduler`, instead
    of those of its own arguments.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from mooring.api.field_errors import quoted
from mooring.scheduler.config.types import (
    ALL_PLUGINS,
    ARGUMENTS,
    ConfigProblem,
    ConfigurationError,
    ExtensionPoint,
    KubeSchedulerProfile,
    NodeResourcesFitArgs,
    PluginArguments,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    SchedulerConfiguration,
)

DEFAULT_PLUGINS: tuple[PluginEntry, ...] = (
    PluginEntry(name="SchedulingGates"),
    PluginEntry(name="PrioritySort"),
    PluginEntry(name="NodeUnschedulable"),
    PluginEntry(name="NodeName"),
    PluginEntry(name="TaintToleration", weight=3),
    PluginEntry(name="NodeAffinity", weight=2),
    PluginEntry(name="NodePorts"),
    PluginEntry(name="NodeResourcesFit", weight=1),
    PluginEntry(name="VolumeRestrictions"),
    PluginEntry(name="NodeVolumeLimits"),
    PluginEntry(name="VolumeBinding"),
    PluginEntry(name="VolumeZone"),
    PluginEntry(name="PodTopologySpread", weight=2),
    PluginEntry(name="InterPodAffinity", weight=2),
    # Before preemption: deallocating an idle claim is preferable to evicting a pod.
    PluginEntry(name="DynamicResources", weight=2),
    PluginEntry(name="DefaultPreemption"),
    PluginEntry(name="NodeResourcesBalancedAllocation", weight=1),
    PluginEntry(name="ImageLocality", weight=1),
    PluginEntry(name="DefaultBinder"),
    PluginEntry(name="NodeDeclaredFeatures"),
)


def default_profile() -> KubeSchedulerProfile:
    """The profile of a scheduler without a configuration file, with the default scheduler name."""
    return with_defaults(KubeSchedulerProfile())


def with_defaults(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    plugins = merged_with_defaults(profile.plugins)
    return msgspec.structs.replace(
        profile, plugins=plugins, plugin_config=_completed(profile.plugin_config, plugins.enabled_names())
    )


def merged_with_defaults(plugins: Plugins) -> Plugins:
    multi_point = plugins.multi_point
    disabled = {plugin.name for plugin in multi_point.disabled}
    # If a plugin is enabled twice, the last entry replaces the default; `expand_profile` rejects the first.
    replacement = {plugin.name: index for index, plugin in enumerate(multi_point.enabled)}
    enabled: list[PluginEntry] = []
    taken: set[int] = set()
    for default in DEFAULT_PLUGINS:
        if default.name in disabled or ALL_PLUGINS in disabled:
            continue
        if default.name in replacement:
            taken.add(replacement[default.name])
            enabled.append(multi_point.enabled[replacement[default.name]])
        else:
            enabled.append(default)
    enabled += [plugin for index, plugin in enumerate(multi_point.enabled) if index not in taken]
    return msgspec.structs.replace(
        plugins, multi_point=PluginSet(enabled=tuple(enabled), disabled=tuple(_unweighted(multi_point.disabled)))
    )


def _unweighted(plugins: tuple[PluginEntry, ...]) -> list[PluginEntry]:
    return [PluginEntry(name=plugin.name) for plugin in plugins]


def _completed(written: tuple[PluginConfig, ...], enabled: tuple[str, ...]) -> tuple[PluginConfig, ...]:
    """The arguments that were written, then the default arguments of every other enabled plugin that takes some."""
    known = {config.name for config in written}
    missing = (name for name in enabled if name in ARGUMENTS and name not in known)
    return written + tuple(PluginConfig(name=name, args=ARGUMENTS[name]()) for name in missing)


Implements: TypeAlias = Callable[[str, ExtensionPoint], bool]

SCORE_MAX = 100
"""The highest score that one plugin gives to a node."""

TOTAL_SCORE_MAX = 2**63 - 1
"""Weighted scores of all plugins are added up in 64 bits."""

_EXAMINED = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.POST_FILTER,
    ExtensionPoint.RESERVE,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
    ExtensionPoint.PRE_BIND,
    ExtensionPoint.BIND,
    ExtensionPoint.POST_BIND,
    ExtensionPoint.PERMIT,
    ExtensionPoint.PRE_ENQUEUE,
    ExtensionPoint.QUEUE_SORT,
    ExtensionPoint.PLACEMENT_GENERATE,
    ExtensionPoint.PLACEMENT_SCORE,
)
"""The order in which kube-scheduler v1.36 checks the points. It decides which point an error message names."""


@dataclass(frozen=True, slots=True)
class PluginUse:
    """A plugin at an extension point. The weight is 0 at points without weights."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    at: Mapping[ExtensionPoint, tuple[PluginUse, ...]]
    """For every point, its plugins in the order in which they are called."""
    arguments: Mapping[str, PluginArguments | None]
    """For every plugin that is enabled at any point, even if no point calls it; None if it has no arguments."""


def expand_profiles(configuration: SchedulerConfiguration, implements: Implements) -> dict[str, ProfilePlan]:
    """The plans of all profiles by scheduler name. All profiles must use the same queue sort plugin and arguments.

    A profile without `percentageOfNodesToScore` takes that of the configuration.
    """
    plans: dict[str, ProfilePlan] = {}
    problems: list[ConfigProblem] = []
    for index, profile in enumerate(_ignoring_managed_resources(configuration)):
        try:
            plan = expand_profile(profile, implements)
            if plan.percentage_of_nodes_to_score is None:
                plan = replace(plan, percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score)
            plans[profile.scheduler_name] = plan
        except ConfigurationError as error:
            before = f"creating profile for scheduler name {profile.scheduler_name}: "
            problems += [
                ConfigProblem(f"profiles[{index}].{problem.path}", before + problem.text) for problem in error.problems
            ]
    problems += _queue_disagreements(configuration.profiles, plans)
    if problems:
        raise ConfigurationError(problems)
    return plans


def _ignoring_managed_resources(configuration: SchedulerConfiguration) -> tuple[KubeSchedulerProfile, ...]:
    """The profiles, in which NodeResourcesFit ignores the resources that extenders manage instead of the scheduler."""
    managed = (resource for extender in configuration.extenders for resource in extender.managed_resources)
    ignored = tuple(resource.name for resource in managed if resource.ignored_by_scheduler)
    return (
        tuple(_ignoring(profile, ignored) for profile in configuration.profiles) if ignored else configuration.profiles
    )


def _ignoring(profile: KubeSchedulerProfile, resources: tuple[str, ...]) -> KubeSchedulerProfile:
    changed = tuple(
        msgspec.structs.replace(config, args=msgspec.structs.replace(config.args, ignored_resources=resources))
        if isinstance(config.args, NodeResourcesFitArgs)
        else config
        for config in profile.plugin_config
    )
    return msgspec.structs.replace(profile, plugin_config=changed)


def expand_profile(profile: KubeSchedulerProfile, implements: Implements) -> ProfilePlan:
    problems = [*_repeated_arguments(profile), *_misplaced_plugins(profile, implements)]
    if problems:
        raise ConfigurationError(problems)
    at = {point: _uses(profile, point, implements) for point in ExtensionPoint}
    problems = [*_unfit_counts(profile, at), *_overflows(profile, implements)]
    if problems:
        raise ConfigurationError(problems)
    configured = {config.name: config.args for config in profile.plugin_config}
    return ProfilePlan(
        scheduler_name=profile.scheduler_name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        at=at,
        arguments={name: configured.get(name) for name in profile.plugins.enabled_names()},
    )


def _uses(profile: KubeSchedulerProfile, point: ExtensionPoint, implements: Implements) -> tuple[PluginUse, ...]:
    own = [plugin.name for plugin in profile.plugins.at(point).enabled]
    everywhere = _from_multi_point(profile, point, implements)
    taken_over = [name for name in own if name in everywhere]
    names = [
        *taken_over,
        *(name for name in everywhere if name not in own),
        *(name for name in own if name not in everywhere),
    ]
    weights = _weights(profile, point, implements) if point.is_weighted else {}
    return tuple(PluginUse(name, weights.get(name, 0)) for name in names)


def _from_multi_point(profile: KubeSchedulerProfile, point: ExtensionPoint, implements: Implements) -> list[str]:
    disabled = {plugin.name for plugin in profile.plugins.at(point).disabled}
    if ALL_PLUGINS in disabled:
        return []
    return [
        plugin.name
        for plugin in profile.plugins.multi_point.enabled
        if plugin.name not in disabled and implements(plugin.name, point)
    ]


def _weights(profile: KubeSchedulerProfile, point: ExtensionPoint, implements: Implements) -> dict[str, int]:
    weights: dict[str, int] = {}
    for plugin in _weighed(profile, point):
        if implements(plugin.name, point):
            weights.setdefault(plugin.name, plugin.weight or 1)
    return weights


def _weighed(profile: KubeSchedulerProfile, point: ExtensionPoint) -> tuple[PluginEntry, ...]:
    return (*profile.plugins.at(point).enabled, *profile.plugins.multi_point.enabled)


def _repeated_arguments(profile: KubeSchedulerProfile) -> Iterator[ConfigProblem]:
    seen: set[str] = set()
    for index, config in enumerate(profile.plugin_config):
        if config.name in seen:
            yield ConfigProblem(f"pluginConfig[{index}]", f"repeated config for plugin {config.name}")
        seen.add(config.name)


def _misplaced_plugins(profile: KubeSchedulerProfile, implements: Implements) -> Iterator[ConfigProblem]:
    """Plugins that do not exist, that do not serve the point at which they are named, or that are enabled twice."""
    for point in _EXAMINED:
        seen: set[str] = set()
        for plugin in profile.plugins.at(point).enabled:
            path = f"plugins.{point.config_field}.enabled"
            if not _exists(plugin.name, implements):
                yield ConfigProblem(path, f"{point.plugin_type} {quoted(plugin.name)} does not exist")
            elif not implements(plugin.name, point):
                yield ConfigProblem(path, f"plugin {quoted(plugin.name)} does not extend {point.plugin_type} plugin")
            elif plugin.name in seen:
                yield _registered_twice(path, plugin.name, point)
            seen.add(plugin.name)
    yield from _misplaced_everywhere(profile, implements)


def _misplaced_everywhere(profile: KubeSchedulerProfile, implements: Implements) -> Iterator[ConfigProblem]:
    path = "plugins.multiPoint.enabled"
    names = [plugin.name for plugin in profile.plugins.multi_point.enabled]
    for name in dict.fromkeys(names):
        if not _exists(name, implements):
            first = next((point for point in _EXAMINED if not _is_closed(profile, point)), None)
            if first is not None:
                yield ConfigProblem(path, f"{first.plugin_type} {quoted(name)} does not exist")
        elif names.count(name) > 1:
            twice = next((point for point in _EXAMINED if _doubled(profile, point, implements, name)), None)
            if twice is not None:
                yield _registered_twice(path, name, twice)


def _doubled(profile: KubeSchedulerProfile, point: ExtensionPoint, implements: Implements, name: str) -> bool:
    if any(plugin.name == name for plugin in profile.plugins.at(point).enabled):
        return False
    return _from_multi_point(profile, point, implements).count(name) > 1


def _registered_twice(path: str, name: str, point: ExtensionPoint) -> ConfigProblem:
    return ConfigProblem(path, f"plugin {quoted(name)} already registered as {quoted(point.plugin_type)}")


def _exists(name: str, implements: Implements) -> bool:
    return any(implements(name, point) for point in ExtensionPoint)


def _is_closed(profile: KubeSchedulerProfile, point: ExtensionPoint) -> bool:
    return any(plugin.name == ALL_PLUGINS for plugin in profile.plugins.at(point).disabled)


def _unfit_counts(
    profile: KubeSchedulerProfile, at: Mapping[ExtensionPoint, tuple[PluginUse, ...]]
) -> Iterator[ConfigProblem]:
    whose = f"for profile with scheduler name {quoted(profile.scheduler_name)}"
    sorters = len(at[ExtensionPoint.QUEUE_SORT])
    if sorters != 1:
        yield ConfigProblem("plugins.queueSort", f"only one queue sort plugin required {whose}, but got {sorters}")
    if not at[ExtensionPoint.BIND]:
        yield ConfigProblem("plugins.bind", f"at least one bind plugin is needed {whose}")
    if len(at[ExtensionPoint.PLACEMENT_GENERATE]) > 1:
        yield ConfigProblem("plugins.placementGenerate", f"at most one placement generate plugin is allowed {whose}")


def _overflows(profile: KubeSchedulerProfile, implements: Implements) -> Iterator[ConfigProblem]:
    named = {ExtensionPoint.SCORE: "score plugins", ExtensionPoint.PLACEMENT_SCORE: "placement score plugins"}
    for point, name in named.items():
        # kube-scheduler adds up the weights before it removes disabled plugins, so those count as well.
        if _is_too_much(_weights(profile, point, implements).values()):
            path = f"plugins.{point.config_field}.enabled"
            yield ConfigProblem(path, f"{name}: total score of Score plugins could overflow")


def _is_too_much(weights: Iterable[int]) -> bool:
    total = 0
    for weight in weights:
        # With a negative total, kube-scheduler's check for the remaining range overflows and always fails.
        if total < 0 or weight * SCORE_MAX > TOTAL_SCORE_MAX - total:
            return True
        total += weight * SCORE_MAX
    return False


def _queue_disagreements(
    profiles: tuple[KubeSchedulerProfile, ...], plans: Mapping[str, ProfilePlan]
) -> Iterator[ConfigProblem]:
    first: tuple[str, PluginArguments | None] | None = None
    for index, profile in enumerate(profiles):
        plan = plans.get(profile.scheduler_name)
        if plan is None:
            continue
        sorter = plan.at[ExtensionPoint.QUEUE_SORT][0].name
        if first is None:
            first = (sorter, plan.arguments.get(sorter))
        elif sorter != first[0]:
            whose = f"different queue sort plugins for profile {quoted(profile.scheduler_name)}"
            text = f"{whose}: {quoted(sorter)}, first: {quoted(first[0])}"
            yield ConfigProblem(f"profiles[{index}].plugins.queueSort", text)
        elif plan.arguments.get(sorter) != first[1]:
            text = f"different queue sort plugin args for profile {quoted(profile.scheduler_name)}"
            yield ConfigProblem(f"profiles[{index}].pluginConfig", text)
