"""Validate a decoded configuration with its defaults.

Returns every problem in the order, with the paths and with the messages of kube-scheduler v1.36: first the
configuration, then, at their paths, the arguments of Kubernetes' own plugins.

1. The arguments of other plugins are not validated here.
2. A field that belongs to a disabled feature gate is a problem. If it were ignored, it would take effect on the day
   the gate is enabled.
3. Whether a plugin exists and which extension points it serves is checked in `profiles`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from mooring.api.durations import format_duration
from mooring.api.labels import label_key_errors
from mooring.api.nodeselector import compile_lenient
from mooring.api.views.meta import NodeSelector
from mooring.api.views.pod import TopologySpreadConstraint
from mooring.scheduler.config.types import (
    API_VERSION,
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    ClientConnectionConfiguration,
    ConfigProblem,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    ExtenderConfiguration,
    ExtensionPoint,
    InterPodAffinityArgs,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArguments,
    PluginConfig,
    PluginSet,
    PodTopologySpreadArgs,
    SchedulerConfiguration,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'

_POINTS_OF_ONE_POD = tuple(
    point
    for point in ExtensionPoint
    if point not in (ExtensionPoint.PLACEMENT_GENERATE, ExtensionPoint.PLACEMENT_SCORE)
)


def validate(configuration: SchedulerConfiguration) -> list[ConfigProblem]:
    return list(_problems(configuration))


def _problems(configuration: SchedulerConfiguration) -> Iterator[ConfigProblem]:
    yield from _client_problems("clientConnection", configuration.client_connection)
    yield from _election_problems("leaderElection", configuration.leader_election)
    if configuration.parallelism <= 0:
        yield invalid("parallelism", configuration.parallelism, "should be an integer value greater than zero")
    yield from _profiles_problems("profiles", configuration.profiles)
    yield from _percentage_problems("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score)
    initial, highest = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if highest < initial:
        yield invalid("podMaxBackoffSeconds", highest, "must be greater than or equal to PodInitialBackoffSeconds")
    yield from _extenders_problems("extenders", configuration.extenders)


def _client_problems(path: str, client: ClientConnectionConfiguration) -> Iterator[ConfigProblem]:
    if client.burst < 0:
        yield invalid(child(path, "burst"), client.burst, "must be non-negative")


def _election_problems(path: str, election: LeaderElectionConfiguration) -> Iterator[ConfigProblem]:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration_s,
        "renewDeadline": election.renew_deadline_s,
        "retryPeriod": election.retry_period_s,
    }
    for name, duration_s in durations.items():
        if duration_s <= 0:
            yield invalid(child(path, name), format_duration(duration_s), "must be greater than zero")
    if election.lease_duration_s <= election.renew_deadline_s:
        # Kubernetes shows the deadline as the invalid value here, not the lease.
        shown = format_duration(election.renew_deadline_s)
        yield invalid(child(path, "leaseDuration"), shown, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        yield invalid(child(path, "resourceLock"), election.resource_lock, 'resourceLock value must be "leases"')


def _percentage_problems(path: str, percentage: int | None) -> Iterator[ConfigProblem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles_problems(path: str, profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[ConfigProblem]:
    if not profiles:
        yield required(path)
        return
    first_with: dict[str, str] = {}
    for index, profile in enumerate(profiles):
        where = f"{path}[{index}]"
        name_path = child(where, "schedulerName")
        if not profile.scheduler_name:
            yield required(name_path)
        yield from _percentage_problems(child(where, "percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)
        yield from _removed_plugin_problems(where, profile)
        yield from _plugin_config_problems(where, profile)
        if profile.scheduler_name in first_with:
            # Kubernetes prints {} where it means to name the other profile.
            yield duplicate(name_path, {}, f"it is already that of {first_with[profile.scheduler_name]}")
        first_with[profile.scheduler_name] = where
    yield from _queue_sort_problems(path, profiles)


def _removed_plugin_problems(path: str, profile: KubeSchedulerProfile) -> Iterator[ConfigProblem]:
    for point in _POINTS_OF_ONE_POD:
        for index, plugin in enumerate(profile.plugins.at(point).enabled):
            if plugin.name in REMOVED_PLUGINS:
                yield invalid(f"{path}.plugins.{point.config_field}.enabled[{index}]", plugin.name, _REMOVED)


def _plugin_config_problems(path: str, profile: KubeSchedulerProfile) -> Iterator[ConfigProblem]:
    seen: set[str] = set()
    for index, config in enumerate(profile.plugin_config):
        where = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            yield duplicate(where, config.name)
        seen.add(config.name)
        if config.name in REMOVED_PLUGINS:
            yield invalid(where, config.name, _REMOVED)
        elif config.name == NodeResourcesFitArgs.__name__:
            # The name of the type instead of the plugin: kube-scheduler rejects this one as well.
            yield invalid(child(where, "args"), config.args, "has to match plugin args")
        elif _is_examined(config, profile):
            yield from argument_problems(child(where, "args"), config.args)


def _is_examined(config: PluginConfig, profile: KubeSchedulerProfile) -> bool:
    # kube-scheduler validates these arguments when it creates the plugin, so not while the plugin is disabled.
    return not isinstance(config.args, NodeResourcesFitArgs) or config.name in profile.plugins.enabled_names()


def _queue_sort_problems(path: str, profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[ConfigProblem]:
    """All profiles share one queue and must use the same queue sort plugin."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        where = f"{path}[0].plugins.queueSort.Enabled"
        yield invalid(where, len(first.enabled), "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else ""
    arguments = [config.args for config in profiles[0].plugin_config if config.name == name]
    effective = arguments[-1] if arguments else None
    for index, profile in enumerate(profiles[1:], start=1):
        where = f"{path}[{index}]"
        if profile.plugins.queue_sort != first:
            shown = _shown_plugins(profile.plugins.queue_sort)
            yield invalid(f"{where}.plugins.queueSort", shown, "must be the same for all profiles")
        for config in profile.plugin_config:
            if config.name == name and config.args != effective:
                shown = msgspec.to_builtins(config.args)
                yield invalid(f"{where}.pluginConfig.args", shown, "queueSort must be the same for all profiles")


def _shown_plugins(plugins: PluginSet) -> dict[str, list[dict[str, object]] | None]:
    """A list of plugins as Kubernetes' messages show it: with the field names of its internal types."""
    return {
        name: [{"Name": plugin.name, "Weight": plugin.weight} for plugin in listed] or None
        for name, listed in (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    }


def _extenders_problems(path: str, extenders: tuple[ExtenderConfiguration, ...]) -> Iterator[ConfigProblem]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        where = f"{path}[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(child(where, "weight"), extender.weight, "must have a positive weight applied to it")
        for position, resource in enumerate(extender.managed_resources):
            name_path = f"{where}.managedResources[{position}].name"
            yield from _extended_resource_problems(name_path, resource.name)
            if resource.name in managed:
                yield invalid(name_path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield invalid(path, found, "only one extender can implement bind")


def _extended_resource_problems(path: str, name: str) -> Iterator[ConfigProblem]:
    errors = label_key_errors(name)
    for error in errors:
        yield invalid(path, name, error)
    if not errors and not _is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _is_extended_resource(name: str) -> bool:
    is_native = "/" not in name or "kubernetes.io/" in name
    return not is_native and not name.startswith("requests.") and not label_key_errors(f"requests.{name}")


UTILIZATION_MAX = 100
SHAPE_SCORE_MAX = 10
RESOURCE_WEIGHT_MAX = 100
HARD_POD_AFFINITY_WEIGHT_MAX = 100
BINDING_TIMEOUT_S_MIN = 1.0

_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def argument_problems(path: str, arguments: PluginArguments | None) -> Iterator[ConfigProblem]:
    """The problems of a plugin's arguments; none for a plugin that is not Kubernetes' own."""
    rule = _ARGUMENT_RULES.get(type(arguments))
    return rule(path, arguments) if rule is not None else iter(())


def _default_preemption(path: str, arguments: DefaultPreemptionArgs) -> Iterator[ConfigProblem]:
    percentage, absolute = arguments.min_candidate_nodes_percentage, arguments.min_candidate_nodes_absolute
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        together = "cannot be zero at the same time as"
        yield invalid(percentage_path, percentage, f"{together} minCandidateNodesAbsolute")
        yield invalid(absolute_path, absolute, f"{together} minCandidateNodesPercentage")


def _dynamic_resources(path: str, arguments: DynamicResourcesArgs) -> Iterator[ConfigProblem]:
    if arguments.filter_timeout_s < 0:
        shown = format_duration(arguments.filter_timeout_s)
        yield invalid(child(path, "filterTimeout"), shown, "must be zero or positive")
    if arguments.binding_timeout_s < BINDING_TIMEOUT_S_MIN:
        shown = format_duration(arguments.binding_timeout_s)
        yield invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second")


def _inter_pod_affinity(path: str, arguments: InterPodAffinityArgs) -> Iterator[ConfigProblem]:
    weight = arguments.hard_pod_affinity_weight
    if not 0 <= weight <= HARD_POD_AFFINITY_WEIGHT_MAX:
        rule = f"not in valid range [0, {HARD_POD_AFFINITY_WEIGHT_MAX}]"
        yield invalid(child(path, "hardPodAffinityWeight"), weight, rule)


def _node_affinity(path: str, arguments: NodeAffinityArgs) -> Iterator[ConfigProblem]:
    affinity = arguments.added_affinity
    if affinity is None:
        return
    path = child(path, "addedAffinity")
    required_path = child(path, "requiredDuringSchedulingIgnoredDuringExecution")
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        yield from _selector(f"{required_path}.", selector)
    preferred_path = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight:
            selector = NodeSelector(node_selector_terms=(preferred.preference,))
            yield from _selector(f"{preferred_path}[{index}]", selector, without="nodeSelectorTerms[0]")


def _selector(path: str, selector: NodeSelector, without: str = "") -> Iterator[ConfigProblem]:
    """The errors of a selector, each with the path of a field in it. `without` is removed from that path."""
    for term in compile_lenient(selector).terms:
        for error in term.errors:
            text = path + error.removeprefix(without)
            yield ConfigProblem(text.partition(": ")[0], text)


def _balanced_allocation(path: str, arguments: NodeResourcesBalancedAllocationArgs) -> Iterator[ConfigProblem]:
    seen: set[str] = set()
    for index, resource in enumerate(arguments.resources):
        where = f"{path}.resources[{index}]"
        if resource.name in seen:
            yield duplicate(child(where, "name"), resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(child(where, "weight"), resource.weight, "must be 1")


def _fit(path: str, arguments: NodeResourcesFitArgs) -> Iterator[ConfigProblem]:
    for index, resource in enumerate(arguments.ignored_resources):
        yield from _label_name(f"{path}.ignoredResources[{index}]", resource)
    for index, group in enumerate(arguments.ignored_resource_groups):
        where = f"{path}.ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(where, group, "resource group name can't contain '/'")
        yield from _label_name(where, group)
    yield from _strategy(child(path, "scoringStrategy"), arguments.scoring_strategy)


def _strategy(path: str, strategy: ScoringStrategy) -> Iterator[ConfigProblem]:
    if strategy.type not in _STRATEGIES:
        yield not_supported(child(path, "type"), strategy.type, _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= RESOURCE_WEIGHT_MAX:
            rule = f"resource weight of {resource.name} not in valid range (0, {RESOURCE_WEIGHT_MAX}]"
            yield invalid(f"{path}.resources[{index}].weight", resource.weight, rule)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, child(path, "requestedToCapacityRatio")
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            yield required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
        else:
            yield from _shape(child(ratio_path, "shape"), ratio.shape)
    elif ratio is not None:
        yield forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio")


def _shape(path: str, shape: tuple[UtilizationShapePoint, ...]) -> Iterator[ConfigProblem]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            where = f"{path}[{index}].utilization"
            yield invalid(where, shape[index].utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= UTILIZATION_MAX:
            rule = f"not in valid range [0, {UTILIZATION_MAX}]"
            yield invalid(f"{path}[{index}].utilization", point.utilization, rule)
        if not 0 <= point.score <= SHAPE_SCORE_MAX:
            yield invalid(f"{path}[{index}].score", point.score, f"not in valid range [0, {SHAPE_SCORE_MAX}]")


def _spread(path: str, arguments: PodTopologySpreadArgs) -> Iterator[ConfigProblem]:
    kind, kind_path = arguments.defaulting_type, child(path, "defaultingType")
    if kind not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        yield not_supported(kind_path, kind, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif kind == SYSTEM_DEFAULTING and arguments.default_constraints:
        yield invalid(kind_path, kind, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(arguments.default_constraints):
        where = f"{path}.defaultConstraints[{index}]"
        yield from _constraint(where, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            yield duplicate(where, f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)


def _constraint(path: str, constraint: TopologySpreadConstraint) -> Iterator[ConfigProblem]:
    if constraint.max_skew <= 0:
        yield invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(child(path, "topologyKey"), "can not be empty")
    else:
        yield from _label_name(child(path, "topologyKey"), constraint.topology_key)
    action, action_path = constraint.when_unsatisfiable, child(path, "whenUnsatisfiable")
    if not action:
        yield required(action_path, "can not be empty")
    elif action not in _WHEN_UNSATISFIABLE:
        yield not_supported(action_path, action, _WHEN_UNSATISFIABLE)
    if constraint.label_selector is not None:
        rule = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(child(path, "labelSelector"), rule)


def _volume_binding(path: str, arguments: VolumeBindingArgs) -> Iterator[ConfigProblem]:
    if arguments.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(child(path, "bindTimeoutSeconds"), arguments.bind_timeout_seconds, rule)
    if arguments.shape is not None:
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in arguments.shape]
        rule = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid(child(path, "shape"), shown, rule)


def _label_name(path: str, name: str) -> Iterator[ConfigProblem]:
    for error in label_key_errors(name):
        yield invalid(path, name, error)


_ARGUMENT_RULES: Mapping[type, Callable[[str, Any], Iterator[ConfigProblem]]] = {
    DefaultPreemptionArgs: _default_preemption,
    DynamicResourcesArgs: _dynamic_resources,
    InterPodAffinityArgs: _inter_pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    NodeResourcesFitArgs: _fit,
    PodTopologySpreadArgs: _spread,
    VolumeBindingArgs: _volume_binding,
}
