"""The quota usage of PersistentVolumeClaims: number and requested storage, in total and by class, and matching scopes.

1. A claim that was shrunk during an expansion uses its allocated storage.
2. Storage is counted in whole bytes.
"""

from __future__ import annotations

from dataclasses import replace

from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM
from mooring.api.quantity import NANO, Quantity, parse_quantity
from mooring.api.quota.counting import ONE, Amounts, count_name, matches_value
from mooring.api.storage import class_of_claim, storage_requested
from mooring.api.views.base import RawQuantity
from mooring.api.views.quotas import ScopeRequirement
from mooring.api.views.storage import PersistentVolumeClaim

_COUNT = count_name(PERSISTENT_VOLUME_CLAIM)
_STORAGE = "requests.storage"
_CLAIMS = "persistentvolumeclaims"
_OF_CLASS = ".storageclass.storage.k8s.io/"
_SUFFIXES = (_OF_CLASS + _CLAIMS, _OF_CLASS + _STORAGE)


def is_volume_claim_name(name: str) -> bool:
    """Whether a quota limits something by this name that claims of volumes use."""
    return name in (_COUNT, _CLAIMS, _STORAGE) or name.endswith(_SUFFIXES)


def volume_claim_usage(claim: PersistentVolumeClaim) -> Amounts:
    used = {_CLAIMS: ONE, _COUNT: ONE}
    storage = _storage_of(claim)
    if storage is not None:
        used[_STORAGE] = storage
    class_name = class_of_claim(claim)
    if class_name:
        used[f"{class_name}{_OF_CLASS}{_CLAIMS}"] = ONE
        if storage is not None:
            used[f"{class_name}{_OF_CLASS}{_STORAGE}"] = storage
    return used


def is_volume_claim_in_scope(scope: ScopeRequirement, claim: PersistentVolumeClaim) -> bool:
    if scope.scope_name != "VolumeAttributesClass":
        return False
    target = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        target.target_volume_attributes_class_name if target is not None else None,
    )
    named = [name for name in names if name]
    return any(matches_value(scope, name) for name in named) if named else matches_value(scope, "")


def _storage_of(claim: PersistentVolumeClaim) -> Quantity | None:
    asked = storage_requested(claim.spec)
    if asked is None:
        return None
    given = claim.status.allocated_resources.get("storage")
    return max(_in_whole_bytes(raw) for raw in (asked, given) if raw is not None)


def _in_whole_bytes(raw: RawQuantity) -> Quantity:
    amount = parse_quantity(raw)
    rest = -amount.amount_nano % NANO
    return replace(amount, amount_nano=amount.amount_nano + rest, written="") if rest else amount
