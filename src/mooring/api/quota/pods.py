"""The quota usage of pods: their number, requests and limits under all names of a quota, and the scopes that match.

1. A pod that has ended uses only its object count, and so does one whose grace period is long over.
2. Usage is cached by the resource fields of the pod, and shared: no caller changes one.
"""

from __future__ import annotations

from mooring.api.kinds import POD
from mooring.api.memory import Memory
from mooring.api.pod_amounts import FOR_QUOTAS, amounts, pod_limits, pod_requests
from mooring.api.quantity import Quantity, quantity_nano
from mooring.api.quota.counting import ONE, Amounts, count_name, matches_value
from mooring.api.resource_names import (
    CPU,
    DEVICE_CLASS_PREFIX,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    NATIVE_PREFIX,
    PODS,
    QUOTA_PREFIX,
    is_device_backed_resource,
)
from mooring.api.resources import is_resize_infeasible
from mooring.api.views.pod import Affinity, Pod, PodAffinityTerm, ResourceRequirements
from mooring.api.views.quotas import ScopeRequirement
from mooring.kit.clock import parse_rfc3339

IMPLICIT_DEVICE_PREFIX = f"{QUOTA_PREFIX}{DEVICE_CLASS_PREFIX}"
PODS_REMEMBERED_MAX = 4096

_COUNT = count_name(POD)
_LIMIT_PREFIX = "limits."
_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NAMES = frozenset(
    {_COUNT, PODS} | {f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, _LIMIT_PREFIX) for name in _PLAIN}
)
_ENDED = ("Succeeded", "Failed")

_known: Memory[tuple[object, ...], Amounts] = Memory(PODS_REMEMBERED_MAX)


def is_pod_name(name: str) -> bool:
    """Whether a quota limits something by this name that pods use."""
    is_huge_page = name.startswith((HUGE_PAGES_PREFIX, f"{QUOTA_PREFIX}{HUGE_PAGES_PREFIX}"))
    return name in _NAMES or is_huge_page or is_extended_name(name)


def is_extended_name(name: str) -> bool:
    """Whether a name that a quota limits is that of a vendor's resource, or of a device class as if it were one."""
    is_foreign = "/" in name and NATIVE_PREFIX not in name
    return name.startswith(QUOTA_PREFIX) and (is_foreign or name.startswith(IMPLICIT_DEVICE_PREFIX))


def pod_usage(pod: Pod, now_s: float) -> Amounts:
    if not is_alive(pod, now_s):
        return {_COUNT: ONE}
    question = _pod_key(pod)
    known = _known.get(question)
    return known if known is not None else _known.put(question, _alive_usage(pod))


def is_alive(pod: Pod, now_s: float) -> bool:
    """Whether it uses anything: it has not ended, and its time to end is not over."""
    if pod.status.phase in _ENDED:
        return False
    metadata = pod.metadata
    if metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return True
    return now_s <= parse_rfc3339(metadata.deletion_timestamp) + metadata.deletion_grace_period_seconds


def container_usage(resources: ResourceRequirements) -> Amounts:
    """What a container asks for, under the names that quotas have for it."""
    return _under_quota_names(amounts(resources.requests), amounts(resources.limits))


def has_deadline(pod: Pod) -> bool:
    deadline_s = pod.spec.active_deadline_seconds
    return deadline_s is not None and deadline_s >= 0


def is_pod_in_scope(scope: ScopeRequirement, pod: Pod) -> bool:
    match scope.scope_name:
        case "Terminating":
            return has_deadline(pod)
        case "NotTerminating":
            return not has_deadline(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return matches_value(scope, pod.spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            return _looks_into_other_namespaces(pod.spec.affinity)
        case _:
            return False


# --- amounts ----------------------------------------------------------------------------------------------------


def _alive_usage(pod: Pod) -> Amounts:
    return {_COUNT: ONE, **_under_quota_names(pod_requests(pod, FOR_QUOTAS), pod_limits(pod, FOR_QUOTAS))}


def _under_quota_names(requests: Amounts, limits: Amounts) -> Amounts:
    used: dict[str, Quantity] = {PODS: ONE}
    for name, amount in requests.items():
        if name in _PLAIN or name.startswith(HUGE_PAGES_PREFIX):
            used[name] = used[f"{QUOTA_PREFIX}{name}"] = amount
        elif is_device_backed_resource(name):
            used[f"{QUOTA_PREFIX}{name}"] = amount
    for name in _PLAIN:
        if name in limits:
            used[f"{_LIMIT_PREFIX}{name}"] = limits[name]
    return used


def _pod_key(pod: Pod) -> tuple[object, ...]:
    """Everything that decides what it uses."""
    spec, status = pod.spec, pod.status
    statuses = (*status.container_statuses, *status.init_container_statuses)
    given = [each for each in statuses if each.resources is not None]
    return (
        tuple(spec.overhead.items()),
        _items(spec.resources),
        tuple([(each.name, _items(each.resources)) for each in spec.containers]),
        tuple([(each.name, each.restart_policy, _items(each.resources)) for each in spec.init_containers]),
        tuple([(each.name, _items(each.resources), tuple(each.allocated_resources.items())) for each in given]),
        bool(given) and is_resize_infeasible(pod),
    )


def _items(resources: ResourceRequirements | None) -> tuple[object, ...]:
    return () if resources is None else (tuple(resources.requests.items()), tuple(resources.limits.items()))


# --- scopes -----------------------------------------------------------------------------------------------------


def _is_best_effort(pod: Pod) -> bool:
    if pod.status.qos_class:
        return pod.status.qos_class == "BestEffort"
    spec = pod.spec
    containers = [each.resources for each in (*spec.containers, *spec.init_containers)]
    holders = [spec.resources] if spec.resources is not None else containers
    return not any(_asks_for_something(each) for each in holders)


def _asks_for_something(resources: ResourceRequirements) -> bool:
    raw_amounts = [each.get(name) for each in (resources.requests, resources.limits) for name in (CPU, MEMORY)]
    return any(quantity_nano(raw) > 0 for raw in raw_amounts if raw is not None)


def _looks_into_other_namespaces(affinity: Affinity | None) -> bool:
    if affinity is None:
        return False
    terms: list[PodAffinityTerm] = []
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            terms += part.required_during_scheduling_ignored_during_execution
            preferred = part.preferred_during_scheduling_ignored_during_execution
            terms += [weighted.pod_affinity_term for weighted in preferred]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)
