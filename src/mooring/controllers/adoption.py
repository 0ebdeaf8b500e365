"""Claims objects for an owner: keep, adopt or release them by controller reference and selector.

Inputs: an owner, its selector, and objects that it controls or that are orphans. Outputs: the owner's objects;
patches that adopt and release.

                      selector matches          does not match
    owner controls    keep                      release
    orphan            adopt                     ignore
    others control    ignore                    ignore

1. An owner that is being deleted adopts and releases nothing. An object that is being deleted is not adopted.
2. Before the first adoption the owner is read from the API: the informer may not show its deletion yet, and the
   garbage collector would orphan the adopted object.
3. Patches carry the uid of the object, so that another object of the same name is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic

from mooring.api.document import Document
from mooring.api.kinds import kind_of_view
from mooring.api.views.meta import ApiObject, controller_of
from mooring.client.errors import ClientError, InvalidError, NotFoundError
from mooring.client.informer import AnyObject
from mooring.client.interface import Client, PatchForm
from mooring.controllers.documents import decode_document, owner_reference


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
    for each in objects:
        reference = controller_of(each.metadata)
        if reference is not None:
            if reference.uid != uid:
                continue
            if is_match(each):
                claim.owned.append(each)
            elif not is_owner_going:
                claim.to_release.append(each)
        elif not is_owner_going and each.metadata.deletion_timestamp is None and is_match(each):
            claim.to_adopt.append(each)
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
    for each in claim.to_release:
        await _release(client, owner, each, finalizers, errors)
    reason = await _why_not_adopt(client, owner) if claim.to_adopt else ""
    for each in claim.to_adopt:
        if reason:
            metadata = each.metadata
            name = f"{metadata.namespace}/{metadata.name} ({metadata.uid})"
            errors.append(f"can't adopt {each.kind} {name}: {reason}")
        elif await _adopt(client, owner, each, finalizers, errors):
            claim.owned.append(each)
    if errors:
        raise AdoptionError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return claim.owned


async def _adopt(
    client: Client, owner: ApiObject, each: ApiObject, finalizers: tuple[str, ...], errors: list[str]
) -> bool:
    metadata: Document = {"uid": each.metadata.uid, "ownerReferences": [owner_reference(owner)]}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    try:
        await _patch(client, each, metadata)
    except NotFoundError:
        return False
    except ClientError as error:
        errors.append(str(error))
        return False
    return True


async def _release(
    client: Client, owner: ApiObject, each: ApiObject, finalizers: tuple[str, ...], errors: list[str]
) -> None:
    metadata: Document = {
        "uid": each.metadata.uid,
        "ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}],
    }
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    try:
        await _patch(client, each, metadata)
    except (NotFoundError, InvalidError):
        pass  # deleted, or replaced by another object: in both cases no longer controlled by the owner
    except ClientError as error:
        errors.append(str(error))


async def _patch(client: Client, each: ApiObject, metadata: Document) -> None:
    kind = kind_of_view(type(each))
    namespace, name = each.metadata.namespace, each.metadata.name
    await client.patch(kind, namespace, name, {"metadata": metadata}, form=PatchForm.STRATEGIC)


async def _why_not_adopt(client: Client, owner: ApiObject) -> str:
    """Read the owner from the API. Returns why it may not adopt, or an empty text."""
    metadata = owner.metadata
    try:
        fresh = decode_document(await client.get(kind_of_view(type(owner)), metadata.namespace, metadata.name))
    except ClientError as error:
        return f"can't recheck DeletionTimestamp: {error}"
    found = fresh["metadata"]
    assert isinstance(found, dict), f"{owner.kind} {owner.key} came without metadata"
    if found.get("uid") != metadata.uid:
        wanted = f"got uid {found.get('uid')}, wanted {metadata.uid}"
        return f"can't recheck DeletionTimestamp: original {owner.kind} {owner.key} is gone: {wanted}"
    if found.get("deletionTimestamp") is not None:
        return f"{owner.key} has just been deleted at {found['deletionTimestamp']}"
    return ""
