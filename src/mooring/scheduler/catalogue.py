"""All plugins that come with the scheduler. A new plugin needs one module in `plugins/` and one line here."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.scheduler import policy
from mooring.scheduler.config import SchedulerConfiguration
from mooring.scheduler.framework.loading import (
    PluginFileError,
    enabled_if_unmentioned,
    installed_plugins,
    plugins_from,
)
from mooring.scheduler.framework.plugin import Plugin
from mooring.scheduler.framework.registry import BadPluginError, Registry
from mooring.scheduler.plugins.default_binder import DefaultBinder
from mooring.scheduler.plugins.default_preemption import DefaultPreemption
from mooring.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from mooring.scheduler.plugins.image_locality import ImageLocality
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from mooring.scheduler.plugins.node_affinity import NodeAffinity
from mooring.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from mooring.scheduler.plugins.node_name import NodeName
from mooring.scheduler.plugins.node_ports import NodePorts
from mooring.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.scheduler.plugins.node_resources_fit import NodeResourcesFit
from mooring.scheduler.plugins.node_unschedulable import NodeUnschedulable
from mooring.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from mooring.scheduler.plugins.pod_topology_spread import PodTopologySpread
from mooring.scheduler.plugins.priority_sort import PrioritySort
from mooring.scheduler.plugins.scheduling_gates import SchedulingGates
from mooring.scheduler.plugins.taint_toleration import TaintToleration
from mooring.scheduler.plugins.volume_binding.plugin import VolumeBinding
from mooring.scheduler.plugins.volume_restrictions import VolumeRestrictions
from mooring.scheduler.plugins.volume_zone import VolumeZone

PLUGINS: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
)

BUILT_IN = (*PLUGINS, *policy.PLUGINS)
"""The plugins of kube-scheduler v1.36, and those of the older Policy."""

for _plugin in BUILT_IN:
    _plugin.is_built_in = True


def default_registry() -> Registry:
    return Registry(BUILT_IN)


def registry_with(sources: Iterable[str]) -> tuple[Registry, list[str]]:
    """The built-in plugins, installed ones, and those of these sources; and the names of the latter.

    A source is a Python file or `package.module:Class`. Raises `PluginFileError`.
    """
    registry, names = default_registry(), []
    for plugin in installed_plugins():
        _register(registry, plugin, "an entry point")
    for source in dict.fromkeys(sources):
        for plugin in plugins_from(source):
            _register(registry, plugin, source)
            names.append(plugin.name)
    return registry, names


def configuration_with(data: object | None, sources: Iterable[str]) -> tuple[SchedulerConfiguration, Registry]:
    """The configuration of a document, or the defaults, with the plugins of `registry_with`: those of the sources are
    enabled if the configuration does not name them. Raises `ConfigurationError` and `PluginFileError`."""
    registry, names = registry_with(sources)
    return enabled_if_unmentioned(policy.load_configuration_or_policy(data), names), registry


def _register(registry: Registry, plugin: type[Plugin], source: str) -> None:
    try:
        registry.register(plugin)
    except BadPluginError as error:
        raise PluginFileError(f"{source}: {error}") from error
