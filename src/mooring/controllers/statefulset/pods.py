"""Creates, corrects and deletes the pods and claims of StatefulSets.

Inputs: actions of the controller. Outputs: requests; events about the StatefulSet.

1. The claims of a member are created before its pod.
2. An object to be corrected is read first: the informer may not show the last correction.
"""

from __future__ import annotations

from typing import Literal

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, place_of
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import StatefulSet
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.client.events import EventRecorder
from mooring.client.informer import Lister
from mooring.client.interface import Client
from mooring.controllers.documents import document_of, read_document
from mooring.controllers.statefulset.members import (
    Member,
    are_claims_right,
    claim_document,
    claim_names,
    has_identity,
    has_storage,
    identity_labels,
    is_claim_right,
    is_controlled_by_others,
    member_of,
    right_owners,
    with_claims,
)

CORRECTION_TRIES_MAX = 4

Verb = Literal["Create", "Update", "Delete"]


class ClaimsError(Exception):
    """The claims of a member are not correct yet. Retry."""


class StatefulPods:
    """Creates, corrects and deletes pods and claims of StatefulSets."""

    def __init__(self, client: Client, recorder: EventRecorder, claims: Lister[PersistentVolumeClaim]) -> None:
        self._client = client
        self._recorder = recorder
        self._claims = claims

    def find_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._claims.get(namespace, name)

    async def create(self, stateful_set: StatefulSet, pod: Document, ordinal: int) -> None:
        """Create a pod and its claims. Raises `ClientError` and `ClaimsError`, after an event."""
        member = Member(stateful_set, ordinal)
        failure: Exception | None = None
        try:
            await self._create_claims(member)
            await self._client.create(POD, stateful_set.metadata.namespace, pod, is_answer_wanted=False)
        except AlreadyExistsError:
            raise  # the informer is behind: no event
        except (ClientError, ClaimsError) as error:
            failure = error
        if failure is None:
            await self._correct_claims_or_report(member)
        self._record_event("Create", stateful_set, member.name, failure)
        if failure is not None:
            raise failure

    async def ensure_claims(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create missing claims. Raises `ClientError` and `ClaimsError`."""
        member = member_of(stateful_set, pod)
        await self._create_claims(member)
        await self._correct_claims_or_report(member)

    async def delete(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Delete a pod. Raises `ClientError`, after an event."""
        try:
            await self._client.delete(*place_of(pod))
        except NotFoundError:
            pass
        except ClientError as error:
            self._record_event("Delete", stateful_set, pod.metadata.name, error)
            raise
        self._record_event("Delete", stateful_set, pod.metadata.name)

    async def correct(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Restore identity, storage and claim owners of a member. Raises like `create`."""
        try:
            await self._correct(stateful_set, pod)
        except (ClientError, ClaimsError) as error:
            self._record_event("Update", stateful_set, pod.metadata.name, error)
            raise
        self._record_event("Update", stateful_set, pod.metadata.name)

    async def correct_claims(self, member: Member) -> None:
        """Set the owners of a member's claims by the retention policy. Raises `ClientError`."""
        stateful_set = member.stateful_set
        namespace = stateful_set.metadata.namespace
        for name in member.claims():
            claim = self._claims.get(namespace, name)
            if claim is None:
                continue
            if is_controlled_by_others(claim, member):
                message = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self._recorder.event(stateful_set, "Warning", "ConflictingController", message)
            if not is_claim_right(claim, member):
                document = await read_document(self._client, claim)
                metadata = document["metadata"]
                metadata["ownerReferences"] = right_owners(claim, metadata.get("ownerReferences") or [], member)
                await self._client.update(*place_of(claim), document)

    async def _correct(self, stateful_set: StatefulSet, pod: Pod) -> None:
        member = member_of(stateful_set, pod)
        namespace = stateful_set.metadata.namespace
        if not has_storage(stateful_set, pod):
            await self._create_claims(member)
        if not are_claims_right(member, lambda name: self._claims.get(namespace, name)):
            await self.correct_claims(member)
        for attempt in range(1, CORRECTION_TRIES_MAX + 1):
            document = await read_document(self._client, pod)
            if not has_identity(stateful_set, pod):
                metadata = document["metadata"]
                metadata["labels"] = {**(metadata.get("labels") or {}), **identity_labels(member.name, member.ordinal)}
            if not has_storage(stateful_set, pod):
                spec = document["spec"]
                spec["volumes"] = with_claims(stateful_set, spec.get("volumes") or [], member.ordinal)
            try:
                await self._client.update(*place_of(pod), document)
                return
            except ConflictError:
                if attempt == CORRECTION_TRIES_MAX:
                    raise

    async def _correct_claims_or_report(self, member: Member) -> None:
        try:
            await self.correct_claims(member)
        except ClientError as error:
            self._record_event("Update", member.stateful_set, member.name, error)
            raise

    async def _create_claims(self, member: Member) -> None:
        stateful_set = member.stateful_set
        if not stateful_set.spec.volume_claim_templates:
            return
        namespace = stateful_set.metadata.namespace
        templates: list[Document] = document_of(stateful_set)["spec"].get("volumeClaimTemplates") or []
        names = claim_names(stateful_set, member.ordinal)
        errors: list[str] = []
        for template in templates:
            name = names[template["metadata"]["name"]]
            known = self._claims.get(namespace, name)
            if known is None:
                await self._create_claim(member, claim_document(stateful_set, template, name), name, errors)
            elif known.metadata.deletion_timestamp is not None:
                errors.append(f"pvc {name} is being deleted")
        if errors:
            raise ClaimsError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    async def _create_claim(self, member: Member, claim: Document, name: str, errors: list[str]) -> None:
        stateful_set = member.stateful_set
        about = f"Create Claim {name}"
        try:
            await self._client.create(
                PERSISTENT_VOLUME_CLAIM, stateful_set.metadata.namespace, claim, is_answer_wanted=False
            )
        except AlreadyExistsError as error:
            errors.append(f"failed to create PVC {name}: {error}")
        except ClientError as error:
            errors.append(f"failed to create PVC {name}: {error}")
            message = f"{about} for Pod {member.name} in StatefulSet {stateful_set.metadata.name} failed error: {error}"
            self._recorder.event(stateful_set, "Warning", "FailedCreate", message)
        else:
            message = f"{about} Pod {member.name} in StatefulSet {stateful_set.metadata.name} success"
            self._recorder.event(stateful_set, "Normal", "SuccessfulCreate", message)

    def _record_event(
        self, verb: Verb, stateful_set: StatefulSet, pod_name: str, error: Exception | None = None
    ) -> None:
        about = f"{verb} Pod {pod_name} in StatefulSet {stateful_set.metadata.name}"
        if error is None:
            self._recorder.event(stateful_set, "Normal", f"Successful{verb}", f"{about} successful")
        else:
            self._recorder.event(stateful_set, "Warning", f"Failed{verb}", f"{about} failed error: {error}")
