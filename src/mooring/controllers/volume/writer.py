"""Writes volumes and claims for the binder.

Inputs: a volume, a claim, and their desired state. Outputs: writes that change something; the objects as the API
returned them.

1. Each change is one write, in this order: volume, its status, claim, its status. An interrupted binding is
   completed by the next sync.
2. The annotation `bound-by-controller` marks a binding that a controller made. Only such a binding is removed
   again.
3. A write carries the resourceVersion of the object, so that a stale one fails with a conflict.
4. `OwnWritesCache` returns the newer of the informer's object and the last write. A lister alone would show a volume
   as free that was just bound. Versions are compared as numbers, which Kubernetes guarantees since v1.35. An object
   that the informer does not have is not returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from mooring.api.csi_translation import DRIVERS
from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.errors import QuantityError
from mooring.api.kinds import place_of
from mooring.api.quantity import parse_quantity, quantity_nano
from mooring.api.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, is_bound_to
from mooring.api.views.meta import RawQuantity
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.api.well_known import (
    EXTERNAL_PROVISIONER_FINALIZER,
    MIGRATED_TO,
    PRE_RESIZE_CAPACITY,
    PROVISIONED_BY,
    PV_CONTROLLER_FINALIZER,
    STORAGE_PROVISIONER,
    STORAGE_PROVISIONER_BETA,
)
from mooring.client.events import EventRecorder
from mooring.client.informer import AnyObject, Informer
from mooring.client.interface import Client
from mooring.controllers.documents import document_of
from mooring.controllers.volume.plan import VolumeEvent

IN_TREE_PREFIX = "kubernetes.io/"


class CapacityError(Exception):
    """A volume has no capacity."""


def claim_reference(claim: PersistentVolumeClaim) -> Document:
    """The claimRef of a volume."""
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
    """The volume with a claimRef. None if it is complete."""
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
    """The volume without its claimRef if a controller set it. Otherwise only without the uid."""
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
    """The claim with a volume name. None if it is complete."""
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


def claim_in_phase(claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None) -> Document | None:
    """The claim in a phase, with the capacity and access modes of its volume. Raises `CapacityError`."""
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
            _set_capacity(status, claim, volume)
        attributes_class = volume.spec.volume_attributes_class_name
        is_new = claim.status.phase == "Pending" and phase == "Bound"
        if is_new and claim.status.current_volume_attributes_class_name != attributes_class:
            status["currentVolumeAttributesClassName"] = attributes_class
    status["phase"] = phase
    return None if status == before else document


def _set_capacity(status: Document, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
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


# --- migration to CSI ----------------------------------------------------------------------------------------


def migrated_claim(claim: PersistentVolumeClaim) -> Document | None:
    """The claim with the CSI driver that replaced its provisioner. None if it is unchanged."""
    annotations = claim.metadata.annotations
    provisioner = annotations.get(STORAGE_PROVISIONER, annotations.get(STORAGE_PROVISIONER_BETA))
    if provisioner is None or not _is_migration_new(provisioner, annotations.get(MIGRATED_TO, "")):
        return None
    document = document_of(claim)
    set_migration(document, provisioner)
    return document


def migrated_volume(volume: PersistentVolume) -> Document | None:
    """The volume with its CSI driver and the finalizers of its policy. None if it is unchanged."""
    provisioner = volume.metadata.annotations.get(PROVISIONED_BY)
    if provisioner is None:
        return None
    finalizers = _desired_finalizers(volume, provisioner)
    is_new = _is_migration_new(provisioner, volume.metadata.annotations.get(MIGRATED_TO, ""))
    if not is_new and tuple(finalizers) == volume.metadata.finalizers:
        return None
    document = document_of(volume)
    if is_new:
        set_migration(document, provisioner)
    document["metadata"]["finalizers"] = [*finalizers]
    return document


def set_migration(document: Document, provisioner: str) -> None:
    """Add or remove the annotation of the CSI driver that replaced a provisioner."""
    driver = DRIVERS.get(provisioner)
    if driver is not None:
        annotate(document, MIGRATED_TO, driver)
    else:
        (document["metadata"].get("annotations") or {}).pop(MIGRATED_TO, None)


def _is_migration_new(provisioner: str, migrated_to: str) -> bool:
    return DRIVERS.get(provisioner, "") != migrated_to


def _desired_finalizers(volume: PersistentVolume, provisioner: str) -> Sequence[str]:
    finalizers = [*volume.metadata.finalizers]
    if provisioner in DRIVERS:
        return [finalizer for finalizer in finalizers if finalizer != PV_CONTROLLER_FINALIZER]
    if not provisioner.startswith(IN_TREE_PREFIX):
        return finalizers
    policy = volume.spec.persistent_volume_reclaim_policy
    if policy == "Delete" and PV_CONTROLLER_FINALIZER not in finalizers:
        finalizers.append(PV_CONTROLLER_FINALIZER)
    elif policy in ("Retain", "Recycle"):
        finalizers = [finalizer for finalizer in finalizers if finalizer != PV_CONTROLLER_FINALIZER]
    return [finalizer for finalizer in finalizers if finalizer != EXTERNAL_PROVISIONER_FINALIZER]


class OwnWritesCache(Generic[AnyObject]):
    """An informer's objects, with the controller's own newer writes. Create it before the controller's own handlers."""

    def __init__(self, name: str, informer: Informer[AnyObject]) -> None:
        self._lister = informer.lister
        self._written: dict[str, AnyObject] = {}
        informer.add_handler(f"{name}, its own writes", on_update=self._on_updated, on_delete=self._on_deleted)

    def get(self, key: str) -> AnyObject | None:
        """An object by key."""
        written = self._written.get(key)
        return written if written is not None else self._lister.by_key(key)

    def of(self, seen: AnyObject) -> AnyObject:
        """An object of the lister, or its newer written version."""
        return self._written.get(seen.key, seen)

    def assume(self, written: AnyObject) -> None:
        """Record the answer to a write."""
        key = written.key
        seen = self._lister.by_key(key)
        if seen is None or seen.metadata.uid != written.metadata.uid:
            return
        if _version(written) > _version(seen):
            self._written[key] = written

    def _on_updated(self, old: AnyObject, new: AnyObject) -> None:
        written = self._written.get(new.key)
        if written is not None and _version(new) >= _version(written):
            del self._written[new.key]

    def _on_deleted(self, gone: AnyObject) -> None:
        self._written.pop(gone.key, None)


