"""The arguments of the plugins that outlived `Policy`: NodeLabel, ServiceAffinity and those that score by one strategy.

Comes in   `pluginConfig[].args` as it stands in a file, or what `policy` gathered from predicates and priorities
Goes out   typed arguments, or a `ConfigurationError`

 1. They are read when the plugin is made, like those of a plugin that is not Kubernetes' own: to kube-scheduler v1.36
    they are strangers, and what it knows by name is in `arguments`.
 2. The rules of a strategy are those of NodeResourcesFit's arguments, where it stands today.
 3. The same label cannot be wanted both present and absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from mooring.api.field_errors import quoted
from mooring.scheduler.config.decode import StrictDecoder
from mooring.scheduler.config.problems import ConfigurationError, Problem, forbidden, invalid
from mooring.scheduler.config.types import (
    CPU_AND_MEMORY,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    OrDefault,
    RawArguments,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    Settings,
    UtilizationShapePoint,
)
from mooring.scheduler.config.validation import argument_problems

S = TypeVar("S", bound=Settings)

_TYPE_FIELDS = ("apiVersion", "kind")


class NodeLabelArgs(Settings):
    """Labels that decide whether a node can take pods at all, and labels that make it better; values do not matter."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


class ServiceAffinityArgs(Settings):
    """Labels whose values all pods of a service share, and labels over whose values they are spread."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class ResourceStrategyArgs(Settings):
    """Which resources count and, for RequestedToCapacityRatio alone, how good each utilization is."""

    resources: OrDefault[tuple[ResourceSpec, ...]] = CPU_AND_MEMORY
    shape: tuple[UtilizationShapePoint, ...] = ()


def node_label_arguments(written: RawArguments) -> NodeLabelArgs:
    arguments = _decoded("NodeLabel", NodeLabelArgs, written)
    problems = list(node_label_problems(arguments))
    if problems:
        raise ConfigurationError(_while_made("NodeLabel", problem) for problem in problems)
    return arguments


def service_affinity_arguments(written: RawArguments) -> ServiceAffinityArgs:
    return _decoded("ServiceAffinity", ServiceAffinityArgs, written)


def strategy_arguments(plugin: str, kind: str, written: RawArguments) -> NodeResourcesFitArgs:
    """What NodeResourcesFit would be told to score by the strategy `kind` alone."""
    arguments = _decoded(plugin, ResourceStrategyArgs, written)
    has_shape = kind == REQUESTED_TO_CAPACITY_RATIO
    strategy = ScoringStrategy(
        type=kind,
        resources=arguments.resources,
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=arguments.shape) if has_shape else None,
    )
    told = NodeResourcesFitArgs(scoring_strategy=strategy)
    problems = [in_strategy(problem) for problem in argument_problems("args", told)]
    if arguments.shape and not has_shape:
        problems.append(forbidden("args.shape", "only RequestedToCapacityRatio has one"))
    if problems:
        raise ConfigurationError(_while_made(plugin, problem) for problem in problems)
    return told


def strategy_as_written(strategy: ScoringStrategy) -> RawArguments:
    """The arguments of the plugin that scores by this strategy alone, as a configuration file would spell them out."""
    ratio = strategy.requested_to_capacity_ratio
    shape = {"shape": msgspec.to_builtins([*ratio.shape])} if ratio is not None else {}
    return {"resources": msgspec.to_builtins([*strategy.resources]), **shape}


def in_strategy(problem: Problem) -> Problem:
    """A problem of NodeResourcesFit's arguments, told of arguments that are its strategy themselves."""
    for dropped in (".scoringStrategy.requestedToCapacityRatio", ".scoringStrategy"):
        problem = Problem(problem.path.replace(dropped, "", 1), problem.text.replace(dropped, "", 1))
    return problem


def as_written(arguments: NodeLabelArgs | ServiceAffinityArgs) -> RawArguments:
    """The arguments as a configuration file would spell them out."""
    values = ((field.encode_name, getattr(arguments, field.name)) for field in msgspec.structs.fields(arguments))
    return {name: list(labels) for name, labels in values if labels}


def refuse_arguments(plugin: str, written: RawArguments) -> None:
    """For a plugin that takes none."""
    names = sorted(key for key in written if key not in _TYPE_FIELDS)
    if names:
        text = f"takes no arguments, but was given {', '.join(names)}"
        raise ConfigurationError([_while_made(plugin, Problem("", text))])


def node_label_problems(arguments: NodeLabelArgs) -> Iterator[Problem]:
    yield from _conflicts("presentLabels", arguments.present_labels, "absentLabels", arguments.absent_labels)
    yield from _conflicts(
        "presentLabelsPreference",
        arguments.present_labels_preference,
        "absentLabelsPreference",
        arguments.absent_labels_preference,
    )


def _conflicts(
    present_path: str, present: tuple[str, ...], absent_path: str, absent: tuple[str, ...]
) -> Iterator[Problem]:
    # Of a label that is listed twice the last place is named, as kube-scheduler did.
    place_of = {label: index for index, label in enumerate(present)}
    for index, label in enumerate(absent):
        if label in place_of:
            where = f"{present_path}[{place_of[label]}]"
            yield invalid(where, label, f"conflict with {absent_path}[{index}]")


def _decoded(plugin: str, kind: type[S], written: RawArguments) -> S:
    decoder = StrictDecoder()
    arguments = decoder.struct(kind, _without_type(written))
    if decoder.problems:
        raise ConfigurationError(_while_made(plugin, problem) for problem in decoder.problems)
    return arguments


def _without_type(written: RawArguments) -> Mapping[str, object]:
    return {key: value for key, value in written.items() if key not in _TYPE_FIELDS}


def _while_made(plugin: str, problem: Problem) -> Problem:
    return Problem("profiles", f"initializing plugin {quoted(plugin)}: {problem.text}")
