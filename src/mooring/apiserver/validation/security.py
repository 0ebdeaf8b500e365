"""What is wrong with security contexts, of containers and of pods.

Comes in   `securityContext` of a container; a pod's spec
Goes out   faults

 1. Privileged containers are allowed: the server runs as kube-apiserver does with `--allow-privileged`.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.containers_walk import every_container
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported
from mooring.apiserver.validation.names import range_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.security_profiles import apparmor_faults, seccomp_faults, sysctls_faults
from mooring.apiserver.validation.security_windows import windows_options_faults
from mooring.apiserver.validation.values import internal_value

ID_MAX = 2**31 - 1

_PROC_MOUNTS = ("Default", "Unmasked")
_WHEN_OWN_USERS = "when `hostUsers` is false"


def security_context_faults(context: Document, uses_host_users: bool, path: str) -> list[Fault]:
    """What is wrong with the security context of a container."""
    faults: list[Fault] = []
    for field in ("runAsUser", "runAsGroup"):
        faults += id_faults(context.get(field), f"{path}.{field}")
    mount = context.get("procMount")
    if mount is not None:
        if mount not in _PROC_MOUNTS:
            faults.append(not_supported(f"{path}.procMount", mount, _PROC_MOUNTS))
        if uses_host_users and mount == "Unmasked":
            faults.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    faults += seccomp_faults(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        faults += _escalation_faults(context, path)
    faults += windows_options_faults(context.get("windowsOptions"), f"{path}.windowsOptions")
    return faults + apparmor_faults(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def pod_security_context_faults(spec: Document, path: str, options: PodOptions) -> list[Fault]:
    """What is wrong with the security context of a pod."""
    context = spec.get("securityContext")
    faults: list[Fault] = []
    if not context and not spec.get("shareProcessNamespace"):
        return faults
    context = context or {}
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        faults += id_faults(context.get(field), f"{path}.{field}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        faults += id_faults(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        faults.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    faults += sysctls_faults(context.get("sysctls") or (), spec, f"{path}.sysctls", options)
    faults += _choice_faults(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    faults += seccomp_faults(context.get("seccompProfile"), f"{path}.seccompProfile")
    faults += windows_options_faults(context.get("windowsOptions"), f"{path}.windowsOptions")
    faults += apparmor_faults(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    faults += _choice_faults(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    changes = ("MountOption", "Recursive") if options.tolerates_any_selinux_change_policy else ("Recursive",)
    return faults + _choice_faults(context, "seLinuxChangePolicy", changes, path)


def host_users_faults(spec: Document, path: str, options: PodOptions) -> list[Fault]:
    """What a pod with users of its own may not share with the host."""
    if spec.get("hostUsers") is not False:
        return []
    faults: list[Fault] = []
    if spec.get("hostNetwork") and not options.tolerates_host_network_with_user_namespaces:
        faults.append(forbidden(f"{path}.hostNetwork", _WHEN_OWN_USERS))
    if spec.get("hostPID"):
        faults.append(forbidden(f"{path}.HostPID", _WHEN_OWN_USERS))
    if spec.get("hostIPC"):
        faults.append(forbidden(f"{path}.HostIPC", _WHEN_OWN_USERS))
    if not options.tolerates_devices_with_user_namespaces:
        for container, here in every_container(spec, path):
            if container.get("volumeDevices"):
                faults.append(forbidden(f"{here}.volumeDevices", _WHEN_OWN_USERS))
    return faults


def id_faults(number: int | None, path: str) -> list[Fault]:
    """The number of a user or a group."""
    if number is None:
        return []
    return [invalid(path, number, text) for text in range_faults(number, 0, ID_MAX)]


# --- parts ------------------------------------------------------------------------------------------------------


def _escalation_faults(context: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        faults.append(invalid(path, internal_value(context, "SecurityContext"), detail))
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            faults.append(invalid(path, internal_value(context, "SecurityContext"), detail))
    return faults


def _choice_faults(context: Document, field: str, choices: tuple[str, ...], path: str) -> list[Fault]:
    value = context.get(field)
    return [not_supported(f"{path}.{field}", value, choices)] if value is not None and value not in choices else []
