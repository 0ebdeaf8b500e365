"""What a pod uses of a quota.

Comes in   a pod
Goes out   its number, its requests and its limits, under each name that a quota may have for them

 1. A pod that has ended uses nothing but its place in the store, and so does one whose time to end is long over.
 2. Where cpu or memory is limited, every container must say how much it wants.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.document import Document
from mooring.api.kinds import POD
from mooring.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    NATIVE_PREFIX,
    PODS,
    QUOTA_PREFIX,
    is_device_backed_resource,
    is_pod_level_resource,
)
from mooring.apiserver.admission.pod_amounts import FOR_QUOTAS, Amounts, amounts, pod_limits, pod_requests
from mooring.apiserver.admission.promise import Attempt, Lookup
from mooring.apiserver.admission.quota_measures import Measure, count_name, matches_value, whole
from mooring.apiserver.call import Operation
from mooring.apiserver.validation.pod_quality import quality_of_service
from mooring.kit.clock import parse_rfc3339

IMPLICIT_DEVICE_PREFIX = f"{QUOTA_PREFIX}deviceclass.resource.kubernetes.io/"

_LIMIT_PREFIX = "limits."
_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NAMES = frozenset(
    {count_name(POD), PODS} | {f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, _LIMIT_PREFIX) for name in _PLAIN}
)
_MUST_BE_SAID = frozenset(f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, _LIMIT_PREFIX) for name in (CPU, MEMORY))
_ENDED = ("Succeeded", "Failed")


class PodMeasure(Measure):
    """Measures pods."""

    def handles(self, subresource: str, operation: Operation) -> bool:
        if subresource == "resize":
            return operation is Operation.UPDATE
        return not subresource and operation in (Operation.CREATE, Operation.UPDATE)

    def concerns(self, attempt: Attempt) -> bool:
        if attempt.operation is Operation.CREATE or attempt.call.subresource:
            return True
        assert attempt.obj is not None
        assert attempt.old is not None
        return _has_deadline(attempt.obj) != _has_deadline(attempt.old)

    async def counted(self, names: Iterable[str], lookup: Lookup) -> list[str]:
        return [name for name in names if name in _NAMES or _is_huge_page(name) or is_extended_in_quota(name)]

    def is_in_scope(self, scope: Document, obj: Document) -> bool:
        match scope.get("scopeName"):
            case "Terminating":
                return _has_deadline(obj)
            case "NotTerminating":
                return not _has_deadline(obj)
            case "BestEffort":
                return _is_best_effort(obj)
            case "NotBestEffort":
                return not _is_best_effort(obj)
            case "PriorityClass":
                return matches_value(scope, obj["spec"].get("priorityClassName", ""))
            case "CrossNamespacePodAffinity":
                return _looks_into_other_namespaces(obj["spec"].get("affinity") or {})
            case _:
                return False

    def unspecified(self, names: Iterable[str], obj: Document) -> str:
        spec = obj["spec"]
        of_pod = spec.get("resources") or {}
        if any(is_pod_level_resource(name) for which in ("requests", "limits") for name in of_pod.get(which) or {}):
            return ""
        required = sorted(name for name in names if name in _MUST_BE_SAID)
        silent: dict[str, set[str]] = {}
        for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
            resources = container.get("resources") or {}
            said = _under_quota_names(amounts(resources.get("requests")), amounts(resources.get("limits")))
            for name in required:
                if name not in said:
                    silent.setdefault(name, set()).add(container.get("name", ""))
        if not silent:
            return ""
        return "must specify " + "; ".join(f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent))

    async def usage(self, obj: Document, attempt: Attempt, lookup: Lookup) -> Amounts:
        return pod_usage(obj, attempt.call.now_s)


def pod_usage(pod: Document, now_s: float) -> Amounts:
    used: Amounts = {count_name(POD): whole(1)}
    if _is_alive(pod, now_s):
        used |= _under_quota_names(pod_requests(pod, FOR_QUOTAS), pod_limits(pod, FOR_QUOTAS))
    return used


def is_extended_in_quota(name: str) -> bool:
    """Whether a name that a quota limits is that of a vendor's resource."""
    is_foreign = "/" in name and NATIVE_PREFIX not in name
    return name.startswith(QUOTA_PREFIX) and (is_foreign or name.startswith(IMPLICIT_DEVICE_PREFIX))


def _under_quota_names(requests: Amounts, limits: Amounts) -> Amounts:
    used: Amounts = {PODS: whole(1)}
    for name, amount in requests.items():
        if name in _PLAIN or name.startswith(HUGE_PAGES_PREFIX):
            used[name] = used[f"{QUOTA_PREFIX}{name}"] = amount
        elif is_device_backed_resource(name):
            used[f"{QUOTA_PREFIX}{name}"] = amount
    for name in _PLAIN:
        if name in limits:
            used[f"{_LIMIT_PREFIX}{name}"] = limits[name]
    return used


def _is_alive(pod: Document, now_s: float) -> bool:
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return False
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds") is None:
        return True
    return now_s <= parse_rfc3339(metadata["deletionTimestamp"]) + int(metadata["deletionGracePeriodSeconds"])


def _is_huge_page(name: str) -> bool:
    return name.startswith((HUGE_PAGES_PREFIX, f"{QUOTA_PREFIX}{HUGE_PAGES_PREFIX}"))


def _has_deadline(pod: Document) -> bool:
    deadline_s = pod["spec"].get("activeDeadlineSeconds")
    return deadline_s is not None and deadline_s >= 0


def _is_best_effort(pod: Document) -> bool:
    quality = (pod.get("status") or {}).get("qosClass") or quality_of_service(pod["spec"])
    return bool(quality == "BestEffort")


def _looks_into_other_namespaces(affinity: Document) -> bool:
    terms: list[Document] = []
    for field in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(field) or {}
        terms += part.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        preferred = part.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)
