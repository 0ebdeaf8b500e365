"""What a ReplicaSet needs next: more pods, fewer pods, another status. No I/O.

Inputs: a ReplicaSet, the counts of its pods, the time. Outputs: `CreateReplicas`, `DeleteReplicas` or None; the status.

A ReplicationController works the same way, but does not count terminating pods.

1. At most `BURST_MAX` pods are created or deleted in one sync.
2. The status has the counts from before the creations of the sync.
3. A failure sets the condition ReplicaFailure with its first message. The next success removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.labels import LabelMatcher, compile_selector, matcher_of_pairs
from mooring.api.views.meta import Condition
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import ReplicaSet, ReplicaSetStatus, ReplicationController
from mooring.controllers.conditions import REPLICA_FAILURE, condition_document
from mooring.controllers.pod_indexes import LabelsKey, StateCounts
from mooring.controllers.pods import is_available, is_ready
from mooring.controllers.replicas import replicas_of

BURST_MAX = 500

AnySet: TypeAlias = ReplicaSet | ReplicationController


@dataclass(frozen=True, slots=True)
class CreateReplicas:
    """Create pods."""

    count: int


@dataclass(frozen=True, slots=True)
class DeleteReplicas:
    """`pods_to_delete` chooses them."""

    count: int


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Counts of a set's pods. All but `terminating` count active pods."""

    active: int = 0
    fully_labeled: int = 0
    ready: int = 0
    available: int = 0
    terminating: int = 0


def selector_of(wanted: AnySet) -> LabelMatcher:
    """The selector of a set. Raises `LabelSelectorError`."""
    if isinstance(wanted, ReplicationController):
        return matcher_of_pairs(wanted.spec.selector or {})
    return compile_selector(wanted.spec.selector)


def plan_size(wanted: AnySet, active: int) -> CreateReplicas | DeleteReplicas | None:
    """The pods to create or delete."""
    missing = replicas_of(wanted) - active
    if missing > 0:
        return CreateReplicas(min(missing, BURST_MAX))
    if missing < 0:
        return DeleteReplicas(min(-missing, BURST_MAX))
    return None


def count_pods(wanted: AnySet, active: Iterable[Pod], terminating: int, now_s: float) -> PodCounts:
    """Count pods one by one. `active` are the active pods of the set."""
    template_labels = wanted.spec.template.metadata.labels
    min_ready_s = wanted.spec.min_ready_seconds
    all_active = fully_labeled = ready = available = 0
    for pod in active:
        all_active += 1
        fully_labeled += carries(pod.metadata.labels, template_labels)
        if is_ready(pod):
            ready += 1
            available += is_available(pod, min_ready_s, now_s)
    return PodCounts(all_active, fully_labeled, ready, available, terminating)


def count_from_index(
    wanted: AnySet, selector: LabelMatcher, counts_by_labels: Mapping[LabelsKey, StateCounts]
) -> PodCounts | None:
    """Count pods by the index. None if a pod must be read, because it is released or becomes available later."""
    template_labels = wanted.spec.template.metadata.labels
    active = fully_labeled = ready = terminating = 0
    for key, counts in counts_by_labels.items():
        labels = dict(key)
        if not selector.matches(labels):
            if counts.active:
                return None
            continue
        active += counts.active
        ready += counts.ready
        terminating += counts.terminating
        if carries(labels, template_labels):
            fully_labeled += counts.active
    if ready and wanted.spec.min_ready_seconds > 0:
        return None
    return PodCounts(active, fully_labeled, ready, ready, terminating)


def plan_status(wanted: AnySet, counts: PodCounts, failure: str | None, now: str) -> ReplicaSetStatus:
    """The new status. `failure` is the error of the last creation or deletion."""
    has_terminating = isinstance(wanted, ReplicaSet)
    return ReplicaSetStatus(
        replicas=counts.active,
        fully_labeled_replicas=counts.fully_labeled,
        ready_replicas=counts.ready,
        available_replicas=counts.available,
        terminating_replicas=counts.terminating if has_terminating else None,
        observed_generation=wanted.metadata.generation,
        conditions=_conditions(wanted, counts, failure, now),
    )


def status_document(status: ReplicaSetStatus) -> Document:
    """A status in the form of the API, without zeros except for the replicas."""
    document: Document = {"replicas": status.replicas}
    counts = {
        "fullyLabeledReplicas": status.fully_labeled_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "observedGeneration": status.observed_generation,
    }
    document |= {name: count for name, count in counts.items() if count}
    if status.terminating_replicas is not None:
        document["terminatingReplicas"] = status.terminating_replicas
    if status.conditions:
        document["conditions"] = [condition_document(condition) for condition in status.conditions]
    return document


def carries(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether labels include all wanted ones."""
    return all(labels.get(key) == value for key, value in wanted.items())


def _conditions(wanted: AnySet, counts: PodCounts, failure: str | None, now: str) -> tuple[Condition, ...]:
    conditions = wanted.status.conditions
    has_failed = any(condition.type == REPLICA_FAILURE for condition in conditions)
    if failure is not None and not has_failed:
        missing = replicas_of(wanted) - counts.active
        reason = "FailedCreate" if missing > 0 else "FailedDelete" if missing < 0 else ""
        failed = Condition(
            type=REPLICA_FAILURE, status="True", reason=reason, message=failure, last_transition_time=now
        )
        return (*conditions, failed)
    if failure is None and has_failed:
        return tuple(condition for condition in conditions if condition.type != REPLICA_FAILURE)
    return conditions
