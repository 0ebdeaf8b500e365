"""Provisions volumes for claims, and applies the reclaim policy to released volumes.

Inputs: claims that need a volume; released volumes. Outputs: volumes created and deleted, claims annotated for
external provisioners, events.

1. Provisioners are external. The claim is annotated with the provisioner's name.
2. No in-tree plugin provisions. The messages are those of kube-controller-manager.
3. The name of a volume contains the uid of its claim, so that it is created once.
4. An external provisioner deletes the storage of its volumes when they are Released.
5. `Recycle` fails: scrubbing is not supported, and a volume with old data must not be bound again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from mooring.api.csi_translation import DRIVERS
from mooring.api.document import Document
from mooring.api.kinds import place_of
from mooring.api.storage import BOUND_BY_CONTROLLER, class_of_claim
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.well_known import (
    HOSTNAME,
    MIGRATED_TO,
    PROVISIONED_BY,
    PV_CONTROLLER_FINALIZER,
    STORAGE_PROVISIONER,
    STORAGE_PROVISIONER_BETA,
)
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import Client
from mooring.controllers.documents import document_of
from mooring.controllers.volume.plan import VolumeEvent
from mooring.controllers.volume.writer import IN_TREE_PREFIX, VolumeWriter, annotate, claim_reference, set_migration

HOST_PATH = "kubernetes.io/host-path"
NFS = "kubernetes.io/nfs"
_DELETABLE_HOST_PATH = re.compile("/tmp/.+")
PROVISIONING_FAILED = "ProvisioningFailed"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Handled by the host path plugin: it provisions nothing, and deletes volumes below /tmp."""


@dataclass(frozen=True, slots=True)
class External:
    """Handled by an external provisioner of that name."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Not supported."""

    why: str


Provisioner: TypeAlias = BuiltIn | External | Unsupported


def provisioner_of(found: StorageClass) -> Provisioner:
    provisioner = found.provisioner
    if provisioner in DRIVERS:
        return External(DRIVERS[provisioner])
    if provisioner == HOST_PATH:
        return BuiltIn()
    if provisioner == NFS:
        return Unsupported("no provisionable volume plugin matched")
    if provisioner.startswith(IN_TREE_PREFIX):
        return Unsupported(f"no volume plugin matched name: {provisioner}")
    return External(provisioner)


def provisioning_error(claim: PersistentVolumeClaim) -> str:
    """Why the host path plugin does not create the volume."""
    if claim.spec.data_source is not None:
        return f'plugin "{HOST_PATH}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource'
    return f'Failed to create provisioner: provisioning in volume plugin "{HOST_PATH}" is disabled'


def provisioned_volume_name(claim: PersistentVolumeClaim) -> str:
    return f"pvc-{claim.metadata.uid}"


