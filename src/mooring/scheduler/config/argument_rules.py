"""The rules that the arguments of Kubernetes' own plugins must keep.

Comes in   typed arguments, and the path where they stand
Goes out   every problem with them, in kube-scheduler v1.36's words and order

 1. Arguments of other plugins have no rules here.
 2. What a feature gate that is off forbids is a problem, not something to ignore: it would start to count on the day
    the gate is turned on.
"""

from collections.abc import Iterator

from mooring.api.durations import format_duration
from mooring.api.label_syntax import label_key_errors
from mooring.api.nodeselector import compile_lenient
from mooring.api.views.pod import NodeAffinity, TopologySpreadConstraint
from mooring.api.views.selectors import NodeSelector
from mooring.scheduler.config.arguments import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from mooring.scheduler.config.problems import Problem, child, duplicate, forbidden, invalid, not_supported, required
from mooring.scheduler.config.types import PluginArguments

UTILIZATION_MAX = 100
SHAPE_SCORE_MAX = 10
RESOURCE_WEIGHT_MAX = 100
HARD_POD_AFFINITY_WEIGHT_MAX = 100
BINDING_TIMEOUT_S_MIN = 1.0

_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def argument_problems(path: str, arguments: PluginArguments | None) -> Iterator[Problem]:
    match arguments:
        case DefaultPreemptionArgs():
            yield from _default_preemption(path, arguments)
        case DynamicResourcesArgs():
            yield from _dynamic_resources(path, arguments)
        case InterPodAffinityArgs():
            yield from _inter_pod_affinity(path, arguments)
        case NodeAffinityArgs():
            yield from _node_affinity(child(path, "addedAffinity"), arguments.added_affinity)
        case NodeResourcesBalancedAllocationArgs():
            yield from _balanced_allocation(path, arguments)
        case NodeResourcesFitArgs():
            yield from _fit(path, arguments)
        case PodTopologySpreadArgs():
            yield from _spread(path, arguments)
        case VolumeBindingArgs():
            yield from _volume_binding(path, arguments)
        case _:
            return


def _default_preemption(path: str, arguments: DefaultPreemptionArgs) -> Iterator[Problem]:
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


def _dynamic_resources(path: str, arguments: DynamicResourcesArgs) -> Iterator[Problem]:
    if arguments.filter_timeout_s < 0:
        shown = format_duration(arguments.filter_timeout_s)
        yield invalid(child(path, "filterTimeout"), shown, "must be zero or positive")
    if arguments.binding_timeout_s < BINDING_TIMEOUT_S_MIN:
        shown = format_duration(arguments.binding_timeout_s)
        yield invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second")


def _inter_pod_affinity(path: str, arguments: InterPodAffinityArgs) -> Iterator[Problem]:
    weight = arguments.hard_pod_affinity_weight
    if not 0 <= weight <= HARD_POD_AFFINITY_WEIGHT_MAX:
        rule = f"not in valid range [0, {HARD_POD_AFFINITY_WEIGHT_MAX}]"
        yield invalid(child(path, "hardPodAffinityWeight"), weight, rule)


def _node_affinity(path: str, affinity: NodeAffinity | None) -> Iterator[Problem]:
    if affinity is None:
        return
    required_path = child(path, "requiredDuringSchedulingIgnoredDuringExecution")
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        yield from _selector(f"{required_path}.", selector)
    preferred_path = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight:
            alone = NodeSelector(node_selector_terms=(preferred.preference,))
            yield from _selector(f"{preferred_path}[{index}]", alone, without="nodeSelectorTerms[0]")


def _selector(path: str, selector: NodeSelector, without: str = "") -> Iterator[Problem]:
    """The faults of a selector, each of which names a field inside of it; `without` is taken off that field."""
    for term in compile_lenient(selector).terms:
        for fault in term.faults:
            text = path + fault.removeprefix(without)
            yield Problem(text.partition(": ")[0], text)


def _balanced_allocation(path: str, arguments: NodeResourcesBalancedAllocationArgs) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, resource in enumerate(arguments.resources):
        where = f"{path}.resources[{index}]"
        if resource.name in seen:
            yield duplicate(child(where, "name"), resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(child(where, "weight"), resource.weight, "must be 1")


def _fit(path: str, arguments: NodeResourcesFitArgs) -> Iterator[Problem]:
    for index, resource in enumerate(arguments.ignored_resources):
        yield from _label_name(f"{path}.ignoredResources[{index}]", resource)
    for index, group in enumerate(arguments.ignored_resource_groups):
        where = f"{path}.ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(where, group, "resource group name can't contain '/'")
        yield from _label_name(where, group)
    yield from _strategy(child(path, "scoringStrategy"), arguments.scoring_strategy)


def _strategy(path: str, strategy: ScoringStrategy) -> Iterator[Problem]:
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


def _shape(path: str, shape: tuple[UtilizationShapePoint, ...]) -> Iterator[Problem]:
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


def _spread(path: str, arguments: PodTopologySpreadArgs) -> Iterator[Problem]:
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


def _constraint(path: str, constraint: TopologySpreadConstraint) -> Iterator[Problem]:
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


def _volume_binding(path: str, arguments: VolumeBindingArgs) -> Iterator[Problem]:
    if arguments.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(child(path, "bindTimeoutSeconds"), arguments.bind_timeout_seconds, rule)
    if arguments.shape is not None:
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in arguments.shape]
        rule = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid(child(path, "shape"), shown, rule)


def _label_name(path: str, name: str) -> Iterator[Problem]:
    for fault in label_key_errors(name):
        yield invalid(path, name, fault)
