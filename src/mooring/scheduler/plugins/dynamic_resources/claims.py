"""The ResourceClaims of a pod, and whether their devices are ready.

Input: a pod, the claims of the cluster. Output: its claims in order, or why the pod must wait.

1. A claim from a template must be owned by the pod. A claim with the same name may be left over from a deleted pod.
2. A claim from a template may be omitted: then its status has no name.
"""

from __future__ import annotations

from mooring.api.ownership import controller_of
from mooring.api.views.devices import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from mooring.api.views.meta import Condition
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.devices.claims import ClaimTracker
from mooring.scheduler.devices.requests import ALTERNATIVES_MAX


class ClaimsMissingError(Exception):
    """A claim of the pod is missing, is being deleted, or belongs to another pod."""


class DeviceBindingError(Exception):
    """A device has a binding failure condition."""


def claims_of(view: Pod, pod_uid: str, tracker: ClaimTracker) -> tuple[ResourceClaim, ...]:
    """The claims of a pod, in the order of its specification. Raises `ClaimsMissingError`."""
    found: list[ResourceClaim] = []
    namespace, name = view.metadata.namespace, view.metadata.name
    for use in view.spec.resource_claims:
        claim_name = _name_of(view, use)
        if claim_name is None:
            continue
        key = f"{namespace}/{claim_name}"
        claim = tracker.get(key)
        if claim is None:
            raise ClaimsMissingError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimsMissingError(f'resourceclaim "{claim_name}" is being deleted')
        if use.resource_claim_name is None:
            controller = controller_of(claim.metadata)
            if controller is None or controller.uid != pod_uid:
                raise ClaimsMissingError(
                    f"ResourceClaim {key} was not created for Pod {namespace}/{name} (Pod is not owner)"
                )
        found.append(claim)
    return tuple(found)


def _name_of(view: Pod, use: PodResourceClaim) -> str | None:
    if use.resource_claim_name is not None:
        return use.resource_claim_name
    if use.resource_claim_template_name is None:
        raise ClaimsMissingError(
            f'pod "{view.key}", spec.resourceClaim "{use.name}": none of the supported fields are set'
        )
    for status in view.status.resource_claim_statuses:
        if status.name == use.name:
            return status.resource_claim_name
    raise ClaimsMissingError(f'pod "{view.key}": ResourceClaim not created yet')


def claim_uid(claim: ResourceClaim) -> str:
    return claim.metadata.uid or claim.key


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for)


def is_only_for(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether no other pod has reserved the claim."""
    consumers = claim.status.reserved_for
    return not consumers or (len(consumers) == 1 and consumers[0].uid == pod_uid)


def alternatives_score(claim: ResourceClaim) -> int:
    """The score of an allocated claim, the same on every node: higher for earlier alternatives."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    got = {result.request for result in allocation.devices.results if result.request.count("/") == 1}
    return sum(
        ALTERNATIVES_MAX - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in got
    )


# Binding conditions


def needs_binding(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def is_ready(claim: ResourceClaim) -> bool:
    """Whether the binding conditions of all devices are true. Raises `DeviceBindingError` on a failure condition."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        for name in result.binding_failure_conditions:
            failed = _condition(status, name)
            if failed is not None and failed.status == "True":
                raise DeviceBindingError(
                    f"device binding failed: claim={claim.metadata.name}, reason={failed.reason}, "
                    f'message="{failed.message}"'
                )
        for name in result.binding_conditions:
            condition = _condition(status, name)
            if condition is None or condition.status != "True":
                return False
    return True


def is_overdue(claim: ResourceClaim, now_wall_s: float, timeout_s: float) -> bool:
    """Whether the binding timeout of a claim's devices has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not needs_binding(claim):
        return False
    return parse_rfc3339(allocation.allocation_timestamp) + timeout_s < now_wall_s


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device):
            return status
    return None


def _condition(status: AllocatedDeviceStatus, name: str) -> Condition | None:
    return next((condition for condition in status.conditions if condition.type == name), None)
