"""The types of `KubeSchedulerConfiguration` v1: extension points, plugin arguments, the configuration, problems.

The fields are those of `kubescheduler.config.k8s.io/v1` in kube-scheduler v1.36, no more and no fewer. There are no
bind addresses for health and metrics: version 1 left them to flags. `decode` reads the annotations at run time, so
this module does not use `from __future__ import annotations`.

1. A field's default is its value when the configuration does not set it, or sets it to `null`. `OrDefault` marks
   fields where Kubernetes also takes the default for a zero, an empty text or an empty list. A field without a
   default is zero when it is absent, and `validation` decides about it.
2. The defaults are those of kube-scheduler v1.36 with its feature gates as shipped: time-outs for filtering by
   devices and for binding devices (DRASchedulerFilterTimeout, DRADeviceBindingConditions are on), and no shape for
   scoring by storage capacity (StorageCapacityScoring is off). `X()` is what plugin X gets when the configuration
   does not mention it.
3. In a loaded configuration, `plugins` of each profile holds the default plugins merged with what the profile sets,
   and `plugin_config` holds the arguments of every plugin that takes arguments.
4. `percentage_of_nodes_to_score` is None where the file does not set it, and all nodes are scored. kube-scheduler
   fills in 0, which means "decide by the size of the cluster"; here, too, 0 means that.
5. A problem's text is a complete message that names the field, with Kubernetes' field errors byte for byte: users
   search for them. Its path is for programs, which find the line in the file with it (`YamlDocument.line_of`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, TypeAlias, TypeVar, dataclass_transform

import msgspec
from msgspec import field

from mooring.api.field_errors import quoted, unsupported_value
from mooring.api.views.pod import NodeAffinity, TopologySpreadConstraint
from mooring.api.well_known import DEFAULT_SCHEDULER_NAME

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IntegerRange:
    lowest: int
    highest: int


class ValueMeaning(Enum):
    DURATION = "written as 1m30s, held in seconds"
    ZERO_IS_DEFAULT = "a zero value counts as absent"


INT32 = IntegerRange(-(2**31), 2**31 - 1)
INT64 = IntegerRange(-(2**63), 2**63 - 1)

Int32 = Annotated[int, INT32]
Int64 = Annotated[int, INT64]
Seconds = Annotated[float, ValueMeaning.DURATION]
OrDefault = Annotated[T, ValueMeaning.ZERO_IS_DEFAULT]


# Subclasses inherit these options in msgspec. Type checkers know that only with this decorator.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ConfigObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base class of all configuration types."""


class ExtensionPoint(Enum):
    """The extension points in the order in which they run; the two placement points, for groups of pods, come last.

    A value is the point's field in a profile's `plugins`. `multiPoint` is not among them: no plugin is called there.
    """

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"

    @property
    def config_field(self) -> str:
        """The field of `plugins` in a configuration: "preFilter"."""
        return self.value

    @property
    def attribute(self) -> str:
        """The same field as a Python name: "pre_filter"."""
        return self.name.lower()

    @property
    def plugin_type(self) -> str:
        """Kubernetes' name of the interface for this point: "PreFilterPlugin"."""
        return f"{self.value[0].upper()}{self.value[1:]}Plugin"

    @property
    def is_weighted(self) -> bool:
        """Whether the results of the plugins at this point are multiplied by a weight and added up."""
        return self in (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)


LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class ResourceSpec(ConfigObject):
    name: str
    weight: OrDefault[Int64] = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class UtilizationShapePoint(ConfigObject):
    """A point of a function from utilization (0 to 100) to score (0 to 10)."""

    utilization: Int32
    score: Int32


class RequestedToCapacityRatioParam(ConfigObject):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigObject):
    """How nodes are ranked by utilization. `type` is required in a strategy that the configuration sets."""

    type: str
    resources: OrDefault[tuple[ResourceSpec, ...]] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(ConfigObject):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(ConfigObject):
    """A filter time-out of 0 means no time-out."""

    filter_timeout_s: Seconds = field(default=10.0, name="filterTimeout")
    binding_timeout_s: Seconds = field(default=600.0, name="bindingTimeout")


class InterPodAffinityArgs(ConfigObject):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(ConfigObject):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(ConfigObject):
    resources: OrDefault[tuple[ResourceSpec, ...]] = CPU_AND_MEMORY


class NodeResourcesFitArgs(ConfigObject):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)


class PodTopologySpreadArgs(ConfigObject):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: OrDefault[str] = SYSTEM_DEFAULTING


