"""Validation of a pod's status, as kubelets and the scheduler write it.

1. A container that has terminated for good does not run again.
2. The QoS class is immutable.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.security import id_faults
from mooring.apiserver.kinds.pod.spec import pod_annotations_update_faults
from mooring.apiserver.validation.addresses import are_of_both_families, ip_faults, parse_ip
from mooring.apiserver.validation.fields import (
    Fault,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
)
from mooring.apiserver.validation.metadata import immutable_faults
from mooring.apiserver.validation.names import dns_label_faults, dns_subdomain_faults, qualified_name_faults
from mooring.apiserver.validation.values import internal_values

HEALTH_MESSAGE_LENGTH_MAX = 1024

_HEALTHS = ("Healthy", "Unhealthy", "Unknown")

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)
_NOT_AGAIN = "may not be transitioned to non-terminated state"
_NOT_COUNTED = "must be a non-negative integer"


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


def pod_status_faults(pod: Document, old: Document, options: PodOptions) -> list[Fault]:
    """What is wrong with a change of the status."""
    status, old_status = pod.get("status") or {}, old.get("status") or {}
    faults = pod_annotations_update_faults(pod, old, "metadata.annotations", options)
    faults += _conditions_faults(status.get("conditions") or (), "status.conditions")
    faults += _nomination_faults(status.get("nominatedNodeName", ""), old)
    if status.get("observedGeneration", 0) < 0:
        faults.append(invalid("status.observedGeneration", status["observedGeneration"], _NOT_COUNTED))
    faults += immutable_faults(status.get("qosClass", ""), old_status.get("qosClass", ""), "status.qosClass")
    faults += _resurrection_faults(status, old_status, old["spec"])
    faults += claim_statuses_faults(status, pod["spec"])
    faults += extended_claim_faults(status.get("extendedResourceClaimStatus"), pod["spec"])
    faults += _pod_status_addresses_faults(status, old_status, "podIPs")
    faults += _host_addresses_faults(status, old_status)
    for field, _ in _STATUSES:
        faults += _users_faults(status.get(field) or (), pod["spec"], f"status.{field}")
    return faults + allocated_resources_faults(status, pod["spec"])


# --- parts ------------------------------------------------------------------------------------------------------


def _conditions_faults(conditions: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    for index, condition in enumerate(conditions):
        here, kind = f"{path}[{index}]", condition.get("type", "")
        if condition.get("observedGeneration", 0) < 0:
            faults.append(invalid(f"{here}.observedGeneration", condition["observedGeneration"], _NOT_COUNTED))
        if kind not in _SYSTEM_CONDITIONS:
            faults += [invalid(f"{here}.Type", kind, text) for text in qualified_name_faults(kind)]
    return faults


def _nomination_faults(name: str, old: Document) -> list[Fault]:
    path = "status.nominatedNodeName"
    if not name or name == (old.get("status") or {}).get("nominatedNodeName", ""):
        return []
    faults = [invalid(path, name, text) for text in dns_subdomain_faults(name)]
    if old["spec"].get("nodeName"):
        faults.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    return faults


def _resurrection_faults(status: Document, old_status: Document, spec: Document) -> list[Fault]:
    """Containers that shall run again although they have ended for good."""
    faults: list[Fault] = []
    all_may_restart = any(
        rule.get("action") == "RestartAllContainers"
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules") or ()
    )
    for field, kind in _STATUSES:
        is_ephemeral = kind == "ephemeralContainers"
        if all_may_restart and not is_ephemeral:
            continue
        for index, was in enumerate(old_status.get(field) or ()):
            ended = (was.get("state") or {}).get("terminated")
            if ended is None or not _runs_again(status.get(field) or (), was.get("name", "")):
                continue
            container = _named(spec.get(kind) or (), was.get("name", ""))
            if is_ephemeral or container is None or not _may_restart(container, spec, ended.get("exitCode", 0)):
                faults.append(forbidden(f"status.{field}[{index}].state", _NOT_AGAIN))
    return faults


def _runs_again(statuses: Sequence[Document], name: str) -> bool:
    return any(
        each.get("name", "") == name and (each.get("state") or {}).get("terminated") is None for each in statuses
    )


def _named(containers: Sequence[Document], name: str) -> Document | None:
    return next((container for container in containers if container.get("name", "") == name), None)


def _may_restart(container: Document, spec: Document, exit_code: int) -> bool:
    """Whether the policies let a container run again: its rules first, then its own policy, then the pod's."""
    own = container.get("restartPolicy")
    if own is not None and any(_rule_applies(rule, exit_code) for rule in container.get("restartPolicyRules") or ()):
        return True
    policy = own if own in ("Always", "OnFailure", "Never") else spec.get("restartPolicy", "Always")
    return policy not in ("OnFailure", "Never") or (policy == "OnFailure" and exit_code != 0)


def _rule_applies(rule: Document, exit_code: int) -> bool:
    codes = rule.get("exitCodes")
    if codes is None or rule.get("action") not in ("Restart", "RestartAllContainers"):
        return False
    is_listed = exit_code in (codes.get("values") or ())
    return is_listed if codes.get("operator") == "In" else not is_listed


def _pod_status_addresses_faults(status: Document, old_status: Document, field: str) -> list[Fault]:
    addresses = [each.get("ip", "") for each in status.get(field) or ()]
    known = [each.get("ip", "") for each in old_status.get(field) or ()]
    faults: list[Fault] = []
    for index, address in enumerate(addresses):
        faults += ip_faults(address, f"status.{field}[{index}]", known)
    if len(addresses) < 2:
        return faults
    broken = next((index for index, address in enumerate(addresses) if parse_ip(address) is None), None)
    if broken is not None:
        detail = f"failed to check for dual stack with error:invalid IP[{broken}]: {addresses[broken]}"
        faults.append(internal(f"status.{field}", detail))
    if broken is not None or len(addresses) > 2 or not are_of_both_families(addresses):
        struct_name = "PodIP" if field == "podIPs" else "HostIP"
        detail = "may specify no more than one IP for each IP family"
        faults.append(invalid(f"status.{field}", internal_values(status[field], struct_name), detail))
    return faults


def _host_addresses_faults(status: Document, old_status: Document) -> list[Fault]:
    addresses = status.get("hostIPs")
    if not addresses:
        return []
    first = addresses[0].get("ip", "")
    faults = (
        []
        if status.get("hostIP", "") == first
        else [invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`")]
    )
    return faults + _pod_status_addresses_faults(status, old_status, "hostIPs")


def _users_faults(statuses: Sequence[Document], spec: Document, path: str) -> list[Fault]:
    os_name = (spec.get("os") or {}).get("name", "linux")
    faults: list[Fault] = []
    for index, each in enumerate(statuses):
        user = (each.get("user") or {}).get("linux")
        if user is None:
            continue
        here = f"{path}[{index}].user.linux"
        if os_name == "windows":
            faults.append(forbidden(here, "cannot be set for a windows pod"))
            continue
        for field in ("uid", "gid"):
            faults += id_faults(user.get(field, 0), f"{here}.{field}")
        for position, group in enumerate(user.get("supplementalGroups") or ()):
            faults += id_faults(group, f"{here}.supplementalGroups[{position}]")
    return faults
