"""Checks of values that the typed decoder accepts: quantities, timestamps, names.

Views keep quantities and timestamps as text, because most are never read. The engine would reject an invalid one
without naming the object.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.errors import QuantityError
from mooring.api.quantity import quantity_nano
from mooring.api.views.meta import ApiObject, RawQuantity, ResourceList
from mooring.api.views.node import Node
from mooring.api.views.pod import Container, ContainerStatus, Pod, ResourceRequirements
from mooring.api.views.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeResourceRequirements,
)
from mooring.kit.clock import TimestampError, parse_rfc3339

FieldProblem = tuple[str, str]
"""A field path and what is wrong with its value."""
Amounts = Iterator[tuple[str, RawQuantity]]


def problems_of(view: ApiObject) -> Iterator[FieldProblem]:
    """All invalid values of an object."""
    if not view.metadata.name and not view.metadata.generate_name:
        yield "metadata.name", "found no name; give the object one"
    for path, name in (("metadata.name", view.metadata.name), ("metadata.namespace", view.metadata.namespace)):
        if not name.isprintable():  # it would control the terminal; no API server stores it
            yield path, f"found {name!r}, which contains a control character"
    for path, raw in quantities_of(view):
        fault = _quantity_problem(raw)
        if fault is not None:
            yield path, fault
    for path, timestamp in _timestamps_of(view):
        if timestamp is not None:
            try:
                parse_rfc3339(timestamp)
            except TimestampError as error:
                yield path, str(error)


def quantities_of(view: ApiObject) -> Amounts:
    """All quantities that scheduling reads, with their paths."""
    match view:
        case Pod():
            yield from _of_pod(view)
        case Node():
            yield from _listed("status.allocatable", view.status.allocatable)
            yield from _listed("status.capacity", view.status.capacity)
        case PersistentVolume():
            yield from _listed("spec.capacity", view.spec.capacity)
        case PersistentVolumeClaim():
            yield from _required("spec.resources", view.spec.resources)
            yield from _listed("status.capacity", view.status.capacity)
        case CSIStorageCapacity():
            if view.capacity is not None:
                yield "capacity", view.capacity
            if view.maximum_volume_size is not None:
                yield "maximumVolumeSize", view.maximum_volume_size
        case _:
            return


def _of_pod(pod: Pod) -> Amounts:
    spec, status = pod.spec, pod.status
    yield from _of_containers("spec.containers", spec.containers)
    yield from _of_containers("spec.initContainers", spec.init_containers)
    yield from _required("spec.resources", spec.resources)
    yield from _listed("spec.overhead", spec.overhead)
    for index, volume in enumerate(spec.volumes):
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        if template is not None:
            path = f"spec.volumes[{index}].ephemeral.volumeClaimTemplate.spec.resources"
            yield from _required(path, template.spec.resources)
    yield from _of_statuses("status.containerStatuses", status.container_statuses)
    yield from _of_statuses("status.initContainerStatuses", status.init_container_statuses)
    yield from _required("status.resources", status.resources)
    yield from _listed("status.allocatedResources", status.allocated_resources)


def _of_containers(path: str, containers: tuple[Container, ...]) -> Amounts:
    for index, container in enumerate(containers):
        yield from _required(f"{path}[{index}].resources", container.resources)


def _of_statuses(path: str, statuses: tuple[ContainerStatus, ...]) -> Amounts:
    for index, status in enumerate(statuses):
        yield from _required(f"{path}[{index}].resources", status.resources)
        yield from _listed(f"{path}[{index}].allocatedResources", status.allocated_resources)


def _required(path: str, resources: ResourceRequirements | VolumeResourceRequirements | None) -> Amounts:
    if resources is not None:
        yield from _listed(f"{path}.requests", resources.requests)
        yield from _listed(f"{path}.limits", resources.limits)


def _listed(path: str, amounts: ResourceList) -> Amounts:
    for name, raw in amounts.items():
        yield f"{path}.{name}", raw


def _quantity_problem(raw: RawQuantity) -> str | None:
    try:
        amount_nano = quantity_nano(raw)
    except QuantityError as error:
        return str(error)
    return f'"{raw}" is less than nothing; wanted 0 or more' if amount_nano < 0 else None


def _timestamps_of(view: ApiObject) -> Iterator[tuple[str, str | None]]:
    yield "metadata.creationTimestamp", view.metadata.creation_timestamp
    if isinstance(view, Pod):
        yield "status.startTime", view.status.start_time
