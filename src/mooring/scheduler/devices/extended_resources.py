"""Extended resources that a DeviceClass provides: `example.com/gpu: 2` requests two devices of a class.

Input: DeviceClasses; pods that request such resources. Output: the class of a resource; the ResourceClaim for a pod's
extended resources, and which container uses which request of it.

1. A class provides `deviceclass.resource.kubernetes.io/<its name>` and its `extendedResourceName`. Of several classes
   with the same `extendedResourceName`, the newest counts; of equally old ones, the first by name.
2. Init containers use the devices of later containers, where they suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.api.quantity import NANO, quantity_nano
from mooring.api.resources import DEVICE_CLASS_PREFIX, fit_filter_requests, is_device_backed_resource, is_sidecar
from mooring.api.views.devices import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from mooring.api.views.pod import Container, ContainerExtendedResourceRequest, Pod
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.cache.objects import ObjectStore
from mooring.scheduler.devices.requests import EXACT_COUNT

CLAIM_NAME = "<extended-resources>"
"""Name of the claim for a pod's extended resources before it is created. It is not a valid object name."""


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

    def backed(self, pod: Pod) -> dict[str, int]:
        """The requests of a pod that devices may satisfy; empty if none of the resources has a DeviceClass."""
        requests = fit_filter_requests(pod)
        wanted = {name: amount for name, amount in requests.items() if amount and is_device_backed_resource(name)}
        return wanted if any(name in self._classes for name in wanted) else {}

    def _changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        self.revision += 1
        if new is None:
            assert old is not None, "a change without a class"
            self._forget(old)
            return
        named = new.spec.extended_resource_name
        rival = self._classes.get(named) if named is not None else None
        if rival is not None and not _has_precedence(new, rival):
            return  # as in kube-scheduler, also for an older version of the same class
        if old is not None:
            self._forget(old)
        if named is not None:
            self._classes[named] = new
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
        passing = [i for i in range(init_count) if not is_sidecar(containers[i])]
        staying = [i for i in range(len(containers)) if i not in passing]
        lasting: list[DeviceRequest | None] = [None] * len(containers)
        lasting_mappings: list[ContainerExtendedResourceRequest] = []
        for index in staying:
            lasting[index], used = self._of_container(index, ())
            lasting_mappings += used
        largest: DeviceRequest | None = None
        short: dict[str, DeviceRequest] = {}
        short_mappings: list[ContainerExtendedResourceRequest] = []
        for index in passing:
            # Init containers run before later containers, and may use their devices.
            own, used = self._of_container(index, lasting[index:])
            if own is not None:
                short[own.name] = own
                largest = own if largest is None or _count(largest) < _count(own) else largest
            short_mappings += used
        if largest is not None:
            short_mappings = [
                _mapping(each.container_name, resource, largest.name) if each.request_name in short else each
                for each in short_mappings
            ]
        self.requests = [request for request in (largest, *lasting) if request is not None]
        self.mappings = [*lasting_mappings, *short_mappings]

    def _of_container(
        self, index: int, reusable: Sequence[DeviceRequest | None]
    ) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
        """The request of a container beyond the reusable devices, and the requests that it uses."""
        container = self._containers[index]
        wanted = _whole_amount(container.resources.requests, self._resource)
        used: list[ContainerExtendedResourceRequest] = []
        if not wanted:
            return None, used
        found = 0
        for request in reusable:
            if request is not None:
                found += _count(request)
                used.append(_mapping(container.name, self._resource, request.name))
                if found >= wanted:
                    return None, used
        place = sorted(container.resources.requests).index(self._resource)
        exactly = ExactDeviceRequest(
            device_class_name=self._class_name, allocation_mode=EXACT_COUNT, count=wanted - found
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


def _has_precedence(new: DeviceClass, rival: DeviceClass) -> bool:
    new_s, rival_s = _created_s(new), _created_s(rival)
    return new_s > rival_s or (new_s == rival_s and new.metadata.name < rival.metadata.name)


def _created_s(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return parse_rfc3339(created) if created is not None else float("-inf")
