"""Base classes of controllers whose objects own others: handlers, adoption, status updates.

Inputs: events of owners and of the objects that they control. Outputs: keys of owners in the queue; patches that adopt
and release.

1. An object belongs to the owner that its controller reference names, by kind, name and uid.
2. An orphan enqueues every owner of its namespace whose selector matches it: one of them adopts it.
3. A terminating pod counts as deleted. Its deletion event follows later and changes nothing.

`claim_objects` keeps, adopts or releases objects for an owner:

                      selector matches          does not match
    owner controls    keep                      release
    orphan            adopt                     ignore
    others control    ignore                    ignore

4. An owner that is being deleted adopts and releases nothing. An object that is being deleted is not adopted.
5. Before the first adoption the owner is read from the API: the informer may not show its deletion yet, and the
   garbage collector would orphan the adopted object.
6. Patches carry the uid of the object, so that another object of the same name is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar, cast

from mooring.api.document import Document
from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import place_of
from mooring.api.labels import NOTHING, LabelMatcher
from mooring.api.views.meta import ApiObject, ObjectMeta, ObjectWithRaw, OwnerReference, controller_of
from mooring.api.views.pod import Pod
from mooring.client.errors import ClientError, InvalidError, NotFoundError
from mooring.client.informer import BY_NAMESPACE, AnyObject, Informer, namespace_of
from mooring.client.interface import Client, PatchForm
from mooring.controllers.context import DONE, Controller, ControllerContext, Later, Outcome
from mooring.controllers.documents import document_of, owner_reference, read_document
from mooring.controllers.expectations import Expectations
from mooring.controllers.pod_control import PodControl
from mooring.controllers.pods import (
    BY_CONTROLLER,
    add_controller_index,
    is_ready,
    matching_orphans,
    next_availability_s,
)


class AdoptionError(Exception):
    """Some objects could not be adopted or released. Retry."""


@dataclass(frozen=True, slots=True)
class Claim(Generic[AnyObject]):
    """The objects to keep, to adopt and to release."""

    owned: list[AnyObject] = field(default_factory=list)
    to_adopt: list[AnyObject] = field(default_factory=list)
    to_release: list[AnyObject] = field(default_factory=list)


def plan_claim(
    owner: ApiObject, objects: Iterable[AnyObject], is_match: Callable[[AnyObject], bool]
) -> Claim[AnyObject]:
    """Sort objects by the table in the module docstring."""
    claim: Claim[AnyObject] = Claim()
    uid, is_owner_going = owner.metadata.uid, owner.metadata.deletion_timestamp is not None
    for dependent in objects:
        reference = controller_of(dependent.metadata)
        if reference is not None:
            if reference.uid != uid:
                continue
            if is_match(dependent):
                claim.owned.append(dependent)
            elif not is_owner_going:
                claim.to_release.append(dependent)
        elif not is_owner_going and dependent.metadata.deletion_timestamp is None and is_match(dependent):
            claim.to_adopt.append(dependent)
    return claim


async def claim_objects(
    client: Client,
    owner: ApiObject,
    objects: Iterable[AnyObject],
    is_match: Callable[[AnyObject], bool],
    finalizers: tuple[str, ...] = (),
) -> list[AnyObject]:
    """The objects of an owner, after adopting and releasing. Raises `AdoptionError`."""
    claim = plan_claim(owner, objects, is_match)
    if not claim.to_adopt and not claim.to_release:
        return claim.owned
    errors: list[str] = []
    for dependent in claim.to_release:
        await _release(client, owner, dependent, finalizers, errors)
    reason = await _why_not_adopt(client, owner) if claim.to_adopt else ""
    for dependent in claim.to_adopt:
        if reason:
            metadata = dependent.metadata
            name = f"{metadata.namespace}/{metadata.name} ({metadata.uid})"
            errors.append(f"can't adopt {dependent.kind} {name}: {reason}")
        elif await _adopt(client, owner, dependent, finalizers, errors):
            claim.owned.append(dependent)
    if errors:
        raise AdoptionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return claim.owned


async def _adopt(
    client: Client, owner: ApiObject, dependent: ApiObject, finalizers: tuple[str, ...], errors: list[str]
) -> bool:
    metadata: Document = {"uid": dependent.metadata.uid, "ownerReferences": [owner_reference(owner)]}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    try:
        await _patch(client, dependent, metadata)
    except NotFoundError:
        return False
    except ClientError as error:
        errors.append(str(error))
        return False
    return True


async def _release(
    client: Client, owner: ApiObject, dependent: ApiObject, finalizers: tuple[str, ...], errors: list[str]
) -> None:
    metadata: Document = {
        "uid": dependent.metadata.uid,
        "ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}],
    }
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    try:
        await _patch(client, dependent, metadata)
    except (NotFoundError, InvalidError):
        pass  # deleted, or replaced by another object: in both cases no longer controlled by the owner
    except ClientError as error:
        errors.append(str(error))


async def _patch(client: Client, dependent: ApiObject, metadata: Document) -> None:
    await client.patch(*place_of(dependent), {"metadata": metadata}, form=PatchForm.STRATEGIC)


async def _why_not_adopt(client: Client, owner: ApiObject) -> str:
    """Read the owner from the API. Returns why it may not adopt, or an empty text."""
    metadata = owner.metadata
    try:
        fresh = await read_document(client, owner)
    except ClientError as error:
        return f"can't recheck DeletionTimestamp: {error}"
    found = fresh["metadata"]
    assert isinstance(found, dict), f"{owner.kind} {owner.key} came without metadata"
    if found.get("uid") != metadata.uid:
        difference = f"got uid {found.get('uid')}, wanted {metadata.uid}"
        return f"can't recheck DeletionTimestamp: original {owner.kind} {owner.key} is gone: {difference}"
    if found.get("deletionTimestamp") is not None:
        return f"{owner.key} has just been deleted at {found['deletionTimestamp']}"
    return ""


# --- controllers ----------------------------------------------------------------------------------------------


AnyOwner = TypeVar("AnyOwner", bound=ObjectWithRaw)


class OwnerController(Controller, Generic[AnyOwner]):
    """A controller of one kind of owner."""

    view: ClassVar[type[ObjectWithRaw]]
    """The owners."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._owners = cast(Informer[AnyOwner], context.informers.informer(self.view))
        self._owners.add_index(BY_NAMESPACE, namespace_of)
        self._owners.add_handler(
            self.name,
            on_add=lambda owner: self.queue.add(owner.key),
            on_update=self._on_owner_updated,
            on_delete=self._on_owner_deleted,
        )

    def selector(self, owner: AnyOwner) -> LabelMatcher:
        """The selector of an owner, by which it adopts. Raises `LabelSelectorError`."""
        return NOTHING

    def handle_dependents(self, informer: Informer[AnyObject]) -> None:
        """Enqueue the owners of objects that are not pods: ReplicaSets, …"""
        informer.add_handler(
            self.name,
            on_add=self._on_dependent_added,
            on_update=self._on_dependent_updated,
            on_delete=self._on_dependent_deleted,
        )

    def find_owner(self, namespace: str, reference: OwnerReference | None) -> AnyOwner | None:
        """The owner that a controller reference names. None if it has another kind or uid, or does not exist."""
        if reference is None or reference.kind != self.view.kind:
            return None
        owner = self._owners.lister.get(namespace, reference.name)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def enqueue_selecting(self, metadata: ObjectMeta, delay_s: float = 0.0) -> None:
        """Enqueue the owners whose selector matches an orphan."""
        for owner in self._owners.lister.list(metadata.namespace):
            try:
                selector = self.selector(owner)
            except LabelSelectorError:
                continue
            if not selector.matches_everything and selector.matches(metadata.labels):
                self.queue.add_after(owner.key, delay_s)

    # ------------------------------------------------------------------------------------- events of owners

    def _on_owner_updated(self, old: AnyOwner, new: AnyOwner) -> None:
        self.queue.add(new.key)

    def _on_owner_deleted(self, owner: AnyOwner) -> None:
        self.queue.add(owner.key)

    # ------------------------------------------------------------------------------- events of dependents

    def _on_dependent_added(self, dependent: ApiObject) -> None:
        metadata = dependent.metadata
        if metadata.deletion_timestamp is None and controller_of(metadata) is None:
            self.enqueue_selecting(metadata)
        else:
            self._on_dependent_deleted(dependent)

    def _on_dependent_updated(self, old: ApiObject, new: ApiObject) -> None:
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        if reference != reference_before:
            self._on_dependent_deleted(old)
        if reference is not None:
            self._on_dependent_deleted(new)
        elif reference_before is not None or old.metadata.labels != new.metadata.labels:
            self.enqueue_selecting(new.metadata)

    def _on_dependent_deleted(self, dependent: ApiObject) -> None:
        owner = self.find_owner(dependent.metadata.namespace, controller_of(dependent.metadata))
        if owner is not None:
            self.queue.add(owner.key)


