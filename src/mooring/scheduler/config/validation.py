"""The rules that a configuration as a whole must keep.

Comes in   a decoded configuration with its defaults
Goes out   every problem, in the order in which kube-scheduler v1.36 looks, with its paths and its words

 1. The rules about arguments live in `argument_rules`, and are asked here under the path where they stand.
 2. Whether a plugin exists, and what it can do, is not known here: see `expansion`.
"""

from collections.abc import Iterator

import msgspec

from mooring.api.durations import format_duration
from mooring.api.label_syntax import label_key_errors
from mooring.scheduler.config.argument_rules import argument_problems
from mooring.scheduler.config.arguments import NodeResourcesFitArgs
from mooring.scheduler.config.problems import Problem, child, duplicate, invalid, required
from mooring.scheduler.config.types import (
    API_VERSION,
    ClientConnectionConfiguration,
    Extender,
    LeaderElectionConfiguration,
    PluginConfig,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from mooring.scheduler.framework.points import ExtensionPoint

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'

_POINTS_OF_ONE_POD = tuple(
    point
    for point in ExtensionPoint
    if point not in (ExtensionPoint.PLACEMENT_GENERATE, ExtensionPoint.PLACEMENT_SCORE)
)


def validate(configuration: SchedulerConfiguration) -> list[Problem]:
    return list(_problems(configuration))


def _problems(configuration: SchedulerConfiguration) -> Iterator[Problem]:
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


def _client_problems(path: str, client: ClientConnectionConfiguration) -> Iterator[Problem]:
    if client.burst < 0:
        yield invalid(child(path, "burst"), client.burst, "must be non-negative")


def _election_problems(path: str, election: LeaderElectionConfiguration) -> Iterator[Problem]:
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


def _percentage_problems(path: str, percentage: int | None) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles_problems(path: str, profiles: tuple[Profile, ...]) -> Iterator[Problem]:
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


def _removed_plugin_problems(path: str, profile: Profile) -> Iterator[Problem]:
    for point in _POINTS_OF_ONE_POD:
        for index, plugin in enumerate(profile.plugins.at(point).enabled):
            if plugin.name in REMOVED_PLUGINS:
                yield invalid(f"{path}.plugins.{point.config_field}.enabled[{index}]", plugin.name, _REMOVED)


def _plugin_config_problems(path: str, profile: Profile) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, config in enumerate(profile.plugin_config):
        where = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            yield duplicate(where, config.name)
        seen.add(config.name)
        if config.name in REMOVED_PLUGINS:
            yield invalid(where, config.name, _REMOVED)
        elif config.name == NodeResourcesFitArgs.__name__:
            # Almost the plugin's name, and not a plugin: kube-scheduler refuses this one, too.
            yield invalid(child(where, "args"), config.args, "has to match plugin args")
        elif _is_examined(config, profile):
            yield from argument_problems(child(where, "args"), config.args)


def _is_examined(config: PluginConfig, profile: Profile) -> bool:
    # kube-scheduler looks at these arguments only when it makes the plugin, so they may be nonsense while it is off.
    return not isinstance(config.args, NodeResourcesFitArgs) or config.name in profile.plugins.enabled_names()


def _queue_sort_problems(path: str, profiles: tuple[Profile, ...]) -> Iterator[Problem]:
    """There is one queue, so all profiles must sort it alike."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        where = f"{path}[0].plugins.queueSort.Enabled"
        yield invalid(where, len(first.enabled), "only one queue sort plugin can be enabled")
    name = first.enabled[0].name if first.enabled else ""
    arguments = [config.args for config in profiles[0].plugin_config if config.name == name]
    wanted = arguments[-1] if arguments else None
    for index, profile in enumerate(profiles[1:], start=1):
        where = f"{path}[{index}]"
        if profile.plugins.queue_sort != first:
            shown = _shown_plugins(profile.plugins.queue_sort)
            yield invalid(f"{where}.plugins.queueSort", shown, "must be the same for all profiles")
        for config in profile.plugin_config:
            if config.name == name and config.args != wanted:
                shown = msgspec.to_builtins(config.args)
                yield invalid(f"{where}.pluginConfig.args", shown, "queueSort must be the same for all profiles")


def _shown_plugins(plugins: PluginSet) -> dict[str, list[dict[str, object]] | None]:
    """A list of plugins as Kubernetes' messages show it: with the field names of its inner types."""
    return {
        name: [{"Name": plugin.name, "Weight": plugin.weight} for plugin in listed] or None
        for name, listed in (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    }


def _extenders_problems(path: str, extenders: tuple[Extender, ...]) -> Iterator[Problem]:
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


def _extended_resource_problems(path: str, name: str) -> Iterator[Problem]:
    faults = label_key_errors(name)
    for fault in faults:
        yield invalid(path, name, fault)
    if not faults and not _is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _is_extended_resource(name: str) -> bool:
    is_native = "/" not in name or "kubernetes.io/" in name
    return not is_native and not name.startswith("requests.") and not label_key_errors(f"requests.{name}")
