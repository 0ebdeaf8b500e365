"""What is wrong with the profiles that confine containers, and with kernel parameters.

Comes in   seccomp and AppArmor profiles, as fields or as the annotations that came before them; sysctls
Goes out   faults
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, not_supported, required, too_long
from mooring.apiserver.validation.names import descending_faults
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.values import internal_value

SYSCTL_LENGTH_MAX = 253
LOCALHOST_PROFILE_LENGTH_MAX = 4095
PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
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
_SLASHES_AND_DOTS = str.maketrans("./", "/.")


def seccomp_faults(profile: Document | None, path: str) -> list[Fault]:
    """What is wrong with a seccomp profile."""
    if profile is None:
        return []
    faults: list[Fault] = []
    kind, localhost = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        faults.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in PROFILE_TYPES:
        faults.append(not_supported(f"{path}.type", kind, PROFILE_TYPES))
    if kind == "Localhost":
        if localhost is None:
            return [*faults, required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")]
        return faults + descending_faults(localhost, f"{path}.localhostProfile")
    if localhost is not None:
        value = internal_value(profile, "SeccompProfile")
        faults.append(invalid(f"{path}.localhostProfile", value, "can only be set when seccomp type is Localhost"))
    return faults


def apparmor_faults(profile: Document | None, path: str) -> list[Fault]:
    """What is wrong with an AppArmor profile."""
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
    faults: list[Fault] = []
    if localhost != localhost.strip():
        faults.append(invalid(here, localhost, "must not be padded with whitespace"))
    elif not localhost:
        faults.append(required(here, "must be set when AppArmor type is Localhost"))
    if len(localhost.encode()) > LOCALHOST_PROFILE_LENGTH_MAX:
        faults.append(too_long(here, LOCALHOST_PROFILE_LENGTH_MAX))
    return faults


def seccomp_annotation_faults(profile: str, path: str) -> list[Fault]:
    """What is wrong with a seccomp profile in an annotation."""
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(LOCALHOST_PREFIX):
        return descending_faults(profile.removeprefix(LOCALHOST_PREFIX), path)
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


def sysctls_faults(sysctls: Sequence[Document], spec: Document, path: str, options: PodOptions) -> list[Fault]:
    """What is wrong with kernel parameters; those of a namespace that the pod shares with the host are not its own."""
    faults: list[Fault] = []
    names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        here, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            faults.append(required(here))
        elif len(name) > SYSCTL_LENGTH_MAX or not _is_sysctl(name):
            rule = f"must have at most {SYSCTL_LENGTH_MAX} characters and match regex ^{_SYSCTL_NAME}$"
            faults.append(invalid(here, name, rule))
        elif name in names:
            faults.append(duplicate(here, name))
        if not options.tolerates_host_sysctls:
            faults += host_sysctl_faults(name, spec, here)
        names.add(name)
    return faults


def host_sysctl_faults(name: str, spec: Document, path: str) -> list[Fault]:
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
