"""Security contexts: the user, groups, capabilities and namespaces of a container; ids of pods on the host.

Input: a pod, a container, what this process can do (`HostCapabilities`). Output: a `ProcessIdentity`; or a
`SecurityError` for what cannot be honoured. No field is ignored.

 1. The container overrides the pod, field by field.
 2. There are no images, so there is no user of an image. A container without runAsUser runs as root in a user
    namespace, or as the user of this process; with runAsNonRoot as `NON_ROOT`.
 3. With separate users a pod has a user namespace, and ids 0 to `IDS_MAX` in it. Its root has no rights on the host, so
    a capability that takes effect on the host only cannot be added.
 4. A user without root has one id. In a user namespace that id can have any number.

Each pod has a range of ids on the host, in a user namespace (`PodUsers`). Input: the uids of pods. Output: the first id
of a range, held until it is released or the process ends.

 1. No two pods on this machine have the same range, even of different kubelets: a range is a locked byte of
    `LOCK_FILE`.
 2. Files of pods do not have these ids: their mounts map them (`shim.sandbox`). So a pod may get another range
    after a restart.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mooring.kubelet.processes.shim.sandbox import NONE, ROOT, USER_NAMESPACE
from mooring.kubelet.views import ContainerSecurityContext, FullContainer, FullPod, PodSecurityContext

ROOT_ID = 0
NON_ROOT = 65532
"""The user of a container with runAsNonRoot and without runAsUser, as in images without root."""
IDS_MAX = 65535
ALL = "ALL"
_NAMES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
CAPABILITIES = {name: number for number, name in enumerate(_NAMES.split())}
"""The capabilities of Linux and their numbers."""
_DEFAULTS = (
    "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT MKNOD AUDIT_WRITE "
    "SETFCAP"
)
DEFAULT_CAPABILITIES = frozenset(_DEFAULTS.split())
"""As in containerd."""
_EFFECTIVE = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_OWNER KILL SETGID SETUID SETPCAP SYS_CHROOT SYS_PTRACE LEASE "
    "SETFCAP"
)
NAMESPACED = frozenset(_EFFECTIVE.split())
"""Capabilities that take effect in a user namespace with the network and the mounts of the host."""


class SecurityError(Exception):
    """A security context that cannot be honoured: the reason of the waiting state, and its message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class HostCapabilities:
    """What this process can do for its containers."""

    user: int
    group: int
    level: str = NONE
    """NONE, ROOT or USER_NAMESPACE: whether and how it creates mount namespaces."""
    has_pid_namespaces: bool = False
    has_separate_users: bool = False
    """Whether pods have user namespaces with ids of their own."""

    @property
    def is_root(self) -> bool:
        return self.user == ROOT_ID


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Who a container is, and what it may do. Ids are those in its user namespace."""

    user: int
    group: int
    groups: tuple[int, ...] = ()
    capabilities: tuple[int, ...] | None = None
    """The bounding set; None: that of this process."""
    has_no_new_privileges: bool = False
    is_root_read_only: bool = False
    has_pid_namespace: bool = False
    has_user_namespace: bool = False
    has_ipc_namespace: bool = False


def identity_of(pod: FullPod, container: FullContainer, host: HostCapabilities) -> ProcessIdentity:
    """Raises `SecurityError`."""
    own, whole = container.security_context, pod.spec.security_context
    for what in _unsupported(pod, container, host):
        raise SecurityError("CreateContainerError", f"container {container.name} has {what}")
    has_user_namespace = host.has_separate_users or (host.level == ROOT and pod.spec.host_users is False)
    user = _user(own, whole, host, container.name, has_user_namespace)
    group, groups = _groups(own, whole, host, container.name, has_user_namespace)
    dropped = {name.upper() for name in own.capabilities.drop}
    return ProcessIdentity(
        user,
        group,
        groups,
        _capabilities(own, host, container.name, has_user_namespace),
        # Without rights to the bounding set, nothing may be gained by exec either.
        own.allow_privilege_escalation is False or (host.level == NONE and not host.is_root and bool(dropped)),
        own.read_only_root_filesystem is True,
        host.has_pid_namespaces and not pod.spec.host_pid,
        has_user_namespace,
        host.level != NONE and not pod.spec.host_ipc,
    )


def _user(
    own: ContainerSecurityContext,
    whole: PodSecurityContext,
    host: HostCapabilities,
    name: str,
    has_user_namespace: bool,
) -> int:
    requested = own.run_as_user if own.run_as_user is not None else whole.run_as_user
    is_root_forbidden = own.run_as_non_root if own.run_as_non_root is not None else whole.run_as_non_root
    user = requested
    if user is None:
        user = ROOT_ID if has_user_namespace else host.user
        if is_root_forbidden and user == ROOT_ID:
            user = NON_ROOT
    if is_root_forbidden and user == ROOT_ID:
        raise _config_error(f"container's runAsUser breaks non-root policy (container: {name})")
    _check_id(user, host.user, "runAsUser", host, name, has_user_namespace)
    return user


def _groups(
    own: ContainerSecurityContext,
    whole: PodSecurityContext,
    host: HostCapabilities,
    name: str,
    has_user_namespace: bool,
) -> tuple[int, tuple[int, ...]]:
    requested = own.run_as_group if own.run_as_group is not None else whole.run_as_group
    further = (*whole.supplemental_groups, *(() if whole.fs_group is None else (whole.fs_group,)))
    if host.is_root:
        group = requested if requested is not None else ROOT_ID
        for number, field in ((group, "runAsGroup"), *((other, "supplementalGroups or fsGroup") for other in further)):
            _check_id(number, host.group, field, host, name, has_user_namespace)
        return group, tuple(dict.fromkeys(further))
    group = requested if requested is not None else whole.fs_group if whole.fs_group is not None else host.group
    field = "runAsGroup" if requested is not None else "fsGroup"
    _check_id(group, host.group, field, host, name, has_user_namespace)
    others = [other for other in further if other != group]
    if others:
        raise _config_error(
            f"container {name} has group {group} and further groups ({', '.join(map(str, others))}), and the process "
            f"runtime runs as user {host.user}, who can have one group only; start mooring as root"
        )
    return group, ()


def _check_id(number: int, own: int, field: str, host: HostCapabilities, name: str, has_user_namespace: bool) -> None:
    if has_user_namespace and number > IDS_MAX:
        raise _config_error(
            f"container {name} has {field} {number}; pods with users of their own have ids up to {IDS_MAX}"
        )
    if host.level == NONE and not host.is_root and number != own:
        raise _config_error(
            f"container {name} has {field} {number}, and the process runtime runs as user {host.user}, group "
            f"{host.group}; other ids need root or user namespaces"
        )


def _capabilities(
    own: ContainerSecurityContext, host: HostCapabilities, name: str, has_user_namespace: bool
) -> tuple[int, ...] | None:
    added = [capability.upper() for capability in own.capabilities.add]
    dropped = [capability.upper() for capability in own.capabilities.drop]
    for capability in (*added, *dropped):
        if capability != ALL and capability not in CAPABILITIES:
            raise SecurityError("CreateContainerError", f"container {name} has an unknown capability {capability}")
    if own.privileged or (host.level == NONE and not host.is_root):
        useless = added if not own.privileged else []
    else:
        is_confined = has_user_namespace or host.level == USER_NAMESPACE
        useless = [capability for capability in added if is_confined and capability not in NAMESPACED]
    if useless:
        raise SecurityError(
            "CreateContainerError",
            f"container {name} adds capability {useless[0]}, which has no effect for a user without rights on this "
            "machine; --pod-users host, as root, runs pods with the rights of the host",
        )
    if own.privileged or (host.level == NONE and not (host.is_root and (added or dropped))):
        return None
    kept = (
        set() if ALL in dropped else (set(CAPABILITIES) if ALL in added else set(DEFAULT_CAPABILITIES) - set(dropped))
    )
    return tuple(sorted(CAPABILITIES[capability] for capability in kept | (set(added) - {ALL})))


def _unsupported(pod: FullPod, container: FullContainer, host: HostCapabilities) -> Iterator[str]:
    """What this process cannot do."""
    spec, own, whole = pod.spec, container.security_context, pod.spec.security_context
    has_rights = host.is_root and not host.has_separate_users
    rights = "that needs --pod-users host, as root"
    if own.privileged and not has_rights:
        yield f"privileged: true; {rights}"
    if spec.host_pid and host.has_separate_users:
        yield f"hostPID: true; {rights}"
    if spec.host_ipc and host.has_separate_users:
        yield f"hostIPC: true; {rights}"
    if spec.host_users is True and host.has_separate_users:
        yield f"hostUsers: true; {rights}"
    if spec.host_users is False and host.level == NONE:
        yield "hostUsers: false, and there are no user namespaces here"
    if spec.share_process_namespace:
        yield "shareProcessNamespace: true; each container of the process runtime has its own processes"
    if own.read_only_root_filesystem and host.level == NONE:
        yield "readOnlyRootFilesystem: true, and there are no mount namespaces here"
    if own.windows_options or whole.windows_options:
        yield "windowsOptions; this is Linux"
    if own.se_linux_options or whole.se_linux_options:
        yield "seLinuxOptions; the process runtime sets no SELinux labels"
    if whole.sysctls:
        yield "sysctls; the process runtime sets none, because they are those of the host"
    for field in ("seccomp_profile", "app_armor_profile"):
        profile = getattr(own, field) or getattr(whole, field)
        if profile is not None and profile.type == "Localhost":
            name = "seccompProfile" if field == "seccomp_profile" else "appArmorProfile"
            yield f"{name} Localhost; the process runtime loads no profiles"


def _config_error(message: str) -> SecurityError:
    return SecurityError("CreateContainerConfigError", message)


# --- ids of pods on the host ----------------------------------------------------------------------------------


LOCK_FILE = Path("/run/mooring-pod-users")
FIRST_ID = 0x70000000
"""Above the ids of users, of `/etc/subuid` and of systemd."""
RANGE_SIZE = IDS_MAX + 1
RANGES_MAX = 4000
"""All ranges end below 2**31."""


class NoRangeError(Exception):
    """All ranges are in use."""


class PodUsers:
    """The ranges of the pods of one kubelet."""

    def __init__(self, lock_file: Path = LOCK_FILE) -> None:
        """Raises `OSError` if the lock file cannot be opened."""
        self._file = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._taken: dict[str, int] = {}

    def first_id(self, pod_uid: str) -> int:
        """The first id of a pod. Raises `NoRangeError`."""
        if pod_uid not in self._taken:
            own = set(self._taken.values())
            found = next((number for number in range(RANGES_MAX) if number not in own and self._lock(number)), None)
            if found is None:
                raise NoRangeError(f"all {RANGES_MAX} ranges of user ids of this machine are in use by pods")
            self._taken[pod_uid] = found
        return FIRST_ID + self._taken[pod_uid] * RANGE_SIZE

    def release(self, pod_uid: str) -> None:
        number = self._taken.pop(pod_uid, None)
        if number is not None:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _byte_lock(fcntl.F_UNLCK, number))

    def close(self) -> None:
        os.close(self._file)

    def _lock(self, number: int) -> bool:
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _byte_lock(fcntl.F_WRLCK, number))
        except BlockingIOError:
            return False
        return True


def id_map(first_id: int) -> dict[str, str]:
    """The maps of a user namespace: ids of the pod, ids of the host, how many."""
    line = f"0 {first_id} {RANGE_SIZE}"
    return {"uid_map": line, "gid_map": line}


def _byte_lock(kind: int, number: int) -> bytes:
    return struct.pack("hhqqi0q", kind, os.SEEK_SET, number, 1, 0)
