"""The status of a disruption budget: expected, desired and healthy pods, allowed disruptions. No I/O.

Inputs: a budget, the groups of pods that it selects, the scales of their owners, the time. Outputs: the new status,
and when to sync again.

1. The number of expected pods comes from the scales of the owners, because missing pods count. Only a budget with
   an absolute minAvailable does not need them.
2. A pod with a granted eviction is not healthy until it is gone, or until `DELETION_S_MAX` is over.
3. If anything cannot be computed, no disruption is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.api.document import Document
from mooring.api.views.meta import Condition, LabelSelector, find_condition
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import PodDisruptionBudget, PodDisruptionBudgetStatus
from mooring.controllers.documents import DISRUPTION_TARGET, view_document
from mooring.controllers.pod_indexes import PodGroup
from mooring.controllers.pods import is_finished, scaled_value
from mooring.kit.clock import parse_rfc3339

DELETION_S_MAX = 120.0
"""How long a granted eviction may take."""
STALE_TARGET_S = 120.0
"""How long a pod may have DisruptionTarget without being deleted."""

DISRUPTION_ALLOWED = "DisruptionAllowed"
SUFFICIENT_PODS = "SufficientPods"
INSUFFICIENT_PODS = "InsufficientPods"
SYNC_FAILED = "SyncFailed"
TERMINATION_BY_KUBELET = "TerminationByKubelet"


@dataclass(frozen=True, slots=True)
class Scale:
    """The desired number of pods of an owner."""

    uid: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected number of pods, and how many of them must be healthy."""

    pods: int
    healthy: int
    has_unmanaged_pods: bool = False


@dataclass(frozen=True, slots=True)
class DisruptedPods:
    """Pods with a granted eviction that is not observed yet, by name, and those that are overdue."""

    since: Mapping[str, str]
    overdue: Sequence[Pod]
    next_s: float | None
    """When the first one will be overdue."""


def needs_scales(budget: PodDisruptionBudget) -> bool:
    """Whether the counts depend on the scales of the owners."""
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def expected_pods(budget: PodDisruptionBudget, groups: Sequence[PodGroup], scales: Mapping[str, Scale]) -> Expected:
    """The expected counts. `scales` by uid of the owner, needed only with `needs_scales`."""
    spec = budget.spec
    if not needs_scales(budget):
        healthy_min = spec.min_available if isinstance(spec.min_available, int) else None
        return Expected(0 if healthy_min is None else sum(len(group.names) for group in groups), healthy_min or 0)
    total = sum({scale.uid: scale.replicas for scale in scales.values()}.values())
    has_unmanaged_pods = any(group.owner is None for group in groups)
    if spec.max_unavailable is not None:
        unavailable = scaled_value(spec.max_unavailable, total, is_rounded_up=True)
        return Expected(total, max(0, total - unavailable), has_unmanaged_pods)
    return Expected(total, scaled_value(spec.min_available, total, is_rounded_up=True), has_unmanaged_pods)


def disrupted_pods(budget: PodDisruptionBudget, pods: Iterable[Pod], now_s: float) -> DisruptedPods:
    """`pods` are those that the budget selects and lists as disrupted."""
    since: dict[str, str] = {}
    overdue: list[Pod] = []
    next_s: float | None = None
    for pod in pods:
        granted = budget.status.disrupted_pods.get(pod.metadata.name)
        if granted is None or pod.metadata.deletion_timestamp is not None:
            continue
        due_s = parse_rfc3339(granted) + DELETION_S_MAX
        if due_s <= now_s:
            overdue.append(pod)
            continue
        since[pod.metadata.name] = granted
        next_s = due_s if next_s is None else min(next_s, due_s)
    return DisruptedPods(since, overdue, next_s)


def healthy_pods(groups: Sequence[PodGroup], disrupted: DisruptedPods, now_s: float) -> int:
    evicting = {name for name, since in disrupted.since.items() if parse_rfc3339(since) + DELETION_S_MAX > now_s}
    healthy = sum(group.healthy for group in groups)
    if evicting:
        healthy -= sum(group.names.get(name, False) for group in groups for name in sorted(evicting))
    return healthy


def plan_status(
    budget: PodDisruptionBudget, expected: Expected, healthy: int, disrupted: Mapping[str, str], now: str
) -> PodDisruptionBudgetStatus | None:
    """The new status. None if it is unchanged."""
    allowed = max(0, healthy - expected.healthy) if expected.pods > 0 else 0
    reason = SUFFICIENT_PODS if allowed > 0 else INSUFFICIENT_PODS
    generation = budget.metadata.generation
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status="True" if allowed > 0 else "False",
        reason=reason,
        observed_generation=generation,
        last_transition_time=now,
    )
    status = PodDisruptionBudgetStatus(
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=expected.healthy,
        expected_pods=expected.pods,
        observed_generation=generation,
        disrupted_pods=disrupted,
        conditions=_conditions_with(budget.status.conditions, condition),
    )
    return None if _is_same_status(budget.status, status) else status


def plan_failure(budget: PodDisruptionBudget, message: str, now: str) -> PodDisruptionBudgetStatus | None:
    """The status of a budget that cannot be computed. None if it is unchanged."""
    old = budget.status
    condition = Condition(
        type=DISRUPTION_ALLOWED,
        status="False",
        reason=SYNC_FAILED,
        message=message,
        observed_generation=old.observed_generation,
        last_transition_time=now,
    )
    status = replace(old, disruptions_allowed=0, conditions=_conditions_with(old.conditions, condition))
    return None if status == old else status


def status_document(status: PodDisruptionBudgetStatus) -> Document:
    return {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
        **view_document(status),
        "conditions": [{"reason": "", "message": "", **view_document(condition)} for condition in status.conditions],
    }


def stale_target_in_s(pod: Pod, now_s: float) -> float | None:
    """Seconds until the pod's `DisruptionTarget` is reset. None if it has none."""
    if pod.metadata.deletion_timestamp is not None or is_finished(pod):
        return None
    for condition in pod.status.conditions:
        if condition.type == DISRUPTION_TARGET and condition.status == "True":
            if condition.reason == TERMINATION_BY_KUBELET:
                return None
            since = condition.last_transition_time
            since_s = parse_rfc3339(since) if since is not None else 0.0
            return max(0.0, since_s + STALE_TARGET_S - now_s)
    return None


def selector_text(selector: LabelSelector | None) -> str:
    """A selector as Go prints it, for an event."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{term.key},Operator:{term.operator},Values:[{' '.join(term.values)}],}},"
        for term in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


# --- conditions ----------------------------------------------------------------------------------------------


def _conditions_with(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """Conditions with a new one in its place. The transition time changes only with the status."""
    if all(condition.type != new.type for condition in conditions):
        return (*conditions, new)
    return tuple(_merged(condition, new) if condition.type == new.type else condition for condition in conditions)


def _merged(old: Condition, new: Condition) -> Condition:
    return replace(new, last_transition_time=old.last_transition_time) if old.status == new.status else new


def _is_same_status(old: PodDisruptionBudgetStatus, new: PodDisruptionBudgetStatus) -> bool:
    return replace(old, conditions=new.conditions) == new and _allowed(old) == _allowed(new)


def _allowed(status: PodDisruptionBudgetStatus) -> tuple[str, str] | None:
    condition = find_condition(status.conditions, DISRUPTION_ALLOWED)
    return (condition.status, condition.reason) if condition is not None else None
