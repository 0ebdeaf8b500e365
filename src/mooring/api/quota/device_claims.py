"""The quota usage of ResourceClaims: their number, and devices by class and by extended resource.

Input: resource claims, device classes of extended resources, pods and their charges.

 1. A request counts with its maximum: `All` means the most devices that one allocation can hold, and of several
    alternatives the largest of each class counts.
 2. Devices that a pod requests as an extended resource are charged to the pod. The claim that the scheduler creates for
    them is charged only for what exceeds that.
 3. A pod has one such claim: the one in its status, or the first while its status has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.api.kinds import RESOURCE_CLAIM
from mooring.api.ownership import controller_of
from mooring.api.quantity import ZERO, Quantity
from mooring.api.quota.counting import ONE, Amounts, count_name, whole
from mooring.api.quota.pods import IMPLICIT_DEVICE_PREFIX, is_extended_name
from mooring.api.resource_names import QUOTA_PREFIX
from mooring.api.views.devices import DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from mooring.api.views.pod import Pod

DEVICES_IN_CLAIM_MAX = 32

_COUNT = count_name(RESOURCE_CLAIM)
_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


def extended_names(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """By device class, the extended resource that it stands behind."""
    named = {one.metadata.name: one.spec.extended_resource_name for one in classes}
    return {name: extended for name, extended in named.items() if extended}


def is_device_claim_name(name: str, extended: Mapping[str, str]) -> bool:
    """Whether a quota limits something by this name that claims of devices use."""
    if name == _COUNT or name.endswith(_OF_CLASS):
        return True
    if not is_extended_name(name):
        return False
    return name.removeprefix(IMPLICIT_DEVICE_PREFIX) in extended or name.removeprefix(QUOTA_PREFIX) in extended.values()


def device_claim_usage(claim: ResourceClaim, extended: Mapping[str, str], charged: Amounts) -> Amounts:
    """What it uses beyond what was charged for its devices already, with the pod for which it was made."""
    used: dict[str, Quantity] = {_COUNT: ONE}
    for class_name, number in _devices_by_class(claim).items():
        used[f"{class_name}{_OF_CLASS}"] = whole(number)
        names = [f"{IMPLICIT_DEVICE_PREFIX}{class_name}"]
        if class_name in extended:
            names.append(f"{QUOTA_PREFIX}{extended[class_name]}")
        for name in names:
            beyond = whole(number) - charged.get(name, ZERO)
            if beyond > ZERO:
                used[name] = beyond
    return used


def pod_behind(claim: ResourceClaim) -> str:
    """The name of the pod for whose extended resources the claim was created; "" for any other claim."""
    owner = controller_of(claim.metadata)
    if not _is_for_extended_resources(claim) or owner is None:
        return ""
    return owner.name if (owner.api_version, owner.kind) == (Pod.api_version, Pod.kind) else ""


def is_charged_to(pod: Pod, claim: ResourceClaim, claims: Iterable[ResourceClaim]) -> bool:
    """Whether the claim's devices are counted with this pod, which it names. `claims` are all of the namespace."""
    if not _is_owned_by(claim, pod):
        return False
    known = pod.status.extended_resource_claim_status
    if known is not None:
        return known.resource_claim_name == claim.metadata.name
    rivals = (each for each in claims if _is_for_extended_resources(each) and _is_owned_by(each, pod))
    return not any(_age(each) < _age(claim) for each in rivals)


def _devices_by_class(claim: ResourceClaim) -> dict[str, int]:
    total: dict[str, int] = {}
    for request in claim.spec.devices.requests:
        worst: dict[str, int] = {}
        for option in _options(request):
            name = option.device_class_name
            if name:
                worst[name] = max(worst.get(name, 0), _device_count(option))
        for name, number in worst.items():
            total[name] = total.get(name, 0) + number
    return total


def _options(request: DeviceRequest) -> tuple[ExactDeviceRequest | DeviceSubRequest, ...]:
    if request.first_available:
        return request.first_available
    return (request.exactly,) if request.exactly is not None else ()


def _device_count(option: ExactDeviceRequest | DeviceSubRequest) -> int:
    match option.allocation_mode:
        case "ExactCount":
            return option.count
        case "All":
            return DEVICES_IN_CLAIM_MAX
        case _:
            return 0


def _is_for_extended_resources(claim: ResourceClaim) -> bool:
    return claim.metadata.annotations.get(_EXTENDED_RESOURCE_CLAIM) == "true"


def _is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid


def _age(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.creation_timestamp or "", claim.metadata.name