class PodOwnerController(OwnerController[AnyOwner]):
    """A controller of owners of pods. A subclass overrides the `on_…` methods where its kind differs."""

    component: ClassVar[str] = ""
    """The name in events, if it is not the name of the controller."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._recorder = context.recorder(self.component or self.name)
        self._pods = context.informers.informer(Pod)
        self._expectations = Expectations(context.clock, self._pods.has_seen)
        self._pod_control = PodControl(context.client, self._recorder, context.clock, self._expectations)
        add_controller_index(self._pods)
        self._pods.add_handler(
            self.name,
            on_add=self._on_pod_added,
            on_update=self._on_pod_updated,
            on_delete=lambda pod: self.on_pod_deleted(pod, is_gone=True),
        )

    # ------------------------------------------------------------------------------------------------ hooks

    def enqueue(self, owner: AnyOwner) -> None:
        """Enqueue an owner whose pods changed."""
        self.queue.add(owner.key)

    def on_owned_pod_updated(self, owner: AnyOwner, old: Pod, new: Pod) -> None:
        self.enqueue(owner)

    def on_pod_released(self, former: AnyOwner, pod: Pod) -> None:
        """A pod has another owner now, or none."""
        self.queue.add(former.key)

    def on_orphan(self, pod: Pod) -> None:
        """A pod without a controller was created, was released, or has other labels."""
        self.enqueue_selecting(pod.metadata)

    def on_pod_deleted(self, pod: Pod, *, is_gone: bool) -> None:
        """A pod is terminating, or is gone."""
        owner = self.find_owner(pod.metadata.namespace, controller_of(pod.metadata))
        if owner is not None:
            self._expectations.deletion_seen(owner.key, pod.key)
            self.enqueue(owner)

    # --------------------------------------------------------------------------------------- events of pods

    def _on_owner_deleted(self, owner: AnyOwner) -> None:
        self._expectations.forget(owner.key)
        super()._on_owner_deleted(owner)

    def _on_pod_added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self.on_pod_deleted(pod, is_gone=False)
            return
        reference = controller_of(pod.metadata)
        if reference is None:
            self.on_orphan(pod)
            return
        owner = self.find_owner(pod.metadata.namespace, reference)
        if owner is not None:
            self._expectations.creation_seen(owner.key)
            self.enqueue(owner)

    def _on_pod_updated(self, old: Pod, new: Pod) -> None:
        reference, reference_before = controller_of(new.metadata), controller_of(old.metadata)
        is_owner_changed = reference != reference_before
        are_labels_changed = old.metadata.labels != new.metadata.labels
        if new.metadata.deletion_timestamp is not None:
            self.on_pod_deleted(new, is_gone=False)
            if is_owner_changed or are_labels_changed:
                self.on_pod_deleted(old, is_gone=False)
            return
        if is_owner_changed:
            former = self.find_owner(old.metadata.namespace, reference_before)
            if former is not None:
                self.on_pod_released(former, new)
        if reference is not None:
            owner = self.find_owner(new.metadata.namespace, reference)
            if owner is not None:
                self.on_owned_pod_updated(owner, old, new)
        elif is_owner_changed or are_labels_changed:
            self.on_orphan(new)

    # -------------------------------------------------------------------------------------- parts of a sync

    async def claim_pods(
        self,
        owner: AnyOwner,
        selector: LabelMatcher,
        *,
        is_match: Callable[[Pod], bool] | None = None,
        finalizers: tuple[str, ...] = (),
    ) -> list[Pod]:
        """The pods of an owner, after adopting and releasing some. Raises `AdoptionError`."""
        own = self._pods.lister.by_index(BY_CONTROLLER, owner.metadata.uid)
        orphans = matching_orphans(self._pods.lister, owner.metadata.namespace, selector)
        matches = is_match if is_match is not None else lambda pod: selector.matches(pod.metadata.labels)
        return await claim_objects(self.client, owner, (*own, *orphans), matches, finalizers)

    async def write_status(
        self,
        owner: AnyOwner,
        set_status: Callable[[Document], None],
        *,
        tries_max: int,
        retry_on: type[ClientError] = ClientError,
    ) -> None:
        """Write a status. If that fails, try again on the newest version of the owner.

        Raises `ClientError`, and `NotFoundError` also if another object has the name by now.
        """
        document = document_of(owner)
        for attempt in range(1, tries_max + 1):
            set_status(document)
            try:
                await self.client.update(*place_of(owner), document, subresource="status")
                return
            except retry_on:
                if attempt == tries_max:
                    raise
            document = await read_document(self.client, owner)
            if document["metadata"]["uid"] != owner.metadata.uid:
                raise NotFoundError(f"{self.view.kind} {owner.key} was replaced by another one of the same name")

    def enqueue_when_available(self, key: str, min_ready_s: float, old: Pod, new: Pod) -> None:
        """Enqueue an owner for the time when a pod that became ready becomes available."""
        if min_ready_s > 0 and is_ready(new) and not is_ready(old):
            self.queue.add_after(key, float(min_ready_s))

    def outcome_until_available(self, pods: Sequence[Pod], min_ready_s: int, counted_at_s: float) -> Outcome:
        """The outcome of a sync: `Later` if some pods are ready but not available yet. `counted_at_s` is wall time."""
        if min_ready_s <= 0:
            return DONE
        after_s = next_availability_s(pods, min_ready_s, counted_at_s, self.clock.wall_s())
        return Later(after_s if after_s is not None else float(min_ready_s))
