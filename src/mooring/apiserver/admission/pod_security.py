"""PodSecurity: the Pod Security level that the labels of a namespace require.

Input: new pods and new images of pods; objects with a pod template (warnings only); the labels of namespaces.
Output: 403 for a pod below the `enforce` level, warnings for one below `warn`; 422 for labels that cannot be read.

 1. `audit` is read and has no effect: there is no audit log.
 2. A label that cannot be read enforces the strictest level, and causes no warnings.
 3. Raising the level of a namespace warns of the pods that violate the new level. They stay.
 4. `restricted` is the baseline and more; some of its checks replace milder ones.
 5. A version names the Kubernetes release whose checks count. `latest`, and every version after the known ones, mean
    the checks of the last release that changed something.
 6. Checks run in the order of their names, those of the baseline first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import NAMESPACE, POD, Kind
from mooring.apiserver.admission import pod_security_checks as checks
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup, name_of, refused
from mooring.apiserver.admission.pod_security_checks import Check, PodSecurityViolation
from mooring.apiserver.call import Operation
from mooring.apiserver.errors import internal, invalid_kind
from mooring.apiserver.validation.fields import FieldError, invalid

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)
LATEST = -1
"""The minor version that means the latest one."""

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


class _CheckRow(NamedTuple):
    name: str
    versions: Mapping[int, Check]
    """By the minor version since which it applies, in order."""
    replaces: str = ""
    """The baseline's check that it takes the place of."""


_BASELINE = (
    _CheckRow("appArmorProfile", {0: checks.app_armor_profile}),
    _CheckRow("capabilities_baseline", {0: checks.capabilities}),
    _CheckRow("hostNamespaces", {0: checks.host_namespaces}),
    _CheckRow("hostPathVolumes", {0: checks.host_path_volumes}),
    _CheckRow("hostPorts", {0: checks.host_ports}),
    _CheckRow("hostProbesAndHostLifecycle", {34: checks.host_probes}),
    _CheckRow("privileged", {0: checks.privileged}),
    _CheckRow("procMount", {0: checks.proc_mount, 35: checks.unless_user_namespace(checks.proc_mount)}),
    _CheckRow(
        "seLinuxOptions",
        {
            0: checks.security_linux_options(_LABEL_TYPES),
            31: checks.security_linux_options(_LABEL_TYPES | {"container_engine_t"}),
        },
    ),
    _CheckRow("seccompProfile_baseline", {0: checks.seccomp_annotations, 19: checks.seccomp_profile}),
    _CheckRow(
        "sysctls",
        {
            0: checks.sysctls(_SYSCTLS),
            27: checks.sysctls(_SYSCTLS_27),
            29: checks.sysctls(_SYSCTLS_29),
            32: checks.sysctls(_SYSCTLS_32),
        },
    ),
    _CheckRow("windowsHostProcess", {0: checks.windows_host_process}),
)
_RESTRICTED = (
    _CheckRow(
        "allowPrivilegeEscalation",
        {8: checks.privilege_escalation, 25: checks.unless_windows(checks.privilege_escalation)},
    ),
    _CheckRow(
        "capabilities_restricted",
        {22: checks.restricted_capabilities, 25: checks.unless_windows(checks.restricted_capabilities)},
        replaces="capabilities_baseline",
    ),
    _CheckRow("procMount_restricted", {35: checks.proc_mount}, replaces="procMount"),
    _CheckRow("restrictedVolumes", {0: checks.restricted_volumes}, replaces="hostPathVolumes"),
    _CheckRow("runAsNonRoot", {0: checks.run_as_non_root, 35: checks.unless_user_namespace(checks.run_as_non_root)}),
    _CheckRow("runAsUser", {23: checks.run_as_user, 35: checks.unless_user_namespace(checks.run_as_user)}),
    _CheckRow(
        "seccompProfile_restricted",
        {19: checks.restricted_seccomp, 25: checks.unless_windows(checks.restricted_seccomp)},
        replaces="seccompProfile_baseline",
    ),
)
_MINOR_MAX = max(minor for row in (*_BASELINE, *_RESTRICTED) for minor in row.versions)


class PodSecurityLevel(NamedTuple):
    """A level of the Pod Security Standards in one version."""

    name: str = PRIVILEGED
    minor: int = LATEST

    def __str__(self) -> str:
        return f"{self.name}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


def violations_of(level: PodSecurityLevel, metadata: Document, spec: Document) -> list[PodSecurityViolation]:
    """What keeps a pod from being allowed on a level."""
    if level.name == PRIVILEGED:
        return []
    minor = _MINOR_MAX if level.minor == LATEST or level.minor > _MINOR_MAX else level.minor
    found = (check(metadata, spec) for check in _checks(level.name, minor))
    return [violation for violation in found if violation is not None]


