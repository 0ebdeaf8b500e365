"""Writes allocations and reservations to the API server, and waits for devices.

Input: the allocations of a pod's claims (`PodAllocations`). Output: claims with an allocation, a finalizer and the pod
in `reservedFor`; the created claim for a pod's extended resources.

1. The finalizer is written before the allocation, so that no allocated claim can be deleted.
2. An allocation is pending until it is written or the binding fails. A written claim is assumed, before the watch
   delivers it.
3. After a conflict the claim is read again and the write is retried, at most `TRIES_MAX` times.
4. The readiness of devices is checked whenever a claim changes, and every `CHECK_PERIOD_S`, because of the timeout.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from mooring.api.decode import decode_as
from mooring.api.kinds import POD, RESOURCE_CLAIM
from mooring.api.views.devices import AllocationResult, ResourceClaim
from mooring.client.errors import ClientError, ConflictError
from mooring.client.interface import Client, PatchForm
from mooring.kit.clock import Clock, format_rfc3339
from mooring.scheduler.cache.objects import ChangeWaiters
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.claims import EXTENDED_RESOURCE_ANNOTATION, ClaimTracker
from mooring.scheduler.plugins.dynamic_resources.state import (
    DeviceBindingError,
    PodAllocations,
    is_overdue,
    is_ready,
    is_reserved_for,
    needs_binding,
)

logger = logging.getLogger(__name__)

FINALIZER = "resource.kubernetes.io/delete-protection"
TRIES_MAX = 5
RETRY_S = 0.01
CHECK_PERIOD_S = 5.0
"""Longest time between two checks of readiness."""
DELIVERY_TIMEOUT_S = 120.0
"""Longest time until the watch delivers a created claim."""

Raw: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Raw], Awaitable[Raw]]
"""Changes a claim that was read, writes it, and returns the written claim."""
Written: TypeAlias = Callable[[ResourceClaim], None]
"""Called with each claim as it was written."""


class ClaimBindingError(Exception):
    """A claim could not be bound. The text is kube-scheduler's."""


