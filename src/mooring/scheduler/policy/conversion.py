"""Converts a Policy to a `SchedulerConfiguration` with one profile.

Input: the data of a file of kind Policy, apiVersion v1. Output: the configuration with the plugins that replace its
predicates and priorities. Other packages do not see the Policy.

1. A plugin is enabled at all extension points (`multiPoint`), in the order of the predicates. Then a plugin that is
   only a predicate is disabled at scoring points, and one that is only a priority is disabled at filter points. So no
   table of plugins and points is necessary.
2. Each plugin is enabled once: all service affinities become one plugin with all their labels, and so do all label
   presences and preferences. A score that stands for several counts that many times.
3. LeastRequested, MostRequested and RequestedToCapacityRatio are strategies of NodeResourcesFit, which has one: the
   first that is named. Each other one is scored by a plugin of its own.
4. Plugins that are newer than Policy and reject nodes or pods (`ALWAYS`) are enabled, because a Policy could not name
   them and pods would be bound to nodes that cannot run them. They do not score.
5. The default constraints of PodTopologySpread are off, because SelectorSpread spreads pods of services and
   controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard

from mooring.api.field_errors import quoted
from mooring.scheduler.config.load import load_configuration, without_type_fields
from mooring.scheduler.config.profiles import default_profile, with_defaults
from mooring.scheduler.config.types import (
    ALL_PLUGINS,
    API_VERSION,
    LIST_DEFAULTING,
    REQUESTED_TO_CAPACITY_RATIO,
    ConfigProblem,
    ConfigurationError,
    InterPodAffinityArgs,
    KubeSchedulerProfile,
    NodeResourcesFitArgs,
    PluginArguments,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    PodTopologySpreadArgs,
    SchedulerConfiguration,
    ScoringStrategy,
    UtilizationShapePoint,
)
from mooring.scheduler.config.validation import validate
from mooring.scheduler.policy.types import (
    CHECK_NODE_LABEL_PRESENCE,
    CHECK_SERVICE_AFFINITY,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY_PREDICATES,
    NODE_LABEL,
    NODE_RESOURCES_FIT,
    PREDICATES,
    PRIORITIES,
    SERVICE_AFFINITY,
    STRATEGIES,
    STRATEGY_PLUGINS,
    NodeLabelArgs,
    Policy,
    PriorityArgument,
    PriorityPolicy,
    RequestedToCapacityRatioArguments,
    ServiceAffinityArgs,
    as_written,
    node_label_problems,
    policy_decoder,
    policy_problems,
    ratio_strategy,
    strategy_as_written,
)

KIND = "Policy"
VERSION = "v1"
_VERSIONS = (VERSION, API_VERSION)
"""kube-scheduler also accepted the version of KubeSchedulerConfiguration."""

_BEFORE = ("SchedulingGates", "PrioritySort")
ALWAYS = ("DynamicResources", "NodeDeclaredFeatures")
_AFTER = ("DefaultPreemption", "DefaultBinder")

_FREE_NODES_FIRST = RequestedToCapacityRatioArguments(
    shape=(UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
)
"""The default of RequestedToCapacityRatioPriority."""


def load_configuration_or_policy(data: object | None) -> SchedulerConfiguration:
    """The configuration in a file of either kind, or a `ConfigurationError` with every problem."""
    return policy_configuration(data) if is_policy(data) else load_configuration(data)


def is_policy(data: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(data, Mapping) and data.get("kind") == KIND


def policy_configuration(data: Mapping[str, object]) -> SchedulerConfiguration:
    """The configuration of a Policy, or a `ConfigurationError` with every problem."""
    policy = _decoded(data)
    rest = SchedulerConfiguration(profiles=(default_profile(),), extenders=policy.extenders)
    problems = [*policy_problems(policy), *node_label_problems(_node_label(policy)), *validate(rest)]
    if problems:
        raise ConfigurationError(problems)
    profile = _profile(_predicates(policy), _weights(policy), _arguments(policy))
    return SchedulerConfiguration(profiles=(with_defaults(profile),), extenders=policy.extenders)


def _decoded(data: Mapping[str, object]) -> Policy:
    version = data.get("apiVersion")
    if version not in _VERSIONS:
        found = f"no kind {quoted(KIND)} is registered for version {quoted(str(version))}"
        expected = f"expected apiVersion {quoted(VERSION)} and kind {quoted(KIND)}"
        text = found if version else "Object 'apiVersion' is missing"
        raise ConfigurationError([ConfigProblem("apiVersion", f"{text}: {expected}")])
    decoder = policy_decoder()
    policy = decoder.struct(Policy, without_type_fields(data))
    if decoder.problems:
        raise ConfigurationError(decoder.problems)
    return policy


# --- predicates and priorities ----------------------------------------------------------------------------------


def _predicates(policy: Policy) -> set[str]:
    """The names of all predicates; a custom predicate has the name of its argument's predicate."""
    if policy.predicates is None:
        return {*DEFAULT_PREDICATES, *MANDATORY_PREDICATES}
    names = set(MANDATORY_PREDICATES)
    for predicate in policy.predicates:
        if predicate.argument is None:
            names.add(predicate.name)
        elif predicate.argument.service_affinity is not None:
            names.add(CHECK_SERVICE_AFFINITY)
        else:
            names.add(CHECK_NODE_LABEL_PRESENCE)
    return names


def _weights(policy: Policy) -> dict[str, int]:
    """The weight of each plugin that is a priority. Of a repeated name the last weight counts."""
    if policy.priorities is None:
        return {plugin: weight for name, weight in DEFAULT_PRIORITIES.items() if (plugin := PRIORITIES[name])}
    weights: dict[str, int] = {}
    copies = {NODE_LABEL: 0, SERVICE_AFFINITY: 0}
    strategies = _strategies(policy.priorities)
    for priority in policy.priorities:
        plugin = _plugin_of(priority, strategies)
        if plugin in copies:
            copies[plugin] += 1
        if plugin is not None:
            weights[plugin] = priority.weight * copies.get(plugin, 1)
    return weights


