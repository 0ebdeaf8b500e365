"""The next action for a claim or a volume. No I/O.

Inputs: a claim and lookups around it (`VolumeLookup`); a volume and the claim that it names. Outputs: one action,
with its events.

    claim     pending ──bind──> bound ──volume is gone──> lost
    volume    available ──bind──> bound ──claim is gone──> released ──reclaim──> gone, failed or retained

1. A claim with the annotation `bind-completed` was bound once. It is never bound to another volume, because its
   data is on the first.
2. A volume that names a claim with its uid belongs to that claim. One that names it without uid is reserved for it.
3. Binding starts with the volume, so that a claim names a volume only after the volume names the claim.
4. Of matching volumes, those with fewer access modes come first; then the one that names the claim, then the
   smallest, then by name. (kube-controller-manager takes any of equals.)
5. A claim that waits for its first consumer gets only a volume that names it: the scheduler chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mooring.api.labels import LabelMatcher, compile_selector
from mooring.api.quantity import quantity_nano, quantity_value
from mooring.api.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    STORAGE_CLASS_BETA,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    storage_requested,
    volume_mode_of,
)
from mooring.api.views.meta import RawQuantity
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.well_known import PROVISIONED_BY
from mooring.client.events import EventType

AVAILABLE = "Available"
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_LOST_REFERENCE = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
_LOST_VOLUME = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
_MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
_NO_CLASS = "no persistent volumes available for this claim and no storage class is set"


def best_volume(
    claim: PersistentVolumeClaim, candidates: Iterable[PersistentVolume], *, is_delayed: bool
) -> PersistentVolume | None:
    """The best volume for a claim. Raises `LabelSelectorError`."""
    selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
    best: PersistentVolume | None = None
    best_rank: tuple[int, bool, int, str] | None = None
    for volume in candidates:
        if not _is_compatible(volume, claim):
            continue
        is_named = is_bound_to(volume, claim)
        if not is_named and (is_delayed or not _is_free_for(volume, claim, selector)):
            continue
        size_nano = quantity_nano(_capacity(volume))
        rank = (len(set(volume.spec.access_modes)), not is_named, size_nano, volume.metadata.name)
        if best_rank is None or rank < best_rank:
            best, best_rank = volume, rank
    return best


def mismatch_reason(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume that the claim requests by name does not fit. Empty if it fits."""
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


