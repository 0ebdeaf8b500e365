"""Allocations written for real: what `dynamic_resources` reserved for a pod is told to the API, and waited for.

Comes in   the allocations of a pod's claims
Goes out   claims with an allocation, a finalizer and the pod among those that use them; the claim that stands for a
           pod's extended resources, created; patience, until all devices say that they are ready

 1. The finalizer is written before the allocation, so that no claim with devices can vanish.
 2. A claim is in flight until it is known what became of the write. Then what was written is believed, even before the
    watch tells of it.
 3. A conflict means that somebody else wrote the claim: it is read again and tried again, `TRIES_MAX` times.
 4. What is waited for is looked at whenever a claim changes, and every few seconds, because time can run out, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from mooring.api.decode import decode_as
from mooring.api.kinds import POD, RESOURCE_CLAIM
from mooring.api.views.devices import AllocationResult, ResourceClaim
from mooring.client.errors import ClientError, ConflictError
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import Clock, format_rfc3339
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.claims import EXTENDED_RESOURCE_ANNOTATION, ClaimBook, UnknownClaimError
from mooring.scheduler.plugins.dynamic_resources_claims import (
    DeviceBindingError,
    claim_uid,
    is_overdue,
    is_ready,
    is_reserved_for,
    needs_binding,
)
from mooring.scheduler.plugins.dynamic_resources_state import Reserved

logger = logging.getLogger(__name__)

FINALIZER = "resource.kubernetes.io/delete-protection"
TRIES_MAX = 5
RETRY_S = 0.01
LOOK_AGAIN_S = 5.0
"""How long at most until readiness is looked at again."""
KNOWN_AFTER_S_MAX = 120.0
"""How long a claim that was created here may take until the watch tells of it."""

Raw: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Raw], Awaitable[Raw]]
"""From a claim as it was read to the claim as it was written."""


class DeviceWriteError(Exception):
    """Devices could not be bound; the text is kube-scheduler's."""


