"""States of pods, numbers of replicas, and the indexes by which controllers find pods.

1. An active pod is neither finished nor being deleted. A terminating pod is being deleted and not finished.
2. A pod is available if it has been ready for `min_ready_s`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from mooring.api.labels import LabelMatcher
from mooring.api.storage import claim_named_by
from mooring.api.views.meta import ApiObject, Condition, IntOrString, controller_of
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from mooring.client.cache.informer import AnyObject, Informer, Lister
from mooring.kit.clock import parse_rfc3339

FINISHED_PHASES = ("Succeeded", "Failed")
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
    return pod.status.phase in FINISHED_PHASES


def is_active(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in FINISHED_PHASES


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in FINISHED_PHASES


def ready_condition(pod: Pod) -> Condition | None:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition
    return None


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
