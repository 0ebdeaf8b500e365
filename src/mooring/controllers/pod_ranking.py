"""The order in which the pods of a ReplicaSet are deleted when it has too many.

Inputs: the active pods of a set, and all pods of the sets with the same controller. Outputs: the pods to delete.

Unbound pods come first; then Pending before Unknown before Running; not ready before ready; lower deletion cost;
more related pods on the node; ready for a shorter time; more restarts; created later. Ages are compared by their
logarithm, and equal ones by uid: otherwise the youngest node would always lose its pods.

Within one power of two the uid decides, while equal times go on to the next rule. No tuple expresses that order, so
the last part is a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cmp_to_key

from mooring.api.views.pod import Pod
from mooring.api.well_known import POD_DELETION_COST
from mooring.controllers.pods import is_active, is_ready, ready_condition
from mooring.kit.clock import TimestampError, parse_rfc3339

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST_MAX = 2**31 - 1
_NANOS_PER_S = 1_000_000_000


def pods_to_delete(pods: Sequence[Pod], related: Sequence[Pod], count: int, now_s: float) -> list[Pod]:
    """The first `count` pods in the order of deletion."""
    if count >= len(pods):
        return [*pods]
    on_node: dict[str, int] = {}
    for pod in related:
        if is_active(pod):
            on_node[pod.spec.node_name] = on_node.get(pod.spec.node_name, 0) + 1
    candidates = [_RankedPod(pod, on_node, now_s) for pod in pods]
    candidates.sort(key=cmp_to_key(_compare))
    return [candidate.pod for candidate in candidates[:count]]


def deletion_cost(annotations: Mapping[str, str]) -> int:
    """The deletion cost in an annotation. 0 if it is not a valid number."""
    text = annotations.get(POD_DELETION_COST)
    if text is None or not text or text[0] == "+" or (text[0] == "0" and len(text) > 1):
        return 0
    try:
        cost = int(text)
    except ValueError:
        return 0
    return cost if -_COST_MAX - 1 <= cost <= _COST_MAX and "_" not in text and text.strip() == text else 0


class _RankedPod:
    """The values that are compared, read once."""

    __slots__ = ("created_age", "created_s", "first", "pod", "ready_age", "ready_s", "restarts", "uid")

    def __init__(self, pod: Pod, on_node: Mapping[str, int], now_s: float) -> None:
        self.pod = pod
        self.uid = pod.metadata.uid
        is_pod_ready = is_ready(pod)
        self.first = (
            pod.spec.node_name != "",
            _PHASE_ORDER.get(pod.status.phase, 0),
            is_pod_ready,
            deletion_cost(pod.metadata.annotations),
            -on_node.get(pod.spec.node_name, 0),
        )
        condition = ready_condition(pod) if is_pod_ready else None
        self.ready_s = _seconds(condition.last_transition_time if condition is not None else None)
        self.created_s = _seconds(pod.metadata.creation_timestamp)
        self.ready_age = _age_rank(self.ready_s, now_s)
        self.created_age = _age_rank(self.created_s, now_s)
        self.restarts = restarts_of(pod)


def _compare(one: _RankedPod, other: _RankedPod) -> int:
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if one.ready_s != other.ready_s:
        return _by_age(one, other, one.ready_s, other.ready_s, one.ready_age - other.ready_age)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_s != other.created_s:
        return _by_age(one, other, one.created_s, other.created_s, one.created_age - other.created_age)
    return 0


def _by_age(one: _RankedPod, other: _RankedPod, one_s: float | None, other_s: float | None, difference: int) -> int:
    """Compare two different times. An unknown time is first."""
    if one_s is None or other_s is None:
        return -1 if one_s is None else 1
    if difference:
        return difference
    return -1 if one.uid < other.uid else 1


def _age_rank(time_s: float | None, now_s: float) -> int:
    nanos = int((now_s - time_s) * _NANOS_PER_S) if time_s is not None else 0
    return int(math.log2(nanos)) if nanos > 0 else -1


def _seconds(stamp: str | None) -> float | None:
    if stamp is None:
        return None
    try:
        return parse_rfc3339(stamp)
    except TimestampError:
        return None


def restarts_of(pod: Pod) -> tuple[int, int]:
    """The highest restart count of a container, and of a sidecar."""
    regular = max((status.restart_count for status in pod.status.container_statuses), default=0)
    sidecars = [container.name for container in pod.spec.init_containers if container.restart_policy == "Always"]
    if not sidecars:
        return max(regular, 0), 0
    statuses = pod.status.init_container_statuses
    return max(regular, 0), max((each.restart_count for each in statuses if each.name in sidecars), default=0)
