"""Binding volumes for real: what `volume_binding` reserved for a pod is written to the API, and waited for.

Comes in   which volume each claim of a pod was given, and which claims wait for a volume to be made
Goes out   volumes that name their claim, claims that name the node; then patience, until all of them are bound

The scheduler only says what it wants: a controller binds claim and volume to each other, and a provisioner makes new
volumes. If the provisioner cannot, it takes the node's name off the claim, and the pod is scheduled again.

 1. A write carries the version that the decision was made on: if somebody else was faster, it is refused, and the pod
    is scheduled again. Nothing that was written is taken back.
 2. What is waited for is looked at whenever one of the objects changes; and each `LOOK_EVERY_S` for what does not ring:
    the pod and its node may vanish, and a claim may name a volume that the watch tells of only later.
 3. What the watch tells counts, not what was assumed; and only if it is as new as what was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from mooring.api.decode import decode_as
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound
from mooring.api.views.meta import ApiObject
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.client.interface import Client, PatchForm
from mooring.scheduler.cache.objects import ObjectStore


class VolumeBindingError(Exception):
    """Volumes were not bound; the text is kube-scheduler's."""


LOOK_EVERY_S = 1.0

CanReach = Callable[[PersistentVolume, str], bool]
"""(volume, node name): whether the volume's node affinity lets the node have it."""


class VolumeWriter:
    """Writes bindings and provisioning orders, and waits for them."""

    def __init__(
        self,
        client: Client,
        volumes: ObjectStore[PersistentVolume],
        claims: ObjectStore[PersistentVolumeClaim],
        can_reach: CanReach,
    ) -> None:
        self._client = client
        self._volumes = volumes
        self._claims = claims
        self._can_reach = can_reach
        self._bells: dict[str, list[asyncio.Event]] = {}
        """Who waits for which object, by kind and key."""
        volumes.listen(self._changed)
        claims.listen(self._changed)

    async def give(self, volume: PersistentVolume) -> PersistentVolume:
        """Writes into a volume which claim it belongs to."""
        reference = volume.spec.claim_ref
        assert reference is not None, f"{volume.key} was given to nobody"
        annotations = {k: v for k, v in volume.metadata.annotations.items() if k == BOUND_BY_CONTROLLER}
        patch = {
            "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": annotations},
            "spec": {
                "claimRef": {
                    "apiVersion": reference.api_version,
                    "kind": reference.kind,
                    "namespace": reference.namespace,
                    "name": reference.name,
                    "uid": reference.uid,
                    "resourceVersion": reference.resource_version,
                }
            },
        }
        name = volume.metadata.name
        written = await self._client.patch(PERSISTENT_VOLUME, "", name, patch, form=PatchForm.MERGE)
        return decode_as(PersistentVolume, written)

    async def order(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Writes onto a claim for which node a volume shall be made."""
        metadata = claim.metadata
        patch = {
            "metadata": {
                "resourceVersion": metadata.resource_version,
                "annotations": {SELECTED_NODE: metadata.annotations[SELECTED_NODE]},
            }
        }
        written = await self._client.patch(
            PERSISTENT_VOLUME_CLAIM, metadata.namespace, metadata.name, patch, form=PatchForm.MERGE
        )
        return decode_as(PersistentVolumeClaim, written)

    async def wait_bound(
        self,
        node_name: str,
        given: Iterable[tuple[PersistentVolume, str]],
        ordered: Iterable[PersistentVolumeClaim],
        timeout_s: float,
        why_in_vain: Callable[[], str | None],
    ) -> None:
        """Comes back when all of them are bound. `given`: volumes as written, with the keys of their claims."""
        given, ordered = tuple(given), tuple(ordered)
        keys = [_bell_key(volume) for volume, _ in given] + [_bell_key(claim) for claim in ordered]
        keys += [f"{PersistentVolumeClaim.kind} {key}" for _, key in given]
        bell = asyncio.Event()
        for key in keys:
            self._bells.setdefault(key, []).append(bell)
        try:
            async with asyncio.timeout(timeout_s):
                while not self._are_bound(node_name, given, ordered):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_EVERY_S):
                            await bell.wait()
                    bell.clear()
                    if (why := why_in_vain()) is not None:
                        raise VolumeBindingError(why)
        except TimeoutError:
            raise VolumeBindingError("context deadline exceeded") from None
        finally:
            for key in keys:
                self._bells[key].remove(bell)
                if not self._bells[key]:
                    del self._bells[key]

    def _are_bound(
        self,
        node_name: str,
        given: tuple[tuple[PersistentVolume, str], ...],
        ordered: tuple[PersistentVolumeClaim, ...],
    ) -> bool:
        """Whether nothing is left to wait for. Raises if waiting is in vain."""
        return all(self._is_given(node_name, volume, key) for volume, key in given) and all(
            self._is_made(node_name, claim) for claim in ordered
        )

    def _is_given(self, node_name: str, written: PersistentVolume, claim_key: str) -> bool:
        volume, claim = self._volumes.get(written.key), self._claims.get(claim_key)
        if volume is None:
            raise VolumeBindingError(f'failed to check binding: could not find v1.PersistentVolume "{written.key}"')
        if claim is None:
            raise VolumeBindingError(f'failed to check binding: could not find v1.PersistentVolumeClaim "{claim_key}"')
        if _is_older(volume, written):
            return False
        self._check_reach(volume, node_name)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeBindingError(f'ClaimRef got reset for pv "{volume.key}"')
        return is_fully_bound(claim)

    def _is_made(self, node_name: str, written: PersistentVolumeClaim) -> bool:
        claim = self._claims.get(written.key)
        if claim is None:
            text = f'could not find v1.PersistentVolumeClaim "{written.key}"'
            raise VolumeBindingError(f"failed to check provisioning pvc: {text}")
        if _is_older(claim, written):
            return False
        if not claim.metadata.annotations:
            raise VolumeBindingError(f'selectedNode annotation reset for PVC "{claim.metadata.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE) != node_name:
            raise VolumeBindingError(f'provisioning failed for PVC "{claim.metadata.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return False  # the watch will tell of it, or of the claim's being unbound
            self._check_reach(volume, node_name)
        return is_fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node_name: str) -> None:
        if not self._can_reach(volume, node_name):
            raise VolumeBindingError(
                f'pv "{volume.key}" node affinity doesn\'t match node "{node_name}": no matching NodeSelectorTerms'
            )

    def _changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        if not self._bells:
            return
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        for bell in self._bells.get(_bell_key(changed), ()):
            bell.set()


def _bell_key(item: ApiObject) -> str:
    return f"{item.kind} {item.key}"


def _is_older(seen: ApiObject, written: ApiObject) -> bool:
    """Whether the watch has not told of our own write yet."""
    return int(seen.metadata.resource_version or 0) < int(written.metadata.resource_version or 0)
