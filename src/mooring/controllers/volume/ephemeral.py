"""The ephemeral volume controller creates the claims of ephemeral volumes.

Inputs: pods, and deleted claims, from informers. Outputs: claims, each controlled by its pod.

1. A claim of the right name that another object controls is not used, and the pod waits: the claim has other data.
2. The controller deletes nothing: a claim is deleted with its owner.
3. The volumes of a pod never change, so only new pods are synced, and those whose claim was deleted.
"""

from __future__ import annotations

from typing import ClassVar

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM
from mooring.api.storage import claim_named_by, is_controlled_by_pod, is_ephemeral, not_controlled_text
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim, Volume
from mooring.client.errors import ClientError, NotFoundError
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.documents import owner_reference, read_document
from mooring.controllers.pods import BY_CLAIM, add_claim_index


class EphemeralVolumeError(Exception):
    """A claim cannot be created for a pod."""


class EphemeralVolumeController(Controller):
    """Keys are pods with ephemeral volumes."""

    name: ClassVar[str] = "ephemeral-volume-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_ephemeralvolume_syncs
        self._recorder = context.recorder("ephemeral_volume")
        self._pods = context.informers.informer(Pod)
        self._claims = context.informers.informer(PersistentVolumeClaim)
        add_claim_index(self._pods)
        self._pods.add_handler(self.name, on_add=self._on_pod)
        self._claims.add_handler(self.name, on_delete=self._on_claim_deleted)

    async def sync(self, key: str) -> Outcome:
        pod = self._pods.lister.by_key(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return DONE
        for volume in pod.spec.volumes:
            try:
                await self._ensure_claim(pod, volume)
            except NotFoundError:
                return DONE  # the pod is gone
            except (ClientError, EphemeralVolumeError) as error:
                message = f"ephemeral volume {volume.name}: {error}"
                self._recorder.event(pod, "Warning", "FailedBinding", message)
                return Failed(f"pod {key}, {message}")
        return DONE

    async def _ensure_claim(self, pod: Pod, volume: Volume) -> None:
        """Create the claim of an ephemeral volume. Raises `ClientError`, `EphemeralVolumeError`."""
        namespace, pod_name = pod.metadata.namespace, pod.metadata.name
        name = claim_named_by(volume, pod_name)
        if name is None or not is_ephemeral(volume):
            return
        claim = self._claims.lister.get(namespace, name)
        if claim is None:
            document = await read_document(self.client, pod)
            if document["metadata"]["uid"] != pod.metadata.uid:
                return  # the pod is gone; the new pod of that name is synced after its own event
            new_claim = claim_of(pod, name, _volume_in(document, volume.name))
            try:
                await self.client.create(PERSISTENT_VOLUME_CLAIM, namespace, new_claim, is_answer_wanted=False)
            except ClientError as error:
                raise EphemeralVolumeError(f"create PVC {name}: {error}") from error
        elif not is_controlled_by_pod(claim, namespace, pod_name, pod.metadata.uid):
            raise EphemeralVolumeError(not_controlled_text(claim, namespace, pod_name))

    def _on_pod(self, pod: Pod) -> None:
        if pod.spec.volumes and pod.metadata.deletion_timestamp is None and any(map(is_ephemeral, pod.spec.volumes)):
            self.queue.add(pod.key)

    def _on_claim_deleted(self, claim: PersistentVolumeClaim) -> None:
        for pod in self._pods.lister.by_index(BY_CLAIM, claim.key):
            self._on_pod(pod)


def claim_of(pod: Pod, name: str, volume: Document) -> Document:
    """The claim of an ephemeral volume, from its template."""
    template: Document = volume["ephemeral"].get("volumeClaimTemplate") or {}
    template_metadata: Document = template.get("metadata") or {}
    metadata: Document = {"name": name, "ownerReferences": [owner_reference(pod)]}
    metadata |= {field: template_metadata[field] for field in ("annotations", "labels") if template_metadata.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def _volume_in(pod: Document, name: str) -> Document:
    volumes: list[Document] = pod["spec"]["volumes"]
    return next(volume for volume in volumes if volume["name"] == name)
