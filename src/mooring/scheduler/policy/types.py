"""The Policy file of kube-scheduler before v1.23: names, types, validation, and the arguments of its plugins.

`PREDICATES` and `PRIORITIES` have the plugins that replace them. They are the tables in docs/policy.md.

1. Every name that a scheduler from Kubernetes 1.1 to 1.22 knew has an entry. A priority without a replacement maps to
   None: it is accepted and has no effect.
2. Predicates are in the order of evaluation, which decides the reported reason if several reject a node. Renamed
   predicates are next to their successors.
3. Predicates for node conditions map to TaintToleration: since 1.12 the node lifecycle controller taints such nodes.

A file of kind Policy becomes a `Policy`. Problems have the messages of kube-scheduler v1.22, where it had any, and the
path in the file.

4. `predicates` and `priorities` are None if the file omits them, which means the old defaults. An empty list means the
   mandatory predicates only.
5. Names of extender fields are case-insensitive: old files wrote `BindVerb` and `CAFile`, later ones `bindVerb` and
   `caFile`.
6. A timeout is an integer number of nanoseconds, or a text such as `30s`.
7. An unknown name is a problem, unless it has an argument: then any name is valid.
8. A known name with an argument of another predicate or priority is a problem. Old schedulers disagreed whether the
   name or the argument counts.
9. Several label preferences (or service anti-affinities) become one plugin, so they must have the same weight.

NodeLabel, ServiceAffinity, SelectorSpread and the resource strategies get `pluginConfig[].args` of a file, or arguments
from a converted Policy, and return typed arguments or raise a `ConfigurationError`.

10. Arguments are decoded when the plugin is created, like those of a user's plugin, because kube-scheduler v1.36 does
    not know these plugins.
11. The rules of a strategy are those of NodeResourcesFit's arguments.
12. A label cannot be required both present and absent.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

import msgspec

from mooring.api.field_errors import quoted
from mooring.scheduler.config.load import TYPE_FIELDS, StrictDecoder, without_type_fields
from mooring.scheduler.config.types import (
    CPU_AND_MEMORY,
    INT32,
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ConfigObject,
    ConfigProblem,
    ConfigurationError,
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    Int32,
    Int64,
    NodeResourcesFitArgs,
    OrDefault,
    RawArguments,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    child,
    forbidden,
    invalid,
)
from mooring.scheduler.config.validation import argument_problems

S = TypeVar("S", bound=ConfigObject)
NODE_LABEL = "NodeLabel"
SERVICE_AFFINITY = "ServiceAffinity"
NODE_RESOURCES_FIT = "NodeResourcesFit"
CHECK_NODE_LABEL_PRESENCE = "CheckNodeLabelPresence"
CHECK_SERVICE_AFFINITY = "CheckServiceAffinity"


class NodeLabelArgs(ConfigObject):
    """Required and preferred labels of nodes. Values are ignored."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