def text_of(violations: Sequence[PodSecurityViolation]) -> str:
    return ", ".join(
        f"{violation.reason} ({violation.detail})" if violation.detail else violation.reason for violation in violations
    )


@lru_cache(maxsize=256)
def _checks(name: str, minor: int) -> tuple[Check, ...]:
    strict = [] if name == BASELINE else [row for row in _RESTRICTED if _at(row, minor) is not None]
    replaced = {row.replaces for row in strict}
    rows = [*(row for row in _BASELINE if row.name not in replaced), *strict]
    return tuple(check for row in rows if (check := _at(row, minor)) is not None)


def _at(row: _CheckRow, minor: int) -> Check | None:
    """The row's check in a version."""
    known = [check for since, check in row.versions.items() if since <= minor]
    return known[-1] if known else None


# --- the plugin -----------------------------------------------------------------------------------------------


PODS_CHECKED_MAX = 3_000

_LABEL = "pod-security.kubernetes.io/"
_POD_SUBRESOURCES = ("", "ephemeralcontainers", "resize")
_MAKERS = frozenset(
    {
        kinds.REPLICATION_CONTROLLER,
        kinds.POD_TEMPLATE,
        kinds.REPLICA_SET,
        kinds.DEPLOYMENT,
        kinds.STATEFUL_SET,
        kinds.DAEMON_SET,
        kinds.JOB,
        kinds.CRON_JOB,
    }
)
_version = re.compile(r"v1\.(0|[1-9][0-9]*)").fullmatch


class PodSecurity(Admission):
    """Enforces the level of the namespace."""

    name = "PodSecurity"

    def handles(self, kind: Kind, subresource: str, operation: Operation) -> bool:
        if operation not in (Operation.CREATE, Operation.UPDATE):
            return False
        if kind is POD:
            return subresource in _POD_SUBRESOURCES
        return not subresource and (kind is NAMESPACE or kind in _MAKERS)

    async def check(self, attempt: Attempt, lookup: Lookup) -> None:
        assert attempt.obj is not None
        if attempt.call.kind is NAMESPACE:
            await _check_namespace(attempt, attempt.obj, lookup)
        elif attempt.call.kind is POD:
            await _check_pod(attempt, attempt.obj, lookup)
        else:
            await _check_maker(attempt, attempt.obj, lookup)


async def _check_pod(attempt: Attempt, pod: Document, lookup: Lookup) -> None:
    namespace = await lookup.get(NAMESPACE, "", attempt.call.namespace)
    if namespace is None:
        raise internal(f"failed to lookup namespace {quoted(attempt.call.namespace)}")
    policy = policy_of(namespace["metadata"].get("labels") or {})
    if policy.enforce.name == policy.warn.name == PRIVILEGED:
        return
    if attempt.operation is Operation.UPDATE:
        assert attempt.old is not None
        if not _has_new_images(pod["spec"], attempt.old["spec"]):
            return
    violations = violations_of(policy.enforce, pod["metadata"], pod["spec"])
    if violations:
        raise refused(attempt, f'violates PodSecurity "{policy.enforce}": {text_of(violations)}')
    _warn(attempt, policy, pod["metadata"], pod["spec"])


async def _check_maker(attempt: Attempt, maker: Document, lookup: Lookup) -> None:
    namespace = await lookup.get(NAMESPACE, "", attempt.call.namespace)
    if namespace is None:
        return
    policy = policy_of(namespace["metadata"].get("labels") or {})
    template = _template_of(attempt.call.kind, maker) if policy.warn.name != PRIVILEGED else None
    if template is not None:
        _warn(attempt, policy, template.get("metadata") or {}, template.get("spec") or {})


def _warn(attempt: Attempt, policy: NamespacePolicy, metadata: Document, spec: Document) -> None:
    violations = violations_of(policy.warn, metadata, spec)
    if violations:
        attempt.call.warn(f'would violate PodSecurity "{policy.warn}": {text_of(violations)}')


def _template_of(kind: Kind, maker: Document) -> Document | None:
    spec = maker.get("spec") or {}
    if kind is kinds.POD_TEMPLATE:
        spec = maker
    elif kind is kinds.CRON_JOB:
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    template: Document | None = spec.get("template")
    return template


def _has_new_images(spec: Document, old: Document) -> bool:
    """Whether an update is one that could change what a pod can do. All others would be admitted again."""
    for field in ("containers", "initContainers"):
        after, before = spec.get(field) or [], old.get(field) or []
        if [container.get("image") for container in after] != [container.get("image") for container in before]:
            return True
    known = {container["name"]: container.get("image") for container in old.get("ephemeralContainers") or []}
    return any(
        container["name"] not in known or known[container["name"]] != container.get("image")
        for container in spec.get("ephemeralContainers") or []
    )