def provisioned_volume(
    found: StorageClass, claim: PersistentVolumeClaim, host_name: str | None, folder: str
) -> Document:
    """A directory as volume, on one host if the scheduler selected a node."""
    name = provisioned_volume_name(claim)
    spec: Document = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
        "accessModes": [*claim.spec.access_modes],
        "persistentVolumeReclaimPolicy": found.reclaim_policy or "Delete",
        "storageClassName": class_of_claim(claim),
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "claimRef": claim_reference(claim),
        "hostPath": {"path": f"{folder}/{name}", "type": "DirectoryOrCreate"},
    }
    if host_name is not None:
        expression = {"key": HOSTNAME, "operator": "In", "values": [host_name]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    annotations = {BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: found.provisioner}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def deleter_of(volume: PersistentVolume) -> Provisioner:
    """The provisioner that deletes the storage of a volume with policy Delete."""
    annotations = volume.metadata.annotations
    provisioner = annotations.get(PROVISIONED_BY, "")
    if provisioner and provisioner != HOST_PATH:
        if provisioner == NFS:
            return Unsupported("no deletable volume plugin matched")
        if provisioner.startswith(IN_TREE_PREFIX):
            return Unsupported(f"no volume plugin matched name: {provisioner}")
        return External(provisioner)
    if not provisioner and (MIGRATED_TO in annotations or volume.spec.csi is not None):
        return External()
    if volume.spec.host_path is not None:
        path = volume.spec.host_path.path
        if _DELETABLE_HOST_PATH.search(path):
            return BuiltIn()
        return Unsupported(f"host_path deleter only supports /tmp/.+ but received provided {path}")
    why = "no deletable volume plugin matched" if volume.spec.nfs is not None else "no volume plugin matched"
    return Unsupported(f'error getting deleter volume plugin for volume "{volume.metadata.name}": {why}')


class VolumeProvisioner:
    """Provisions and reclaims volumes. All coroutines raise `ClientError`."""

    def __init__(
        self,
        client: Client,
        writer: VolumeWriter,
        storage_class: Callable[[str], StorageClass | None],
        is_released: Callable[[PersistentVolume], bool],
    ) -> None:
        self._client = client
        self._writer = writer
        self._storage_class = storage_class
        self._is_released = is_released

    # ----------------------------------------------------------------------------------------- provisioning

    async def provision(self, claim: PersistentVolumeClaim) -> None:
        class_name = class_of_claim(claim)
        found = self._storage_class(class_name)
        if found is None:
            self._fail(claim, f'storageclass.storage.k8s.io "{class_name}" not found')
            return
        match provisioner_of(found):
            case Unsupported(why):
                self._fail(claim, why)
            case External(name):
                await self._request_external(claim, name)
            case BuiltIn():
                if claim.spec.data_source is None:
                    claim = await self._annotate(claim, found.provisioner)
                self._fail(claim, provisioning_error(claim))
            case never:
                assert_never(never)

    async def _request_external(self, claim: PersistentVolumeClaim, provisioner: str) -> None:
        try:
            claim = await self._annotate(claim, provisioner)
        except ClientError as error:
            self._fail(claim, f"Error saving claim: {error}")
            raise
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' "
            "or manually by the system administrator. If volume creation is delayed, please verify that "
            "the provisioner is running and correctly registered."
        )
        self._writer.record_event(claim, VolumeEvent("Normal", "ExternalProvisioning", message))

    async def _annotate(self, claim: PersistentVolumeClaim, provisioner: str) -> PersistentVolumeClaim:
        """Write the provisioner's name into the claim."""
        if claim.metadata.annotations.get(STORAGE_PROVISIONER) == provisioner:
            return claim
        document = document_of(claim)
        annotate(document, STORAGE_PROVISIONER_BETA, provisioner)
        annotate(document, STORAGE_PROVISIONER, provisioner)
        set_migration(document, provisioner)
        return await self._writer.write_claim(claim, document)

    def _fail(self, claim: PersistentVolumeClaim, message: str) -> None:
        self._writer.record_event(claim, VolumeEvent("Warning", PROVISIONING_FAILED, message))

    # ------------------------------------------------------------------------------------------- reclaiming

    async def reclaim(self, volume: PersistentVolume) -> None:
        """Apply the reclaim policy to a volume in phase Released or Failed."""
        if volume.metadata.annotations.get(MIGRATED_TO):
            return
        match volume.spec.persistent_volume_reclaim_policy:
            case "Retain":
                pass
            case "Delete":
                await self._delete(volume)
            case "Recycle":
                message = "No recycler plugin found for the volume!"
                await self._writer.set_volume_phase(
                    volume, "Failed", VolumeEvent("Warning", "VolumeFailedRecycle", message)
                )
            case _:
                message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
                event = VolumeEvent("Warning", "VolumeUnknownReclaimPolicy", message)
                await self._writer.set_volume_phase(volume, "Failed", event)

    async def _delete(self, volume: PersistentVolume) -> None:
        match deleter_of(volume):
            case External():
                return
            case Unsupported(why):
                await self._writer.set_volume_phase(volume, "Failed", VolumeEvent("Warning", "VolumeFailedDelete", why))
            case BuiltIn():
                if not self._is_released(volume):
                    return
                if PV_CONTROLLER_FINALIZER in volume.metadata.finalizers:
                    document = document_of(volume)
                    remaining = [
                        finalizer for finalizer in volume.metadata.finalizers if finalizer != PV_CONTROLLER_FINALIZER
                    ]
                    document["metadata"]["finalizers"] = remaining
                    volume = await self._writer.write_volume(volume, document)
                if volume.metadata.deletion_timestamp is not None:
                    return
                with contextlib.suppress(NotFoundError):
                    await self._client.delete(*place_of(volume))
            case never:
                assert_never(never)