class VolumeBindingArgs(ConfigObject):
    """`shape` is None unless set, and validation rejects it: its feature gate is off."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


KnownArguments: TypeAlias = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

ARGUMENTS: dict[str, type[KnownArguments]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}


API_GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{API_GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

ALL_PLUGINS = "*"
"""In a list of disabled plugins: all plugins."""

RawArguments: TypeAlias = Mapping[str, object]
"""The arguments of a plugin that is not Kubernetes' own, as written in the file."""

PluginArguments: TypeAlias = KnownArguments | RawArguments


class LeaderElectionConfiguration(ConfigObject):
    leader_elect: bool = True
    lease_duration_s: OrDefault[Seconds] = field(default=15.0, name="leaseDuration")
    renew_deadline_s: OrDefault[Seconds] = field(default=10.0, name="renewDeadline")
    retry_period_s: OrDefault[Seconds] = field(default=2.0, name="retryPeriod")
    resource_lock: OrDefault[str] = "leases"
    resource_name: OrDefault[str] = "kube-scheduler"
    resource_namespace: OrDefault[str] = "kube-system"


class ClientConnectionConfiguration(ConfigObject):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: OrDefault[str] = "application/vnd.kubernetes.protobuf"
    qps: OrDefault[float] = 50.0
    burst: OrDefault[Int32] = 100


class PluginEntry(ConfigObject):
    """A plugin in a list. The weight applies at weighted points; 0 means that none was given."""

    name: str
    weight: Int32 = 0


class PluginSet(ConfigObject):
    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


NO_PLUGINS = PluginSet()


class Plugins(ConfigObject):
    multi_point: PluginSet = NO_PLUGINS
    pre_enqueue: PluginSet = NO_PLUGINS
    queue_sort: PluginSet = NO_PLUGINS
    pre_filter: PluginSet = NO_PLUGINS
    filter: PluginSet = NO_PLUGINS
    post_filter: PluginSet = NO_PLUGINS
    pre_score: PluginSet = NO_PLUGINS
    score: PluginSet = NO_PLUGINS
    reserve: PluginSet = NO_PLUGINS
    permit: PluginSet = NO_PLUGINS
    pre_bind: PluginSet = NO_PLUGINS
    bind: PluginSet = NO_PLUGINS
    post_bind: PluginSet = NO_PLUGINS
    placement_generate: PluginSet = NO_PLUGINS
    placement_score: PluginSet = NO_PLUGINS

    def at(self, point: ExtensionPoint) -> PluginSet:
        found = getattr(self, point.attribute)
        assert isinstance(found, PluginSet), f"{point} has no list of plugins"
        return found

    def enabled_names(self) -> tuple[str, ...]:
        """Every plugin that is enabled at any point, once, in alphabetical order."""
        lists = (self.multi_point, *(self.at(point) for point in ExtensionPoint))
        return tuple(sorted({plugin.name for plugins in lists for plugin in plugins.enabled}))


class PluginConfig(ConfigObject):
    name: str
    args: PluginArguments | None = None


class KubeSchedulerProfile(ConfigObject):
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderManagedResource(ConfigObject):
    name: str
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(ConfigObject):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderConfiguration(ConfigObject):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_s: OrDefault[Seconds] = field(default=5.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(ConfigObject):
    parallelism: Int32 = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[ExtenderConfiguration, ...] = ()
    delay_cache_until_active: bool = False


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    path: str
    text: str

    def __str__(self) -> str:
        return self.text


class ConfigurationError(ValueError):
    """An invalid configuration. The message has one line for each problem."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems: tuple[ConfigProblem, ...] = tuple(dict.fromkeys(problems))
        assert self.problems, "a configuration error without a problem"
        super().__init__("\n".join(problem.text for problem in self.problems))


def invalid(path: str, value: object, detail: str) -> ConfigProblem:
    return _problem(path, f"Invalid value: {_shown(value)}", detail)


def duplicate(path: str, value: object, detail: str = "") -> ConfigProblem:
    return _problem(path, f"Duplicate value: {_shown(value)}", detail)


def not_supported(path: str, value: str, supported: Sequence[str]) -> ConfigProblem:
    return ConfigProblem(path, unsupported_value(path, value, supported))


def required(path: str, detail: str = "") -> ConfigProblem:
    return _problem(path, "Required value", detail)


def forbidden(path: str, detail: str) -> ConfigProblem:
    return _problem(path, "Forbidden", detail)


def child(path: str, name: str) -> str:
    """The path of a field of an object; the root has the empty path."""
    return f"{path}.{name}" if path else name


def _problem(path: str, kind: str, detail: str) -> ConfigProblem:
    return ConfigProblem(path, f"{path}: {kind}: {detail}" if detail else f"{path}: {kind}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=dict)
