"""The provisioner of `mooring up`: volumes are directories of a node. Its StorageClass `standard` is the default class.

Inputs: claims whose class names `LOCAL_PROVISIONER`, released volumes. Outputs: volumes (hostPath, with the affinity of
the selected node), their deletion, the StorageClass.

1. It acts only with a directory for volumes (`ControllerContext.local_volumes`): kube-controller-manager has no such
   controller, and on another cluster this one does nothing.
2. The class is created when the controller starts, unless the cluster has a default class or one of that name.
3. It is an external provisioner: the binder annotates the claim first, after the scheduler has selected a node.
4. The kubelet creates the directory, for all users. The controller removes it with its volume, if the policy is Delete.
   The path to remove is derived from the volume's name: another client may have written the spec.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME, STORAGE_CLASS, place_of
from mooring.api.storage import SELECTED_NODE, class_of_claim
from mooring.api.views.node import Node
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.api.well_known import HOSTNAME, LOCAL_PROVISIONER, PROVISIONED_BY, STORAGE_PROVISIONER
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.volume.plan import DEFAULT_CLASS, default_class
from mooring.controllers.volume.provisioning import PROVISIONING_FAILED, provisioned_volume, provisioned_volume_name
from mooring.kit.tasks import TaskGroup

CLASS_NAME = "standard"
"""As in kind and minikube."""

logger = logging.getLogger(__name__)


def storage_class() -> Document:
    """The default StorageClass."""
    return {
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.kind,
        "metadata": {"name": CLASS_NAME, "annotations": {DEFAULT_CLASS[0]: "true"}},
        "provisioner": LOCAL_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def unsupported(claim: PersistentVolumeClaim) -> str:
    """Why a claim cannot be provisioned; empty if it can."""
    if claim.spec.volume_mode == "Block":
        return "volumes of volumeMode Block are not supported: a volume is a directory"
    if claim.spec.selector is not None:
        return "claim Selector is not supported"
    if claim.spec.data_source is not None:
        return "a claim with a dataSource is not supported"
    return ""


class LocalProvisionerController(Controller):
    """Keys are claims and volumes."""

    name: ClassVar[str] = "local-provisioner-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._directory = context.local_volumes
        if not self._directory:
            return
        self._claims = context.informers.informer(PersistentVolumeClaim)
        self._volumes = context.informers.informer(PersistentVolume)
        self._classes = context.informers.informer(StorageClass)
        self._nodes = context.informers.informer(Node)
        self._recorder = context.recorder(LOCAL_PROVISIONER)
        self.handle_changes(self._claims, self._on_claim)
        self.handle_changes(self._volumes, self._on_volume)

    def start(self, group: TaskGroup) -> None:
        super().start(group)
        if self._directory:
            group.start_background(self._create_class(), name=f"{self.name}: StorageClass")

    async def sync(self, key: str) -> Outcome:
        try:
            if "/" in key:
                await self._provision(key)
            else:
                await self._delete(key)
        except (ClientError, OSError) as error:
            return Failed(str(error))
        return DONE

    # Provisioning

    async def _provision(self, key: str) -> None:
        claim = self._claims.lister.by_key(key)
        if claim is None or not _is_waiting(claim):
            return
        found = self._classes.lister.get("", class_of_claim(claim))
        if found is None:
            return  # deleted meanwhile; the binder reports it
        why = unsupported(claim)
        if why:
            self._recorder.event(claim, "Warning", PROVISIONING_FAILED, why)
            return
        host_name: str | None = None
        if node_name := claim.metadata.annotations.get(SELECTED_NODE):
            node = self._nodes.lister.get("", node_name)
            if node is None:
                message = f'the selected node "{node_name}" does not exist'
                self._recorder.event(claim, "Warning", PROVISIONING_FAILED, message)
                return
            host_name = node.metadata.labels.get(HOSTNAME, node_name)
        volume = provisioned_volume(found, claim, host_name, self._directory)
        with suppress(AlreadyExistsError):
            await self.client.create(PERSISTENT_VOLUME, "", volume, is_answer_wanted=False)
            message = f"Successfully provisioned volume {provisioned_volume_name(claim)}"
            self._recorder.event(claim, "Normal", "ProvisioningSucceeded", message)

    # Deleting

    async def _delete(self, name: str) -> None:
        volume = self._volumes.lister.by_key(name)
        if volume is None or not _is_to_be_deleted(volume):
            return
        path = Path(self._directory) / volume.metadata.name
        if path.is_dir() and not path.is_symlink():
            await asyncio.to_thread(shutil.rmtree, path)  # it may be large
        with suppress(NotFoundError):
            await self.client.delete(*place_of(volume))

    # StorageClass

    async def _create_class(self) -> None:
        classes = self._classes.lister.list()
        if default_class(classes) is not None or any(found.metadata.name == CLASS_NAME for found in classes):
            return
        try:
            await self.client.create(STORAGE_CLASS, "", storage_class(), is_answer_wanted=False)
        except AlreadyExistsError:
            return
        except ClientError as error:
            logger.warning("the StorageClass %s could not be created: %s", CLASS_NAME, error)

    def _on_claim(self, claim: PersistentVolumeClaim) -> None:
        if _is_waiting(claim):
            self.queue.add(claim.key)

    def _on_volume(self, volume: PersistentVolume) -> None:
        if _is_to_be_deleted(volume):
            self.queue.add(volume.key)


def _is_waiting(claim: PersistentVolumeClaim) -> bool:
    is_ours = claim.metadata.annotations.get(STORAGE_PROVISIONER) == LOCAL_PROVISIONER
    return is_ours and not claim.spec.volume_name and claim.metadata.deletion_timestamp is None


def _is_to_be_deleted(volume: PersistentVolume) -> bool:
    return (
        volume.metadata.annotations.get(PROVISIONED_BY) == LOCAL_PROVISIONER
        and volume.spec.persistent_volume_reclaim_policy == "Delete"
        and volume.status.phase in ("Released", "Failed")
        and volume.metadata.deletion_timestamp is None
    )
