"""Validation of security contexts, seccomp and AppArmor profiles, sysctls and Windows options.

1. Privileged containers are valid: the server behaves like kube-apiserver with `--allow-privileged`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.options import PodOptions, every_container
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import range_errors, validate_descending_path
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules, validate_enum
from mooring.apiserver.validation.values import internal_value

_SECURITY_CONTEXT = struct_rules("core", "SecurityContext")
_POD_SECURITY_CONTEXT = struct_rules("core", "PodSecurityContext")

CREDENTIAL_SPEC_KIB_MAX = 64
DOMAIN_LENGTH_MAX = 256
USER_LENGTH_MAX = 104

_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_is_netbios = re.compile(r"""[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}""").fullmatch
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_is_dns = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*").fullmatch
_has_bad_character = re.compile(r"""["/\\:;|=,+*?<>@\[\]]""").search
_is_dots_and_spaces = re.compile("[. ]+").fullmatch

_POD_LINUX_ONLY = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_LINUX_ONLY = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_NOT_ON_LINUX = "windows options cannot be set for a linux pod"

SYSCTL_LENGTH_MAX = 253
PROFILE_TYPES = sorted_enum_values("core", "AppArmorProfileType")
LOCALHOST_PREFIX = "localhost/"

_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_NAME = rf"({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}"
_is_sysctl = re.compile(_SYSCTL_NAME).fullmatch
_IPC_SYSCTLS = frozenset(
    {
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    }
)

ID_MAX = 2**31 - 1

_WHEN_OWN_USERS = "when `hostUsers` is false"


def validate_windows_options(options: Document | None, path: str) -> list[FieldError]:
    """Field errors of `windowsOptions`."""
    if options is None:
        return []
    errors = struct_rules("core", "WindowsSecurityContextOptions").validate(options, path)
    credentials, user = options.get("gmsaCredentialSpec"), options.get("runAsUserName")
    if credentials is not None:
        if not credentials:
            detail = "gmsaCredentialSpec cannot be an empty string"
            errors.append(invalid(f"{path}.gmsaCredentialSpec", credentials, detail))
        elif len(credentials.encode()) > CREDENTIAL_SPEC_KIB_MAX * 1024:
            detail = f"gmsaCredentialSpec size must be under {CREDENTIAL_SPEC_KIB_MAX} KiB"
            errors.append(invalid(f"{path}.gmsaCredentialSpec", credentials, detail))
    if user is not None:
        errors += [invalid(f"{path}.runAsUserName", user, text) for text in _user_texts(user)]
    return errors


def validate_host_process(spec: Document, path: str) -> list[FieldError]:
    """A pod of host processes has nothing else, and is on the host's network."""
    errors: list[FieldError] = []
    count = host_process_count = 0
    of_pod = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    for container, here in every_container(spec, path):
        count += 1
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if of_pod is not None and own is not None and of_pod != own:
            shown = "true" if of_pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errors.append(invalid(f"{here}.securityContext.windowsOptions.hostProcess", own, detail))
        host_process_count += bool(of_pod if own is None else own)
    if host_process_count and host_process_count != count:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid(path, "", detail))
    if host_process_count and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, detail))
    return errors


def validate_operating_system(spec: Document, path: str) -> list[FieldError]:
    """Field errors of fields that the pod's operating system does not support."""
    name = (spec.get("os") or {}).get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name == "linux":
        return _validate_linux(spec, path)
    if name == "windows":
        return _validate_windows(spec, path)
    return [not_supported(f"{path}.os", name, ("linux", "windows"))]


def _user_texts(value: str) -> list[str]:
    """Field errors of `runAsUserName`: `user` or `domain\\user`."""
    if not value:
        return ["runAsUserName cannot be an empty string"]
    if _has_control(value):
        return ["runAsUserName cannot contain control characters"]
    if value.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = value.rpartition("\\")
    texts = []
    if len(domain.encode()) >= DOMAIN_LENGTH_MAX:
        texts.append(f"runAsUserName's Domain length must be under {DOMAIN_LENGTH_MAX} characters")
    if backslash and not _is_netbios(domain) and not _is_dns(domain):
        texts.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        texts.append("runAsUserName's User cannot be empty")
    elif len(user.encode()) > USER_LENGTH_MAX:
        texts.append(f"runAsUserName's User length must not be longer than {USER_LENGTH_MAX} characters")
    if _is_dots_and_spaces(user):
        texts.append("runAsUserName's User cannot contain only periods or spaces")
    if _has_bad_character(user):
        texts.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return texts


