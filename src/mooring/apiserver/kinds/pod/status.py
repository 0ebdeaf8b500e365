"""Validation of a pod's status, as kubelets and the scheduler write it.

1. A container that has terminated for good does not run again.
2. The QoS class is immutable.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import PodOptions
from mooring.apiserver.kinds.pod.security import validate_id
from mooring.apiserver.kinds.pod.spec import validate_pod_annotations_update
from mooring.apiserver.validation.addresses import are_of_both_families, parse_ip, validate_ip
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, internal, invalid, required
from mooring.apiserver.validation.metadata import validate_immutable
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors, qualified_name_errors
from mooring.apiserver.validation.schema_rules import enum_values, struct_rules
from mooring.apiserver.validation.values import internal_values

_CLAIM_STATUS = struct_rules("core", "PodResourceClaimStatus")
_EXTENDED_CLAIM_STATUS = struct_rules("core", "PodExtendedResourceClaimStatus")
_RESTART_POLICIES = enum_values("core", "RestartPolicy")

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)
_NOT_AGAIN = "may not be transitioned to non-terminated state"
_NOT_COUNTED = "must be a non-negative integer"


def validate_claim_statuses(status: Document, spec: Document) -> list[FieldError]:
    """Field errors of `resourceClaimStatuses`."""
    errors: list[FieldError] = []
    known = {claim.get("name", "") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, resource_claim_status in enumerate(status.get("resourceClaimStatuses") or ()):
        path, name = f"status.resourceClaimStatuses[{index}]", resource_claim_status.get("name", "")
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{path}.name", name, detail))
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        errors += _CLAIM_STATUS.validate(resource_claim_status, path)
    return errors


def validate_extended_claim(status: Document | None, spec: Document) -> list[FieldError]:
    """Field errors of `extendedResourceClaimStatus`: the container requests that a claim satisfies."""
    if status is None:
        return []
    path = "status.extendedResourceClaimStatus"
    mappings = status.get("requestMappings") or ()
    errors = [] if mappings else [required(f"{path}.requestMappings", "at least one request mapping is required")]
    containers = {
        container.get("name", ""): container
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    }
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(mappings):
        here = f"{path}.requestMappings[{index}]"
        container, resource, request = (
            mapping.get(field, "") for field in ("containerName", "resourceName", "requestName")
        )
        if container not in containers:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(f"{here}.containerName", container, detail))
        elif resource not in ((containers[container].get("resources") or {}).get("requests") or {}):
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            errors.append(invalid(f"{here}.resourceName", resource, detail))
        errors += [invalid(f"{path}.requestName", request, text) for text in dns_label_errors(request)]
        if (container, resource, request) in seen:
            shown = (("containerName", container), ("resourceName", resource), ("requestName", request))
            errors += [duplicate(f"{here}.{field}", value) for field, value in shown]
        seen.add((container, resource, request))
    return errors + _EXTENDED_CLAIM_STATUS.validate(status, path)


def validate_allocated_resources(status: Document, spec: Document) -> list[FieldError]:
    """Field errors of `allocatedResourcesStatus` of containers."""
    errors: list[FieldError] = []
    for field, kind in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        for index, container_status in enumerate(status.get(field) or ()):
            container = next(
                (c for c in spec.get(kind) or () if c.get("name", "") == container_status.get("name", "")), None
            )
            here = f"status.{field}[{index}].allocatedResourcesStatus"
            errors += _validate_allocations(container_status.get("allocatedResourcesStatus") or (), container, here)
    for index, ephemeral_container_status in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if ephemeral_container_status.get("allocatedResourcesStatus"):
            here = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            errors.append(forbidden(here, "must not be specified in container status"))
    return errors


def _validate_allocations(allocations: Sequence[Document], container: Document | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, allocation in enumerate(allocations):
        here = f"{path}[{index}]"
        if container is not None:
            errors += _validate_allocation_name(allocation.get("name", ""), container, f"{here}.name")
        seen: set[str] = set()
        for position, resource in enumerate(allocation.get("resources") or ()):
            errors += _validate_health(resource, f"{here}.resources[{position}]")
            identifier = resource.get("resourceID", "")
            if identifier in seen:
                errors.append(duplicate(f"{here}.resources[{position}].resourceID", identifier))
            seen.add(identifier)
    return errors


def _validate_allocation_name(name: str, container: Document, path: str) -> list[FieldError]:
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


def _validate_health(resource: Document, path: str) -> list[FieldError]:
    errors = struct_rules("core", "ResourceHealth").validate(resource, path)
    if resource.get("message") == "":
        errors.append(required(f"{path}.message", "must be non-empty if specified"))
    return errors


def validate_pod_status(pod: Document, old: Document, options: PodOptions) -> list[FieldError]:
    """Field errors of a change of the status."""
    status, old_status = pod.get("status") or {}, old.get("status") or {}
    errors = validate_pod_annotations_update(pod, old, "metadata.annotations", options)
    errors += _validate_conditions(status.get("conditions") or (), "status.conditions")
    errors += _validate_nomination(status.get("nominatedNodeName", ""), old)
    if status.get("observedGeneration", 0) < 0:
        errors.append(invalid("status.observedGeneration", status["observedGeneration"], _NOT_COUNTED))
    errors += validate_immutable(status.get("qosClass", ""), old_status.get("qosClass", ""), "status.qosClass")
    errors += _validate_no_restart(status, old_status, old["spec"])
    errors += validate_claim_statuses(status, pod["spec"])
    errors += validate_extended_claim(status.get("extendedResourceClaimStatus"), pod["spec"])
    errors += _validate_pod_status_addresses(status, old_status, "podIPs")
    errors += _validate_host_addresses(status, old_status)
    for field, _ in _STATUSES:
        errors += _validate_users(status.get(field) or (), pod["spec"], f"status.{field}")
    return errors + validate_allocated_resources(status, pod["spec"])


def _validate_conditions(conditions: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        here, kind = f"{path}[{index}]", condition.get("type", "")
        if condition.get("observedGeneration", 0) < 0:
            errors.append(invalid(f"{here}.observedGeneration", condition["observedGeneration"], _NOT_COUNTED))
        if kind not in _SYSTEM_CONDITIONS:
            errors += [invalid(f"{here}.Type", kind, text) for text in qualified_name_errors(kind)]
    return errors


def _validate_nomination(name: str, old: Document) -> list[FieldError]:
    path = "status.nominatedNodeName"
    if not name or name == (old.get("status") or {}).get("nominatedNodeName", ""):
        return []
    errors = [invalid(path, name, text) for text in dns_subdomain_errors(name)]
    if old["spec"].get("nodeName"):
        errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    return errors


def _validate_no_restart(status: Document, old_status: Document, spec: Document) -> list[FieldError]:
    """Containers that have terminated for good must not be set to run again."""
    errors: list[FieldError] = []
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
                errors.append(forbidden(f"status.{field}[{index}].state", _NOT_AGAIN))
    return errors


def _runs_again(statuses: Sequence[Document], name: str) -> bool:
    return any(
        status.get("name", "") == name and (status.get("state") or {}).get("terminated") is None for status in statuses
    )


def _named(containers: Sequence[Document], name: str) -> Document | None:
    return next((container for container in containers if container.get("name", "") == name), None)


def _may_restart(container: Document, spec: Document, exit_code: int) -> bool:
    """Whether the policies let a container run again: its rules first, then its own policy, then the pod's."""
    own = container.get("restartPolicy")
    if own is not None and any(_rule_applies(rule, exit_code) for rule in container.get("restartPolicyRules") or ()):
        return True
    policy = own if own in _RESTART_POLICIES else spec.get("restartPolicy", "Always")
    return policy not in ("OnFailure", "Never") or (policy == "OnFailure" and exit_code != 0)


