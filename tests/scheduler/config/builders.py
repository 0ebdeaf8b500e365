"""Builders of configurations: written data, and what it is decoded to."""

from collections.abc import Callable

from mooring.scheduler.config import ConfigProblem, ConfigurationError
from mooring.scheduler.config.types import ExtensionPoint
from mooring.scheduler.policy import load_configuration_or_policy

VERSION = "kubescheduler.config.k8s.io/v1"

Written = dict[str, object]


def configuration(**fields: object) -> Written:
    """A configuration as it stands in a file."""
    return {"apiVersion": VERSION, "kind": "KubeSchedulerConfiguration", **fields}


def with_profile(**fields: object) -> Written:
    return configuration(profiles=[fields])


def with_arguments(plugin: str, args: object) -> Written:
    return with_profile(pluginConfig=[{"name": plugin, "args": args}])


def loaded_arguments(plugin: str, args: object = None) -> object:
    """What a plugin is given for arguments that were written."""
    loaded = load_configuration_or_policy(with_arguments(plugin, args))
    return next(config.args for config in loaded.profiles[0].plugin_config if config.name == plugin)


def problems(load: Callable[[], object]) -> tuple[ConfigProblem, ...]:
    """All problems that a configuration has; none if it loads."""
    try:
        load()
    except ConfigurationError as error:
        return error.problems
    return ()


def complaints_about(data: object) -> list[str]:
    return [problem.text for problem in problems(lambda: load_configuration_or_policy(data))]


def paths_complained_about(data: object) -> list[str]:
    return [problem.path for problem in problems(lambda: load_configuration_or_policy(data))]


def plugins(*names: str) -> list[Written]:
    """A list of plugins: "Name", or "Name=5" with a weight."""
    return [_plugin(name) for name in names]


def _plugin(name: str) -> Written:
    bare, _, weight = name.partition("=")
    return {"name": bare, "weight": int(weight)} if weight else {"name": bare}


def serving(**points: str) -> Callable[[str, ExtensionPoint], bool]:
    """What plugins can do: `serving(Gpu="filter score")`."""
    served = {name: set(listed.split()) for name, listed in points.items()}
    return lambda name, point: point.config_field in served.get(name, ())


KUBERNETES = serving(
    SchedulingGates="preEnqueue",
    PrioritySort="queueSort",
    NodeUnschedulable="filter",
    NodeName="filter",
    TaintToleration="filter preScore score",
    NodeAffinity="preFilter filter preScore score",
    NodePorts="preFilter filter",
    NodeResourcesFit="preFilter filter preScore score",
    VolumeRestrictions="preFilter filter",
    NodeVolumeLimits="preFilter filter",
    VolumeBinding="preFilter filter preScore score reserve preBind",
    VolumeZone="preFilter filter",
    PodTopologySpread="preFilter filter preScore score",
    InterPodAffinity="preFilter filter preScore score",
    DynamicResources="preEnqueue preFilter filter postFilter score reserve preBind",
    DefaultPreemption="preEnqueue postFilter",
    NodeResourcesBalancedAllocation="preScore score",
    ImageLocality="score",
    DefaultBinder="bind",
    NodeDeclaredFeatures="preFilter filter",
)
"""What Kubernetes' own default plugins can do."""
