"""What claims use of a quota: storage for volumes, devices for resource claims.

Comes in   a PersistentVolumeClaim or a ResourceClaim
Goes out   its number and what it asks for, in all and by class

 1. A claim that was shrunk while it grew uses what it has been given.
 2. A request for devices counts at its worst: all devices means the most that one allocation can hold, and of several
    alternatives the largest of each class.
 3. Devices that a pod asked for as an extended resource are counted with the pod; the claim that the scheduler made
    for them counts only what goes beyond.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mooring.api.document import Document
from mooring.api.kinds import DEVICE_CLASS, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM
from mooring.api.quantity import NANO, ZERO, Quantity, parse_quantity
from mooring.api.resource_names import QUOTA_PREFIX
from mooring.apiserver.admission.pod_amounts import Amounts
from mooring.apiserver.admission.promise import Attempt, Lookup
from mooring.apiserver.admission.quota_measures import Measure, count_name, matches_value, whole
from mooring.apiserver.admission.quota_pods import IMPLICIT_DEVICE_PREFIX, is_extended_in_quota, pod_usage
from mooring.apiserver.admission.storage_classes import class_of_claim
from mooring.apiserver.call import Operation

DEVICES_IN_CLAIM_MAX = 32

_STORAGE = "requests.storage"
_CLAIMS = "persistentvolumeclaims"
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


class VolumeClaimMeasure(Measure):
    """Measures claims of volumes."""

    _counted = frozenset({count_name(PERSISTENT_VOLUME_CLAIM), _CLAIMS, _STORAGE})
    _suffixes = (_OF_STORAGE_CLASS + _CLAIMS, _OF_STORAGE_CLASS + _STORAGE)

    def handles(self, subresource: str, operation: Operation) -> bool:
        if subresource == "status":
            return operation is Operation.UPDATE
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if name in self._counted or name.endswith(self._suffixes)]

    def is_in_scope(self, scope: Document, obj: Document) -> bool:
        if scope.get("scopeName") != "VolumeAttributesClass":
            return False
        names = _attributes_classes(obj)
        return any(matches_value(scope, name) for name in names) if names else matches_value(scope, "")

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        used: Amounts = {_CLAIMS: whole(1), count_name(PERSISTENT_VOLUME_CLAIM): whole(1)}
        storage = _storage_of(obj)
        if storage is not None:
            used[_STORAGE] = storage
        name = class_of_claim(obj)
        if name:
            used[f"{name}{_OF_STORAGE_CLASS}{_CLAIMS}"] = whole(1)
            if storage is not None:
                used[f"{name}{_OF_STORAGE_CLASS}{_STORAGE}"] = storage
        return used


def _storage_of(claim: Document) -> Quantity | None:
    raw = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if raw is None:
        return None
    asked = _in_whole_bytes(parse_quantity(raw))
    given = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    if given is None:
        return asked
    return max(asked, _in_whole_bytes(parse_quantity(given)))


def _in_whole_bytes(amount: Quantity) -> Quantity:
    rest = -amount.amount_nano % NANO
    return replace(amount, amount_nano=amount.amount_nano + rest, written="") if rest else amount


def _attributes_classes(claim: Document) -> set[str]:
    status = claim.get("status") or {}
    names = (
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in names if name}


class DeviceClaimMeasure(Measure):
    """Measures claims of devices."""

    def handles(self, subresource: str, operation: Operation) -> bool:
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        found: list[str] = []
        extended: dict[str, str] | None = None
        for name in names:
            if name == count_name(RESOURCE_CLAIM) or name.endswith(_OF_DEVICE_CLASS):
                found.append(name)
            elif is_extended_in_quota(name):
                if extended is None:
                    extended = await _extended_names(lookup)
                asked = name.removeprefix(QUOTA_PREFIX)
                if name.removeprefix(IMPLICIT_DEVICE_PREFIX) in extended or asked in extended.values():
                    found.append(name)
        return found

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        devices = _devices_by_class(obj)
        used: Amounts = {count_name(RESOURCE_CLAIM): whole(1)}
        used |= {f"{name}{_OF_DEVICE_CLASS}": whole(number) for name, number in devices.items()}
        if not devices:
            return used
        extended = await _extended_names(lookup)
        of_pod = await _usage_of_pod(obj, attempt, lookup)
        for name, number in devices.items():
            called = [f"{IMPLICIT_DEVICE_PREFIX}{name}"]
            if name in extended:
                called.append(f"{QUOTA_PREFIX}{extended[name]}")
            for each in called:
                beyond = whole(number) - of_pod.get(each, ZERO)
                if beyond > ZERO:
                    used[each] = beyond
        return used


def _devices_by_class(claim: Document) -> dict[str, int]:
    total: dict[str, int] = {}
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or []:
        worst: dict[str, int] = {}
        for one in request.get("firstAvailable") or [request.get("exactly") or {}]:
            name = one.get("deviceClassName")
            if name:
                worst[name] = max(worst.get(name, 0), _device_count(one))
        for name, number in worst.items():
            total[name] = total.get(name, 0) + number
    return total


def _device_count(request: Document) -> int:
    match request.get("allocationMode"):
        case "ExactCount":
            return int(request.get("count", 0))
        case "All":
            return DEVICES_IN_CLAIM_MAX
        case _:
            return 0


async def _extended_names(lookup: Lookup) -> dict[str, str]:
    """By device class, the extended resource that it stands behind."""
    classes = await lookup.list(DEVICE_CLASS)
    named = {one["metadata"]["name"]: (one.get("spec") or {}).get("extendedResourceName") for one in classes}
    return {name: extended for name, extended in named.items() if extended}


async def _usage_of_pod(claim: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
    """What the pod for which the scheduler made this claim is charged with already."""
    metadata = claim["metadata"]
    if (metadata.get("annotations") or {}).get(_EXTENDED_RESOURCE_CLAIM) != "true":
        return {}
    owners = metadata.get("ownerReferences") or []
    owner: Document = next((one for one in owners if one.get("controller")), {})
    if owner.get("kind") != "Pod" or owner.get("apiVersion") != "v1":
        return {}
    pod = await lookup.get(POD, attempt.call.namespace, owner.get("name", ""))
    if pod is None or pod["metadata"]["uid"] != owner.get("uid"):
        return {}
    known = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if known is not None:
        is_the_one = known.get("resourceClaimName") == metadata.get("name")
    else:
        is_the_one = await _is_first_claim_of(owner["uid"], metadata, attempt, lookup)
    return pod_usage(pod, attempt.call.now_s) if is_the_one else {}


async def _is_first_claim_of(uid: str, metadata: Document, attempt: Attempt, lookup: Lookup) -> bool:
    """Only one claim of a pod is its extended resource claim: the first."""
    mine = (metadata.get("creationTimestamp", ""), metadata.get("name", ""))
    for claim in await lookup.list(RESOURCE_CLAIM, attempt.call.namespace):
        other = claim["metadata"]
        is_extended = (other.get("annotations") or {}).get(_EXTENDED_RESOURCE_CLAIM) == "true"
        is_owned = any(one.get("controller") and one.get("uid") == uid for one in other.get("ownerReferences") or [])
        if is_extended and is_owned and (other["creationTimestamp"], other["name"]) < mine:
            return False
    return True
