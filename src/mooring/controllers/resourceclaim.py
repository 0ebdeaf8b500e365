"""The ResourceClaim controller creates claims from templates, and releases what is not used any more.

Inputs: pods, claims and templates, from informers. Outputs: claims created and deleted; the names of claims in
pods; consumers and allocations removed from claims.

1. A key has a prefix: `pod:default/web`, `claim:default/web-gpu-x7x2p`.
2. Created claims that the informer does not show are remembered. Otherwise a second one would be created if the
   event of the pod's status arrives first.
3. A finished pod gets no claim. (kube-controller-manager would create another one, if it did not remember for a
   while the one that it deleted.)
4. Whether a consumer is gone is read from the API unless its deletion was observed: taking a device from a running
   pod is worse than a request.

The plan, without I/O, has the claim of a template, whether a pod still needs its claims, and the remaining consumers:

1. The status of the pod names the claim of a template, and the claim names the pod as its controller.
2. A finished pod, or one that was deleted before it was bound, needs no claims. Others need them until they are
   gone: their containers may hold the devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from mooring.api.decode import decode_as
from mooring.api.document import Document
from mooring.api.kinds import POD, RESOURCE_CLAIM, place_of
from mooring.api.views.devices import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from mooring.api.views.meta import OwnerReference, controller_of
from mooring.api.views.pod import Pod, PodResourceClaim
from mooring.api.well_known import POD_CLAIM_NAME_ANNOTATION, RESOURCE_CLAIM_FINALIZER
from mooring.client.errors import ClientError, NotFoundError
from mooring.client.interface import PatchForm
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.documents import document_of
from mooring.controllers.pods import BY_CONTROLLER, controller_index, is_finished

BY_RESOURCE_CLAIM = "resource claims of a pod"
BY_TEMPLATE = "resource claim templates of a pod"

DELETIONS_REMEMBERED_MAX = 500

_POD, _CLAIM = "pod:", "claim:"


class ResourceClaimError(Exception):
    """A claim cannot be created for a pod."""


class ResourceClaimController(Controller):
    """Keys are pods and claims, with a prefix."""

    name: ClassVar[str] = "resourceclaim-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.workers = context.settings.concurrent_resourceclaim_syncs
        self._recorder = context.recorder("resource_claim")
        self._pods = context.informers.informer(Pod)
        self._claims = context.informers.informer(ResourceClaim)
        self._templates = context.informers.informer(ResourceClaimTemplate)
        self._pods.add_index(BY_RESOURCE_CLAIM, _claims_of)
        self._pods.add_index(BY_TEMPLATE, _templates_of)
        self._claims.add_index(BY_CONTROLLER, controller_index)
        self._created: dict[tuple[str, str], str] = {}
        """Names of created claims that the informer does not show yet, by uid of the pod and name of the use."""
        self._deleted_uids: dict[str, None] = {}
        self.handle_changes(self._pods, self._on_pod, lambda pod: self._on_pod(pod, is_deleted=True))
        self.handle_changes(self._claims, self._on_claim, self._on_claim_deleted)
        self._templates.add_handler(self.name, on_add=self._on_template)

    async def sync(self, key: str) -> Outcome:
        try:
            if key.startswith(_POD):
                await self._sync_pod(key.removeprefix(_POD))
            else:
                await self._sync_claim(key.removeprefix(_CLAIM))
        except (ClientError, ResourceClaimError) as error:
            return Failed(str(error))
        return DONE

    # ------------------------------------------------------------------------------------------------- pods

    async def _sync_pod(self, key: str) -> None:
        """Create and reserve the claims of a pod. Raises `ClientError`, `ResourceClaimError`."""
        pod = self._pods.lister.by_key(key)
        if pod is None or pod.metadata.deletion_timestamp is not None or is_pod_done(pod):
            return
        new_names: dict[str, str] = {}
        for use in pod.spec.resource_claims:
            try:
                created = await self._ensure_claim(pod, use)
            except (ClientError, ResourceClaimError) as error:
                message = f"PodResourceClaim {use.name}: {error}"
                self._recorder.event(pod, "Warning", "FailedResourceClaimCreation", message)
                raise ResourceClaimError(f"pod {key}, {message}") from error
            if created is not None:
                new_names[use.name] = created
        if new_names:
            await self._record_claim_names(pod, new_names)
        if pod.spec.node_name:
            await self._reserve_claims(pod)

    async def _ensure_claim(self, pod: Pod, use: PodResourceClaim) -> str | None:
        """Find or create a claim. Returns its name if the status of the pod lacks it. Raises `ClientError`,
        `ResourceClaimError`."""
        claim_name = claim_name_of(pod, use)
        if claim_name is not None:
            if claim_name.name is None:
                return None
            known = self._claims.lister.get(pod.metadata.namespace, claim_name.name)
            if known is not None and (not claim_name.is_from_template or is_for_pod(known, pod)):
                return None
        if use.resource_claim_template_name is None:
            return None
        found = self._find_claim(pod, use)
        return found if found is not None else await self._create_claim(pod, use, use.resource_claim_template_name)

    def _find_claim(self, pod: Pod, use: PodResourceClaim) -> str | None:
        for claim in self._claims.lister.by_index(BY_CONTROLLER, pod.metadata.uid):
            if claim.metadata.annotations.get(POD_CLAIM_NAME_ANNOTATION) == use.name:
                return claim.metadata.name
        return self._created.get((pod.metadata.uid, use.name))

    async def _create_claim(self, pod: Pod, use: PodResourceClaim, template_name: str) -> str:
        namespace = pod.metadata.namespace
        template = self._templates.lister.get(namespace, template_name)
        if template is None:
            not_found = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise ResourceClaimError(f'resource claim template "{template_name}": {not_found}')
        try:
            answer = await self.client.create(RESOURCE_CLAIM, namespace, template_claim(pod, use, template))
        except ClientError as error:
            raise ResourceClaimError(f"create ResourceClaim : {error}") from error
        created = decode_as(ResourceClaim, answer)
        if self._claims.lister.by_key(created.key) is None:
            self._created[pod.metadata.uid, use.name] = created.metadata.name
        return created.metadata.name

    async def _record_claim_names(self, pod: Pod, names: dict[str, str]) -> None:
        statuses = [{"name": use, "resourceClaimName": name} for use, name in names.items()]
        patch: Document = {"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": statuses}}
        try:
            await self.client.patch(*place_of(pod), patch, form=PatchForm.STRATEGIC, subresource="status")
        except ClientError as error:
            raise ResourceClaimError(f"update pod {pod.key} ResourceClaimStatuses: {error}") from error

    async def _reserve_claims(self, pod: Pod) -> None:
        for use in pod.spec.resource_claims:
            claim_name = claim_name_of(pod, use)
            if claim_name is None or claim_name.name is None:
                continue
            claim = self._claims.lister.get(pod.metadata.namespace, claim_name.name)
            if claim is None:
                return
            if claim_name.is_from_template and not is_for_pod(claim, pod):
                raise ResourceClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key}")
            if must_reserve(claim, pod):
                await self._write(claim, reserved_document(claim, pod), "status")

    # ----------------------------------------------------------------------------------------------- claims

    async def _sync_claim(self, key: str) -> None:
        """Release the consumers that are gone. Raises `ClientError`."""
        claim = self._claims.lister.by_key(key)
        if claim is None:
            return
        consumers = claim.status.reserved_for
        gone = [consumer.uid for consumer in consumers if await self._is_gone(consumer, claim.metadata.namespace)]
        document = released_document(claim, gone)
        if document is not None:
            answer = decode_as(ResourceClaim, await self._write(claim, document, "status"))
            if answer.status.allocation is None:
                await self._remove_finalizer(answer)
        elif (
            claim.metadata.deletion_timestamp is not None
            and not consumers
            and RESOURCE_CLAIM_FINALIZER in claim.metadata.finalizers
        ):
            await self._deallocate(claim)
        if len(gone) == len(consumers):
            await self._delete_if_unused(claim)

    async def _is_gone(self, consumer: ResourceClaimConsumerReference, namespace: str) -> bool:
        if consumer.api_group or consumer.resource != "pods":
            return False
        if consumer.uid in self._deleted_uids:
            return True
        pod = self._pods.lister.get(namespace, consumer.name)
        if pod is not None:
            return pod.metadata.uid != consumer.uid or is_pod_done(pod)
        try:
            found = decode_as(Pod, await self.client.get(POD, namespace, consumer.name))
        except NotFoundError:
            return True
        return found.metadata.uid != consumer.uid

    async def _deallocate(self, claim: ResourceClaim) -> None:
        if claim.status.allocation is not None:
            document = document_of(claim)
            document["status"].pop("allocation", None)
            claim = decode_as(ResourceClaim, await self._write(claim, document, "status"))
        await self._remove_finalizer(claim)

    async def _remove_finalizer(self, claim: ResourceClaim) -> None:
        if RESOURCE_CLAIM_FINALIZER not in claim.metadata.finalizers:
            return
        document = document_of(claim)
        document["metadata"]["finalizers"] = [
            finalizer for finalizer in claim.metadata.finalizers if finalizer != RESOURCE_CLAIM_FINALIZER
        ]
        await self._write(claim, document)

    async def _delete_if_unused(self, claim: ResourceClaim) -> None:
        """Delete a claim whose pod has finished. The garbage collector deletes claims of deleted pods."""
        owner = owning_pod(claim)
        pod = self._pods.lister.get(claim.metadata.namespace, owner.name) if owner is not None else None
        if owner is None or pod is None or not (pod.metadata.uid != owner.uid or is_pod_done(pod)):
            return
        with suppress(NotFoundError):
            await self.client.delete(*place_of(claim))

    async def _write(self, claim: ResourceClaim, document: Document, subresource: str = "") -> bytes:
        return await self.client.update(*place_of(claim), document, subresource=subresource)

    # ----------------------------------------------------------------------------------------------- events

    def _on_pod(self, pod: Pod, is_deleted: bool = False) -> None:
        extended = pod.status.extended_resource_claim_status
        if not pod.spec.resource_claims and extended is None:
            return
        metadata = pod.metadata
        if is_deleted:
            self._remember_deletion(metadata.uid)
        if is_deleted or is_pod_done(pod):
            names = [
                claim_name.name
                for use in pod.spec.resource_claims
                if (claim_name := claim_name_of(pod, use)) is not None
            ]
            if extended is not None:
                names.append(extended.resource_claim_name)
            for name in names:
                if name is not None:
                    self.queue.add(f"{_CLAIM}{metadata.namespace}/{name}")
        if not is_deleted and self._needs_work(pod):
            self.queue.add(f"{_POD}{pod.key}")

    def _needs_work(self, pod: Pod) -> bool:
        """Whether a claim of the pod has to be created or reserved."""
        if pod.metadata.deletion_timestamp is not None or is_pod_done(pod):
            return False
        for use in pod.spec.resource_claims:
            claim_name = claim_name_of(pod, use)
            if claim_name is None:
                return True
            if claim_name.name is None:
                continue
            claim = self._claims.lister.get(pod.metadata.namespace, claim_name.name)
            if claim is None:
                if use.resource_claim_template_name is not None:
                    return True
                continue
            if claim_name.is_from_template and not is_for_pod(claim, pod):
                continue
            if must_reserve(claim, pod):
                return True
        return False

    def _on_claim(self, claim: ResourceClaim) -> None:
        owner = owning_pod(claim)
        if owner is not None and self._created:
            self._created.pop((owner.uid, claim.metadata.annotations.get(POD_CLAIM_NAME_ANNOTATION, "")), None)
        self.queue.add(f"{_CLAIM}{claim.key}")
        self._on_claim_deleted(claim)

    def _on_claim_deleted(self, claim: ResourceClaim) -> None:
        for pod in self._pods.lister.by_index(BY_RESOURCE_CLAIM, claim.key):
            self._on_pod(pod)

    def _on_template(self, template: ResourceClaimTemplate) -> None:
        for pod in self._pods.lister.by_index(BY_TEMPLATE, template.key):
            self._on_pod(pod)

    def _remember_deletion(self, uid: str) -> None:
        if len(self._deleted_uids) >= DELETIONS_REMEMBERED_MAX:
            del self._deleted_uids[next(iter(self._deleted_uids))]
        self._deleted_uids[uid] = None
        for created in [created for created in self._created if created[0] == uid]:
            del self._created[created]


def _claims_of(pod: Pod) -> Iterable[str]:
    uses = pod.spec.resource_claims
    names = [claim_name.name for use in uses if (claim_name := claim_name_of(pod, use)) is not None] if uses else []
    return [f"{pod.metadata.namespace}/{name}" for name in names if name is not None]


def _templates_of(pod: Pod) -> Iterable[str]:
    uses = pod.spec.resource_claims
    names = [use.resource_claim_template_name for use in uses] if uses else []
    return [f"{pod.metadata.namespace}/{name}" for name in names if name is not None]


# --- plan -----------------------------------------------------------------------------------------------------


NAME_BASE_MAX = 57
"""Maximum length of a generated name before its five random characters."""


@dataclass(frozen=True, slots=True)
class ClaimName:
    """The claim of a pod. The name is None if no claim is needed."""

    name: str | None
    is_from_template: bool = False


def claim_name_of(pod: Pod, use: PodResourceClaim) -> ClaimName | None:
    """The claim that a pod uses. None if it is not created yet."""
    if use.resource_claim_name is not None:
        return ClaimName(use.resource_claim_name)
    for status in pod.status.resource_claim_statuses:
        if status.name == use.name:
            return ClaimName(status.resource_claim_name, is_from_template=True)
    return None


def is_pod_done(pod: Pod) -> bool:
    """Whether a pod will not use devices any more."""
    return is_finished(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def is_for_pod(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the claim was created for this pod."""
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid and claim.metadata.namespace == pod.metadata.namespace


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    owner = controller_of(claim.metadata)
    return owner if owner is not None and owner.kind == "Pod" and owner.api_version == "v1" else None


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)


