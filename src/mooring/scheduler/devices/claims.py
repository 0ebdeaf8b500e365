"""ResourceClaims as stored, assumed or pending, and the devices that are allocated to them.

Input: claims from the watch; claims as the API server returned them after a write; allocations of `reserve`. Output:
each claim in its latest known version; `AllocatedState`, which counts the allocated devices.

An allocation is pending from `reserve` until it is written; other pods of the claim wait. A written claim is assumed
until the watch delivers it, or a newer version.

1. Only a newer version or a deletion from the watch replaces an assumed claim. Versions are compared as numbers, as in
   kube-scheduler; a version that is not a number counts as newer.
2. `AllocatedState` is the sum of the allocations of all claims and of all pending allocations, each counted once.
3. Administrative access allocates nothing. A share of a device consumes capacity and leaves the rest for others.

A pod that requests an extended resource which a DeviceClass provides (`example.com/gpu: 2`) gets a ResourceClaim.
`DeviceClassResolver` has the class of a resource; `claim_for` has the claim, and which container uses which request.

4. A class provides `deviceclass.resource.kubernetes.io/<its name>` and its `extendedResourceName`. Of several classes
   with the same `extendedResourceName`, the newest counts; of equally old ones, the first by name.
5. Init containers use the devices of later containers, where they suffice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.api.quantity import NANO, quantity_nano
from mooring.api.resources import DEVICE_CLASS_PREFIX, fit_filter_requests, is_device_backed_resource, is_sidecar
from mooring.api.views.devices import (
    AllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from mooring.api.views.meta import OwnerReference
from mooring.api.views.pod import Container, ContainerExtendedResourceRequest, Pod
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.pools import DeviceId, PoolId, PoolView
from mooring.scheduler.devices.requests import EXACT_COUNT

NOTHING: dict[str, int] = {}
CLAIM_NAME = "<extended-resources>"
"""Name of the claim for a pod's extended resources before it is created. It is not a valid object name."""