class ClaimBinder:
    """Writes and removes allocations and reservations, and waits for devices."""

    def __init__(self, client: Client, clock: Clock, claims: ClaimTracker, binding_timeout_s: float) -> None:
        self._client = client
        self._clock = clock
        self._claims = claims
        self._binding_timeout_s = binding_timeout_s
        self._waiters = ChangeWaiters()
        claims.listen(self._waiters.notify)

    # PreBind

    async def write(self, pod: PodInfo, reserved: PodAllocations, written: Written) -> None:
        """Writes all allocations of a pod, and passes each claim to `written`. Raises `ClaimBindingError`."""
        to_allocate = reserved.to_allocate
        allocations: dict[str, AllocationResult] = (
            dict(zip(to_allocate.keys, reserved.allocations, strict=True)) if to_allocate is not None else {}
        )
        for claim in reserved.state.claims:
            if not is_reserved_for(claim, pod.uid):
                written(await self._bind(claim.key, pod, allocations.get(claim.key)))
        if to_allocate is not None and to_allocate.has_extended and to_allocate.specs[-1].devices.requests:
            await self._bind_extended(pod, reserved, written)

    async def _bind(self, key: str, pod: PodInfo, allocation: AllocationResult | None) -> ResourceClaim:
        return await self._retried(key, lambda claim: self._reserve(claim, pod, allocation))

    async def _reserve(self, claim: Raw, pod: PodInfo, allocation: AllocationResult | None) -> Raw:
        """Adds the pod, and the allocation if there is one, to a claim."""
        key = _key_of(claim)
        if claim["metadata"].get("deletionTimestamp"):
            raise ClaimBindingError(f"claim {key} got deleted in the meantime")
        doing = "add reservation to claim"
        if allocation is not None:
            if claim.get("status", {}).get("allocation"):
                raise ClaimBindingError(f"claim {key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim["metadata"].get("finalizers", ()):
                finalizers = [*claim["metadata"].get("finalizers", ()), FINALIZER]
                claim["metadata"]["finalizers"] = finalizers
                claim = await self._update(claim, "add finalizer to claim")
            doing = "add allocation and reservation to claim"
            claim["status"] = {**claim.get("status", {}), "allocation": _plain(allocation)}
        status = claim.setdefault("status", {})
        if not status.get("allocation"):
            raise ClaimBindingError(f"claim {key} got deallocated elsewhere in the meantime")
        status["allocation"].setdefault("allocationTimestamp", format_rfc3339(self._clock.wall_s()))
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status["reservedFor"] = [*status.get("reservedFor", ()), consumer]
        return await self._update(claim, doing, subresource="status")

    async def _bind_extended(self, pod: PodInfo, reserved: PodAllocations, written: Written) -> None:
        """Creates the claim for the pod's extended resources, and writes its name to the pod's status."""
        to_allocate = reserved.to_allocate
        assert to_allocate is not None, f"{pod} has no allocation"
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
            "spec": _plain(to_allocate.specs[-1]),
        }
        try:
            created = decode_as(ResourceClaim, await self._client.create(RESOURCE_CLAIM, pod.namespace, body))
        except ClientError as error:
            raise ClaimBindingError(f"create claim for extended resources {pod.namespace}/: {error}") from error
        claim = await self._bind(created.key, pod, reserved.allocations[-1])
        await self._wait_delivered(claim.key)
        written(claim)
        status = {"requestMappings": _plain(to_allocate.mappings), "resourceClaimName": claim.metadata.name}
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        try:
            await self._client.patch(POD, pod.namespace, pod.name, patch, form=PatchForm.MERGE, subresource="status")
        except ClientError as error:
            raise ClaimBindingError(f"update pod {pod.key} ExtendedResourceClaimStatus: {error}") from error

    def has_to_wait(self, reserved: PodAllocations) -> bool:
        """Whether a device of the pod has binding conditions."""
        keys = [claim.key for claim in reserved.state.claims]
        return any((claim := self._claims.get(key)) is not None and needs_binding(claim) for key in keys)

    async def wait_ready(self, reserved: PodAllocations) -> None:
        """Returns when all devices of a pod are ready. Raises `ClaimBindingError`."""
        keys = [claim.key for claim in reserved.state.claims]
        end_s = self._clock.now_s() + self._binding_timeout_s
        with self._waiters.waiting_for(keys) as changed:
            while not self._are_ready(keys):
                if self._clock.now_s() >= end_s:
                    raise ClaimBindingError("device binding timeout: context deadline exceeded")
                await self._waiters.wait_for_change(changed, min(CHECK_PERIOD_S, end_s - self._clock.now_s()))

    def _are_ready(self, keys: Sequence[str]) -> bool:
        for key in keys:
            claim = self._claims.get(key)
            if claim is None:
                raise ClaimBindingError(f'could not find ResourceClaim "{key}"')
            try:
                if is_ready(claim):
                    continue
            except DeviceBindingError as error:
                raise ClaimBindingError(str(error)) from error
            if is_overdue(claim, self._clock.wall_s(), self._binding_timeout_s):
                raise ClaimBindingError(f"device binding timeout: claim={claim.metadata.name}")
            return False
        return True

    # Release

    async def release(self, pod: PodInfo, claims: Sequence[ResourceClaim], of_extended: ResourceClaim | None) -> None:
        """Removes the pod from `reservedFor` of its claims, and deletes the claim for its extended resources."""
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
                    "cannot remove pod %s from reservedFor of claim %s: %s", pod.key, claim.key, error
                )  # retried in the next attempt
        if of_extended is not None:
            try:
                await self.delete(of_extended.key)
            except (ClientError, ClaimBindingError) as error:
                logger.warning("cannot delete claim %s of pod %s: %s", of_extended.key, pod.key, error)

    async def deallocate(self, key: str, resource_version: str) -> None:
        """Deallocates a claim, unless it was changed in the meantime. Raises `ClientError`."""
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
        """Deletes a claim that the scheduler has created. Raises `ClientError`, `ClaimBindingError`."""

        async def unprotect(claim: Raw) -> Raw:
            others = [finalizer for finalizer in claim["metadata"].get("finalizers", ()) if finalizer != FINALIZER]
            claim["metadata"]["finalizers"] = others
            return await self._update(claim, "update resourceclaim")

        await self._retried(key, unprotect)
        namespace, _, name = key.partition("/")
        await self._client.delete(RESOURCE_CLAIM, namespace, name)

    # Requests

    async def _retried(self, key: str, change: Change) -> ResourceClaim:
        """Reads a claim and changes it. Retries after a conflict."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                claim = await self._read(key)
            except ClientError as error:
                raise ClaimBindingError(f"get claim {key}: {error}") from error
            try:
                return msgspec.convert(await change(claim), ResourceClaim)
            except _Conflict as conflict:
                if attempt == TRIES_MAX:
                    raise ClaimBindingError(str(conflict)) from conflict
                await self._clock.wait(RETRY_S)
        raise AssertionError("the last attempt returns or raises")

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
            raise ClaimBindingError(f"{doing} {_key_of(claim)}: {error}") from error
        updated: Raw = msgspec.json.decode(written)
        return updated

    async def _wait_delivered(self, key: str) -> None:
        """Waits until the watch delivers a created claim, so that it can be assumed."""
        end_s = self._clock.now_s() + DELIVERY_TIMEOUT_S
        with self._waiters.waiting_for([key]) as changed:
            while self._claims.get(key) is None:
                if self._clock.now_s() >= end_s:
                    logger.warning("claim %s was created, but the watch has not delivered it", key)
                    return
                await self._waiters.wait_for_change(changed, end_s - self._clock.now_s())


@dataclass(frozen=True, slots=True)
class Deallocation:
    """Deallocates a claim whose devices are not available to the pod."""

    binder: ClaimBinder
    key: str
    resource_version: str

    async def __call__(self) -> None:
        await self.binder.deallocate(self.key, self.resource_version)


@dataclass(frozen=True, slots=True)
class ClaimDeletion:
    """Deletes the claim for extended resources of an earlier attempt."""

    binder: ClaimBinder
    key: str

    async def __call__(self) -> None:
        await self.binder.delete(self.key)


class _Conflict(Exception):
    """The claim was changed in the meantime."""


def _plain(value: object) -> Any:
    """A view as plain JSON data."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _key_of(claim: Raw) -> str:
    return f"{claim['metadata'].get('namespace', '')}/{claim['metadata'].get('name', '')}"