def must_reserve(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether the pod was bound without the scheduler, which would have reserved the claim."""
    return pod.spec.node_name != "" and claim.status.allocation is not None and not is_reserved_for(claim, pod)


def template_claim(pod: Pod, use: PodResourceClaim, template: ResourceClaimTemplate) -> Document:
    """The claim of a pod, from a template."""
    template_spec: Document = document_of(template).get("spec") or {}
    template_metadata: Document = template_spec.get("metadata") or {}
    metadata: Document = {
        "generateName": generated_base(pod.metadata.name, use.name),
        "annotations": {**(template_metadata.get("annotations") or {}), POD_CLAIM_NAME_ANNOTATION: use.name},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "uid": pod.metadata.uid,
                "controller": True,
            }
        ],
    }
    if template_metadata.get("labels"):
        metadata["labels"] = template_metadata["labels"]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": template_spec.get("spec") or {},
    }


def generated_base(pod_name: str, use_name: str) -> str:
    """The prefix of the claim's name. Both parts are shortened in proportion if it is too long."""
    base = f"{pod_name}-{use_name}-"
    if len(base) <= NAME_BASE_MAX:
        return base
    pod_length, use_length = (len(name) * NAME_BASE_MAX // len(base) for name in (pod_name, use_name))
    return f"{pod_name[:pod_length]}-{use_name[:use_length]}"


def released_document(claim: ResourceClaim, gone_uids: Iterable[str]) -> Document | None:
    """The claim without the consumers that are gone, and without its allocation if none is left. None if all remain."""
    gone = set(gone_uids)
    remaining = [consumer for consumer in claim.status.reserved_for if consumer.uid not in gone]
    if len(remaining) == len(claim.status.reserved_for):
        return None
    document = document_of(claim)
    status: Document = document["status"]
    consumers: Sequence[Document] = [consumer for consumer in status["reservedFor"] if consumer.get("uid") not in gone]
    if consumers:
        status["reservedFor"] = consumers
        return document
    del status["reservedFor"]
    if RESOURCE_CLAIM_FINALIZER in claim.metadata.finalizers:
        status.pop("allocation", None)
    return document


def reserved_document(claim: ResourceClaim, pod: Pod) -> Document:
    document = document_of(claim)
    consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    status: Document = document["status"]
    status["reservedFor"] = [*(status.get("reservedFor") or []), consumer]
    return document