class AllocatedState:
    """The allocated devices, and the consumed capacity of shared ones."""

    def __init__(self) -> None:
        self._taken: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self.consumed: dict[DeviceId, dict[str, int]] = {}
        """Consumed capacity of shared devices, in billionths."""
        self.revision = 0
        self.changed_pools: set[PoolId] = set()
        """Pools whose devices changed. `DRAManager.sync` empties this set."""

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether the whole device is allocated."""
        return device in self._taken

    def is_in_use(self, device: DeviceId) -> bool:
        """Whether the device or a share of it is allocated."""
        return device in self._taken or device in self._shares or device in self.consumed

    def add(self, allocation: AllocationResult) -> None:
        self._count(allocation, 1)

    def remove(self, allocation: AllocationResult) -> None:
        self._count(allocation, -1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        self.revision += 1
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            self.changed_pools.add(device[:2])
            counts = self._taken if result.share_id is None else self._shares
            counts[device] += sign
            if counts[device] <= 0:
                del counts[device]
            if result.share_id is not None and result.consumed_capacity:
                consumed = self.consumed.setdefault(device, {})
                for name, raw in result.consumed_capacity.items():
                    consumed[name] = consumed.get(name, 0) + sign * quantity_nano(raw)
                if sign < 0 and not any(consumed.values()):
                    del self.consumed[device]


def counters_left(pool: PoolView, allocated: AllocatedState) -> dict[tuple[str, str], int]:
    """The remaining counters of a pool. They may be negative."""
    left = {
        (counter_set, name): amount_nano
        for counter_set, counters in pool.counter_sets.items()
        for name, amount_nano in counters.items()
    }
    for device in (*pool.devices, *pool.others):
        if device.kind.counters and allocated.is_in_use(device.id):
            for counter_set, name, amount_nano in device.kind.counters:
                left[counter_set, name] -= amount_nano
    return left


EXTENDED_RESOURCE_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


class UnknownClaimError(LookupError):
    """A claim that the watch has not delivered, or that is deleted."""


class ClaimTracker:
    """All claims of the cluster, with assumed claims and pending allocations."""

    def __init__(self, store: ObjectStore[ResourceClaim], allocated: AllocatedState) -> None:
        self._allocated = allocated
        self._stored = store
        self._claims: dict[str, ResourceClaim] = {}
        self._pending: dict[str, _PendingAllocation] = {}
        self._of_extended: dict[str, dict[str, ResourceClaim]] = {}
        """By the uid of their pod: claims for extended resources."""
        self._listeners: list[Callable[[str], None]] = []
        store.listen(self._observed)
        for claim in store:
            self._set_claim(claim.key, claim)

    def get(self, key: str) -> ResourceClaim | None:
        return self._claims.get(key)

    def for_extended_resources(self, pod_name: str, pod_uid: str) -> ResourceClaim | None:
        """The claim for the extended resources of a pod, left over from an earlier attempt."""
        for claim in self._of_extended.get(pod_uid, {}).values():
            if any(owner.uid == pod_uid and owner.name == pod_name for owner in _controllers(claim)):
                return claim
        return None

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls `listener(key)` after each change of a claim."""
        self._listeners.append(listener)

    # Pending allocations

    def add_pending(self, uid: str, allocation: AllocationResult) -> None:
        """Counts an allocation that is not written yet."""
        pending = self._pending.get(uid)
        if pending is not None:
            pending.pods += 1
            return
        self._pending[uid] = _PendingAllocation(allocation)
        self._allocated.add(allocation)

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        pending = self._pending.get(uid)
        return pending.allocation if pending is not None else None

    def remove_pending(self, uid: str, *, for_all: bool = False) -> bool:
        """Ends the pending allocation for one pod, or `for_all` pods. Returns whether it is removed."""
        pending = self._pending.get(uid)
        if pending is None:
            return False
        pending.pods -= 1
        if pending.pods and not for_all:
            return False
        del self._pending[uid]
        self._allocated.remove(pending.allocation)
        return True

    # Assumed claims

    def assume(self, claim: ResourceClaim) -> None:
        """Uses a claim as it was written. Raises `UnknownClaimError` if the watch has not delivered it."""
        known = self._claims.get(claim.key)
        if known is None:
            raise UnknownClaimError(f'could not find ResourceClaim "{claim.key}"')
        if not _is_newer(known, claim):
            self._set_claim(claim.key, claim)

    def restore(self, key: str) -> None:
        """Uses a claim as the watch delivered it."""
        self._set_claim(key, self._stored.get(key))

    def _observed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None:
            assert old is not None, "a change without a claim"
            self._set_claim(old.key, None)
            return
        known = self._claims.get(new.key)
        if known is None or known is old or _is_newer(new, known):
            self._set_claim(new.key, new)

    def _set_claim(self, key: str, claim: ResourceClaim | None) -> None:
        before = self._claims.pop(key, None)
        if claim is not None:
            self._claims[key] = claim
        self._index(before, claim)
        old = before.status.allocation if before is not None else None
        new = claim.status.allocation if claim is not None else None
        if old != new:
            if old is not None:
                self._allocated.remove(old)
            if new is not None:
                self._allocated.add(new)
        for listener in self._listeners:
            listener(key)

    def _index(self, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        for claim, is_there in ((before, False), (after, True)):
            if claim is None or claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) != "true":
                continue
            for owner in _controllers(claim):
                if is_there:
                    self._of_extended.setdefault(owner.uid, {})[claim.key] = claim
                elif self._of_extended.get(owner.uid, {}).pop(claim.key, None) and not self._of_extended[owner.uid]:
                    del self._of_extended[owner.uid]


class _PendingAllocation:
    """An allocation that is not written yet, and the number of pods that share it."""

    def __init__(self, allocation: AllocationResult) -> None:
        self.allocation = allocation
        self.pods = 1


def _controllers(claim: ResourceClaim) -> Iterable[OwnerReference]:
    return (owner for owner in claim.metadata.owner_references if owner.controller)


def _is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a claim has a later version than another."""
    mine, others = one.metadata.resource_version, other.metadata.resource_version
    return int(mine) > int(others) if mine.isdecimal() and others.isdecimal() else mine != others


class ExtendedClaim(NamedTuple):
    """The claim for a pod's extended resources, and which container uses which request."""

    spec: ResourceClaimSpec
    mappings: tuple[ContainerExtendedResourceRequest, ...]


