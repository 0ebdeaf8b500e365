"""The arguments that Kubernetes' own plugins take, with their defaults.

Comes in   `pluginConfig[].args` of a profile, through `load`
Goes out   one frozen type for each plugin that takes arguments, and the table `ARGUMENTS` of all of them

 1. `X()` is what plugin X is given when the configuration does not mention it.
 2. The defaults are those of kube-scheduler v1.36 with its feature gates as they are shipped: timeouts for filtering
    by devices and for binding them (DRASchedulerFilterTimeout, DRADeviceBindingConditions are on), and no shape for
    scoring by storage capacity (StorageCapacityScoring is off).
 3. Selectors and constraints are the read views of pods: a plugin treats those of its arguments as it treats a pod's.
"""

from typing import TypeAlias

from msgspec import field

from mooring.api.views.pod import NodeAffinity, TopologySpreadConstraint
from mooring.scheduler.config.fields import Int32, Int64, OrDefault, Seconds, Settings

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class ResourceSpec(Settings):
    name: str
    weight: OrDefault[Int64] = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class UtilizationShapePoint(Settings):
    """A point of a function from utilization (0 to 100) to score (0 to 10)."""

    utilization: Int32
    score: Int32


class RequestedToCapacityRatioParam(Settings):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Settings):
    """How full nodes are ranked. Who names a strategy at all must say which: `type` has no default of its own."""

    type: str
    resources: OrDefault[tuple[ResourceSpec, ...]] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(Settings):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Settings):
    """A filter time-out of 0 is none."""

    filter_timeout_s: Seconds = field(default=10.0, name="filterTimeout")
    binding_timeout_s: Seconds = field(default=600.0, name="bindingTimeout")


class InterPodAffinityArgs(Settings):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Settings):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Settings):
    resources: OrDefault[tuple[ResourceSpec, ...]] = CPU_AND_MEMORY


class NodeResourcesFitArgs(Settings):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)


class PodTopologySpreadArgs(Settings):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: OrDefault[str] = SYSTEM_DEFAULTING


class VolumeBindingArgs(Settings):
    """`shape` is None unless given, and given only to be refused: its feature gate is off."""

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
