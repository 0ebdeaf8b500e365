"""What wakes pods that were refused for their devices.

Comes in   claims as they come and change; the sleeping pod's own status
Goes out   whether that can help it

Pods of one template have claims of their own, so the hints are asked for each pod.
"""

from __future__ import annotations

from mooring.api.views.devices import ResourceClaim
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.claims import ClaimBook
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.plugins.dynamic_resources_claims import ClaimsMissingError, claim_uid, claims_of


def device_events(book: ClaimBook) -> tuple[ClusterEventWithHint, ...]:
    """What can help a pod that DynamicResources refused."""
    any_change = ActionType.ADD | ActionType.UPDATE

    def claim_helps(pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> QueueingHint:
        return queue_if(claim_change_helps(book, pod, old, new))

    def has_its_claims(pod: PodInfo, old: PodInfo | None, new: PodInfo) -> QueueingHint:
        return queue_if(new.uid == pod.uid and _claims_or_none(book, new) is not None)

    node_changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
    return (
        ClusterEventWithHint(EventResource.NODE, node_changes),
        ClusterEventWithHint(EventResource.RESOURCE_CLAIM, any_change, claim_helps),
        ClusterEventWithHint(
            EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, has_its_claims
        ),
        ClusterEventWithHint(EventResource.DEVICE_CLASS, any_change),
        ClusterEventWithHint(EventResource.RESOURCE_SLICE, any_change),
    )


def claim_change_helps(book: ClaimBook, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> QueueingHint:
    """A claim came, or changed: were devices set free, or is it one that the pod waits for?"""
    claims = _claims_or_none(book, pod)
    if claims is None:
        return QueueingHint.SKIP
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return QueueingHint.QUEUE
    if all(claim_uid(claim) != claim_uid(new) for claim in claims):
        return QueueingHint.SKIP
    return queue_if(old is None or old.status != new.status)


def _claims_or_none(book: ClaimBook, pod: PodInfo) -> tuple[ResourceClaim, ...] | None:
    """The claims of a pod; None while some of them are missing."""
    if pod.view is None:
        return ()
    try:
        return claims_of(pod.view, pod.uid, book)
    except ClaimsMissingError:
        return None