class ServiceAffinityArgs(ConfigObject):
    """Labels whose values all pods of a service share, and labels over which they are spread."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class ResourceStrategyArgs(ConfigObject):
    """The scored resources and, for RequestedToCapacityRatio, the score of each utilization."""

    resources: OrDefault[tuple[ResourceSpec, ...]] = CPU_AND_MEMORY
    shape: tuple[UtilizationShapePoint, ...] = ()


def node_label_arguments(written: RawArguments) -> NodeLabelArgs:
    arguments = _decoded("NodeLabel", NodeLabelArgs, written)
    problems = list(node_label_problems(arguments))
    if problems:
        raise ConfigurationError(_while_initializing("NodeLabel", problem) for problem in problems)
    return arguments


def service_affinity_arguments(written: RawArguments) -> ServiceAffinityArgs:
    return _decoded("ServiceAffinity", ServiceAffinityArgs, written)


def strategy_arguments(plugin: str, kind: str, written: RawArguments) -> NodeResourcesFitArgs:
    """The arguments of NodeResourcesFit with the strategy `kind`."""
    arguments = _decoded(plugin, ResourceStrategyArgs, written)
    has_shape = kind == REQUESTED_TO_CAPACITY_RATIO
    strategy = ScoringStrategy(
        type=kind,
        resources=arguments.resources,
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=arguments.shape) if has_shape else None,
    )
    fit_arguments = NodeResourcesFitArgs(scoring_strategy=strategy)
    problems = [in_strategy(problem) for problem in argument_problems("args", fit_arguments)]
    if arguments.shape and not has_shape:
        problems.append(forbidden("args.shape", "only RequestedToCapacityRatio has one"))
    if problems:
        raise ConfigurationError(_while_initializing(plugin, problem) for problem in problems)
    return fit_arguments


def strategy_as_written(strategy: ScoringStrategy) -> RawArguments:
    """The arguments of the plugin for this strategy, as data of a configuration file."""
    ratio = strategy.requested_to_capacity_ratio
    shape = {"shape": msgspec.to_builtins([*ratio.shape])} if ratio is not None else {}
    return {"resources": msgspec.to_builtins([*strategy.resources]), **shape}


def in_strategy(problem: ConfigProblem) -> ConfigProblem:
    """A problem of NodeResourcesFit's arguments, with the path in the arguments of a strategy's plugin."""
    for dropped in (".scoringStrategy.requestedToCapacityRatio", ".scoringStrategy"):
        problem = ConfigProblem(problem.path.replace(dropped, "", 1), problem.text.replace(dropped, "", 1))
    return problem


def as_written(arguments: NodeLabelArgs | ServiceAffinityArgs) -> RawArguments:
    """The arguments as data of a configuration file."""
    values = ((field.encode_name, getattr(arguments, field.name)) for field in msgspec.structs.fields(arguments))
    return {name: list(labels) for name, labels in values if labels}


def reject_arguments(plugin: str, written: RawArguments) -> None:
    """Raises a `ConfigurationError` if a plugin without arguments has some."""
    names = sorted(key for key in written if key not in TYPE_FIELDS)
    if names:
        text = f"takes no arguments, but was given {', '.join(names)}"
        raise ConfigurationError([_while_initializing(plugin, ConfigProblem("", text))])


def node_label_problems(arguments: NodeLabelArgs) -> Iterator[ConfigProblem]:
    yield from _conflicts("presentLabels", arguments.present_labels, "absentLabels", arguments.absent_labels)
    yield from _conflicts(
        "presentLabelsPreference",
        arguments.present_labels_preference,
        "absentLabelsPreference",
        arguments.absent_labels_preference,
    )


def _conflicts(
    present_path: str, present: tuple[str, ...], absent_path: str, absent: tuple[str, ...]
) -> Iterator[ConfigProblem]:
    # For a repeated label the last index is reported, as in kube-scheduler.
    place_of = {label: index for index, label in enumerate(present)}
    for index, label in enumerate(absent):
        if label in place_of:
            where = f"{present_path}[{place_of[label]}]"
            yield invalid(where, label, f"conflict with {absent_path}[{index}]")


def _decoded(plugin: str, kind: type[S], written: RawArguments) -> S:
    decoder = StrictDecoder()
    arguments = decoder.struct(kind, without_type_fields(written))
    if decoder.problems:
        raise ConfigurationError(_while_initializing(plugin, problem) for problem in decoder.problems)
    return arguments


def _while_initializing(plugin: str, problem: ConfigProblem) -> ConfigProblem:
    return ConfigProblem("profiles", f"initializing plugin {quoted(plugin)}: {problem.text}")


PREDICATES: Mapping[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": (NODE_RESOURCES_FIT, "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": (NODE_RESOURCES_FIT,),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    CHECK_NODE_LABEL_PRESENCE: (NODE_LABEL,),
    CHECK_SERVICE_AFFINITY: (SERVICE_AFFINITY,),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}

MANDATORY_PREDICATES = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
"""Predicates that are always enabled."""

DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)

PRIORITIES: Mapping[str, str | None] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EqualPriority": None,
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": NODE_RESOURCES_FIT,
    "MostRequestedPriority": NODE_RESOURCES_FIT,
    "NodeAffinityPriority": "NodeAffinity",
    "NodePreferAvoidPodsPriority": None,
    "RequestedToCapacityRatio": NODE_RESOURCES_FIT,
    "RequestedToCapacityRatioPriority": NODE_RESOURCES_FIT,
    "ResourceLimitsPriority": None,
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "SelectorSpread",
    "TaintTolerationPriority": "TaintToleration",
}

STRATEGIES: Mapping[str, str] = {
    "LeastRequestedPriority": LEAST_ALLOCATED,
    "MostRequestedPriority": MOST_ALLOCATED,
    "RequestedToCapacityRatio": REQUESTED_TO_CAPACITY_RATIO,
    "RequestedToCapacityRatioPriority": REQUESTED_TO_CAPACITY_RATIO,
}
"""The priorities that are strategies of NodeResourcesFit."""

STRATEGY_PLUGINS: Mapping[str, str] = {
    LEAST_ALLOCATED: "NodeResourcesLeastAllocated",
    MOST_ALLOCATED: "NodeResourcesMostAllocated",
    REQUESTED_TO_CAPACITY_RATIO: "RequestedToCapacityRatio",
}
"""The plugins for further strategies of a Policy, since NodeResourcesFit has only one."""

DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}


class ServiceAffinityArgument(ConfigObject):
    """All pods of a service are placed on nodes with the same values of these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(ConfigObject):
    """A node must have all of these labels, or none of them if `presence` is false."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(ConfigObject):
    """Exactly one of them is given."""

    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(ConfigObject):
    """A predicate. With an argument its name is arbitrary."""

    name: str
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(ConfigObject):
    """The pods of a service are spread over the values of this label."""

    label: str = ""


class LabelPreference(ConfigObject):
    """Prefer nodes with this label, or without it if `presence` is false."""

    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(ConfigObject):
    """A function from utilization to score; without resources, for cpu and memory."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(ConfigObject):
    """Exactly one of them is given."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(ConfigObject):
    """A priority and its weight. With an argument its name is arbitrary."""

    name: str
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class Policy(ConfigObject):
    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfiguration, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    """0: not given."""
    always_check_all_predicates: bool = False
    """Decoded, without effect: see docs/policy.md."""


def policy_decoder() -> StrictDecoder:
    """A decoder with case-insensitive extender fields."""
    return StrictDecoder(
        custom={
            ExtenderConfiguration: partial(_in_any_case, ExtenderConfiguration),
            ExtenderManagedResource: partial(_in_any_case, ExtenderManagedResource),
            ExtenderTLSConfig: partial(_in_any_case, ExtenderTLSConfig),
        }
    )


def _in_any_case(kind: type[S], decoder: StrictDecoder, data: object, path: str) -> S:
    if not isinstance(data, Mapping):
        return decoder.struct(kind, data, path)
    names = {field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(kind)}
    written = {names.get(str(key).lower(), str(key)): value for key, value in data.items()}
    timeout = written.get("httpTimeout")
    if kind is ExtenderConfiguration and isinstance(timeout, int) and not isinstance(timeout, bool):
        written["httpTimeout"] = f"{timeout}ns"
    return decoder.struct(kind, written, path)


HARD_POD_AFFINITY_WEIGHT_MAX = 100
WEIGHT_MAX = INT32.highest
"""kube-scheduler accepted larger weights and truncated them to 32 bits."""


def policy_problems(policy: Policy) -> Iterator[ConfigProblem]:
    for index, predicate in enumerate(policy.predicates or ()):
        yield from _predicate_problems(f"predicates[{index}]", predicate)
    seen: dict[str, PriorityPolicy] = {}
    for index, priority in enumerate(policy.priorities or ()):
        yield from _priority_problems(f"priorities[{index}]", priority, seen)
    weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= HARD_POD_AFFINITY_WEIGHT_MAX:
        rule = f"not in valid range [0-{HARD_POD_AFFINITY_WEIGHT_MAX}]"
        yield invalid("hardPodAffinitySymmetricWeight", weight, rule)


def ratio_strategy(arguments: RequestedToCapacityRatioArguments) -> ScoringStrategy:
    """The strategy of NodeResourcesFit that replaces a RequestedToCapacityRatio priority."""
    return ScoringStrategy(
        type=REQUESTED_TO_CAPACITY_RATIO,
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=arguments.shape),
        resources=arguments.resources or CPU_AND_MEMORY,
    )


def _predicate_problems(path: str, predicate: PredicatePolicy) -> Iterator[ConfigProblem]:
    if predicate.argument is None:
        yield from _unknown_name(path, "predicate", predicate.name, PREDICATES)
        return
    arguments = {
        SERVICE_AFFINITY: predicate.argument.service_affinity,
        NODE_LABEL: predicate.argument.labels_presence,
    }
    given = [plugin for plugin, argument in arguments.items() if argument is not None]
    if len(given) != 1:
        yield _wrong_count(path, "predicate", predicate.name, len(given))
    elif PREDICATES.get(predicate.name, (given[0],)) != (given[0],):
        yield _mismatched_argument(path, "predicate", predicate.name)


def _priority_problems(path: str, priority: PriorityPolicy, seen: dict[str, PriorityPolicy]) -> Iterator[ConfigProblem]:
    if not 0 < priority.weight <= WEIGHT_MAX:
        text = f"priority {priority.name} should have a positive weight applied to it or it has overflown"
        yield ConfigProblem(child(path, "weight"), text)
    if priority.argument is None:
        yield from _unknown_name(path, "priority", priority.name, PRIORITIES)
        return
    arguments = {
        "ServiceAntiAffinity": priority.argument.service_anti_affinity,
        "LabelPreference": priority.argument.label_preference,
        REQUESTED_TO_CAPACITY_RATIO: priority.argument.requested_to_capacity_ratio_arguments,
    }
    given = [kind for kind, argument in arguments.items() if argument is not None]
    if len(given) != 1:
        yield _wrong_count(path, "priority", priority.name, len(given))
    elif priority.name in PRIORITIES and STRATEGIES.get(priority.name) != given[0]:
        yield _mismatched_argument(path, "priority", priority.name)
    elif given[0] == REQUESTED_TO_CAPACITY_RATIO:
        yield from _ratio_problems(path, priority, seen)
    else:
        yield from _weight_problems(path, priority, given[0], seen)


def _weight_problems(
    path: str, priority: PriorityPolicy, kind: str, seen: dict[str, PriorityPolicy]
) -> Iterator[ConfigProblem]:
    other = seen.setdefault(kind, priority)
    if other.weight != priority.weight:
        text = f"{kind}  priority {quoted(priority.name)} has a different weight with {quoted(other.name)}"
        yield ConfigProblem(child(path, "weight"), text)


def _ratio_problems(path: str, priority: PriorityPolicy, seen: dict[str, PriorityPolicy]) -> Iterator[ConfigProblem]:
    assert priority.argument is not None, f"{path} has no argument"
    arguments = priority.argument.requested_to_capacity_ratio_arguments
    assert arguments is not None, f"{path} has another argument"
    other = seen.setdefault("RequestedToCapacityRatioArguments", priority)
    if other is not priority:
        kind = quoted(REQUESTED_TO_CAPACITY_RATIO)
        text = f"priority {quoted(priority.name)} redeclares custom priority {kind}, from: {quoted(other.name)}"
        yield ConfigProblem(path, text)
    # The rules are those of NodeResourcesFit, with other paths.
    where = f"{path}.argument.requestedToCapacityRatioArguments"
    for problem in argument_problems(where, NodeResourcesFitArgs(scoring_strategy=ratio_strategy(arguments))):
        yield in_strategy(problem)


def _unknown_name(path: str, what: str, name: str, known: Iterable[str]) -> Iterator[ConfigProblem]:
    names = {known_name.lower(): known_name for known_name in known}
    if name in names.values():
        return
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {quoted(names[close[0]])}?" if close else "a name of your own needs an argument"
    yield ConfigProblem(child(path, "name"), f"{what} type not found for {quoted(name)}; {hint}")


def _wrong_count(path: str, what: str, name: str, count: int) -> ConfigProblem:
    text = f"exactly 1 {what} argument is required, numArgs: {count}, {what} {name}"
    return ConfigProblem(child(path, "argument"), text)


def _mismatched_argument(path: str, what: str, name: str) -> ConfigProblem:
    text = f"{what} {quoted(name)} does not take this argument; give it a name of your own"
    return ConfigProblem(child(path, "argument"), text)
