"""What wakes pods that were refused for their devices.

Comes in   claims as they come and change; the sleeping pod's own status
Goes out   whether that can help it

Pods of one template have claims of their own, so the hints are asked for each pod.
"""

from __future__ import annotations

from mooring.api.views.devices import ResourceClaim
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.claims import ClaimBook
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.plugins.dynamic_resources_claims import ClaimsMissingError, claim_uid, claims_of


def device_wakes(book: ClaimBook) -> tuple[Wake, ...]:
    """What can help a pod that DynamicResources refused."""
    any_change = Action.ADD | Action.UPDATE

    def claim_helps(pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> bool:
        return claim_change_helps(book, pod, old, new)

    def has_its_claims(pod: PodInfo, old: PodInfo | None, new: PodInfo) -> bool:
        return new.uid == pod.uid and _claims_or_none(book, new) is not None

    node_changes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
    return (
        Wake(Subject.NODE, node_changes),
        Wake(Subject.RESOURCE_CLAIM, any_change, claim_helps),
        Wake(Subject.PENDING_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, has_its_claims),
        Wake(Subject.DEVICE_CLASS, any_change),
        Wake(Subject.RESOURCE_SLICE, any_change),
    )


def claim_change_helps(book: ClaimBook, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> bool:
    """A claim came, or changed: were devices set free, or is it one that the pod waits for?"""
    claims = _claims_or_none(book, pod)
    if claims is None:
        return False
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if all(claim_uid(claim) != claim_uid(new) for claim in claims):
        return False
    return old is None or old.status != new.status


def _claims_or_none(book: ClaimBook, pod: PodInfo) -> tuple[ResourceClaim, ...] | None:
    """The claims of a pod; None while some of them are missing."""
    if pod.view is None:
        return ()
    try:
        return claims_of(pod.view, pod.uid, book)
    except ClaimsMissingError:
        return None
