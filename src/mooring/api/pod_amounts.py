"""Total resource amounts of a pod, over its containers, init containers and pod-level resources, as quantities.

1. Containers are added. Init containers run one after the other, so the largest counts, together with the sidecars
   that run already; sidecars also run together with the containers.
2. Pod-level resources override the sum.
3. LimitRanger, quotas and the fit check of a resize count differently; `Counting` has the differences. The scheduler
   counts in other ways again, as integers: `resources`. Here amounts are printed, so quantities keep their format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.quantity import Quantity, parse_quantity
from mooring.api.resource_names import CPU, MEMORY, is_pod_level_resource
from mooring.api.resources import is_resize_infeasible, is_sidecar
from mooring.api.views.base import ResourceList
from mooring.api.views.pod import Container, ContainerStatus, Pod, ResourceRequirements

Amounts: TypeAlias = dict[str, Quantity]
_Which: TypeAlias = Callable[[ResourceRequirements], ResourceList]


@dataclass(frozen=True, slots=True)
class Counting:
    """How the amounts of a pod are counted."""

    sees_status: bool
    """Whether the allocated resources of a container count if they exceed its requests."""
    adds_overhead: bool
    is_pod_level: Callable[[str], bool]
    """Whether pod-level resources override a resource."""


FOR_LIMIT_RANGES = Counting(sees_status=False, adds_overhead=False, is_pod_level=lambda name: name in (CPU, MEMORY))
FOR_QUOTAS = Counting(sees_status=True, adds_overhead=True, is_pod_level=is_pod_level_resource)
FOR_NODES = Counting(sees_status=False, adds_overhead=True, is_pod_level=is_pod_level_resource)


def amounts(resources: ResourceList | None) -> Amounts:
    """A list of resources as quantities."""
    return {name: parse_quantity(raw) for name, raw in (resources or {}).items()}


def pod_requests(pod: Pod, counting: Counting) -> Amounts:
    total = _without_overhead(pod, _requests, counting)
    if counting.adds_overhead:
        _add(total, amounts(pod.spec.overhead))
    return total


def pod_limits(pod: Pod, counting: Counting) -> Amounts:
    total = _without_overhead(pod, _limits, counting)
    if counting.adds_overhead:
        for name, amount in amounts(pod.spec.overhead).items():
            if total.get(name):
                total[name] += amount
    return total


def _requests(resources: ResourceRequirements) -> ResourceList:
    return resources.requests


def _limits(resources: ResourceRequirements) -> ResourceList:
    return resources.limits


def _without_overhead(pod: Pod, which: _Which, counting: Counting) -> Amounts:
    total = _sum_of_containers(pod, which, counting)
    if pod.spec.resources is not None:
        pod_amounts = amounts(which(pod.spec.resources))
        total.update({name: amount for name, amount in pod_amounts.items() if counting.is_pod_level(name)})
    return total


def _sum_of_containers(pod: Pod, which: _Which, counting: Counting) -> Amounts:
    statuses = _statuses(pod) if counting.sees_status else {}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _of_container(pod, container, which, statuses))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            mine = _of_container(pod, container, which, statuses)
            _add(total, mine)
            _add(sidecars, mine)
            _raise_to(largest, sidecars)
        else:
            mine = _of_container(pod, container, which, {})
            _add(mine, sidecars)
            _raise_to(largest, mine)
    _raise_to(total, largest)
    return total


def _of_container(pod: Pod, container: Container, which: _Which, statuses: Mapping[str, ContainerStatus]) -> Amounts:
    wanted = amounts(which(container.resources))
    status = statuses.get(container.name)
    if status is None or status.resources is None:
        return wanted
    actual = amounts(which(status.resources))
    if which is _requests:
        _raise_to(actual, amounts(status.allocated_resources))
    if is_resize_infeasible(pod):
        return actual
    _raise_to(wanted, actual)
    return wanted


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        have = total.get(name)
        total[name] = amount if have is None else have + amount


def _raise_to(least: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        have = least.get(name)
        if have is None or amount > have:
            least[name] = amount