def _rule_applies(rule: Document, exit_code: int) -> bool:
    codes = rule.get("exitCodes")
    if codes is None or rule.get("action") not in ("Restart", "RestartAllContainers"):
        return False
    is_listed = exit_code in (codes.get("values") or ())
    return is_listed if codes.get("operator") == "In" else not is_listed


def _validate_pod_status_addresses(status: Document, old_status: Document, field: str) -> list[FieldError]:
    addresses = [address.get("ip", "") for address in status.get(field) or ()]
    known = [address.get("ip", "") for address in old_status.get(field) or ()]
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        errors += validate_ip(address, f"status.{field}[{index}]", known)
    if len(addresses) < 2:
        return errors
    broken = next((index for index, address in enumerate(addresses) if parse_ip(address) is None), None)
    if broken is not None:
        detail = f"failed to check for dual stack with error:invalid IP[{broken}]: {addresses[broken]}"
        errors.append(internal(f"status.{field}", detail))
    if broken is not None or len(addresses) > 2 or not are_of_both_families(addresses):
        struct_name = "PodIP" if field == "podIPs" else "HostIP"
        detail = "may specify no more than one IP for each IP family"
        errors.append(invalid(f"status.{field}", internal_values(status[field], struct_name), detail))
    return errors


def _validate_host_addresses(status: Document, old_status: Document) -> list[FieldError]:
    addresses = status.get("hostIPs")
    if not addresses:
        return []
    first = addresses[0].get("ip", "")
    errors = (
        []
        if status.get("hostIP", "") == first
        else [invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`")]
    )
    return errors + _validate_pod_status_addresses(status, old_status, "hostIPs")


def _validate_users(statuses: Sequence[Document], spec: Document, path: str) -> list[FieldError]:
    os_name = (spec.get("os") or {}).get("name", "linux")
    errors: list[FieldError] = []
    for index, status in enumerate(statuses):
        user = (status.get("user") or {}).get("linux")
        if user is None:
            continue
        here = f"{path}[{index}].user.linux"
        if os_name == "windows":
            errors.append(forbidden(here, "cannot be set for a windows pod"))
            continue
        errors += struct_rules("core", "LinuxContainerUser").validate(user, here)
        for position, group in enumerate(user.get("supplementalGroups") or ()):
            errors += validate_id(group, f"{here}.supplementalGroups[{position}]")
    return errors
