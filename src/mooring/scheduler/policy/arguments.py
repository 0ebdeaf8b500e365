"""The arguments of the plugins NodeLabel, ServiceAffinity, SelectorSpread and the resource strategies.

Input: `pluginConfig[].args` of a file, or arguments from a converted Policy. Output: typed arguments, or a
`ConfigurationError`.

1. Arguments are decoded when the plugin is created, like those of a user's plugin, because kube-scheduler v1.36 does
   not know these plugins.
2. The rules of a strategy are those of NodeResourcesFit's arguments.
3. A label cannot be required both present and absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from mooring.api.field_errors import quoted
from mooring.scheduler.config.codec import TYPE_FIELDS, StrictDecoder, without_type_fields
from mooring.scheduler.config.types import (
    CPU_AND_MEMORY,
    REQUESTED_TO_CAPACITY_RATIO,
    ConfigObject,
    ConfigProblem,
    ConfigurationError,
    NodeResourcesFitArgs,
    OrDefault,
    RawArguments,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    forbidden,
    invalid,
)
from mooring.scheduler.config.validation import argument_problems

S = TypeVar("S", bound=ConfigObject)


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
