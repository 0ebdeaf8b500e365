"""DefaultStorageClass: the class of a claim that names none.

Input: a new claim.
Output: the same, with the name of the default class, if there is one.
"""

from __future__ import annotations

from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.admission.owning import own_part
from mooring.apiserver.admission.storage_classes import class_of_claim, default_class
from mooring.apiserver.call import Operation


class DefaultStorageClass(Admission):
    """Names the default class."""

    name = "DefaultStorageClass"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        return kind is PERSISTENT_VOLUME_CLAIM and not subresource and operation is Operation.CREATE

    async def admit(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if class_of_claim(attempt.obj) is not None:
            return
        default = default_class(await lookup.list(STORAGE_CLASS))
        if default is not None:
            own_part(attempt.obj, "spec")["storageClassName"] = default["metadata"]["name"]
