"""What is wrong with options for Windows, and with options on the wrong operating system.

Comes in   `windowsOptions`; a pod's spec
Goes out   faults
"""

from __future__ import annotations

import re

from mooring.api.document import Document
from mooring.apiserver.validation.containers_walk import every_container
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import dns_subdomain_faults

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


def windows_options_faults(options: Document | None, path: str) -> list[Fault]:
    """What is wrong with `windowsOptions`."""
    if options is None:
        return []
    faults: list[Fault] = []
    name, credentials, user = (
        options.get(f) for f in ("gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName")
    )
    if name is not None:
        faults += [invalid(f"{path}.gmsaCredentialSpecName", name, text) for text in dns_subdomain_faults(name)]
    if credentials is not None:
        if not credentials:
            detail = "gmsaCredentialSpec cannot be an empty string"
            faults.append(invalid(f"{path}.gmsaCredentialSpec", credentials, detail))
        elif len(credentials.encode()) > CREDENTIAL_SPEC_KIB_MAX * 1024:
            detail = f"gmsaCredentialSpec size must be under {CREDENTIAL_SPEC_KIB_MAX} KiB"
            faults.append(invalid(f"{path}.gmsaCredentialSpec", credentials, detail))
    if user is not None:
        faults += [invalid(f"{path}.runAsUserName", user, text) for text in _user_texts(user)]
    return faults


def host_process_faults(spec: Document, path: str) -> list[Fault]:
    """A pod of host processes has nothing else, and is on the host's network."""
    faults: list[Fault] = []
    count = host_process_count = 0
    of_pod = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    for container, here in every_container(spec, path):
        count += 1
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if of_pod is not None and own is not None and of_pod != own:
            shown = "true" if of_pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            faults.append(invalid(f"{here}.securityContext.windowsOptions.hostProcess", own, detail))
        host_process_count += bool(of_pod if own is None else own)
    if host_process_count and host_process_count != count:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        faults.append(invalid(path, "", detail))
    if host_process_count and not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        faults.append(invalid(f"{path}.hostNetwork", False, detail))
    return faults


def operating_system_faults(spec: Document, path: str) -> list[Fault]:
    """What does not exist on the operating system that the pod asks for."""
    name = (spec.get("os") or {}).get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name == "linux":
        return _linux_faults(spec, path)
    if name == "windows":
        return _windows_faults(spec, path)
    return [not_supported(f"{path}.os", name, ("linux", "windows"))]


# --- parts ------------------------------------------------------------------------------------------------------


def _user_texts(value: str) -> list[str]:
    """What is wrong with `runAsUserName`: a user, with a domain and a backslash before it or without."""
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


def _linux_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
        faults.append(forbidden(f"{path}.securityContext.windowsOptions", _NOT_ON_LINUX))
    for container, here in every_container(spec, path):
        if (container.get("securityContext") or {}).get("windowsOptions") is not None:
            faults.append(forbidden(f"{here}.securityContext.windowsOptions", _NOT_ON_LINUX))
    return faults


def _windows_faults(spec: Document, path: str) -> list[Fault]:
    context = spec.get("securityContext") or {}
    fields = [f"securityContext.{field}" for field in _POD_LINUX_ONLY[:2] if context.get(field) is not None]
    fields += ["hostUsers"] if spec.get("hostUsers") is not None else []
    fields += [field for field in ("hostPID", "hostIPC") if spec.get(field)]
    fields += [f"securityContext.{field}" for field in _POD_LINUX_ONLY[2:6] if context.get(field) is not None]
    fields += ["shareProcessNamespace"] if spec.get("shareProcessNamespace") is not None else []
    fields += [f"securityContext.{field}" for field in _POD_LINUX_ONLY[6:] if context.get(field) is not None]
    faults = [forbidden(f"{path}.{field}", _NOT_ON_WINDOWS) for field in fields]
    for container, here in every_container(spec, path):
        own = container.get("securityContext") or {}
        faults += [
            forbidden(f"{here}.securityContext.{field}", _NOT_ON_WINDOWS)
            for field in _CONTAINER_LINUX_ONLY
            if own.get(field) is not None
        ]
    return faults
