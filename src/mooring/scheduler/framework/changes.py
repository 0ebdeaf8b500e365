"""What a change of a node or a pod is to those who sleep: the events that an update consists of.

Comes in   a node, or the record of a pod, before and after
Goes out   the events to tell the queue, in kube-scheduler's order; none for a heartbeat of a node

 1. An update of a pod is always some event: the general one if it is none of the special ones. An update of a node that
    changes nothing that scheduling reads is none.
 2. Amounts are compared by value: `1` and `1000m` are no change.
 3. Of a placed pod only the record is left, without gates and without the claims that were generated for it. The API
    server lets no placed pod have gates, and new claims of a placed pod help nobody: only its own record would tell.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.quantity import milli_of_nano, quantity_nano
from mooring.api.resources import Nanos, RequestRules, pod_requests_nano
from mooring.api.views.base import ResourceList
from mooring.api.views.meta import Condition
from mooring.api.views.node import Node
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.framework.events import Action, ClusterEvent, Subject

_TAINT = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_TAINT)
_ALLOCATABLE = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_ALLOCATABLE)
_NODE_LABEL = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_LABEL)
_CONDITION = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_CONDITION)
_ANNOTATION = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_ANNOTATION)
_FEATURE = ClusterEvent(Subject.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)

_AS_RUNNING = RequestRules(counts_status=True)


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """The events that an update of a node consists of."""
    events = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        events.append(_TAINT)
    if _differ(old.status.allocatable, new.status.allocatable):
        events.append(_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        events.append(_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        events.append(_TAINT)  # told twice, as in kube-scheduler, if the node is uncordoned at the same time
    if old.status.conditions != new.status.conditions and _states(old.status.conditions) != _states(
        new.status.conditions
    ):
        events.append(_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        events.append(_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        events.append(_FEATURE)
    return events


def pod_events(old: PodInfo, new: PodInfo, subject: Subject) -> list[ClusterEvent]:
    """The events that an update of a pod consists of: of a placed pod, or of a pending one, as `subject` says."""
    actions = []
    if old.signature is not new.signature and old.signature.labels != new.signature.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if old.signature is not new.signature and _is_scaled_down(old.signature, new.signature):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if _has_gates(old) and not _has_gates(new):
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # Tolerations can only be added.
    if len(old.signature.spec.tolerations) != len(new.signature.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if _has_other_claims(old, new):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent(subject, action) for action in actions or (Action.UPDATE,)]


def _differ(old: ResourceList, new: ResourceList) -> bool:
    if old == new:
        return False
    return old.keys() != new.keys() or any(quantity_nano(old[name]) != quantity_nano(new[name]) for name in old)


def _states(conditions: Sequence[Condition]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}


def _is_scaled_down(old: PodSignature, new: PodSignature) -> bool:
    """Whether the pod requests less of something than before, or no longer says how much."""
    before, after = _requests(old), _requests(new)
    return any(name not in after or milli_of_nano(nano) > milli_of_nano(after[name]) for name, nano in before.items())


def _requests(signature: PodSignature) -> Nanos:
    known = signature.memo.get(_requests)
    if known is None:
        known = signature.memo[_requests] = pod_requests_nano(signature.view, _AS_RUNNING)
    return known  # type: ignore[return-value]


def _has_gates(pod: PodInfo) -> bool:
    return pod.view is not None and bool(pod.view.spec.scheduling_gates)


def _has_other_claims(old: PodInfo, new: PodInfo) -> bool:
    if old.view is None or new.view is None:
        return False
    before, after = old.view.status, new.view.status
    return (
        before.resource_claim_statuses != after.resource_claim_statuses
        or before.extended_resource_claim_status != after.extended_resource_claim_status
    )
