"""DefaultStorageClass: a new claim without a storage class gets the default class, if there is one."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
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


_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def class_of_claim(claim: Document) -> str | None:
    """The class that a claim names; None if the claim has no storageClassName."""
    annotations = claim["metadata"].get("annotations") or {}
    if _CLASS in annotations:
        return str(annotations[_CLASS])
    name = claim.get("spec", {}).get("storageClassName")
    return None if name is None else str(name)


def default_class(classes: Sequence[Document]) -> Document | None:
    defaults = [one for one in classes if _is_default(one)]
    defaults.sort(key=lambda one: str(one["metadata"]["name"]))
    # Timestamps sort as texts, and `max` returns the first of equals.
    return max(defaults, key=lambda one: str(one["metadata"]["creationTimestamp"]), default=None)


def _is_default(one: Document) -> bool:
    annotations = one["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in _IS_DEFAULT)