def _plugin_of(priority: PriorityPolicy, strategies: Mapping[str, ScoringStrategy]) -> str | None:
    strategy = _strategy_of(priority)
    if strategy is not None:
        return NODE_RESOURCES_FIT if strategy.type == next(iter(strategies)) else STRATEGY_PLUGINS[strategy.type]
    match priority.argument:
        case PriorityArgument(service_anti_affinity=argument) if argument is not None:
            return SERVICE_AFFINITY
        case PriorityArgument(label_preference=argument) if argument is not None:
            return NODE_LABEL
        case _:
            return PRIORITIES[priority.name]


# --- the arguments of the plugins -------------------------------------------------------------------------------


def _arguments(policy: Policy) -> dict[str, PluginArguments]:
    first, *others = _strategies(policy.priorities or ()).values() or (NodeResourcesFitArgs().scoring_strategy,)
    return {
        NODE_LABEL: as_written(_node_label(policy)),
        SERVICE_AFFINITY: as_written(_service_affinity(policy)),
        NODE_RESOURCES_FIT: NodeResourcesFitArgs(ignored_resources=_ignored_resources(policy), scoring_strategy=first),
        **{STRATEGY_PLUGINS[strategy.type]: strategy_as_written(strategy) for strategy in others},
        "InterPodAffinity": InterPodAffinityArgs(
            hard_pod_affinity_weight=policy.hard_pod_affinity_symmetric_weight or 1
        ),
        "PodTopologySpread": PodTopologySpreadArgs(defaulting_type=LIST_DEFAULTING),
    }


def _node_label(policy: Policy) -> NodeLabelArgs:
    presences = [p.argument.labels_presence for p in policy.predicates or () if p.argument is not None]
    preferences = [p.argument.label_preference for p in policy.priorities or () if p.argument is not None]
    return NodeLabelArgs(
        present_labels=tuple(
            label for presence in presences if presence and presence.presence for label in presence.labels
        ),
        absent_labels=tuple(
            label for presence in presences if presence and not presence.presence for label in presence.labels
        ),
        present_labels_preference=tuple(
            preference.label for preference in preferences if preference and preference.presence
        ),
        absent_labels_preference=tuple(
            preference.label for preference in preferences if preference and not preference.presence
        ),
    )


def _service_affinity(policy: Policy) -> ServiceAffinityArgs:
    affinities = [p.argument.service_affinity for p in policy.predicates or () if p.argument is not None]
    dislikes = [p.argument.service_anti_affinity for p in policy.priorities or () if p.argument is not None]
    return ServiceAffinityArgs(
        affinity_labels=tuple(label for affinity in affinities if affinity for label in affinity.labels),
        anti_affinity_labels_preference=tuple(dislike.label for dislike in dislikes if dislike),
    )


def _strategies(priorities: Iterable[PriorityPolicy]) -> dict[str, ScoringStrategy]:
    """The named strategies by type, in order. One with a shape takes precedence over one without."""
    strategies: dict[str, ScoringStrategy] = {}
    for priority in priorities:
        strategy = _strategy_of(priority)
        if strategy is not None and (priority.argument is not None or strategy.type not in strategies):
            strategies[strategy.type] = strategy
    return strategies


def _strategy_of(priority: PriorityPolicy) -> ScoringStrategy | None:
    """The scoring strategy of a priority, if it scores by allocated resources."""
    if priority.argument is not None:
        ratio = priority.argument.requested_to_capacity_ratio_arguments
        return ratio_strategy(ratio) if ratio is not None else None
    kind = STRATEGIES.get(priority.name)
    if kind == REQUESTED_TO_CAPACITY_RATIO:
        return ratio_strategy(_FREE_NODES_FIRST)
    return ScoringStrategy(type=kind) if kind is not None else None


def _ignored_resources(policy: Policy) -> tuple[str, ...]:
    """The resources that only an extender checks."""
    resources = (resource for extender in policy.extenders for resource in extender.managed_resources)
    return tuple(resource.name for resource in resources if resource.ignored_by_scheduler)


# --- the profile ------------------------------------------------------------------------------------------------


def _profile(
    predicates: set[str], weights: Mapping[str, int], arguments: Mapping[str, PluginArguments]
) -> KubeSchedulerProfile:
    filtering = list(dict.fromkeys(p for name, plugins in PREDICATES.items() if name in predicates for p in plugins))
    only_scoring = sorted(plugin for plugin in weights if plugin not in filtering)
    only_filtering = [plugin for plugin in (*filtering, *ALWAYS) if plugin not in weights]
    names = (*_BEFORE, *filtering, *ALWAYS, *only_scoring, *_AFTER)
    without_scores, without_filters = _disabled(only_filtering), _disabled(only_scoring)
    return KubeSchedulerProfile(
        plugins=Plugins(
            multi_point=PluginSet(
                enabled=tuple(PluginEntry(name=name, weight=weights.get(name, 0)) for name in names),
                disabled=(PluginEntry(name=ALL_PLUGINS),),
            ),
            pre_filter=without_filters,
            filter=without_filters,
            pre_score=without_scores,
            score=without_scores,
        ),
        plugin_config=tuple(PluginConfig(name=name, args=args) for name, args in arguments.items() if name in names),
    )


def _disabled(names: Iterable[str]) -> PluginSet:
    return PluginSet(disabled=tuple(PluginEntry(name=name) for name in names))
