"""What binding changes in a volume and in its claim.

Comes in   the two as views, and as whole documents
Goes out   the documents changed; None where nothing has to be

 1. Each change is one write, in this order: volume, its status, claim, its status. Whoever is interrupted goes on where
    he was.
 2. `bound-by-controller` tells whose idea a binding was: only what a controller bound may be taken apart again.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.csi_translation import DRIVERS
from mooring.api.document import Document
from mooring.api.errors import QuantityError
from mooring.api.quantity import parse_quantity, quantity_nano
from mooring.api.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, is_bound_to
from mooring.api.views.base import RawQuantity
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.controllers.documents import document_of
from mooring.controllers.volume.plan import PROVISIONED_BY

MIGRATED_TO = "pv.kubernetes.io/migrated-to"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
STORAGE_PROVISIONER_BETA = "volume.beta.kubernetes.io/storage-provisioner"
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"
IN_TREE_FINALIZER = "kubernetes.io/pv-controller"
EXTERNAL_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
IN_TREE_PREFIX = "kubernetes.io/"


class CapacityError(Exception):
    """A volume does not say how large it is."""


def claim_reference(claim: PersistentVolumeClaim) -> Document:
    """How a volume names its claim."""
    metadata = claim.metadata
    return {
        "apiVersion": claim.api_version,
        "kind": claim.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Document | None:
    """The volume, naming the claim."""
    is_bound = is_bound_to(volume, claim)
    is_named_with_uid = is_bound and volume.spec.claim_ref is not None and volume.spec.claim_ref.uid != ""
    needs_mark = not is_bound and BOUND_BY_CONTROLLER not in volume.metadata.annotations
    if is_named_with_uid and not needs_mark:
        return None
    document = document_of(volume)
    if not is_named_with_uid:
        document["spec"]["claimRef"] = claim_reference(claim)
    if needs_mark:
        annotate(document, BOUND_BY_CONTROLLER, "yes")
    return document


def unbound_volume(volume: PersistentVolume) -> Document:
    """The volume without its claim, if a controller bound it; otherwise it goes on waiting for any of that name."""
    document = document_of(volume)
    if BOUND_BY_CONTROLLER in volume.metadata.annotations:
        document["spec"].pop("claimRef", None)
        annotations = document["metadata"]["annotations"]
        del annotations[BOUND_BY_CONTROLLER]
        if not annotations:
            del document["metadata"]["annotations"]
    else:
        document["spec"]["claimRef"].pop("uid", None)
    return document


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Document | None:
    """The claim, naming the volume."""
    is_named = claim.spec.volume_name == volume.metadata.name
    if is_named and BIND_COMPLETED in claim.metadata.annotations:
        return None
    document = document_of(claim)
    if not is_named:
        document["spec"]["volumeName"] = volume.metadata.name
        if BOUND_BY_CONTROLLER not in claim.metadata.annotations:
            annotate(document, BOUND_BY_CONTROLLER, "yes")
    if BIND_COMPLETED not in claim.metadata.annotations:
        annotate(document, BIND_COMPLETED, "yes")
    return document


def claim_in_phase(claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None) -> Document | None:
    """The claim in that phase, with what its volume (if it has one) lends it. Raises `CapacityError`."""
    document = document_of(claim)
    status: Document = document.setdefault("status", {})
    before = dict(status)
    if volume is None:
        for field in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
            status.pop(field, None)
    else:
        if claim.status.access_modes != volume.spec.access_modes:
            status["accessModes"] = [*volume.spec.access_modes]
        if claim.status.phase != phase:
            _lend_capacity(status, claim, volume)
        attributes_class = volume.spec.volume_attributes_class_name
        is_new = claim.status.phase == "Pending" and phase == "Bound"
        if is_new and claim.status.current_volume_attributes_class_name != attributes_class:
            status["currentVolumeAttributesClassName"] = attributes_class
    status["phase"] = phase
    return None if status == before else document


def _lend_capacity(status: Document, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
    capacity = volume.spec.capacity.get("storage")
    if capacity is None:
        raise CapacityError(f'PersistentVolume "{volume.metadata.name}" is without a storage capacity')
    before_resize = volume.metadata.annotations.get(PRE_RESIZE_CAPACITY)
    if before_resize is not None:
        status["capacity"] = {**status.get("capacity", {}), "storage": _quantity_or(before_resize, capacity)}
        return
    known = claim.status.capacity.get("storage")
    if known is None or quantity_nano(known) != quantity_nano(capacity):
        status["capacity"] = dict(volume.spec.capacity)


def _quantity_or(text: str, fallback: RawQuantity) -> RawQuantity:
    try:
        return str(parse_quantity(text))
    except QuantityError:
        return fallback


def volume_in_phase(volume: PersistentVolume, phase: str, message: str = "") -> Document | None:
    if volume.status.phase == phase:
        return None
    document = document_of(volume)
    status: Document = document.setdefault("status", {})
    status["phase"] = phase
    status.pop("message", None)
    if message:
        status["message"] = message
    return document


def annotate(document: Document, name: str, value: str) -> None:
    metadata: Document = document["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), name: value}


# --- volumes whose in-tree plugin became a driver ---------------------------------------------------------------


def migrated_claim(claim: PersistentVolumeClaim) -> Document | None:
    """The claim with the name of the driver that makes its volume now."""
    annotations = claim.metadata.annotations
    provisioner = annotations.get(STORAGE_PROVISIONER, annotations.get(STORAGE_PROVISIONER_BETA))
    if provisioner is None or not _is_migration_new(provisioner, annotations.get(MIGRATED_TO, "")):
        return None
    document = document_of(claim)
    set_migration(document, provisioner)
    return document


def migrated_volume(volume: PersistentVolume) -> Document | None:
    """The volume with the name of its driver, and with the finalizers that its policy wants."""
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY)
    if provisioner is None:
        return None
    finalizers = _wanted_finalizers(volume, provisioner)
    is_new = _is_migration_new(provisioner, volume.metadata.annotations.get(MIGRATED_TO, ""))
    if not is_new and tuple(finalizers) == volume.metadata.finalizers:
        return None
    document = document_of(volume)
    if is_new:
        set_migration(document, provisioner)
    document["metadata"]["finalizers"] = [*finalizers]
    return document


def set_migration(document: Document, provisioner: str) -> None:
    """Write down, or strike out, which driver superseded the provisioner."""
    driver = DRIVERS.get(provisioner)
    if driver is not None:
        annotate(document, MIGRATED_TO, driver)
    else:
        (document["metadata"].get("annotations") or {}).pop(MIGRATED_TO, None)


def _is_migration_new(provisioner: str, migrated_to: str) -> bool:
    return DRIVERS.get(provisioner, "") != migrated_to


def _wanted_finalizers(volume: PersistentVolume, provisioner: str) -> Sequence[str]:
    finalizers = [*volume.metadata.finalizers]
    if provisioner in DRIVERS:
        return [each for each in finalizers if each != IN_TREE_FINALIZER]
    if not provisioner.startswith(IN_TREE_PREFIX):
        return finalizers
    policy = volume.spec.persistent_volume_reclaim_policy
    if policy == "Delete" and IN_TREE_FINALIZER not in finalizers:
        finalizers.append(IN_TREE_FINALIZER)
    elif policy in ("Retain", "Recycle"):
        finalizers = [each for each in finalizers if each != IN_TREE_FINALIZER]
    return [each for each in finalizers if each != EXTERNAL_FINALIZER]