def _is_compatible(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Conditions for free volumes and for those that name the claim."""
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


@dataclass(frozen=True, slots=True)
class VolumeEvent:
    """An event about the synced object."""

    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class BindVolume:
    """Complete the binding of volume and claim."""

    volume: PersistentVolume


@dataclass(frozen=True, slots=True)
class MarkPending:
    """Set the phase Pending."""

    event: VolumeEvent | None = None


@dataclass(frozen=True, slots=True)
class MarkLost:
    """Set the phase Lost, with one event."""

    event: VolumeEvent


@dataclass(frozen=True, slots=True)
class AssignClass:
    """Set the default storage class."""

    class_name: str


@dataclass(frozen=True, slots=True)
class ProvisionVolume:
    """Provision a volume."""


@dataclass(frozen=True, slots=True)
class RejectBinding:
    """Record an event and retry."""

    event: VolumeEvent
    error: str


ClaimAction: TypeAlias = BindVolume | MarkPending | MarkLost | AssignClass | ProvisionVolume | RejectBinding


@dataclass(frozen=True, slots=True)
class SetPhase:
    """Set the phase of the volume."""

    phase: str


@dataclass(frozen=True, slots=True)
class Release:
    """The claim is gone: apply the reclaim policy."""


@dataclass(frozen=True, slots=True)
class Unbind:
    """The claim has another volume: remove the binding."""


@dataclass(frozen=True, slots=True)
class EnqueueClaim:
    """Enqueue the claim, which does not name its volume yet."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Volume and claim name each other but do not fit."""

    about_volume: VolumeEvent
    about_claim: VolumeEvent


VolumeAction: TypeAlias = SetPhase | Release | Unbind | EnqueueClaim | Mismatch


class VolumeLookup(Protocol):
    """Lookups around a claim, without I/O."""

    def volume(self, name: str) -> PersistentVolume | None: ...

    def candidates(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Volumes that may fit: free ones of the class, and those that name the claim."""
        ...

    def storage_class(self, name: str) -> StorageClass | None: ...

    def storage_classes(self) -> Sequence[StorageClass]: ...

    def unscheduled_pods(self, claim: PersistentVolumeClaim) -> Sequence[str]:
        """Names of the pods that use the claim and have no node."""
        ...


class VolumePlanError(Exception):
    """An inconsistency that only a user can resolve."""


# --- claims --------------------------------------------------------------------------------------------------


def plan_claim(claim: PersistentVolumeClaim, lookup: VolumeLookup) -> ClaimAction:
    """Plan the sync of a claim. Raises `LabelSelectorError`, `VolumePlanError`."""
    if BIND_COMPLETED in claim.metadata.annotations:
        return _plan_bound(claim, lookup)
    if claim.spec.volume_name:
        return _plan_requested_volume(claim, lookup.volume(claim.spec.volume_name))
    is_delayed = is_delayed_binding(claim, lookup)
    volume = best_volume(claim, lookup.candidates(claim), is_delayed=is_delayed)
    if volume is not None:
        return BindVolume(volume)
    return _plan_without_volume(claim, lookup, is_delayed)


def is_delayed_binding(claim: PersistentVolumeClaim, lookup: VolumeLookup) -> bool:
    """Whether the storage class waits for the first consumer. Raises `VolumePlanError`."""
    class_name = class_of_claim(claim)
    found = lookup.storage_class(class_name) if class_name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise VolumePlanError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _plan_without_volume(claim: PersistentVolumeClaim, lookup: VolumeLookup, is_delayed: bool) -> ClaimAction:
    if claim.spec.storage_class_name is None and STORAGE_CLASS_BETA not in claim.metadata.annotations:
        default = default_class(lookup.storage_classes())
        if default is not None:
            return AssignClass(default.metadata.name)
    if is_delayed and SELECTED_NODE not in claim.metadata.annotations:
        return MarkPending(_waiting_event(lookup.unscheduled_pods(claim)))
    if class_of_claim(claim):
        return ProvisionVolume()
    return MarkPending(VolumeEvent("Normal", "FailedBinding", _NO_CLASS))


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest default storage class, then by name."""
    defaults = sorted(
        (
            storage_class
            for storage_class in classes
            if any(storage_class.metadata.annotations.get(name) == "true" for name in DEFAULT_CLASS)
        ),
        key=lambda storage_class: storage_class.metadata.name,
    )
    return (
        max(defaults, key=lambda storage_class: storage_class.metadata.creation_timestamp or "") if defaults else None
    )


def _waiting_event(pod_names: Sequence[str]) -> VolumeEvent:
    if not pod_names:
        message = "waiting for first consumer to be created before binding"
        return VolumeEvent("Normal", "WaitForFirstConsumer", message)
    word = "pods" if len(pod_names) > 1 else "pod"
    return VolumeEvent("Normal", "WaitForPodScheduled", f"waiting for {word} {','.join(pod_names)} to be scheduled")


def _plan_requested_volume(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> ClaimAction:
    """The claim requests a volume by name."""
    if volume is None:
        return MarkPending()
    name = volume.metadata.name
    if volume.spec.claim_ref is None:
        why = mismatch_reason(volume, claim)
        if why:
            return MarkPending(
                VolumeEvent("Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {why}')
            )
        return BindVolume(volume)
    if is_bound_to(volume, claim):
        return BindVolume(volume)
    event = VolumeEvent("Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.')
    if BOUND_BY_CONTROLLER not in claim.metadata.annotations:
        return MarkPending(event)
    reference = volume.spec.claim_ref
    taken_by = f"{reference.namespace}/{reference.name}"
    error = f'invalid binding of claim "{claim.key}" to volume "{name}": volume already claimed by "{taken_by}"'
    return RejectBinding(event, error)


def _plan_bound(claim: PersistentVolumeClaim, lookup: VolumeLookup) -> ClaimAction:
    if not claim.spec.volume_name:
        return MarkLost(VolumeEvent("Warning", "ClaimLost", _LOST_REFERENCE))
    volume = lookup.volume(claim.spec.volume_name)
    if volume is None:
        return MarkLost(VolumeEvent("Warning", "ClaimLost", _LOST_VOLUME))
    reference = volume.spec.claim_ref
    if reference is None or reference.uid == claim.metadata.uid:
        return BindVolume(volume)
    return MarkLost(VolumeEvent("Warning", "ClaimMisbound", _MISBOUND))


# --- volumes -------------------------------------------------------------------------------------------------


def is_claimed(volume: PersistentVolume) -> bool:
    """Whether the volume names a claim with its uid."""
    return volume.spec.claim_ref is not None and volume.spec.claim_ref.uid != ""


def plan_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> VolumeAction:
    """Plan the sync of a volume. `claim` is the claim with the uid that the volume names, or None."""
    if not is_claimed(volume):
        return SetPhase("Available")
    if claim is None:
        return Release()
    name = volume.metadata.name
    if claim.spec.volume_name == name:
        return SetPhase("Bound")
    if claim.spec.volume_name == "":
        if not have_same_mode(volume, claim):
            return _mode_mismatch(volume, claim)
        return EnqueueClaim()
    is_made_for_it = PROVISIONED_BY in volume.metadata.annotations
    if is_made_for_it and volume.spec.persistent_volume_reclaim_policy == "Delete":
        return Release()
    return Unbind()


def _mode_mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Mismatch:
    about_volume = (
        f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.metadata.name}" '
        "due to incompatible volumeMode."
    )
    about_claim = (
        f'Cannot bind PersistentVolume "{volume.metadata.name}" to requested PersistentVolumeClaim '
        "due to incompatible volumeMode."
    )
    return Mismatch(
        VolumeEvent("Warning", "VolumeMismatch", about_volume), VolumeEvent("Warning", "VolumeMismatch", about_claim)
    )


# --- settled bindings ----------------------------------------------------------------------------------------


def is_settled(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> bool:
    """Whether the binding is complete, so that no periodic sync is needed."""
    if volume is None or BIND_COMPLETED not in claim.metadata.annotations:
        return False
    reference = volume.spec.claim_ref
    return (
        claim.spec.volume_name == volume.metadata.name
        and reference is not None
        and reference.uid == claim.metadata.uid
        and claim.status.phase == "Bound"
        and volume.status.phase == "Bound"
        and claim.status.access_modes == volume.spec.access_modes
    )
