"""What is wrong with the status that a kubelet or the scheduler writes to a pod.

Comes in   a pod with its new status, and as it is
Goes out   faults

 1. A container that has ended for good does not run again.
 2. The quality of service is decided when the pod is created.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import are_of_both_families, ip_faults, parse_ip
from mooring.apiserver.validation.fields import Fault, forbidden, internal, invalid
from mooring.apiserver.validation.metadata import immutable_faults
from mooring.apiserver.validation.names import dns_subdomain_faults, qualified_name_faults
from mooring.apiserver.validation.pod_annotations import pod_annotations_update_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.pod_status_devices import (
    allocated_resources_faults,
    claim_statuses_faults,
    extended_claim_faults,
)
from mooring.apiserver.validation.security import id_faults
from mooring.apiserver.validation.values import internal_values

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)
_NOT_AGAIN = "may not be transitioned to non-terminated state"
_NOT_COUNTED = "must be a non-negative integer"


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
    faults += _addresses_faults(status, old_status, "podIPs")
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


def _addresses_faults(status: Document, old_status: Document, field: str) -> list[Fault]:
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
    return faults + _addresses_faults(status, old_status, "hostIPs")


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
