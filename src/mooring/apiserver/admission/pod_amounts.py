"""How much a pod asks for, in all: over its containers, its init containers and what is said of the pod as a whole.

Comes in   a pod, `requests` or `limits`, and what counts
Goes out   quantities by resource

 1. Containers add up. Init containers run one after the other, so the largest counts, together with the sidecars that
    run already; sidecars also run on beside the containers.
 2. What is said of the pod as a whole overrules the sum.
 3. Three parts of Kubernetes count three ways, and `Counting` says how they differ: limit ranges, quotas, and the check
    whether a resized pod fits on its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.quantity import Quantity, parse_quantity
from mooring.api.resource_names import CPU, MEMORY, is_pod_level_resource

Amounts: TypeAlias = dict[str, Quantity]


@dataclass(frozen=True, slots=True)
class Counting:
    """What counts."""

    sees_status: bool
    """Whether what the kubelet has given a container counts if it is more than what is asked for."""
    adds_overhead: bool
    is_pod_level: Callable[[str], bool]
    """Whether a resource may be overruled for the pod as a whole."""


FOR_LIMIT_RANGES = Counting(sees_status=False, adds_overhead=False, is_pod_level=lambda name: name in (CPU, MEMORY))
FOR_QUOTAS = Counting(sees_status=True, adds_overhead=True, is_pod_level=is_pod_level_resource)
FOR_NODES = Counting(sees_status=False, adds_overhead=True, is_pod_level=is_pod_level_resource)


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """A list of resources as quantities."""
    return {name: parse_quantity(raw) for name, raw in (resources or {}).items()}


def pod_requests(pod: Document, counting: Counting) -> Amounts:
    spec = pod["spec"]
    total = _sum_of_containers(pod, "requests", counting)
    for name, amount in amounts((spec.get("resources") or {}).get("requests")).items():
        if counting.is_pod_level(name):
            total[name] = amount
    if counting.adds_overhead:
        _add(total, amounts(spec.get("overhead")))
    return total


def pod_limits(pod: Document, counting: Counting) -> Amounts:
    spec = pod["spec"]
    total = _sum_of_containers(pod, "limits", counting)
    for name, amount in amounts((spec.get("resources") or {}).get("limits")).items():
        if counting.is_pod_level(name):
            total[name] = amount
    if counting.adds_overhead:
        for name, amount in amounts(spec.get("overhead")).items():
            if total.get(name):
                total[name] += amount
    return total


def _sum_of_containers(pod: Document, which: str, counting: Counting) -> Amounts:
    spec = pod["spec"]
    statuses = _statuses(pod) if counting.sees_status else {}
    total: Amounts = {}
    for container in spec.get("containers") or []:
        _add(total, _of_container(pod, container, which, statuses))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
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


def _of_container(pod: Document, container: Document, which: str, statuses: Mapping[str, Document]) -> Amounts:
    wanted = amounts((container.get("resources") or {}).get(which))
    status = statuses.get(container.get("name", ""))
    if status is None or status.get("resources") is None:
        return wanted
    actual = amounts(status["resources"].get(which))
    if which == "requests":
        _raise_to(actual, amounts(status.get("allocatedResources")))
    if _is_resize_infeasible(pod):
        return actual
    _raise_to(wanted, actual)
    return wanted


def _statuses(pod: Document) -> dict[str, Document]:
    status = pod.get("status") or {}
    everybody = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return {one.get("name", ""): one for one in everybody}


def _is_resize_infeasible(pod: Document) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        have = total.get(name)
        total[name] = amount if have is None else have + amount


def _raise_to(least: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        have = least.get(name)
        if have is None or amount > have:
            least[name] = amount
