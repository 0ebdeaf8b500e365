"""Resources of a pod as a whole: what its containers add up to, and whether the pod's own figures agree.

Comes in   a pod's spec
Goes out   sums by resource; faults

 1. Sidecars run beside everything that starts after them; plain init containers run one at a time before the others. So
    a pod needs the larger of (containers + sidecars) and of each init container with the sidecars before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mooring.api.document import Document
from mooring.api.quantity import Quantity, parse_quantity, quantity_nano
from mooring.api.resource_names import HUGE_PAGES_PREFIX
from mooring.apiserver.validation.fields import Fault, forbidden, invalid
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.resources import pod_resource_name_faults, resource_requirements_faults


def containers_sum(spec: Document, side: str) -> dict[str, Quantity]:
    """What all containers together request, or are limited to (`side` is `requests` or `limits`)."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, side))
    sidecars: dict[str, Quantity] = {}
    largest: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise_to(largest, sidecars)
        else:
            _add(amounts, sidecars)
            _raise_to(largest, amounts)
    _raise_to(total, largest)
    return total


def pod_resources_faults(spec: Document, claim_names: Collection[str], path: str, options: PodOptions) -> list[Fault]:
    """What is wrong with the resources of the pod as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return []
    here = f"{path}.resources"
    if spec.get("os", {}).get("name") == "windows":
        return [forbidden(here, "may not be set for a windows pod")]
    faults: list[Fault] = []
    if resources.get("claims") is not None:
        faults.append(forbidden(f"{here}.claims", "claims may not be set for Resources at pod-level"))
    faults += resource_requirements_faults(resources, here, claim_names, options, pod_resource_name_faults)
    faults += _requests_faults(spec, resources.get("requests") or {}, f"{here}.requests")
    faults += _limits_faults(spec, resources.get("limits") or {}, here)
    return faults


def _requests_faults(spec: Document, requests: Mapping[str, str], path: str) -> list[Fault]:
    if not requests:
        return []
    detail = "must be greater than or equal to aggregate container requests of"
    return [
        invalid(f"{path}[{name}]", requests[name], f"{detail} {wanted}")
        for name, wanted in containers_sum(spec, "requests").items()
        if name in requests and wanted.amount_nano > quantity_nano(requests[name])
    ]


def _limits_faults(spec: Document, limits: Mapping[str, str], path: str) -> list[Fault]:
    if not limits:
        return []
    detail = "must be greater than or equal to aggregate container limits of"
    faults = [
        invalid(f"{path}.limits[{name}]", limits[name], f"{detail} {used}")
        for name, used in containers_sum(spec, "limits").items()
        if name.startswith(HUGE_PAGES_PREFIX) and name in limits and used.amount_nano > quantity_nano(limits[name])
    ]
    for index, container in enumerate(spec.get("containers") or ()):
        for name, raw in (container.get("resources", {}).get("limits") or {}).items():
            if name in limits and quantity_nano(raw) > quantity_nano(limits[name]):
                here = f"{path}.containers[{index}][{name}].limits"
                faults.append(invalid(here, raw, f"must be less than or equal to pod limits of {limits[name]}"))
    return faults


def _amounts(container: Document, side: str) -> dict[str, Quantity]:
    amounts = container.get("resources", {}).get(side) or {}
    return {name: parse_quantity(raw) for name, raw in amounts.items()}


def _add(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount
