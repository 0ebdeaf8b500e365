"""The levels of pod security and their versions: which checks a pod must pass.

Input: a level and a version of it.
Output: the violations of a pod, as one text.

 1. `restricted` is the baseline and more; some of its checks take the place of milder ones.
 2. A version names the Kubernetes release whose checks count. `latest`, and every later one than is known, mean those
    of the last release that changed something.
 3. Checks come in the order of their names, the baseline's first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from mooring.api.document import Document
from mooring.apiserver.admission import pod_security_baseline as baseline
from mooring.apiserver.admission import pod_security_restricted as restricted
from mooring.apiserver.admission.pod_security_words import Check, Violation

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)
LATEST = -1
"""As a minor version: whatever is the last one."""

_LABEL_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SYSCTLS_27 = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29 = _SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SYSCTLS_32 = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


class _Since(NamedTuple):
    minor: int
    check: Check


class _Row(NamedTuple):
    name: str
    versions: Sequence[_Since]
    replaces: str = ""
    """The baseline's check that it takes the place of."""


_BASELINE = (
    _Row("appArmorProfile", [_Since(0, baseline.app_armor_profile)]),
    _Row("capabilities_baseline", [_Since(0, baseline.capabilities)]),
    _Row("hostNamespaces", [_Since(0, baseline.host_namespaces)]),
    _Row("hostPathVolumes", [_Since(0, baseline.host_path_volumes)]),
    _Row("hostPorts", [_Since(0, baseline.host_ports)]),
    _Row("hostProbesAndHostLifecycle", [_Since(34, baseline.host_probes)]),
    _Row("privileged", [_Since(0, baseline.privileged)]),
    _Row("procMount", [_Since(0, baseline.proc_mount), _Since(35, baseline.proc_mount_unless_user_namespace)]),
    _Row(
        "seLinuxOptions",
        [
            _Since(0, baseline.security_linux_options(_LABEL_TYPES)),
            _Since(31, baseline.security_linux_options(_LABEL_TYPES | {"container_engine_t"})),
        ],
    ),
    _Row(
        "seccompProfile_baseline",
        [_Since(0, baseline.seccomp_annotations), _Since(19, baseline.seccomp_profile)],
    ),
    _Row(
        "sysctls",
        [
            _Since(0, baseline.sysctls(_SYSCTLS)),
            _Since(27, baseline.sysctls(_SYSCTLS_27)),
            _Since(29, baseline.sysctls(_SYSCTLS_29)),
            _Since(32, baseline.sysctls(_SYSCTLS_32)),
        ],
    ),
    _Row("windowsHostProcess", [_Since(0, baseline.windows_host_process)]),
)
_RESTRICTED = (
    _Row(
        "allowPrivilegeEscalation",
        [
            _Since(8, restricted.privilege_escalation),
            _Since(25, restricted.unless_windows(restricted.privilege_escalation)),
        ],
    ),
    _Row(
        "capabilities_restricted",
        [_Since(22, restricted.capabilities), _Since(25, restricted.unless_windows(restricted.capabilities))],
        replaces="capabilities_baseline",
    ),
    _Row("procMount_restricted", [_Since(35, baseline.proc_mount)], replaces="procMount"),
    _Row("restrictedVolumes", [_Since(0, restricted.volumes)], replaces="hostPathVolumes"),
    _Row(
        "runAsNonRoot",
        [
            _Since(0, restricted.run_as_non_root),
            _Since(35, restricted.unless_user_namespace(restricted.run_as_non_root)),
        ],
    ),
    _Row(
        "runAsUser",
        [_Since(23, restricted.run_as_user), _Since(35, restricted.unless_user_namespace(restricted.run_as_user))],
    ),
    _Row(
        "seccompProfile_restricted",
        [_Since(19, restricted.seccomp), _Since(25, restricted.unless_windows(restricted.seccomp))],
        replaces="seccompProfile_baseline",
    ),
)
_MINOR_MAX = max(since.minor for row in (*_BASELINE, *_RESTRICTED) for since in row.versions)


class Level(NamedTuple):
    """A level in a version."""

    name: str = PRIVILEGED
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.name}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


def violations_of(level: Level, metadata: Document, spec: Document) -> list[Violation]:
    """What keeps a pod from being allowed on a level."""
    if level.name == PRIVILEGED:
        return []
    minor = _MINOR_MAX if level.minor == LATEST or level.minor > _MINOR_MAX else level.minor
    found = (check(metadata, spec) for check in _checks(level.name, minor))
    return [violation for violation in found if violation is not None]


def text_of(violations: Sequence[Violation]) -> str:
    return ", ".join(f"{each.reason} ({each.detail})" if each.detail else each.reason for each in violations)


@lru_cache(maxsize=256)
def _checks(name: str, minor: int) -> tuple[Check, ...]:
    strict = [] if name == BASELINE else [row for row in _RESTRICTED if _at(row, minor) is not None]
    replaced = {row.replaces for row in strict}
    rows = [*(row for row in _BASELINE if row.name not in replaced), *strict]
    return tuple(check for row in rows if (check := _at(row, minor)) is not None)


def _at(row: _Row, minor: int) -> Check | None:
    """The row's check in a version."""
    known = [since.check for since in row.versions if since.minor <= minor]
    return known[-1] if known else None
