"""The pods and claims of StatefulSets: made, corrected, deleted, with the events that people know.

Comes in   from the controller of StatefulSets: actions
Goes out   requests; events about the set

 1. The claims of a member are there before its pod is.
 2. What is corrected is read anew first: the copy may be older than our own correction.
"""

from __future__ import annotations

from typing import Literal

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD
from mooring.api.views.pod import Pod
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import StatefulSet
from mooring.client.cache.lister import Lister
from mooring.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from mooring.client.events.recorder import EventRecorder
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
    """The claims of a member are not as they should be; try again."""


class StatefulPods:
    """Speaks for the controller of StatefulSets."""

    def __init__(self, client: Client, recorder: EventRecorder, claims: Lister[PersistentVolumeClaim]) -> None:
        self._client = client
        self._recorder = recorder
        self._claims = claims

    def find_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._claims.get(namespace, name)

    async def create(self, wanted: StatefulSet, pod: Document, ordinal: int) -> None:
        """With its claims. Raises `ClientError` and `ClaimsError`, after an event."""
        member = Member(wanted, ordinal)
        failure: Exception | None = None
        try:
            await self._create_claims(member)
            await self._client.create(POD, wanted.metadata.namespace, pod, is_answer_wanted=False)
        except AlreadyExistsError:
            raise  # the informer is late: nothing to tell
        except (ClientError, ClaimsError) as error:
            failure = error
        if failure is None:
            await self._correct_claims_or_tell(member)
        self._record_event("Create", wanted, member.name, failure)
        if failure is not None:
            raise failure

    async def ensure_claims(self, wanted: StatefulSet, pod: Pod) -> None:
        """Raises `ClientError` and `ClaimsError`."""
        member = member_of(wanted, pod)
        await self._create_claims(member)
        await self._correct_claims_or_tell(member)

    async def delete(self, wanted: StatefulSet, pod: Pod) -> None:
        """Raises `ClientError`, after an event."""
        try:
            await self._client.delete(POD, pod.metadata.namespace, pod.metadata.name)
        except NotFoundError:
            pass
        except ClientError as error:
            self._record_event("Delete", wanted, pod.metadata.name, error)
            raise
        self._record_event("Delete", wanted, pod.metadata.name)

    async def correct(self, wanted: StatefulSet, pod: Pod) -> None:
        """Give a member its identity, its storage and the owners of its claims back. Raises as `create` does."""
        try:
            await self._correct(wanted, pod)
        except (ClientError, ClaimsError) as error:
            self._record_event("Update", wanted, pod.metadata.name, error)
            raise
        self._record_event("Update", wanted, pod.metadata.name)

    async def correct_claims(self, member: Member) -> None:
        """Give the claims of a member the owners that the policy wants. Raises `ClientError`."""
        wanted = member.wanted
        namespace = wanted.metadata.namespace
        for name in member.claims():
            claim = self._claims.get(namespace, name)
            if claim is None:
                continue
            if is_controlled_by_others(claim, member):
                message = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self._recorder.event(wanted, "Warning", "ConflictingController", message)
            if not is_claim_right(claim, member):
                document = await read_document(self._client, claim)
                metadata = document["metadata"]
                metadata["ownerReferences"] = right_owners(claim, metadata.get("ownerReferences") or [], member)
                await self._client.update(PERSISTENT_VOLUME_CLAIM, namespace, name, document)

    async def _correct(self, wanted: StatefulSet, pod: Pod) -> None:
        member = member_of(wanted, pod)
        namespace = wanted.metadata.namespace
        if not has_storage(wanted, pod):
            await self._create_claims(member)
        if not are_claims_right(member, lambda name: self._claims.get(namespace, name)):
            await self.correct_claims(member)
        for attempt in range(1, CORRECTION_TRIES_MAX + 1):
            document = await read_document(self._client, pod)
            if not has_identity(wanted, pod):
                metadata = document["metadata"]
                metadata["labels"] = {**(metadata.get("labels") or {}), **identity_labels(member.name, member.ordinal)}
            if not has_storage(wanted, pod):
                spec = document["spec"]
                spec["volumes"] = with_claims(wanted, spec.get("volumes") or [], member.ordinal)
            try:
                await self._client.update(POD, namespace, pod.metadata.name, document)
                return
            except ConflictError:
                if attempt == CORRECTION_TRIES_MAX:
                    raise

    async def _correct_claims_or_tell(self, member: Member) -> None:
        try:
            await self.correct_claims(member)
        except ClientError as error:
            self._record_event("Update", member.wanted, member.name, error)
            raise

    async def _create_claims(self, member: Member) -> None:
        wanted = member.wanted
        if not wanted.spec.volume_claim_templates:
            return
        namespace = wanted.metadata.namespace
        templates: list[Document] = document_of(wanted)["spec"].get("volumeClaimTemplates") or []
        names = claim_names(wanted, member.ordinal)
        errors: list[str] = []
        for template in templates:
            name = names[template["metadata"]["name"]]
            known = self._claims.get(namespace, name)
            if known is None:
                await self._create_claim(member, claim_document(wanted, template, name), name, errors)
            elif known.metadata.deletion_timestamp is not None:
                errors.append(f"pvc {name} is being deleted")
        if errors:
            raise ClaimsError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    async def _create_claim(self, member: Member, claim: Document, name: str, errors: list[str]) -> None:
        wanted = member.wanted
        about = f"Create Claim {name}"
        try:
            await self._client.create(PERSISTENT_VOLUME_CLAIM, wanted.metadata.namespace, claim, is_answer_wanted=False)
        except AlreadyExistsError as error:
            errors.append(f"failed to create PVC {name}: {error}")
        except ClientError as error:
            errors.append(f"failed to create PVC {name}: {error}")
            message = f"{about} for Pod {member.name} in StatefulSet {wanted.metadata.name} failed error: {error}"
            self._recorder.event(wanted, "Warning", "FailedCreate", message)
        else:
            message = f"{about} Pod {member.name} in StatefulSet {wanted.metadata.name} success"
            self._recorder.event(wanted, "Normal", "SuccessfulCreate", message)

    def _record_event(self, verb: Verb, wanted: StatefulSet, pod_name: str, error: Exception | None = None) -> None:
        about = f"{verb} Pod {pod_name} in StatefulSet {wanted.metadata.name}"
        if error is None:
            self._recorder.event(wanted, "Normal", f"Successful{verb}", f"{about} successful")
        else:
            self._recorder.event(wanted, "Warning", f"Failed{verb}", f"{about} failed error: {error}")