class DeviceClassResolver:
    """Resolves extended resources to DeviceClasses."""

    def __init__(self, classes: ObjectStore[DeviceClass]) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self.revision = 0
        for device_class in classes:
            self._changed(None, device_class)
        classes.listen(self._changed)

    def __bool__(self) -> bool:
        return bool(self._classes)

    def get(self, resource: str) -> DeviceClass | None:
        return self._classes.get(resource)

    def device_backed_requests(self, pod: Pod) -> dict[str, int]:
        """The requests of a pod that devices may satisfy; empty if none of the resources has a DeviceClass."""
        requests = fit_filter_requests(pod)
        backed = {name: amount for name, amount in requests.items() if amount and is_device_backed_resource(name)}
        return backed if any(name in self._classes for name in backed) else {}

    def _changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        self.revision += 1
        if new is None:
            assert old is not None, "a change without a class"
            self._forget(old)
            return
        resource = new.spec.extended_resource_name
        current = self._classes.get(resource) if resource is not None else None
        if current is not None and not _has_precedence(new, current):
            return  # as in kube-scheduler, also for an older version of the same class
        if old is not None:
            self._forget(old)
        if resource is not None:
            self._classes[resource] = new
        self._classes[DEVICE_CLASS_PREFIX + new.metadata.name] = new

    def _forget(self, old: DeviceClass) -> None:
        self._classes.pop(DEVICE_CLASS_PREFIX + old.metadata.name, None)
        if old.spec.extended_resource_name is not None:
            self._classes.pop(old.spec.extended_resource_name, None)


def claim_for(pod: Pod, resources: Iterable[str], classes: DeviceClassResolver) -> ExtendedClaim:
    """The claim for the given extended resources of a pod."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    init_count = len(pod.spec.init_containers)
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = classes.get(resource)
        if device_class is not None:
            of_resource = _ResourceRequests(resource, device_class.metadata.name, containers, init_count)
            requests += of_resource.requests
            mappings += of_resource.mappings
    requests.sort(key=lambda request: request.name)
    return ExtendedClaim(ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests))), tuple(mappings))


class _ResourceRequests:
    """The requests of all containers for one resource."""

    def __init__(self, resource: str, class_name: str, containers: Sequence[Container], init_count: int) -> None:
        self._resource = resource
        self._class_name = class_name
        self._containers = containers
        terminating = [index for index in range(init_count) if not is_sidecar(containers[index])]
        running = [index for index in range(len(containers)) if index not in terminating]
        running_requests: list[DeviceRequest | None] = [None] * len(containers)
        running_mappings: list[ContainerExtendedResourceRequest] = []
        for index in running:
            running_requests[index], mappings = self._of_container(index, ())
            running_mappings += mappings
        largest: DeviceRequest | None = None
        init_names: set[str] = set()
        init_mappings: list[ContainerExtendedResourceRequest] = []
        for index in terminating:
            # Init containers run before later containers, and may use their devices.
            own, mappings = self._of_container(index, running_requests[index:])
            if own is not None:
                init_names.add(own.name)
                largest = own if largest is None or _count(largest) < _count(own) else largest
            init_mappings += mappings
        if largest is not None:
            # Init containers run one after the other: the largest of their requests serves all of them.
            init_mappings = [
                _mapping(mapping.container_name, resource, largest.name)
                if mapping.request_name in init_names
                else mapping
                for mapping in init_mappings
            ]
        self.requests = [request for request in (largest, *running_requests) if request is not None]
        self.mappings = [*running_mappings, *init_mappings]

    def _of_container(
        self, index: int, reusable: Sequence[DeviceRequest | None]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
        """The request of a container beyond the reusable devices, and the requests that it uses."""
        container = self._containers[index]
        count = _whole_amount(container.resources.requests, self._resource)
        used: list[ContainerExtendedResourceRequest] = []
        if not count:
            return None, used
        reused = 0
        for request in reusable:
            if request is not None:
                reused += _count(request)
                used.append(_mapping(container.name, self._resource, request.name))
                if reused >= count:
                    return None, used
        place = sorted(container.resources.requests).index(self._resource)
        exactly = ExactDeviceRequest(
            device_class_name=self._class_name, allocation_mode=EXACT_COUNT, count=count - reused
        )
        own = DeviceRequest(name=f"container-{index}-request-{place}", exactly=exactly)
        used.append(_mapping(container.name, self._resource, own.name))
        return own, used


def _whole_amount(requests: Mapping[str, str | int | float], resource: str) -> int:
    """The amount, if it is a whole number; 0 otherwise."""
    amount_nano = quantity_nano(requests[resource]) if resource in requests else 0
    return amount_nano // NANO if amount_nano % NANO == 0 else 0


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _mapping(container: str, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container, resource_name=resource, request_name=request)


def _has_precedence(new: DeviceClass, current: DeviceClass) -> bool:
    new_s, current_s = _created_s(new), _created_s(current)
    return new_s > current_s or (new_s == current_s and new.metadata.name < current.metadata.name)


def _created_s(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return parse_rfc3339(created) if created is not None else float("-inf")
