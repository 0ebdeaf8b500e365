"""PersistentVolumeClaimResize: a claim grows only once it is bound, and only if its class allows it.

Input: a changed claim.
Output: nothing, or 403.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from mooring.api.quantity import quantity_nano
from mooring.apiserver.admission.default_storage_class import class_of_claim
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, refused
from mooring.apiserver.call import Operation


class PersistentVolumeClaimResize(Admission):
    """Checks claims whose requested storage grows."""

    name = "PersistentVolumeClaimResize"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is PERSISTENT_VOLUME_CLAIM and not subresource and operation is Operation.UPDATE

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        claim, old = attempt.obj, attempt.old
        assert claim is not None
        assert old is not None
        if _storage_nano(claim) <= _storage_nano(old):
            return
        if old.get("status", {}).get("phase") != "Bound":
            raise refused(attempt, "Only bound persistent volume claims can be expanded")
        name = class_of_claim(claim)
        found = await lookup.get(STORAGE_CLASS, "", name) if name and name == class_of_claim(old) else None
        if found is None or not found.get("allowVolumeExpansion"):
            raise refused(
                attempt,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize",
            )


def _storage_nano(claim: Document) -> int:
    requests = (claim.get("spec", {}).get("resources") or {}).get("requests") or {}
    return quantity_nano(requests.get("storage", "0"))
