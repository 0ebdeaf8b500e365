"""Matching a claim with a volume that exists: which one is best, and why a certain one will not do.

Comes in   a claim, and volumes that could be its own
Goes out   the volume to bind; or a reason, in the words of kube-controller-manager

 1. Volumes with fewer access modes come first: who asks for one mode shall not take the volume that offers three.
    Among those with the same modes, the volume that names the claim comes first, then the smallest, then by name
    (kube-controller-manager takes any of equals).
 2. If the claim waits for its first consumer, only a volume that names it will do: the scheduler chooses.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.quantity import quantity_nano, quantity_value
from mooring.api.storage import class_of_claim, class_of_volume, is_bound_to, storage_requested, volume_mode_of
from mooring.api.views.base import RawQuantity
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim

AVAILABLE = "Available"


def best_volume(
    claim: PersistentVolumeClaim, candidates: Iterable[PersistentVolume], *, is_delayed: bool
) -> PersistentVolume | None:
    """The volume that the claim gets, if there is one. Raises `LabelSelectorError`."""
    selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
    best: PersistentVolume | None = None
    best_rank: tuple[int, bool, int, str] | None = None
    for volume in candidates:
        if not _could_be(volume, claim):
            continue
        is_named = is_bound_to(volume, claim)
        if not is_named and (is_delayed or not _is_free_for(volume, claim, selector)):
            continue
        size_nano = quantity_nano(_capacity(volume))
        rank = (len(set(volume.spec.access_modes)), not is_named, size_nano, volume.metadata.name)
        if best_rank is None or rank < best_rank:
            best, best_rank = volume, rank
    return best


def why_unsuitable(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume that the claim asks for by name cannot be its own; empty if it can."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if quantity_value(_capacity(volume)) < quantity_value(_requested(claim)):
        return "requested PV is too small"
    if class_of_volume(volume) != class_of_claim(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if not have_same_mode(volume, claim):
        return "incompatible volumeMode"
    if not _has_access_modes(volume, claim):
        return "incompatible accessMode"
    return ""


def have_same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return volume_mode_of(volume.spec.volume_mode) == volume_mode_of(claim.spec.volume_mode)


def _could_be(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What holds for free volumes and for those that name the claim."""
    return (
        (volume.spec.claim_ref is None or is_bound_to(volume, claim))
        and volume.metadata.deletion_timestamp is None
        and _has_access_modes(volume, claim)
        and quantity_nano(_capacity(volume)) >= quantity_nano(_requested(claim))
        and have_same_mode(volume, claim)
        and _attributes_class(volume) == _attributes_class(claim)
    )


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: LabelMatcher | None) -> bool:
    return (
        volume.status.phase == AVAILABLE
        and class_of_volume(volume) == class_of_claim(claim)
        and (selector is None or selector.matches(volume.metadata.labels))
    )


def _has_access_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)


def _attributes_class(either: PersistentVolume | PersistentVolumeClaim) -> str:
    return either.spec.volume_attributes_class_name or ""


def _capacity(volume: PersistentVolume) -> RawQuantity:
    return volume.spec.capacity.get("storage", 0)


def _requested(claim: PersistentVolumeClaim) -> RawQuantity:
    requested = storage_requested(claim.spec)
    return requested if requested is not None else 0
