"""Cluster events: what can make a rejected pod schedulable, and what plugins register for.

Inputs   object changes seen by the event handlers; the events that plugins register
Outputs  `ClusterEvent` and `ClusterEventWithHint`, used by the scheduling queue

A rejected pod stays unschedulable until an event occurs that one of the rejecting plugins has registered
(`events_to_register`). A registered event may have a queueing hint: a function that reads the changed object and the
unschedulable pod, and returns `QueueingHint.QUEUE` if the change can help.

 1. A hint returns SKIP for a change that helps only where kube-scheduler's hint does too. A hint that raises counts as
    QUEUE.
 2. Names are those of Kubernetes. `ClusterEvent.label` is the name used in metrics and logs.
 3. The resource determines the types of `old` and `new`: `PodInfo` for pods, the view for every other kind. `old` is
    None for ADD, `new` is None for DELETE.
 4. A kind that `EventResource` does not list, such as a custom resource, is given as a `Kind` with a view.
 5. An `old` pod still has the node or the nomination that it lost, because hints read it.
 6. Hints have no state and no side effects: the queue may pass the same event again to a pod that was in flight.
 7. A hint may cache what it derives from a signature with `PerSignature`. A signature that was evicted from
    the cache has lost such values and its `terms`: hints read `signature.spec`, never `signature.terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from typing import Any, NamedTuple, TypeAlias

from mooring.api.kinds import Kind
from mooring.api.quantity import milli_of_nano, quantity_nano
from mooring.api.resources import Nanos, RequestRules, pod_requests_nano
from mooring.api.views.meta import Condition, ResourceList
from mooring.api.views.node import Node
from mooring.scheduler.cache.pods import PerSignature, PodInfo, PodSignature

# Events


class ActionType(IntFlag):
    """What happened to an object."""

    NONE = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    """Includes uncordoning: `spec.unschedulable` changes to false."""
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = ((1 << 13) - 1) & ~0b11
    """In a registration: any update. In an event: an update that none of the specific action types describes."""
    ALL = (1 << 13) - 1


class EventResource(Enum):
    """The kind of object an event is about."""

    ASSIGNED_POD = "AssignedPod"
    """A pod that is bound to a node or assumed on it."""
    UNSCHEDULABLE_POD = "UnschedulablePod"
    """The unschedulable pod itself."""
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    WILDCARD = "*"
    """In a registration: every resource. In an event: all unschedulable pods are moved."""


AnyEventResource: TypeAlias = EventResource | Kind


class ClusterEvent(NamedTuple):
    """One kind of change: a resource and what happened to it."""

    resource: AnyEventResource
    action_type: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name in metrics: `NodeUpdateNodeLabel`, `AssignedPodDelete`."""
        return self.custom_label or f"{_resource_name(self.resource)}{_ACTION_NAMES.get(self.action_type, '')}"

    @property
    def is_wildcard(self) -> bool:
        """Whether the event moves every unschedulable pod, without calling hints."""
        return self.resource is EventResource.WILDCARD and self.action_type == ActionType.ALL


ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
"""Also sent when an assumed pod is forgotten or a nomination is removed."""
UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE)
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")


def is_same_resource(one: AnyEventResource, other: AnyEventResource) -> bool:
    """Whether both are the same resource. A plugin may build an equal `Kind` again on each call."""
    if one is other or isinstance(one, EventResource) or isinstance(other, EventResource):
        return one is other
    return one.view is other.view and one.resource == other.resource


def _resource_name(resource: AnyEventResource) -> str:
    """A `Kind` is named as plugins of kube-scheduler spell it: `widgets.v1.example.com`."""
    if isinstance(resource, EventResource):
        return resource.value
    version = resource.api_version.rpartition("/")[2]
    return ".".join(part for part in (resource.plural, version, resource.group) if part)


def _resources_of(kind: Kind) -> tuple[EventResource, ...]:
    if kind.kind == "Pod" and not kind.group:
        return EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD
    name = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    return tuple(resource for resource in EventResource if resource.value == name)


_ACTION_NAMES = {
    action: "".join(part.capitalize() for part in name.split("_"))
    for name, action in ActionType.__members__.items()
    if action
}
"""`UpdateNodeLabel`. A combination of action types occurs in registrations only, and has no name."""


# Registrations and queueing hints


class QueueingHint(IntEnum):
    """Whether an event can make a pod schedulable. SKIP is false in a boolean context."""

    SKIP = 0
    QUEUE = 1


QueueingHintFn: TypeAlias = Callable[[PodInfo, Any, Any], QueueingHint]
"""(unschedulable pod, old, new) -> whether the change can resolve this plugin's rejection of the pod."""


