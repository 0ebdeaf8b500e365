"""States of pods, their ranking, numbers of replicas, and the indexes by which controllers find pods.

1. An active pod is neither finished nor being deleted. A terminating pod is being deleted and not finished.
2. A pod is available if it has been ready for `min_ready_s`.

The ranking is the order in which the pods of a ReplicaSet are deleted when it has too many. Unbound pods come first;
then Pending before Unknown before Running; not ready before ready; lower deletion cost; more related pods on the node;
ready for a shorter time; more restarts; created later. Ages are compared by their logarithm, and equal ones by uid:
otherwise the youngest node would always lose its pods.

Within one power of two the uid decides, while equal times go on to the next rule. No tuple expresses that order, so
the last part is a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import TypeAlias

from mooring.api.labels import LabelMatcher
from mooring.api.storage import claim_named_by
from mooring.api.views.meta import ApiObject, Condition, IntOrString, controller_of, find_condition
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from mooring.api.well_known import POD_DELETION_COST, TERMINAL_PHASES
from mooring.client.informer import AnyObject, Informer, Lister
from mooring.kit.clock import TimestampError, parse_rfc3339

BY_CONTROLLER = "controller uid"
"""Index of objects by the uid of their controller, and of orphans by namespace."""
BY_ORPHAN_LABEL = "label of an orphan"
"""Index of orphans by namespace and each of their labels."""
BY_NODE = "node name"
BY_CLAIM = "claims of a pod"


def add_controller_index(informer: Informer[AnyObject]) -> None:
    """Index objects by the uid of their controller. `matching_orphans` finds those without one."""
    informer.add_index(BY_CONTROLLER, controller_index)
    informer.add_index(BY_ORPHAN_LABEL, orphan_label_index)


def add_node_index(informer: Informer[Pod]) -> None:
    """Index pods by node name."""
    informer.add_index(BY_NODE, node_index)


def controller_index(view: ApiObject) -> Iterable[str]:
    reference = controller_of(view.metadata)
    return (reference.uid if reference is not None else orphan_key(view.metadata.namespace),)


def node_index(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def orphan_key(namespace: str) -> str:
    """Index key for the orphans of a namespace. No uid has this form."""
    return f"orphans in {namespace}"


def orphan_label_index(view: ApiObject) -> Iterable[str]:
    metadata = view.metadata
    if controller_of(metadata) is not None:
        return ()
    return [_orphan_label(metadata.namespace, key, value) for key, value in metadata.labels.items()]


def matching_orphans(lister: Lister[AnyObject], namespace: str, selector: LabelMatcher) -> Sequence[AnyObject]:
    """Orphans that a selector may match: few, even among thousands of other pods."""
    if not selector.equality_pairs:
        return lister.by_index(BY_CONTROLLER, orphan_key(namespace))
    return lister.by_index(BY_ORPHAN_LABEL, _orphan_label(namespace, *selector.equality_pairs[0]))


def _orphan_label(namespace: str, key: str, value: str) -> str:
    return f"{namespace} {key}={value}"


def is_finished(pod: Pod) -> bool:
    return pod.status.phase in TERMINAL_PHASES


def is_active(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in TERMINAL_PHASES


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in TERMINAL_PHASES


def ready_condition(pod: Pod) -> Condition | None:
    return find_condition(pod.status.conditions, "Ready")


def is_ready(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.status == "True"
    return False


def is_available(pod: Pod, min_ready_s: int, now_s: float) -> bool:
    """Whether a pod has been ready for `min_ready_s`."""
    condition = ready_condition(pod)
    if condition is None or condition.status != "True":
        return False
    if min_ready_s == 0:
        return True
    since = condition.last_transition_time
    return since is not None and parse_rfc3339(since) + min_ready_s <= now_s


def available_in_s(pod: Pod, min_ready_s: int, now_s: float) -> float | None:
    """Seconds until a ready pod becomes available. None if it is available or the time is unknown."""
    condition = ready_condition(pod)
    if min_ready_s <= 0 or condition is None or condition.status != "True" or condition.last_transition_time is None:
        return None
    left_s = parse_rfc3339(condition.last_transition_time) + min_ready_s - now_s
    return left_s if left_s > 0 else None


def next_availability_s(pods: Iterable[Pod], min_ready_s: int, counted_at_s: float, now_s: float) -> float | None:
    """Seconds until the next pod becomes available that was not when the pods were counted."""
    waits = [wait for pod in pods if (wait := available_in_s(pod, min_ready_s, counted_at_s)) is not None]
    return max(0.0, min(waits) - (now_s - counted_at_s)) if waits else None


def add_claim_index(informer: Informer[Pod]) -> None:
    """Index pods by the keys of their claims."""
    informer.add_index(BY_CLAIM, claim_keys)


def claim_keys(pod: Pod) -> Iterable[str]:
    """The keys of the claims that a pod uses, or will use once they exist."""
    if not pod.spec.volumes:
        return ()
    metadata = pod.metadata
    names = (claim_named_by(volume, metadata.name) for volume in pod.spec.volumes)
    return [f"{metadata.namespace}/{name}" for name in names if name]


ReplicatedWorkload: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet


def replicas_of(workload: ReplicatedWorkload) -> int:
    """The desired number of replicas; 1 if the spec leaves it open."""
    return workload.spec.replicas if workload.spec.replicas is not None else 1


def scaled_value(value: IntOrString | None, total: int, *, is_rounded_up: bool) -> int:
    """A number, or a percentage of the total. 0 for other values."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not digits.isdecimal():
        return 0
    hundredths = int(digits) * total
    return -(-hundredths // 100) if is_rounded_up else hundredths // 100


# --- ranking --------------------------------------------------------------------------------------------------


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
    return max(regular, 0), max((status.restart_count for status in statuses if status.name in sidecars), default=0)
