"""The protection controllers keep claims, bound volumes and volume attributes classes in use from being deleted.

Inputs: claims, volumes, classes and pods, from informers. Outputs: the finalizers `pvc-protection`, `pv-protection`
and `vac-protection`, added and removed.

1. A claim is checked in the informer first. If no pod uses it, the API is read: removing the finalizer under a new
   pod would lose its data.
2. An unbound pod uses nothing. A bound pod uses its claims until it is gone, also when it has finished.
3. A claim uses the classes that its volume has, is to get, or is being changed to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, VOLUME_ATTRIBUTES_CLASS, Kind
from mooring.api.storage import claim_named_by, is_controlled_by_pod, is_ephemeral
from mooring.api.views.meta import ObjectWithRaw
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass
from mooring.api.well_known import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER, VAC_PROTECTION_FINALIZER
from mooring.client.interface import Client, Selection
from mooring.controllers.context import DONE, Controller, ControllerContext, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.pods import BY_CLAIM, add_claim_index, claim_keys, is_finished


class ClaimProtectionController(Controller):
    """Keys are claims."""

    name: ClassVar[str] = "persistentvolumeclaim-protection-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._claims = context.informers.informer(PersistentVolumeClaim)
        self._pods = context.informers.informer(Pod)
        add_claim_index(self._pods)
        self.handle_changes(self._claims, self._on_claim)
        self.handle_changes(self._pods, self._on_pod, self._add_claims_of)

    async def sync(self, key: str) -> Outcome:
        claim = self._claims.lister.by_key(key)
        if claim is None or not needs_sync(claim, PVC_PROTECTION_FINALIZER):
            return DONE
        if claim.metadata.deletion_timestamp is None:
            await add_finalizer(self.client, PERSISTENT_VOLUME_CLAIM, claim, PVC_PROTECTION_FINALIZER)
        elif not await self._is_used(claim):
            await remove_finalizer(self.client, PERSISTENT_VOLUME_CLAIM, claim, PVC_PROTECTION_FINALIZER)
        return DONE

    async def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        """Raises `ClientError`."""
        if any(uses(pod, claim) for pod in self._pods.lister.by_index(BY_CLAIM, claim.key)):
            return True
        listing = await self.client.list(POD, Selection(namespace=claim.metadata.namespace))
        return any(uses(decode_as(Pod, raw), claim) for raw in listing.items)

    def _on_claim(self, claim: PersistentVolumeClaim) -> None:
        if needs_sync(claim, PVC_PROTECTION_FINALIZER):
            self.queue.add(claim.key)

    def _on_pod(self, pod: Pod) -> None:
        if not pod.spec.node_name or is_finished(pod):
            self._add_claims_of(pod)

    def _add_claims_of(self, pod: Pod) -> None:
        for key in claim_keys(pod):
            claim = self._claims.lister.by_key(key)
            if claim is not None and needs_sync(claim, PVC_PROTECTION_FINALIZER):
                self.queue.add(key)


class VolumeProtectionController(Controller):
    """Keys are volumes."""

    name: ClassVar[str] = "persistentvolume-protection-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._volumes = context.informers.informer(PersistentVolume)
        self.handle_changes(self._volumes, self._on_volume)

    async def sync(self, key: str) -> Outcome:
        volume = self._volumes.lister.by_key(key)
        if volume is None or not needs_sync(volume, PV_PROTECTION_FINALIZER):
            return DONE
        if volume.metadata.deletion_timestamp is None:
            await add_finalizer(self.client, PERSISTENT_VOLUME, volume, PV_PROTECTION_FINALIZER)
        elif volume.status.phase != "Bound":
            await remove_finalizer(self.client, PERSISTENT_VOLUME, volume, PV_PROTECTION_FINALIZER)
        return DONE

    def _on_volume(self, volume: PersistentVolume) -> None:
        if needs_sync(volume, PV_PROTECTION_FINALIZER):
            self.queue.add(volume.key)


class AttributesClassProtectionController(Controller):
    """Keys are volume attributes classes."""

    name: ClassVar[str] = "volumeattributesclass-protection-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._classes = context.informers.informer(VolumeAttributesClass)
        self._claims = context.informers.informer(PersistentVolumeClaim)
        self._volumes = context.informers.informer(PersistentVolume)
        self.handle_changes(self._classes, self._on_class)
        self._claims.add_handler(
            self.name,
            on_update=lambda old, new: self._release(classes_of_claim(old) - classes_of_claim(new)),
            on_delete=lambda gone: self._release(classes_of_claim(gone)),
        )
        self._volumes.add_handler(
            self.name,
            on_update=lambda old, new: self._release(classes_of_volume(old) - classes_of_volume(new)),
            on_delete=lambda gone: self._release(classes_of_volume(gone)),
        )

    async def sync(self, key: str) -> Outcome:
        found = self._classes.lister.by_key(key)
        if found is None or not needs_sync(found, VAC_PROTECTION_FINALIZER):
            return DONE
        if found.metadata.deletion_timestamp is None:
            await add_finalizer(self.client, VOLUME_ATTRIBUTES_CLASS, found, VAC_PROTECTION_FINALIZER)
        elif not self._is_used(found.metadata.name):
            await remove_finalizer(self.client, VOLUME_ATTRIBUTES_CLASS, found, VAC_PROTECTION_FINALIZER)
        return DONE

    def _is_used(self, name: str) -> bool:
        return any(name in classes_of_claim(claim) for claim in self._claims.lister) or any(
            name in classes_of_volume(volume) for volume in self._volumes.lister
        )

    def _on_class(self, found: VolumeAttributesClass) -> None:
        if needs_sync(found, VAC_PROTECTION_FINALIZER):
            self.queue.add(found.key)

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            found = self._classes.lister.get("", name)
            if found is not None:
                self._on_class(found)


def classes_of_claim(claim: PersistentVolumeClaim) -> frozenset[str]:
    modified = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        modified.target_volume_attributes_class_name if modified is not None else None,
    )
    return frozenset(name for name in names if name)


def classes_of_volume(volume: PersistentVolume) -> frozenset[str]:
    name = volume.spec.volume_attributes_class_name
    return frozenset({name} if name else ())


def needs_sync(either: ObjectWithRaw, finalizer: str) -> bool:
    """Whether the finalizer has to be added, or to be removed when unused."""
    is_being_deleted = either.metadata.deletion_timestamp is not None
    return (finalizer in either.metadata.finalizers) == is_being_deleted


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a bound pod needs the claim. Only its own pod uses the claim of an ephemeral volume."""
    if not pod.spec.node_name:
        return False
    metadata = pod.metadata
    is_shut_down = metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0
    for volume in pod.spec.volumes:
        if claim_named_by(volume, metadata.name) != claim.metadata.name:
            continue
        if not is_ephemeral(volume):
            return True
        if not is_shut_down and is_controlled_by_pod(claim, metadata.namespace, metadata.name, metadata.uid):
            return True
    return False


async def add_finalizer(client: Client, kind: Kind, either: ObjectWithRaw, finalizer: str) -> None:
    """Add a finalizer. Raises `ClientError`."""
    await _write(client, kind, either, [*either.metadata.finalizers, finalizer])


async def remove_finalizer(client: Client, kind: Kind, either: ObjectWithRaw, finalizer: str) -> None:
    """Remove a finalizer. Raises `ClientError`."""
    await _write(client, kind, either, [each for each in either.metadata.finalizers if each != finalizer])


async def _write(client: Client, kind: Kind, either: ObjectWithRaw, finalizers: list[str]) -> None:
    document = document_of(either)
    document["metadata"]["finalizers"] = finalizers
    await client.update(kind, either.metadata.namespace, either.metadata.name, document)