def _validate_linux(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
        errors.append(forbidden(f"{path}.securityContext.windowsOptions", _NOT_ON_LINUX))
    for container, here in every_container(spec, path):
        if (container.get("securityContext") or {}).get("windowsOptions") is not None:
            errors.append(forbidden(f"{here}.securityContext.windowsOptions", _NOT_ON_LINUX))
    return errors


def _validate_windows(spec: Document, path: str) -> list[FieldError]:
    context = spec.get("securityContext") or {}
    fields = [f"securityContext.{field}" for field in _POD_LINUX_ONLY[:2] if context.get(field) is not None]
    fields += ["hostUsers"] if spec.get("hostUsers") is not None else []
    fields += [field for field in ("hostPID", "hostIPC") if spec.get(field)]
    fields += [f"securityContext.{field}" for field in _POD_LINUX_ONLY[2:6] if context.get(field) is not None]
    fields += ["shareProcessNamespace"] if spec.get("shareProcessNamespace") is not None else []
    fields += [f"securityContext.{field}" for field in _POD_LINUX_ONLY[6:] if context.get(field) is not None]
    errors = [forbidden(f"{path}.{field}", _NOT_ON_WINDOWS) for field in fields]
    for container, here in every_container(spec, path):
        own = container.get("securityContext") or {}
        errors += [
            forbidden(f"{here}.securityContext.{field}", _NOT_ON_WINDOWS)
            for field in _CONTAINER_LINUX_ONLY
            if own.get(field) is not None
        ]
    return errors


_SLASHES_AND_DOTS = str.maketrans("./", "/.")


def validate_seccomp(profile: Document | None, path: str) -> list[FieldError]:
    """Field errors of a seccomp profile."""
    if profile is None:
        return []
    errors: list[FieldError] = []
    kind, localhost = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILE_TYPES:
        errors.append(not_supported(f"{path}.type", kind, PROFILE_TYPES))
    if kind == "Localhost":
        if localhost is None:
            return [*errors, required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")]
        return errors + validate_descending_path(localhost, f"{path}.localhostProfile")
    if localhost is not None:
        value = internal_value(profile, "SeccompProfile")
        errors.append(invalid(f"{path}.localhostProfile", value, "can only be set when seccomp type is Localhost"))
    return errors


def validate_apparmor(profile: Document | None, path: str) -> list[FieldError]:
    """Field errors of an AppArmor profile."""
    if profile is None:
        return []
    kind, localhost, here = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in PROFILE_TYPES:
        return [not_supported(f"{path}.type", kind, PROFILE_TYPES)]
    if kind != "Localhost":
        detail = "can only be set when AppArmor type is Localhost"
        return [invalid(here, localhost, detail)] if localhost is not None else []
    if localhost is None:
        return [required(here, "must be set when AppArmor type is Localhost")]
    errors: list[FieldError] = []
    if localhost != localhost.strip():
        errors.append(invalid(here, localhost, "must not be padded with whitespace"))
    elif not localhost:
        errors.append(required(here, "must be set when AppArmor type is Localhost"))
    return errors + struct_rules("core", "AppArmorProfile").validate(profile, path)


def validate_seccomp_annotation(profile: str, path: str) -> list[FieldError]:
    """Field errors of a seccomp profile in an annotation."""
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(LOCALHOST_PREFIX):
        return validate_descending_path(profile.removeprefix(LOCALHOST_PREFIX), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def apparmor_of_annotation(annotation: str) -> Document | None:
    """The profile that an annotation means; None if it means none."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    localhost = annotation.removeprefix(LOCALHOST_PREFIX)
    if annotation.startswith(LOCALHOST_PREFIX) and localhost:
        return {"type": "Localhost", "localhostProfile": localhost}
    return None


def validate_sysctls(sysctls: Sequence[Document], spec: Document, path: str, options: PodOptions) -> list[FieldError]:
    """Field errors of kernel parameters; those of a namespace that the pod shares with the host are not its own."""
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        here, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            errors.append(required(here))
        elif len(name) > SYSCTL_LENGTH_MAX or not _is_sysctl(name):
            rule = f"must have at most {SYSCTL_LENGTH_MAX} characters and match regex ^{_SYSCTL_NAME}$"
            errors.append(invalid(here, name, rule))
        elif name in names:
            errors.append(duplicate(here, name))
        if not options.tolerates_host_sysctls:
            errors += validate_host_sysctl(name, spec, here)
        names.add(name)
    return errors


def validate_host_sysctl(name: str, spec: Document, path: str) -> list[FieldError]:
    namespace = _kernel_namespace(name)
    if namespace == "net" and spec.get("hostNetwork"):
        return [invalid(path, name, "may not be specified when 'hostNetwork' is true")]
    if namespace == "ipc" and spec.get("hostIPC"):
        return [invalid(path, name, "may not be specified when 'hostIPC' is true")]
    return []


def _kernel_namespace(sysctl: str) -> str:
    separator = next((character for character in sysctl if character in "./"), "")
    name = sysctl.translate(_SLASHES_AND_DOTS) if separator == "/" else sysctl
    name = name.partition("*")[0]
    if name in _IPC_SYSCTLS or name.startswith("fs.mqueue."):
        return "ipc"
    return "net" if name.startswith("net.") else ""


def validate_security_context(context: Document, uses_host_users: bool, path: str) -> list[FieldError]:
    """Field errors of the security context of a container."""
    errors = _SECURITY_CONTEXT.validate(context, path, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None:
        errors += _SECURITY_CONTEXT.validate(context, path, "procMount")
        if uses_host_users and mount == "Unmasked":
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += validate_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        errors += _validate_escalation(context, path)
    errors += validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    return errors + validate_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def validate_pod_security_context(spec: Document, path: str, options: PodOptions) -> list[FieldError]:
    """Field errors of the security context of a pod."""
    context = spec.get("securityContext")
    if not context and not spec.get("shareProcessNamespace"):
        return []
    context = context or {}
    errors = _POD_SECURITY_CONTEXT.validate(context, path, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += validate_id(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    errors += validate_sysctls(context.get("sysctls") or (), spec, f"{path}.sysctls", options)
    errors += _POD_SECURITY_CONTEXT.validate(context, path, "fsGroupChangePolicy")
    errors += validate_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    errors += validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    errors += validate_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    errors += _POD_SECURITY_CONTEXT.validate(context, path, "supplementalGroupsPolicy")
    changes = ("MountOption", "Recursive") if options.tolerates_any_selinux_change_policy else ("Recursive",)
    return errors + validate_enum(context.get("seLinuxChangePolicy"), changes, f"{path}.seLinuxChangePolicy")


def validate_host_users(spec: Document, path: str, options: PodOptions) -> list[FieldError]:
    """Field errors of a pod with a user namespace that shares namespaces with the host."""
    if spec.get("hostUsers") is not False:
        return []
    errors: list[FieldError] = []
    if spec.get("hostNetwork") and not options.tolerates_host_network_with_user_namespaces:
        errors.append(forbidden(f"{path}.hostNetwork", _WHEN_OWN_USERS))
    if spec.get("hostPID"):
        errors.append(forbidden(f"{path}.HostPID", _WHEN_OWN_USERS))
    if spec.get("hostIPC"):
        errors.append(forbidden(f"{path}.HostIPC", _WHEN_OWN_USERS))
    if not options.tolerates_devices_with_user_namespaces:
        for container, here in every_container(spec, path):
            if container.get("volumeDevices"):
                errors.append(forbidden(f"{here}.volumeDevices", _WHEN_OWN_USERS))
    return errors


def validate_id(number: int, path: str) -> list[FieldError]:
    """Field errors of a user id or a group id."""
    return [invalid(path, number, text) for text in range_errors(number, 0, ID_MAX)]


def _validate_escalation(context: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(invalid(path, internal_value(context, "SecurityContext"), detail))
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, internal_value(context, "SecurityContext"), detail))
    return errors
