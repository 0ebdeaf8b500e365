"""StorageObjectInUseProtection: volumes and claims are not deleted while they are used.

New volumes, claims and volume attributes classes get the finalizer that a controller removes when they are unused.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, VOLUME_ATTRIBUTES_CLASS, Kind
from mooring.api.well_known import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER, VAC_PROTECTION_FINALIZER
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.call import Operation

_FINALIZERS: Mapping[Kind, str] = {
    PERSISTENT_VOLUME: PV_PROTECTION_FINALIZER,
    PERSISTENT_VOLUME_CLAIM: PVC_PROTECTION_FINALIZER,
    VOLUME_ATTRIBUTES_CLASS: VAC_PROTECTION_FINALIZER,
}


class StorageObjectInUseProtection(Admission):
    """Adds the finalizers."""

    name = "StorageObjectInUseProtection"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind in _FINALIZERS and not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        metadata, finalizer = attempt.obj["metadata"], _FINALIZERS[attempt.call.kind]
        finalizers = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]
