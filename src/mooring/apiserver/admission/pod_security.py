"""PodSecurity: the Pod Security level that the labels of a namespace require.

Input: new pods and new images of pods; what makes pods (warned only); the labels of namespaces.
Output: 403 for a pod below the `enforce` level, warnings for one below `warn`; 422 for labels that cannot be read.

 1. `audit` has nowhere to be written to, and is only read.
 2. A label that cannot be read enforces the strictest level, and warns of nothing.
 3. Raising the level of a namespace warns of the pods that violate the new level. They stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.kinds import NAMESPACE, POD, Kind
from mooring.apiserver.admission.forbidding import name_of, refused
from mooring.apiserver.admission.interface import Admission, Attempt, Lookup
from mooring.apiserver.admission.pod_security_levels import (
    LATEST,
    LEVELS,
    PRIVILEGED,
    RESTRICTED,
    Level,
    text_of,
    violations_of,
)
from mooring.apiserver.call import Operation
from mooring.apiserver.registry.errors import internal, invalid_kind
from mooring.apiserver.validation.fields import FieldError, invalid

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
    """Holds pods to the level of their namespace."""

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


def _warn(attempt: Attempt, policy: Policy, metadata: Document, spec: Document) -> None:
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
        if [one.get("image") for one in after] != [one.get("image") for one in before]:
            return True
    known = {one["name"]: one.get("image") for one in old.get("ephemeralContainers") or []}
    return any(
        one["name"] not in known or known[one["name"]] != one.get("image")
        for one in spec.get("ephemeralContainers") or []
    )


# --- namespaces -------------------------------------------------------------------------------------------------


class Policy(NamedTuple):
    """What the labels of a namespace ask for, and what is wrong with them."""

    enforce: Level
    warn: Level
    errors: Sequence[FieldError]


_NOTHING_ASKED = Policy(Level(), Level(), ())


def policy_of(labels: Mapping[str, str]) -> Policy:
    if not any(key.startswith(_LABEL) for key in labels):
        return _NOTHING_ASKED
    errors: list[FieldError] = []
    enforce = _level(labels, "enforce", RESTRICTED, errors)
    _level(labels, "audit", PRIVILEGED, errors)
    warn = _level(labels, "warn", PRIVILEGED, errors)
    is_enforced = labels.get(f"{_LABEL}enforce") in LEVELS
    if f"{_LABEL}warn" not in labels and is_enforced and enforce.name != PRIVILEGED:
        # What is enforced on pods is warned of for what makes them.
        has_version = f"{_LABEL}warn-version" in labels
        warn = Level(enforce.name, warn.minor if has_version else enforce.minor)
    return Policy(enforce, warn, errors)


def _level(labels: Mapping[str, str], mode: str, if_unreadable: str, errors: list[FieldError]) -> Level:
    key, version_key = f"{_LABEL}{mode}", f"{_LABEL}{mode}-version"
    name = labels.get(key, PRIVILEGED)
    if name not in LEVELS:
        errors.append(invalid(f"metadata.labels[{key}]", name, f"must be one of {', '.join(LEVELS)}"))
        name = if_unreadable
    version = labels.get(version_key, "latest")
    if version == "latest":
        return Level(name, LATEST)
    read = _version(version)
    if read is None:
        errors.append(invalid(f"metadata.labels[{version_key}]", version, 'must be "latest" or "v1.x"'))
        return Level(name, LATEST)
    return Level(name, int(read[1]))


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


def _warnings_about(pods: Sequence[Document], namespace: str, level: Level) -> list[str]:
    """Which pods would be rejected now; those with the same errors in one line."""
    by_errors: dict[str, list[str]] = {}
    for pod in _one_of_each_owner_first(pods)[:PODS_CHECKED_MAX]:
        violations = violations_of(level, pod["metadata"], pod["spec"])
        if violations:
            by_errors.setdefault(", ".join(each.reason for each in violations), []).append(pod["metadata"]["name"])
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
    """Pods of one owner are alike: if not all can be looked at, one of each kind should be."""
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
