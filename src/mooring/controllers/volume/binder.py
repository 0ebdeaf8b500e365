"""The PersistentVolume binder binds claims to volumes, and releases volumes.

Inputs: claims, volumes, storage classes and pods, from informers. Outputs: bindings, phases, requests to
provisioners, reclaimed volumes, events.

1. One worker syncs claims and volumes, and each sync sees the writes of the last one (`OwnWritesCache`), so that no
   volume is bound twice.
2. Keys with a namespace are claims, those without are volumes.
3. A new volume does not enqueue pending claims. Everything that is not settled is synced every
   `--pvclaimbinder-sync-period`. kube-controller-manager does the same, and the counts of its events depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, assert_never

from mooring.api.decode import decode_as
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM
from mooring.api.storage import class_of_claim, class_of_volume
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.client.errors import ClientError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.pods import BY_CLAIM, add_claim_index, is_finished
from mooring.controllers.volume.plan import (
    AssignClass,
    BindVolume,
    EnqueueClaim,
    MarkLost,
    MarkPending,
    Mismatch,
    ProvisionVolume,
    RejectBinding,
    Release,
    SetPhase,
    Unbind,
    VolumePlanError,
    is_claimed,
    is_settled,
    plan_claim,
    plan_volume,
)
from mooring.controllers.volume.provisioning import VolumeProvisioner
from mooring.controllers.volume.writer import (
    CapacityError,
    OwnWritesCache,
    VolumeWriter,
    migrated_claim,
    migrated_volume,
)
from mooring.kit.tasks import TaskGroup

OF_CLASS = "free volumes of a class"
OF_CLAIM = "volumes that name a claim"

RELEASED_PHASES = ("Released", "Failed")


class VolumeBinderController(Controller):
    """Keys are claims and volumes."""

    name: ClassVar[str] = "persistentvolume-binder-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        informers = context.informers
        self._claims = informers.informer(PersistentVolumeClaim)
        self._volumes = informers.informer(PersistentVolume)
        self._classes = informers.informer(StorageClass)
        self._pods = informers.informer(Pod)
        self._claim_cache = OwnWritesCache(self.name, self._claims)
        self._volume_cache = OwnWritesCache(self.name, self._volumes)
        self._volumes.add_index(OF_CLASS, _free_in_class)
        self._volumes.add_index(OF_CLAIM, _claim_named)
        add_claim_index(self._pods)
        recorder = context.recorder("persistentvolume-controller")
        self._writer = VolumeWriter(context.client, recorder, self._volume_cache, self._claim_cache)
        self._provisioner = VolumeProvisioner(context.client, self._writer, self.storage_class, self._is_released)
        self.handle_changes(self._claims, lambda claim: self.queue.add(claim.key), self._on_claim_deleted)
        self.handle_changes(self._volumes, lambda volume: self.queue.add(volume.key), self._on_volume_deleted)

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        group.start_background(self._resync_periodically(), name=f"{self.name}: resync")

    # ------------------------------------------------------------------------------------------------- sync

    async def sync(self, key: str) -> Outcome:
        try:
            if "/" in key:
                await self._sync_claim(key)
            else:
                await self._sync_volume(key)
        except (ClientError, LabelSelectorError, VolumePlanError, CapacityError) as error:
            return Failed(str(error))
        return DONE

    async def _sync_claim(self, key: str) -> None:
        claim = self._claim_cache.get(key)
        if claim is None:
            return
        document = migrated_claim(claim)
        if document is not None:
            claim = await self._writer.write_claim(claim, document)
        match plan_claim(claim, self):
            case BindVolume(volume):
                await self._writer.bind(volume, claim)
            case MarkPending(event):
                if event is not None:
                    self._writer.record_event(claim, event)
                await self._writer.set_claim_phase(claim, "Pending")
            case MarkLost(event):
                if claim.status.phase != "Lost":
                    claim = await self._writer.set_claim_phase(claim, "Lost")
                    self._writer.record_event(claim, event)
            case AssignClass(class_name):
                document = document_of(claim)
                document["spec"]["storageClassName"] = class_name
                await self._writer.write_claim(claim, document)
            case ProvisionVolume():
                if self.context.settings.enable_dynamic_provisioning:
                    await self._provisioner.provision(claim)
            case RejectBinding(event, error):
                self._writer.record_event(claim, event)
                raise VolumePlanError(error)
            case never:
                assert_never(never)

    async def _sync_volume(self, key: str) -> None:
        volume = self._volume_cache.get(key)
        if volume is None:
            return
        document = migrated_volume(volume)
        if document is not None:
            volume = await self._writer.write_volume(volume, document)
        claim = await self._claim_of(volume)
        match plan_volume(volume, claim):
            case SetPhase(phase):
                await self._writer.set_volume_phase(volume, phase)
            case Release():
                if volume.status.phase not in RELEASED_PHASES:
                    volume = await self._writer.set_volume_phase(volume, "Released")
                await self._provisioner.reclaim(volume)
            case Unbind():
                await self._writer.unbind(volume)
            case EnqueueClaim():
                assert claim is not None, f"volume {key} names a claim that it does not have"
                self.queue.add(claim.key)
            case Mismatch(about_volume, about_claim):
                assert claim is not None, f"volume {key} does not fit a claim that it does not have"
                self._writer.record_event(volume, about_volume)
                self._writer.record_event(claim, about_claim)
            case never:
                assert_never(never)

    async def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that the volume names, by uid. The API is read before the claim counts as deleted."""
        reference = volume.spec.claim_ref
        if reference is None or not is_claimed(volume):
            return None
        claim = self._claim_cache.get(f"{reference.namespace}/{reference.name}")
        if claim is not None and claim.metadata.uid == reference.uid:
            return claim
        if claim is None and volume.status.phase in RELEASED_PHASES:
            return None
        try:
            answer = await self.client.get(PERSISTENT_VOLUME_CLAIM, reference.namespace, reference.name)
        except NotFoundError:
            return None
        claim = decode_as(PersistentVolumeClaim, answer)
        return claim if claim.metadata.uid == reference.uid else None

    # --------------------------------------------------------------------------------- lookups for the plan

    def volume(self, name: str) -> PersistentVolume | None:
        return self._volume_cache.get(name)

    def candidates(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        lister = self._volumes.lister
        free = lister.by_index(OF_CLASS, class_of_claim(claim))
        naming = lister.by_index(OF_CLAIM, claim.key)
        return [self._volume_cache.of(volume) for volume in (*naming, *free)]

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.lister.get("", name)

    def storage_classes(self) -> Sequence[StorageClass]:
        return self._classes.lister.list()

    def unscheduled_pods(self, claim: PersistentVolumeClaim) -> Sequence[str]:
        pods = self._pods.lister.by_index(BY_CLAIM, claim.key)
        return [pod.metadata.name for pod in pods if not pod.spec.node_name and not is_finished(pod)]

    def _is_released(self, volume: PersistentVolume) -> bool:
        """A last check before the data on the volume is deleted."""
        reference = volume.spec.claim_ref
        if reference is None or not is_claimed(volume):
            return False
        claim = self._claim_cache.get(f"{reference.namespace}/{reference.name}")
        if claim is None or claim.metadata.uid != reference.uid:
            return True
        return claim.spec.volume_name not in ("", volume.metadata.name)

    # ----------------------------------------------------------------------------------------------- events

    def _on_claim_deleted(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name:
            self.queue.add(claim.spec.volume_name)

    def _on_volume_deleted(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is not None:
            self.queue.add(f"{reference.namespace}/{reference.name}")

    async def _resync_periodically(self) -> None:
        while True:
            await self.clock.wait(self.context.settings.pvclaimbinder_sync_period_s)
            for claim in self._claims.lister.list():
                volume = self._volumes.lister.get("", claim.spec.volume_name)
                if not is_settled(claim, volume):
                    self.queue.add(claim.key)
            for volume in self._volumes.lister.list():
                if not self._is_volume_settled(volume):
                    self.queue.add(volume.key)

    def _is_volume_settled(self, volume: PersistentVolume) -> bool:
        reference = volume.spec.claim_ref
        if reference is None or not is_claimed(volume):
            return volume.status.phase == "Available"
        claim = self._claims.lister.get(reference.namespace, reference.name)
        if claim is None:
            policy = volume.spec.persistent_volume_reclaim_policy
            return policy == "Retain" and volume.status.phase in RELEASED_PHASES
        return is_settled(claim, volume)


def _free_in_class(volume: PersistentVolume) -> Iterable[str]:
    return (class_of_volume(volume),) if volume.spec.claim_ref is None else ()


def _claim_named(volume: PersistentVolume) -> Iterable[str]:
    reference = volume.spec.claim_ref
    return (f"{reference.namespace}/{reference.name}",) if reference is not None else ()
