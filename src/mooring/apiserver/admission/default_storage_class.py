"""DefaultStorageClass: a new claim without a storage class gets the default class, if there is one."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from mooring.api.storage import DEFAULT_CLASS_ANNOTATIONS, STORAGE_CLASS_BETA
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, own_part
from mooring.apiserver.call import Operation


class DefaultStorageClass(Admission):
    """Sets the default class of claims."""

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


def class_of_claim(claim: Document) -> str | None:
    """The class that a claim names; None if the claim has no storageClassName."""
    annotations = claim["metadata"].get("annotations") or {}
    if STORAGE_CLASS_BETA in annotations:
        return str(annotations[STORAGE_CLASS_BETA])
    name = claim.get("spec", {}).get("storageClassName")
    return None if name is None else str(name)


def default_class(classes: Sequence[Document]) -> Document | None:
    defaults = [storage_class for storage_class in classes if _is_default(storage_class)]
    defaults.sort(key=lambda storage_class: str(storage_class["metadata"]["name"]))
    # Timestamps sort as texts, and `max` returns the first of equals.
    return max(defaults, key=lambda storage_class: str(storage_class["metadata"]["creationTimestamp"]), default=None)


def _is_default(storage_class: Document) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return any(annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)