# --- namespaces -------------------------------------------------------------------------------------------------


class NamespacePolicy(NamedTuple):
    """The policy from the labels of a namespace, and the errors of the labels."""

    enforce: PodSecurityLevel
    warn: PodSecurityLevel
    errors: Sequence[FieldError]


_NO_LEVELS = NamespacePolicy(PodSecurityLevel(), PodSecurityLevel(), ())


def policy_of(labels: Mapping[str, str]) -> NamespacePolicy:
    if not any(key.startswith(_LABEL) for key in labels):
        return _NO_LEVELS
    errors: list[FieldError] = []
    enforce = _level(labels, "enforce", RESTRICTED, errors)
    _level(labels, "audit", PRIVILEGED, errors)
    warn = _level(labels, "warn", PRIVILEGED, errors)
    is_enforced = labels.get(f"{_LABEL}enforce") in LEVELS
    if f"{_LABEL}warn" not in labels and is_enforced and enforce.name != PRIVILEGED:
        # What is enforced on pods is warned of for what makes them.
        has_version = f"{_LABEL}warn-version" in labels
        warn = PodSecurityLevel(enforce.name, warn.minor if has_version else enforce.minor)
    return NamespacePolicy(enforce, warn, errors)


def _level(labels: Mapping[str, str], mode: str, if_unreadable: str, errors: list[FieldError]) -> PodSecurityLevel:
    key, version_key = f"{_LABEL}{mode}", f"{_LABEL}{mode}-version"
    name = labels.get(key, PRIVILEGED)
    if name not in LEVELS:
        errors.append(invalid(f"metadata.labels[{key}]", name, f"must be one of {', '.join(LEVELS)}"))
        name = if_unreadable
    version = labels.get(version_key, "latest")
    if version == "latest":
        return PodSecurityLevel(name, LATEST)
    read = _version(version)
    if read is None:
        errors.append(invalid(f"metadata.labels[{version_key}]", version, 'must be "latest" or "v1.x"'))
        return PodSecurityLevel(name, LATEST)
    return PodSecurityLevel(name, int(read[1]))


async def _check_namespace(attempt: Attempt, namespace: Document, lookup: Lookup) -> None:
    policy = policy_of(namespace["metadata"].get("labels") or {})
    if attempt.operation is Operation.CREATE:
        if policy.errors:
            raise invalid_kind(NAMESPACE, name_of(attempt), policy.errors)
        return
    assert attempt.old is not None
    before = policy_of(attempt.old["metadata"].get("labels") or {})
    if policy.errors and list(policy.errors) != list(before.errors):
        raise invalid_kind(NAMESPACE, name_of(attempt), policy.errors)
    if policy.enforce.name == PRIVILEGED or policy.enforce == before.enforce:
        return
    is_milder = LEVELS.index(policy.enforce.name) <= LEVELS.index(before.enforce.name)
    if is_milder and policy.enforce.minor == before.enforce.minor:
        return
    name = namespace["metadata"]["name"]
    for text in _warnings_about(await lookup.list(POD, name), name, policy.enforce):
        attempt.call.warn(text)


def _warnings_about(pods: Sequence[Document], namespace: str, level: PodSecurityLevel) -> list[str]:
    """The pods that violate the policy now; pods with the same errors in one line."""
    by_errors: dict[str, list[str]] = {}
    for pod in _one_of_each_owner_first(pods)[:PODS_CHECKED_MAX]:
        violations = violations_of(level, pod["metadata"], pod["spec"])
        if violations:
            by_errors.setdefault(", ".join(violation.reason for violation in violations), []).append(
                pod["metadata"]["name"]
            )
    warnings = []
    if len(pods) > PODS_CHECKED_MAX:
        checked = f"the first {PODS_CHECKED_MAX} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if by_errors:
        warnings.append(
            f'existing pods in namespace {quoted(namespace)} violate the new PodSecurity enforce level "{level}"'
        )
    return warnings + sorted(f"{_called(names)}: {errors}" for errors, names in by_errors.items())


def _called(names: Sequence[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other pod{'' if others == 1 else 's'})"


def _one_of_each_owner_first(pods: Sequence[Document]) -> list[Document]:
    """Pods, with one of each controller first: if not all pods can be checked, these represent the others."""
    first: list[Document] = []
    others: list[Document] = []
    seen: set[str] = set()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or []
        uid = next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")
        if uid and uid in seen:
            others.append(pod)
        else:
            first.append(pod)
            seen.add(uid)
    return first + others
