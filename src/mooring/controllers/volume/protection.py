"""The protection controllers keep claims, bound volumes and volume attributes classes in use from being deleted.

Inputs: claims, volumes, classes and pods, from informers. Outputs: the finalizers `pvc-protection`, `pv-protection`
and `vac-protection`, added and removed.

1. A claim is checked in the informer first. If no pod uses it, the API is read: removing the finalizer under a new
   pod would lose its data.
2. An unbound pod uses nothing. A bound pod uses its claims until it is gone, also when it has finished.
3. A claim uses the classes that its volume has, is to get, or is being changed to.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar, cast

from mooring.api.decode import decode_as
from mooring.api.kinds import POD, place_of
from mooring.api.storage import claim_named_by, is_controlled_by_pod, is_ephemeral
from mooring.api.views.meta import ObjectWithRaw
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass
from mooring.api.well_known import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER, VAC_PROTECTION_FINALIZER
from mooring.client.informer import Informer
from mooring.client.interface import Selection
from mooring.controllers.context import DONE, Controller, ControllerContext, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.pods import BY_CLAIM, add_claim_index, claim_keys, is_finished

AnyProtected = TypeVar("AnyProtected", bound=ObjectWithRaw)


class ProtectionController(Controller, Generic[AnyProtected]):
    """Adds a finalizer to the objects of one kind, and removes it from deleted objects that are not used."""

    view: ClassVar[type[ObjectWithRaw]]
    finalizer: ClassVar[str]

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._protected = cast(Informer[AnyProtected], context.informers.informer(self.view))
        self.handle_changes(self._protected, self.enqueue)

    def enqueue(self, protected: AnyProtected) -> None:
        """Enqueue an object if its finalizer has to be added, or to be removed when unused."""
        if self._needs_sync(protected):
            self.queue.add(protected.key)

    @abstractmethod
    async def is_used(self, protected: AnyProtected) -> bool:
        """Raises `ClientError`."""

    async def sync(self, key: str) -> Outcome:
        protected = self._protected.lister.by_key(key)
        if protected is None or not self._needs_sync(protected):
            return DONE
        finalizers = protected.metadata.finalizers
        if protected.metadata.deletion_timestamp is None:
            await self._write(protected, [*finalizers, self.finalizer])
        elif not await self.is_used(protected):
            await self._write(protected, [finalizer for finalizer in finalizers if finalizer != self.finalizer])
        return DONE

    def _needs_sync(self, protected: AnyProtected) -> bool:
        is_being_deleted = protected.metadata.deletion_timestamp is not None
        return (self.finalizer in protected.metadata.finalizers) == is_being_deleted

    async def _write(self, protected: AnyProtected, finalizers: list[str]) -> None:
        document = document_of(protected)
        document["metadata"]["finalizers"] = finalizers
        await self.client.update(*place_of(protected), document)


class ClaimProtectionController(ProtectionController[PersistentVolumeClaim]):
    """Keys are claims."""

    name: ClassVar[str] = "persistentvolumeclaim-protection-controller"
    view = PersistentVolumeClaim
    finalizer = PVC_PROTECTION_FINALIZER

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._pods = context.informers.informer(Pod)
        add_claim_index(self._pods)
        self.handle_changes(self._pods, self._on_pod, self._enqueue_claims_of)

    async def is_used(self, protected: PersistentVolumeClaim) -> bool:
        if any(uses(pod, protected) for pod in self._pods.lister.by_index(BY_CLAIM, protected.key)):
            return True
        listing = await self.client.list(POD, Selection(namespace=protected.metadata.namespace))
        return any(uses(decode_as(Pod, raw), protected) for raw in listing.items)

    def _on_pod(self, pod: Pod) -> None:
        if not pod.spec.node_name or is_finished(pod):
            self._enqueue_claims_of(pod)

    def _enqueue_claims_of(self, pod: Pod) -> None:
        for key in claim_keys(pod):
            claim = self._protected.lister.by_key(key)
            if claim is not None:
                self.enqueue(claim)


class VolumeProtectionController(ProtectionController[PersistentVolume]):
    """Keys are volumes."""

    name: ClassVar[str] = "persistentvolume-protection-controller"
    view = PersistentVolume
    finalizer = PV_PROTECTION_FINALIZER

    async def is_used(self, protected: PersistentVolume) -> bool:
        return protected.status.phase == "Bound"


class AttributesClassProtectionController(ProtectionController[VolumeAttributesClass]):
    """Keys are volume attributes classes."""

    name: ClassVar[str] = "volumeattributesclass-protection-controller"
    view = VolumeAttributesClass
    finalizer = VAC_PROTECTION_FINALIZER

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._claims = context.informers.informer(PersistentVolumeClaim)
        self._volumes = context.informers.informer(PersistentVolume)
        self._claims.add_handler(
            self.name,
            on_update=lambda old, new: self._enqueue_classes(classes_of_claim(old) - classes_of_claim(new)),
            on_delete=lambda gone: self._enqueue_classes(classes_of_claim(gone)),
        )
        self._volumes.add_handler(
            self.name,
            on_update=lambda old, new: self._enqueue_classes(classes_of_volume(old) - classes_of_volume(new)),
            on_delete=lambda gone: self._enqueue_classes(classes_of_volume(gone)),
        )

    async def is_used(self, protected: VolumeAttributesClass) -> bool:
        name = protected.metadata.name
        return any(name in classes_of_claim(claim) for claim in self._claims.lister) or any(
            name in classes_of_volume(volume) for volume in self._volumes.lister
        )

    def _enqueue_classes(self, names: Iterable[str]) -> None:
        for name in names:
            found = self._protected.lister.get("", name)
            if found is not None:
                self.enqueue(found)


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
