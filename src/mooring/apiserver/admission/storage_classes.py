"""The storage class of a claim, and the default one: what two plugins ask.

Input: claims and classes.
Output: a class' name, or the default class.

 1. The annotation from the time before the field still counts, and counts first.
 2. Of several default classes the youngest is taken, of equally young ones the first by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document

_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def class_of_claim(claim: Document) -> str | None:
    """The class that a claim names; None if it leaves it open."""
    annotations = claim["metadata"].get("annotations") or {}
    if _CLASS in annotations:
        return str(annotations[_CLASS])
    name = claim.get("spec", {}).get("storageClassName")
    return None if name is None else str(name)


def default_class(classes: Sequence[Document]) -> Document | None:
    defaults = [one for one in classes if _is_default(one)]
    defaults.sort(key=lambda one: str(one["metadata"]["name"]))
    # Times are written so that later ones are larger texts, and `max` takes the first of equals.
    return max(defaults, key=lambda one: str(one["metadata"]["creationTimestamp"]), default=None)


def _is_default(one: Document) -> bool:
    annotations = one["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in _IS_DEFAULT)
