"""What is wrong with what a pod's status says about claims and devices.

Comes in   the status and the spec of a pod
Goes out   faults
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_supported, required, too_long
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults

HEALTH_MESSAGE_LENGTH_MAX = 1024

_HEALTHS = ("Healthy", "Unhealthy", "Unknown")


def claim_statuses_faults(status: Document, spec: Document) -> list[Fault]:
    """What is wrong with `resourceClaimStatuses`."""
    faults: list[Fault] = []
    known = [claim.get("name", "") for claim in spec.get("resourceClaims") or ()]
    seen: set[str] = set()
    for index, each in enumerate(status.get("resourceClaimStatuses") or ()):
        path, name, claim = (
            f"status.resourceClaimStatuses[{index}]",
            each.get("name", ""),
            each.get("resourceClaimName"),
        )
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            faults.append(invalid(f"{path}.name", name, detail))
        if name in seen:
            faults.append(duplicate(f"{path}.name", name))
        seen.add(name)
        if claim is not None:
            faults += [invalid(f"{path}.resourceClaimName", claim, text) for text in dns_subdomain_faults(claim)]
    return faults


def extended_claim_faults(status: Document | None, spec: Document) -> list[Fault]:
    """What is wrong with `extendedResourceClaimStatus`: which requests of containers a claim stands for."""
    if status is None:
        return []
    path = "status.extendedResourceClaimStatus"
    mappings, claim = status.get("requestMappings") or (), status.get("resourceClaimName", "")
    faults = [] if mappings else [required(f"{path}.requestMappings", "at least one request mapping is required")]
    containers = {
        each.get("name", ""): each for kind in ("initContainers", "containers") for each in spec.get(kind) or ()
    }
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(mappings):
        here = f"{path}.requestMappings[{index}]"
        container, resource, request = (
            mapping.get(field, "") for field in ("containerName", "resourceName", "requestName")
        )
        if container not in containers:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            faults.append(invalid(f"{here}.containerName", container, detail))
        elif resource not in ((containers[container].get("resources") or {}).get("requests") or {}):
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            faults.append(invalid(f"{here}.resourceName", resource, detail))
        faults += [invalid(f"{path}.requestName", request, text) for text in dns_label_faults(request)]
        if (container, resource, request) in seen:
            told = (("containerName", container), ("resourceName", resource), ("requestName", request))
            faults += [duplicate(f"{here}.{field}", value) for field, value in told]
        seen.add((container, resource, request))
    if not claim:
        return [*faults, required(f"{path}.resourceClaimName")]
    return faults + [invalid(f"{path}.resourceClaimName", claim, text) for text in dns_subdomain_faults(claim)]


def allocated_resources_faults(status: Document, spec: Document) -> list[Fault]:
    """What is wrong with `allocatedResourcesStatus` of containers."""
    faults: list[Fault] = []
    for field, kind in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        for index, each in enumerate(status.get(field) or ()):
            container = next((c for c in spec.get(kind) or () if c.get("name", "") == each.get("name", "")), None)
            here = f"status.{field}[{index}].allocatedResourcesStatus"
            faults += _allocations_faults(each.get("allocatedResourcesStatus") or (), container, here)
    for index, each in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if each.get("allocatedResourcesStatus"):
            here = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            faults.append(forbidden(here, "must not be specified in container status"))
    return faults


def _allocations_faults(allocations: Sequence[Document], container: Document | None, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for index, allocation in enumerate(allocations):
        here = f"{path}[{index}]"
        if container is not None:
            faults += _allocation_name_faults(allocation.get("name", ""), container, f"{here}.name")
        seen: set[str] = set()
        for position, resource in enumerate(allocation.get("resources") or ()):
            faults += _health_faults(resource, f"{here}.resources[{position}]")
            identifier = resource.get("resourceID", "")
            if identifier in seen:
                faults.append(duplicate(f"{here}.resources[{position}].resourceID", identifier))
            seen.add(identifier)
    return faults


def _allocation_name_faults(name: str, container: Document, path: str) -> list[Fault]:
    resources = container.get("resources") or {}
    if not name.startswith("claim:"):
        detail = "must match one of the container's resource requests"
        return [] if name in (resources.get("requests") or {}) else [invalid(path, name, detail)]
    for claim in resources.get("claims") or ():
        request = f"/{claim['request']}" if claim.get("request") else ""
        if name == f"claim:{claim.get('name', '')}{request}":
            return []
    detail = (
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' "
        "or 'claim:<claimName>' if request is empty"
    )
    return [invalid(path, name, detail)]


def _health_faults(resource: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    health, message = resource.get("health", ""), resource.get("message")
    if health not in _HEALTHS:
        faults.append(not_supported(f"{path}.health", health, _HEALTHS))
    if message is not None and not message:
        faults.append(required(f"{path}.message", "must be non-empty if specified"))
    elif message is not None and len(message.encode()) > HEALTH_MESSAGE_LENGTH_MAX:
        faults.append(too_long(f"{path}.message", HEALTH_MESSAGE_LENGTH_MAX))
    return faults
