"""Writes the volumes and claims of a pod to the API server, and waits until they are bound.

Input: the PersistentVolumes that were matched with claims, and the claims to provision (`PodVolumes`). Output: volumes
with a `claimRef`, claims with the selected-node annotation. The persistentvolume-binder controller binds a claim and
its volume to each other; an external provisioner creates new volumes. If a provisioner fails, it removes the
annotation, and the pod is scheduled again.

1. A write carries the resource version that the decision used. A conflict fails the binding cycle, and the pod is
   scheduled again. Written objects are not reverted.
2. The binder checks again when one of the objects changes, and every `CHECK_PERIOD_S`: the pod or its node may be
   deleted, and a claim may name a volume that the watch delivers later.
3. The check reads objects from the watch, not assumed ones, and only versions at least as new as the written ones.
4. `AssumeCache` holds an assumed object until the watch delivers another version or a deletion. The same version
   again (a resync) changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from mooring.api.decode import decode_as
from mooring.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from mooring.api.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound
from mooring.api.views.meta import ApiObject
from mooring.api.views.storage import PersistentVolume, PersistentVolumeClaim
from mooring.client.interface import Client, PatchForm
from mooring.scheduler.cache.objects import ChangeWaiters, ObjectStore

Kind = TypeVar("Kind", bound=ApiObject)
Listener = Callable[[str, "Kind | None"], None]


class AssumeCache(Generic[Kind]):
    """The objects of one kind, with assumed objects in place of stored ones."""

    def __init__(self, store: ObjectStore[Kind]) -> None:
        self._store = store
        self._assumed: dict[str, Kind] = {}
        self._listeners: list[Listener[Kind]] = []
        store.listen(self._observed)

    def get(self, key: str) -> Kind | None:
        return self._assumed.get(key) or self._store.get(key)

    def assume(self, item: Kind) -> None:
        """Uses this object until the watch delivers another version, or until `restore`."""
        stored = self._store.get(item.key)
        assert stored is not None, f"{item.kind} {item.key} is assumed, but does not exist"
        assert stored.metadata.resource_version == item.metadata.resource_version, (
            f"{item.key!r} is out of sync (stored: {stored.metadata.resource_version}, "
            f"assume: {item.metadata.resource_version})"
        )
        self._assumed[item.key] = item
        self._notify(item.key, item)

    def restore(self, item: Kind) -> None:
        """Uses the stored object again, if this one is still assumed."""
        if self._assumed.get(item.key) is item:
            del self._assumed[item.key]
            self._notify(item.key, self._store.get(item.key))

    def listen(self, listener: Listener[Kind]) -> None:
        """Calls `listener(key, object or None)` for every object, and after every change."""
        self._listeners.append(listener)
        for item in self._store:
            listener(item.key, self._assumed.get(item.key, item))

    def _observed(self, old: Kind | None, new: Kind | None) -> None:
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        key = changed.key
        assumed = self._assumed.get(key)
        if assumed is not None:
            if new is not None and new.metadata.resource_version == assumed.metadata.resource_version:
                return
            del self._assumed[key]
        self._notify(key, new)

    def _notify(self, key: str, current: Kind | None) -> None:
        for listener in self._listeners:
            listener(key, current)


class VolumeBindingError(Exception):
    """The volumes of a pod were not bound. The text is kube-scheduler's."""


CHECK_PERIOD_S = 1.0

CanUse = Callable[[PersistentVolume, str], bool]
"""(volume, node name): whether the volume's node affinity matches the node."""


class VolumeBinder:
    """Writes volumes and claims, and waits until they are bound."""

    def __init__(
        self,
        client: Client,
        volumes: ObjectStore[PersistentVolume],
        claims: ObjectStore[PersistentVolumeClaim],
        can_use: CanUse,
    ) -> None:
        self._client = client
        self._volumes = volumes
        self._claims = claims
        self._can_use = can_use
        self._waiters = ChangeWaiters()
        volumes.listen(self._changed)
        claims.listen(self._changed)

    async def bind_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Writes the volume's `claimRef`."""
        reference = volume.spec.claim_ref
        assert reference is not None, f"{volume.key} has no claimRef"
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

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Writes the claim's selected-node annotation, which starts provisioning."""
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
        bindings: Iterable[tuple[PersistentVolume, str]],
        provisions: Iterable[PersistentVolumeClaim],
        timeout_s: float,
        why_impossible: Callable[[], str | None],
    ) -> None:
        """Returns when all are bound. `bindings` has the written volumes with the keys of their claims."""
        bindings, provisions = tuple(bindings), tuple(provisions)
        keys = [_object_key(volume) for volume, _ in bindings] + [_object_key(claim) for claim in provisions]
        keys += [f"{PersistentVolumeClaim.kind} {key}" for _, key in bindings]
        try:
            async with asyncio.timeout(timeout_s):
                with self._waiters.waiting_for(keys) as changed:
                    while not self._are_bound(node_name, bindings, provisions):
                        await self._waiters.wait_for_change(changed, CHECK_PERIOD_S)
                        if (why := why_impossible()) is not None:
                            raise VolumeBindingError(why)
        except TimeoutError:
            raise VolumeBindingError("context deadline exceeded") from None

    def _are_bound(
        self,
        node_name: str,
        bindings: tuple[tuple[PersistentVolume, str], ...],
        provisions: tuple[PersistentVolumeClaim, ...],
    ) -> bool:
        """Whether all are bound. Raises `VolumeBindingError` if they will never be."""
        return all(self._is_bound(node_name, volume, key) for volume, key in bindings) and all(
            self._is_provisioned(node_name, claim) for claim in provisions
        )

    def _is_bound(self, node_name: str, written: PersistentVolume, claim_key: str) -> bool:
        volume, claim = self._volumes.get(written.key), self._claims.get(claim_key)
        if volume is None:
            raise VolumeBindingError(f'failed to check binding: could not find v1.PersistentVolume "{written.key}"')
        if claim is None:
            raise VolumeBindingError(f'failed to check binding: could not find v1.PersistentVolumeClaim "{claim_key}"')
        if _is_older(volume, written):
            return False
        self._check_node_affinity(volume, node_name)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise VolumeBindingError(f'ClaimRef got reset for pv "{volume.key}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, node_name: str, written: PersistentVolumeClaim) -> bool:
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
                return False  # the watch delivers the volume later, or the claim loses it
            self._check_node_affinity(volume, node_name)
        return is_fully_bound(claim)

    def _check_node_affinity(self, volume: PersistentVolume, node_name: str) -> None:
        if not self._can_use(volume, node_name):
            raise VolumeBindingError(
                f'pv "{volume.key}" node affinity doesn\'t match node "{node_name}": no matching NodeSelectorTerms'
            )

    def _changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        if not self._waiters:
            return
        changed = new if new is not None else old
        assert changed is not None, "a change without an object"
        self._waiters.notify(_object_key(changed))


def _object_key(item: ApiObject) -> str:
    return f"{item.kind} {item.key}"


def _is_older(seen: ApiObject, written: ApiObject) -> bool:
    """Whether the watch has not delivered the written version yet."""
    return int(seen.metadata.resource_version or 0) < int(written.metadata.resource_version or 0)