def _version(view: AnyObject) -> int:
    return int(view.metadata.resource_version)


class VolumeWriter:
    """Writes volumes and claims. All coroutines raise `ClientError`."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        volumes: OwnWritesCache[PersistentVolume],
        claims: OwnWritesCache[PersistentVolumeClaim],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._volumes = volumes
        self._claims = claims

    def record_event(self, about: PersistentVolume | PersistentVolumeClaim, event: VolumeEvent) -> None:
        self._recorder.event(about, event.type, event.reason, event.message)

    async def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Write the missing parts of a binding."""
        document = bound_volume(volume, claim)
        if document is not None:
            volume = await self.write_volume(volume, document)
        volume = await self.set_volume_phase(volume, "Bound")
        document = bound_claim(claim, volume)
        if document is not None:
            claim = await self.write_claim(claim, document)
        await self.set_claim_phase(claim, "Bound", volume)

    async def unbind(self, volume: PersistentVolume) -> None:
        volume = await self.write_volume(volume, unbound_volume(volume))
        await self.set_volume_phase(volume, "Available")

    async def set_claim_phase(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None
    ) -> PersistentVolumeClaim:
        """Set the phase of a claim. Raises `CapacityError`, too."""
        document = claim_in_phase(claim, phase, volume)
        return claim if document is None else await self.write_claim(claim, document, "status")

    async def set_volume_phase(
        self, volume: PersistentVolume, phase: str, event: VolumeEvent | None = None
    ) -> PersistentVolume:
        """Set the phase of a volume. The event is recorded only if the phase changes."""
        document = volume_in_phase(volume, phase, event.message if event is not None else "")
        if document is None:
            return volume
        volume = await self.write_volume(volume, document, "status")
        if event is not None:
            self.record_event(volume, event)
        return volume

    async def write_volume(
        self, volume: PersistentVolume, document: Document, subresource: str = ""
    ) -> PersistentVolume:
        answer = await self._client.update(*place_of(volume), document, subresource=subresource)
        written = decode_as(PersistentVolume, answer)
        self._volumes.assume(written)
        return written

    async def write_claim(
        self, claim: PersistentVolumeClaim, document: Document, subresource: str = ""
    ) -> PersistentVolumeClaim:
        answer = await self._client.update(*place_of(claim), document, subresource=subresource)
        written = decode_as(PersistentVolumeClaim, answer)
        self._claims.assume(written)
        return written
