"""What quotas are asked about: by kind, which writes can change what is used, and by how much.

Input: an attempt to write an object.
Output: amounts by the names that quotas limit (`count/deployments.apps`, `configmaps`, `requests.cpu`).

What an object uses is a rule that the quota controller shares: `mooring.api.quota`. Here it is asked at the right
moment, and told what only the API server can look up.

 1. Pods, services and claims use more than a number: they have measures of their own.
 2. A quota with a scope is not asked about kinds that know no scopes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.decode import convert_as
from mooring.api.document import Document
from mooring.api.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, Kind
from mooring.api.quota import (
    ONE,
    SERVICE_NAMES,
    Amounts,
    device_claim_usage,
    extended_names,
    is_charged_to,
    is_device_claim_name,
    is_volume_claim_in_scope,
    is_volume_claim_name,
    names_of,
    pod_behind,
    pod_usage,
    service_usage,
    volume_claim_usage,
)
from mooring.api.views.administration import ScopeRequirement
from mooring.api.views.devices import DeviceClass, ResourceClaim
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service
from mooring.apiserver.admission.interface import Attempt, Lookup
from mooring.apiserver.call import Operation


class Measure:
    """Counts the objects of a kind. Others inherit from it and measure more."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._names = names_of(kind)

    def handles(self, subresource: str, operation: Operation) -> bool:
        """Whether such writes can change what is used."""
        return not subresource and operation is Operation.CREATE

    def concerns(self, attempt: Attempt) -> bool:
        """Whether this one can."""
        return True

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        """Those of the names that objects of this kind use."""
        return [name for name in names if name in self._names]

    def is_in_scope(self, scope: ScopeRequirement, obj: Document) -> bool:
        return False

    def unspecified(self, names: Iterable[str], obj: Document) -> str:
        """What the object must say because these names are limited, and does not."""
        return ""

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return dict.fromkeys(self._names, ONE)


class ServiceMeasure(Measure):
    def handles(self, subresource: str, operation: Operation) -> bool:
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if name in SERVICE_NAMES]

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return service_usage(convert_as(Service, obj))


class VolumeClaimMeasure(Measure):
    def handles(self, subresource: str, operation: Operation) -> bool:
        if subresource == "status":
            return operation is Operation.UPDATE
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if is_volume_claim_name(name)]

    def is_in_scope(self, scope: ScopeRequirement, obj: Document) -> bool:
        return is_volume_claim_in_scope(scope, convert_as(PersistentVolumeClaim, obj))

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return volume_claim_usage(convert_as(PersistentVolumeClaim, obj))


class DeviceClaimMeasure(Measure):
    def handles(self, subresource: str, operation: Operation) -> bool:
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        extended = await _extended_names(lookup)
        return [name for name in names if is_device_claim_name(name, extended)]

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        claim = convert_as(ResourceClaim, obj)
        return device_claim_usage(claim, await _extended_names(lookup), await _charged(claim, attempt, lookup))


async def _extended_names(lookup: Lookup) -> dict[str, str]:
    return extended_names([convert_as(DeviceClass, each) for each in await lookup.list(DEVICE_CLASS)])


async def _charged(claim: ResourceClaim, attempt: Attempt, lookup: Lookup) -> Amounts:
    """What the pod for which the scheduler made this claim is charged with already."""
    namespace, name = attempt.call.namespace, pod_behind(claim)
    found = await lookup.get(POD, namespace, name) if name else None
    if found is None:
        return {}
    pod = convert_as(Pod, found)
    claims = [convert_as(ResourceClaim, each) for each in await lookup.list(RESOURCE_CLAIM, namespace)]
    return pod_usage(pod, attempt.call.now_s) if is_charged_to(pod, claim, claims) else {}
