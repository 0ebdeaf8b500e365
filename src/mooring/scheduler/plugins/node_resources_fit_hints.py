"""What wakes pods that NodeResourcesFit refused: room on some node, or devices behind a resource.

Comes in   pods that are gone or request less, nodes that came or offer more, device classes
Goes out   whether that can help a sleeping pod

 1. A node is judged as if it were empty: whether its pods leave enough free is for the next attempt to find out. As in
    kube-scheduler, resources that the plugin is configured to ignore are not ignored here.
 2. A resource that a node does not offer, but a device class stands behind, is no business of this plugin.
 3. Many pods are asked about the same event, so what the last two nodes offer is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.api.resource_names import DEVICE_CLASS_PREFIX, PODS
from mooring.api.resources import RequestRules, fit_filter_requests, node_allocatable, pod_requests_nano
from mooring.api.views.devices import DeviceClass
from mooring.api.views.node import Node
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cache.resources import CPU_NON_ZERO, MEMORY_NON_ZERO
from mooring.scheduler.devices.extended import ClassesByResource
from mooring.scheduler.framework.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    has_node_or_nomination,
    queue_if,
    queue_on_own_update,
)

Amounts = Mapping[str, int]

_BY_SPEC = RequestRules()


class FitHints:
    """The hints, and what they remember from one pod to the next."""

    def __init__(self, columns: Columns) -> None:
        self._classes = ClassesByResource(columns.objects.of(DeviceClass))
        self._offers: list[tuple[Node, Amounts]] = []

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (
            ClusterEventWithHint(EventResource.ASSIGNED_POD, ActionType.DELETE, _frees_room, per_signature=True),
            ClusterEventWithHint(
                EventResource.ASSIGNED_POD,
                ActionType.UPDATE_POD_SCALE_DOWN,
                _frees_what_is_requested,
                per_signature=True,
            ),
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCALE_DOWN, queue_on_own_update
            ),
            ClusterEventWithHint(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE,
                self._may_fit_now,
                per_signature=True,
            ),
            ClusterEventWithHint(
                EventResource.DEVICE_CLASS,
                ActionType.ADD | ActionType.UPDATE,
                _stands_behind_a_request,
                per_signature=True,
            ),
        )

    def _may_fit_now(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        """A node came, or offers something else: is it large enough, and has something grown that the pod requests?"""
        wanted, offered = _wanted(pod.signature), self._offered(new)
        if offered.get(PODS, 0) < 1:
            return QueueingHint.SKIP
        for name, amount in wanted.items():
            if amount > offered.get(name, 0) and not self._is_left_to_devices(name, offered):
                return QueueingHint.SKIP
        return queue_if(old is None or self._grows(wanted, self._offered(old), offered))

    def _grows(self, wanted: Amounts, before: Amounts, after: Amounts) -> bool:
        return after.get(PODS, 0) > before.get(PODS, 0) or any(
            after.get(name, 0) > before.get(name, 0) or self._is_left_to_devices(name, after) for name in wanted
        )

    def _is_left_to_devices(self, name: str, offered: Amounts) -> bool:
        return offered.get(name, 0) <= 0 and self._classes.get(name) is not None

    def _offered(self, node: Node) -> Amounts:
        for known, amounts in self._offers:
            if known is node:
                return amounts
        offered = node_allocatable(node)
        self._offers = [*self._offers[-1:], (node, offered)]
        return offered


def _frees_room(pod: PodInfo, old: PodInfo, new: None) -> QueueingHint:
    return queue_if(has_node_or_nomination(old))


def _frees_what_is_requested(pod: PodInfo, old: PodInfo, new: PodInfo) -> QueueingHint:
    """A placed pod requests less: is it less of something that the sleeping one requests?"""
    wanted, before, after = _requested(pod), _requested(old), _requested(new)
    return queue_if(
        any(
            amount and slot < len(before) and before[slot] > (after[slot] if slot < len(after) else 0)
            for slot, amount in enumerate(wanted)
            if slot not in (CPU_NON_ZERO, MEMORY_NON_ZERO)
        )
    )


def _stands_behind_a_request(pod: PodInfo, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
    """A device class came, or stands behind another resource: does the pod request that?"""
    named = new.spec.extended_resource_name
    if old is not None and (old.spec.extended_resource_name or "") == (named or ""):
        return QueueingHint.SKIP
    requested = pod_requests_nano(pod.signature.view, _BY_SPEC)
    if old is None and DEVICE_CLASS_PREFIX + new.metadata.name in requested:
        return QueueingHint.QUEUE
    return queue_if(named is not None and named in requested)


def _requested(pod: PodInfo) -> Sequence[int]:
    """What a pod takes from its node, by the resource's slot (the count of pods is the same for all)."""
    amounts: list[int] = pod.signature.request_vector.tolist()
    return amounts


def _wanted(signature: PodSignature) -> Amounts:
    """What a node must have for a pod; what it requests nothing of is left out."""
    known = signature.memo.get(_wanted)
    if known is None:
        requests = fit_filter_requests(signature.view)
        known = signature.memo[_wanted] = {name: amount for name, amount in requests.items() if amount > 0}
    return known  # type: ignore[return-value]
