"""The rules that a `Policy` must keep.

Comes in   a decoded policy
Goes out   every problem, in the words of kube-scheduler v1.22 where it had any, with the paths of the policy's file

 1. A name that nobody knows is a problem, unless an argument says what is meant: then any name will do.
 2. A known name with an argument that is not its own is a problem, too. Old schedulers disagreed whether the name or
    the argument counts, and either way something that was written down would do nothing.
 3. Several label preferences (or service anti-affinities) become one plugin, so they must have one weight.
"""

import difflib
from collections.abc import Iterable, Iterator

from mooring.api.field_errors import quoted
from mooring.scheduler.config.policy_arguments import in_strategy
from mooring.scheduler.config.policy_names import (
    NODE_LABEL,
    PREDICATES,
    PRIORITIES,
    SERVICE_AFFINITY,
    STRATEGIES,
)
from mooring.scheduler.config.policy_types import (
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    RequestedToCapacityRatioArguments,
)
from mooring.scheduler.config.problems import Problem, child, invalid
from mooring.scheduler.config.types import (
    CPU_AND_MEMORY,
    INT32,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from mooring.scheduler.config.validation import argument_problems

HARD_POD_AFFINITY_WEIGHT_MAX = 100
WEIGHT_MAX = INT32.highest
"""kube-scheduler took more, and then kept only the lower 32 bits of it."""


def policy_problems(policy: Policy) -> Iterator[Problem]:
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
    """The strategy of NodeResourcesFit that does what a RequestedToCapacityRatio priority did."""
    return ScoringStrategy(
        type=REQUESTED_TO_CAPACITY_RATIO,
        requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=arguments.shape),
        resources=arguments.resources or CPU_AND_MEMORY,
    )


def _predicate_problems(path: str, predicate: PredicatePolicy) -> Iterator[Problem]:
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
        yield _foreign_argument(path, "predicate", predicate.name)


def _priority_problems(path: str, priority: PriorityPolicy, seen: dict[str, PriorityPolicy]) -> Iterator[Problem]:
    if not 0 < priority.weight <= WEIGHT_MAX:
        text = f"priority {priority.name} should have a positive weight applied to it or it has overflown"
        yield Problem(child(path, "weight"), text)
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
        yield _foreign_argument(path, "priority", priority.name)
    elif given[0] == REQUESTED_TO_CAPACITY_RATIO:
        yield from _ratio_problems(path, priority, seen)
    else:
        yield from _weight_problems(path, priority, given[0], seen)


def _weight_problems(
    path: str, priority: PriorityPolicy, kind: str, seen: dict[str, PriorityPolicy]
) -> Iterator[Problem]:
    other = seen.setdefault(kind, priority)
    if other.weight != priority.weight:
        text = f"{kind}  priority {quoted(priority.name)} has a different weight with {quoted(other.name)}"
        yield Problem(child(path, "weight"), text)


def _ratio_problems(path: str, priority: PriorityPolicy, seen: dict[str, PriorityPolicy]) -> Iterator[Problem]:
    assert priority.argument is not None, f"{path} has no argument"
    arguments = priority.argument.requested_to_capacity_ratio_arguments
    assert arguments is not None, f"{path} has another argument"
    other = seen.setdefault("RequestedToCapacityRatioArguments", priority)
    if other is not priority:
        kind = quoted(REQUESTED_TO_CAPACITY_RATIO)
        text = f"priority {quoted(priority.name)} redeclares custom priority {kind}, from: {quoted(other.name)}"
        yield Problem(path, text)
    # The rules are those of today's plugin; only the places where they are broken have other names.
    where = f"{path}.argument.requestedToCapacityRatioArguments"
    for problem in argument_problems(where, NodeResourcesFitArgs(scoring_strategy=ratio_strategy(arguments))):
        yield in_strategy(problem)


def _unknown_name(path: str, what: str, name: str, known: Iterable[str]) -> Iterator[Problem]:
    names = {each.lower(): each for each in known}
    if name in names.values():
        return
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {quoted(names[close[0]])}?" if close else "a name of your own needs an argument"
    yield Problem(child(path, "name"), f"{what} type not found for {quoted(name)}; {hint}")


def _wrong_count(path: str, what: str, name: str, count: int) -> Problem:
    text = f"exactly 1 {what} argument is required, numArgs: {count}, {what} {name}"
    return Problem(child(path, "argument"), text)


def _foreign_argument(path: str, what: str, name: str) -> Problem:
    text = f"{what} {quoted(name)} does not take this argument; give it a name of your own"
    return Problem(child(path, "argument"), text)