class ClaimWriter:
    """Writes allocations and reservations, takes them back, and waits for devices."""

    def __init__(self, client: Client, clock: Clock, claims: ClaimBook, binding_timeout_s: float) -> None:
        self._client = client
        self._clock = clock
        self._claims = claims
        self._binding_timeout_s = binding_timeout_s
        self._bells = _Bells(claims)

    # PreBind

    async def write(self, pod: PodInfo, reserved: Reserved) -> None:
        """Tells the API server of all allocations of a pod. Raises `DeviceWriteError`."""
        part = reserved.part
        allocations: dict[str, AllocationResult] = (
            dict(zip(part.keys, reserved.allocations, strict=True)) if part is not None else {}
        )
        for claim in reserved.state.claims:
            if not is_reserved_for(claim, pod.uid):
                await self._bind(claim_uid(claim), claim.key, pod, allocations.get(claim.key))
        if part is not None and part.has_extended and part.specs[-1].devices.requests:
            await self._bind_extended(pod, reserved, part.uids[-1])

    async def _bind(self, uid: str, key: str, pod: PodInfo, allocation: AllocationResult | None) -> ResourceClaim:
        is_known = False
        try:
            written = await self._retried(key, lambda claim: self._reserve(claim, pod, allocation))
            is_known = self._assume(written)
            return written
        finally:
            if allocation is not None:
                self._claims.land(uid, for_all=is_known)

    async def _reserve(self, claim: Raw, pod: PodInfo, allocation: AllocationResult | None) -> Raw:
        """Adds an allocation, if there is one, and the pod to a claim."""
        key = _key_of(claim)
        if claim["metadata"].get("deletionTimestamp"):
            raise DeviceWriteError(f"claim {key} got deleted in the meantime")
        doing = "add reservation to claim"
        if allocation is not None:
            if claim.get("status", {}).get("allocation"):
                raise DeviceWriteError(f"claim {key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim["metadata"].get("finalizers", ()):
                finalizers = [*claim["metadata"].get("finalizers", ()), FINALIZER]
                claim["metadata"]["finalizers"] = finalizers
                claim = await self._update(claim, "add finalizer to claim")
            doing = "add allocation and reservation to claim"
            claim["status"] = {**claim.get("status", {}), "allocation": _plain(allocation)}
        status = claim.setdefault("status", {})
        if not status.get("allocation"):
            raise DeviceWriteError(f"claim {key} got deallocated elsewhere in the meantime")
        status["allocation"].setdefault("allocationTimestamp", format_rfc3339(self._clock.wall_s()))
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status["reservedFor"] = [*status.get("reservedFor", ()), consumer]
        return await self._update(claim, doing, subresource="status")

    async def _bind_extended(self, pod: PodInfo, reserved: Reserved, uid: str) -> None:
        """Creates the claim that stands for the pod's extended resources, and tells the pod of it."""
        part = reserved.part
        assert part is not None, f"{pod} was allocated nothing"
        body = {
            "apiVersion": ResourceClaim.api_version,
            "kind": ResourceClaim.kind,
            "metadata": {
                "generateName": f"{pod.name}-extended-resources-",
                "namespace": pod.namespace,
                "annotations": {EXTENDED_RESOURCE_ANNOTATION: "true"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
                ],
            },
            "spec": _plain(part.specs[-1]),
        }
        try:
            created = decode_as(ResourceClaim, await self._client.create(RESOURCE_CLAIM, pod.namespace, body))
        except ClientError as error:
            self._claims.land(uid)
            raise DeviceWriteError(f"create claim for extended resources {pod.namespace}/: {error}") from error
        try:
            written = await self._bind_created(created, pod, reserved.allocations[-1])
            await self._wait_known(written)
        finally:
            self._claims.land(uid)
        status = {"requestMappings": _plain(part.mappings), "resourceClaimName": written.metadata.name}
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        try:
            await self._client.patch(POD, pod.namespace, pod.name, patch, form=PatchForm.MERGE, subresource="status")
        except ClientError as error:
            raise DeviceWriteError(f"update pod {pod.key} ExtendedResourceClaimStatus: {error}") from error

    async def _bind_created(self, created: ResourceClaim, pod: PodInfo, allocation: AllocationResult) -> ResourceClaim:
        return await self._retried(created.key, lambda claim: self._reserve(claim, pod, allocation))

    def has_to_wait(self, reserved: Reserved) -> bool:
        """Whether some device of a pod must be made ready before the pod may go to its node."""
        keys = [claim.key for claim in reserved.state.claims]
        return any((claim := self._claims.get(key)) is not None and needs_binding(claim) for key in keys)

    async def wait_ready(self, reserved: Reserved) -> None:
        """Comes back when all devices of a pod are ready. Raises `DeviceWriteError`."""
        keys = [claim.key for claim in reserved.state.claims]
        end_s = self._clock.now_s() + self._binding_timeout_s
        with self._bells.hung(keys) as bell:
            while not self._are_ready(keys):
                if self._clock.now_s() >= end_s:
                    raise DeviceWriteError("device binding timeout: context deadline exceeded")
                await _rung(bell, min(LOOK_AGAIN_S, end_s - self._clock.now_s()))

    def _are_ready(self, keys: Sequence[str]) -> bool:
        for key in keys:
            claim = self._claims.get(key)
            if claim is None:
                raise DeviceWriteError(f'could not find ResourceClaim "{key}"')
            try:
                if is_ready(claim):
                    continue
            except DeviceBindingError as error:
                raise DeviceWriteError(str(error)) from error
            if is_overdue(claim, self._clock.wall_s(), self._binding_timeout_s):
                raise DeviceWriteError(f"device binding timeout: claim={claim.metadata.name}")
            return False
        return True

    # Taking back

    async def release(self, pod: PodInfo, claims: Sequence[ResourceClaim], of_extended: ResourceClaim | None) -> None:
        """Takes the pod off its claims, and deletes the claim that stands for its extended resources."""
        for claim in claims:
            if claim.status.allocation is None or not is_reserved_for(claim, pod.uid):
                continue
            reserved_for = [{"$patch": "delete", "uid": pod.uid}]
            patch = {"metadata": {"uid": claim.metadata.uid}, "status": {"reservedFor": reserved_for}}
            namespace, name = claim.metadata.namespace, claim.metadata.name
            try:
                await self._client.patch(
                    RESOURCE_CLAIM, namespace, name, patch, form=PatchForm.STRATEGIC, subresource="status"
                )
            except ClientError as error:
                logger.warning(
                    "cannot take pod %s off claim %s: %s", pod.key, claim.key, error
                )  # tried again next time
        if of_extended is not None:
            try:
                await self.delete(of_extended.key)
            except (ClientError, DeviceWriteError) as error:
                logger.warning("cannot delete claim %s of pod %s: %s", of_extended.key, pod.key, error)

    async def deallocate(self, key: str, resource_version: str) -> None:
        """Takes the devices from a claim, unless somebody has written it meanwhile. Raises `ClientError`."""
        claim = await self._read(key)
        if claim["metadata"].get("resourceVersion", "") != resource_version:
            raise ConflictError(f"claim {key} was changed in the meantime")
        status = claim.get("status", {})
        for field in ("allocation", "reservedFor", "devices"):
            status.pop(field, None)
        claim["status"] = status
        await self._client.update(
            RESOURCE_CLAIM, claim["metadata"]["namespace"], claim["metadata"]["name"], claim, subresource="status"
        )

    async def delete(self, key: str) -> None:
        """Deletes a claim that the scheduler has created. Raises `ClientError`, `DeviceWriteError`."""

        async def unprotect(claim: Raw) -> Raw:
            kept = [each for each in claim["metadata"].get("finalizers", ()) if each != FINALIZER]
            claim["metadata"]["finalizers"] = kept
            return await self._update(claim, "update resourceclaim")

        await self._retried(key, unprotect)
        namespace, _, name = key.partition("/")
        await self._client.delete(RESOURCE_CLAIM, namespace, name)

    # Requests

    async def _retried(self, key: str, change: Change) -> ResourceClaim:
        """Reads a claim and changes it; again, if somebody else has written it meanwhile."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                claim = await self._read(key)
            except ClientError as error:
                raise DeviceWriteError(f"get claim {key}: {error}") from error
            try:
                return msgspec.convert(await change(claim), ResourceClaim)
            except _Conflict as conflict:
                if attempt == TRIES_MAX:
                    raise DeviceWriteError(str(conflict)) from conflict
                await self._clock.wait(RETRY_S)
        raise AssertionError("the last try ends it")

    async def _read(self, key: str) -> Raw:
        namespace, _, name = key.partition("/")
        raw: Raw = msgspec.json.decode(await self._client.get(RESOURCE_CLAIM, namespace, name))
        return raw

    async def _update(self, claim: Raw, doing: str, subresource: str = "") -> Raw:
        metadata = claim["metadata"]
        try:
            written = await self._client.update(
                RESOURCE_CLAIM, metadata["namespace"], metadata["name"], claim, subresource=subresource
            )
        except ConflictError as error:
            raise _Conflict(f"{doing} {_key_of(claim)}: {error}") from error
        except ClientError as error:
            raise DeviceWriteError(f"{doing} {_key_of(claim)}: {error}") from error
        updated: Raw = msgspec.json.decode(written)
        return updated

    def _assume(self, written: ResourceClaim) -> bool:
        try:
            self._claims.assume(written)
        except UnknownClaimError:
            return False
        return True

    async def _wait_known(self, written: ResourceClaim) -> None:
        """Until the watch has told of a claim that was created here: only then can more be believed of it."""
        end_s = self._clock.now_s() + KNOWN_AFTER_S_MAX
        with self._bells.hung([written.key]) as bell:
            while not self._assume(written):
                if self._clock.now_s() >= end_s:
                    logger.warning("claim %s was created, but the watch does not tell of it", written.key)
                    return
                await _rung(bell, end_s - self._clock.now_s())


@dataclass(frozen=True, slots=True)
class Deallocation:
    """Takes the devices from a claim that is in a pod's way."""

    writer: ClaimWriter
    key: str
    resource_version: str

    async def __call__(self) -> None:
        await self.writer.deallocate(self.key, self.resource_version)


@dataclass(frozen=True, slots=True)
class Deletion:
    """Deletes the claim that an earlier attempt has left."""

    writer: ClaimWriter
    key: str

    async def __call__(self) -> None:
        await self.writer.delete(self.key)


class _Conflict(Exception):
    """Somebody else has written the claim meanwhile."""


class _Bells:
    """Rings for whoever waits for a claim to change."""

    def __init__(self, claims: ClaimBook) -> None:
        self._bells: dict[str, list[asyncio.Event]] = {}
        claims.listen(self._ring)

    @contextmanager
    def hung(self, keys: Sequence[str]) -> Iterator[asyncio.Event]:
        """A bell that rings whenever one of the claims changes."""
        bell = asyncio.Event()
        for key in keys:
            self._bells.setdefault(key, []).append(bell)
        try:
            yield bell
        finally:
            for key in keys:
                self._bells[key].remove(bell)
                if not self._bells[key]:
                    del self._bells[key]

    def _ring(self, key: str) -> None:
        for bell in self._bells.get(key, ()):
            bell.set()


async def _rung(bell: asyncio.Event, timeout_s: float) -> None:
    """Until the bell rings, or time is over."""
    try:
        async with asyncio.timeout(timeout_s):
            await bell.wait()
    except TimeoutError:
        return
    bell.clear()


def _plain(value: object) -> Any:
    """A view as JSON is written."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _key_of(claim: Raw) -> str:
    return f"{claim['metadata'].get('namespace', '')}/{claim['metadata'].get('name', '')}"