def queue_if(condition: object) -> QueueingHint:
    return QueueingHint.QUEUE if condition else QueueingHint.SKIP


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """An event that can help pods which the plugin rejected. Without a hint function every such event queues them."""

    resource: AnyEventResource
    action_type: ActionType
    queueing_hint_fn: QueueingHintFn | None = None
    per_signature: bool = False
    """The hint reads only the signature of the unschedulable pod: one call serves all pods of a signature."""
    per_signature_pair: bool = False
    """The hint also reads only the signature of the assigned pod: the queue may reuse a result for the next event."""

    def labels(self) -> Iterator[str]:
        """The labels of the events that match."""
        if self.action_type & ActionType.UPDATE == ActionType.UPDATE:
            actions = [action for action in (ActionType.ADD, ActionType.DELETE) if action & self.action_type]
            actions.append(ActionType.UPDATE)
        else:
            actions = [action for action in ActionType if action.bit_count() == 1 and action & self.action_type]
        for action in actions:
            yield ClusterEvent(self.resource, action).label

    def __post_init__(self) -> None:
        resource = self.resource
        if not isinstance(resource, Kind):
            return
        if resource.view is None:
            raise ValueError(f"an event of {resource} needs a view: Kind(…, view=…)")
        listed = _resources_of(resource)
        if listed:
            raise ValueError(f"an event of {resource} must be registered as {' or '.join(map(str, listed))}")
        view = resource.view
        if (view.api_version, view.kind) != (resource.api_version, resource.kind):
            # The cache stores objects by their view: a shared view would mix objects of two kinds.
            actual = f"{view.api_version} {view.kind}".strip() or "no kind"
            raise ValueError(f"an event of {resource} needs a view of that kind; {view.__name__} is a view of {actual}")

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is one of those registered here."""
        if self.resource is not EventResource.WILDCARD and not is_same_resource(self.resource, event.resource):
            return False
        # UPDATE has several bits: a registration for one specific update does not match the unspecific one.
        return bool(event.action_type) and self.action_type & event.action_type == event.action_type


ANY_EVENT = ClusterEventWithHint(EventResource.WILDCARD, ActionType.ALL)


def queue_on_own_update(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Hint: queues the pod if the pod itself was updated."""
    return queue_if(new is not None and new.uid == pod.uid)


def always_skip(pod: PodInfo, old: object, new: object) -> QueueingHint:
    """Hint: the plugin registers the event, but the event never queues a pod."""
    return QueueingHint.SKIP


def has_node_or_nomination(pod: PodInfo) -> bool:
    """Whether the pod takes resources of a node: it is bound, assumed or nominated."""
    return bool(pod.node_name or pod.nominated_node)


# Events of an update

_NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
_NODE_ALLOCATABLE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)
_NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
_NODE_CONDITION = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_CONDITION)
_NODE_ANNOTATION = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ANNOTATION)
_NODE_FEATURE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE)

_REQUESTS_WITH_STATUS = RequestRules(counts_status=True)


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """The events of a node update, in kube-scheduler's order. Empty if no field that plugins read has changed."""
    events = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        events.append(_NODE_TAINT)
    if _allocatable_differs(old.status.allocatable, new.status.allocatable):
        events.append(_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        events.append(_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        events.append(_NODE_TAINT)  # as in kube-scheduler a second time, if the node was uncordoned as well
    if old.status.conditions != new.status.conditions and _condition_statuses(
        old.status.conditions
    ) != _condition_statuses(new.status.conditions):
        events.append(_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        events.append(_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        events.append(_NODE_FEATURE)
    return events


def pod_events(old: PodInfo, new: PodInfo, resource: EventResource) -> list[ClusterEvent]:
    """The events of a pod update, for ASSIGNED_POD or UNSCHEDULABLE_POD. Never empty: UPDATE if nothing is specific.

    The cache has no view of an assigned pod, so that its scheduling gates and generated claims are not compared. The
    API server allows no gates on an assigned pod, and its new claims help no other pod.
    """
    action_types = []
    if old.signature is not new.signature and old.signature.labels != new.signature.labels:
        action_types.append(ActionType.UPDATE_POD_LABEL)
    if old.signature is not new.signature and _is_scaled_down(old.signature, new.signature):
        action_types.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if _has_scheduling_gates(old) and not _has_scheduling_gates(new):
        action_types.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API server allows tolerations to be added only, so that the number is enough.
    if len(old.signature.spec.tolerations) != len(new.signature.spec.tolerations):
        action_types.append(ActionType.UPDATE_POD_TOLERATION)
    if _claim_statuses_differ(old, new):
        action_types.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent(resource, action_type) for action_type in action_types or (ActionType.UPDATE,)]


def _allocatable_differs(old: ResourceList, new: ResourceList) -> bool:
    """Compares quantities by value: `1` equals `1000m`."""
    if old == new:
        return False
    return old.keys() != new.keys() or any(quantity_nano(old[name]) != quantity_nano(new[name]) for name in old)


def _condition_statuses(conditions: Sequence[Condition]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}


def _is_scaled_down(old: PodSignature, new: PodSignature) -> bool:
    """Whether the pod requests less of some resource than before, or no longer requests it."""
    before, after = _requests(old), _requests(new)
    return any(name not in after or milli_of_nano(nano) > milli_of_nano(after[name]) for name, nano in before.items())


@PerSignature
def _requests(signature: PodSignature) -> Nanos:
    return pod_requests_nano(signature.view, _REQUESTS_WITH_STATUS)


def _has_scheduling_gates(pod: PodInfo) -> bool:
    return pod.view is not None and bool(pod.view.spec.scheduling_gates)


def _claim_statuses_differ(old: PodInfo, new: PodInfo) -> bool:
    if old.view is None or new.view is None:
        return False
    before, after = old.view.status, new.view.status
    return (
        before.resource_claim_statuses != after.resource_claim_statuses
        or before.extended_resource_claim_status != after.extended_resource_claim_status
    )
