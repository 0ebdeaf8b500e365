"""What a pod uses of a quota, and whether a quota with scopes means it.

Comes in   pods, as views
Goes out   amounts by the names that quotas limit; whether a pod is in a scope

 1. A pod that has ended uses nothing but its place in the store, and so does one whose time to end is over.
 2. The pods of a template use the same, so amounts are remembered by what a pod says about its resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mooring.api.memory import Memory
from mooring.api.quantity import Format, Quantity, parse_quantity
from mooring.api.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    QUOTA_PREFIX,
    is_device_backed_resource,
    is_pod_level_resource,
)
from mooring.api.resources import RequestRules, pod_requests_nano
from mooring.api.views.base import ResourceList
from mooring.api.views.pod import (
    Affinity,
    Container,
    ContainerStatus,
    Pod,
    PodAffinityTerm,
    ResourceRequirements,
)
from mooring.api.views.quotas import ScopeRequirement
from mooring.controllers.pods import is_finished
from mooring.controllers.quota_amounts import ONE, Amounts, matches_value
from mooring.kit.clock import parse_rfc3339

COUNT_PODS = "count/pods"
PODS_REMEMBERED_MAX = 4096

_LIMIT_PREFIX = "limits."
_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NAMES = frozenset(
    {COUNT_PODS, PODS} | {f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, _LIMIT_PREFIX) for name in _PLAIN}
)
_REQUESTS = RequestRules(counts_status=True)
_LIMITS = RequestRules(counts_status=True, counts_overhead=False)

_known: Memory[tuple[object, ...], Amounts] = Memory(PODS_REMEMBERED_MAX)


def is_pod_name(name: str) -> bool:
    """Whether a quota limits something by this name that pods use."""
    is_huge_page = name.startswith((HUGE_PAGES_PREFIX, f"{QUOTA_PREFIX}{HUGE_PAGES_PREFIX}"))
    return name in _NAMES or is_huge_page or _is_extended(name)


def pod_usage(pod: Pod, now_s: float) -> Amounts:
    if not is_alive(pod, now_s):
        return {COUNT_PODS: ONE}
    question = _said(pod)
    known = _known.get(question)
    return known if known is not None else _known.keep(question, _alive_usage(pod))


def is_alive(pod: Pod, now_s: float) -> bool:
    """Whether it uses anything: it has not ended, and its time to end is not over."""
    if is_finished(pod):
        return False
    metadata = pod.metadata
    if metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return True
    return now_s <= parse_rfc3339(metadata.deletion_timestamp) + metadata.deletion_grace_period_seconds


def is_pod_in_scope(scope: ScopeRequirement, pod: Pod) -> bool:
    deadline_s = pod.spec.active_deadline_seconds
    has_deadline = deadline_s is not None and deadline_s >= 0
    match scope.scope_name:
        case "Terminating":
            return has_deadline
        case "NotTerminating":
            return not has_deadline
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
    used = {COUNT_PODS: ONE, PODS: ONE}
    formats = _formats(pod)
    for name, nano in pod_requests_nano(pod, _REQUESTS).items():
        amount = Quantity(nano, formats.get(name, Format.DECIMAL_SI))
        if name in _PLAIN or name.startswith(HUGE_PAGES_PREFIX):
            used[name] = used[f"{QUOTA_PREFIX}{name}"] = amount
        elif is_device_backed_resource(name):
            used[f"{QUOTA_PREFIX}{name}"] = amount
    limits = pod_requests_nano(_with_limits_as_requests(pod), _LIMITS)
    for name in _PLAIN:
        if name in limits:
            overhead = pod.spec.overhead.get(name)
            extra = parse_quantity(overhead).amount_nano if overhead is not None and limits[name] else 0
            used[f"{_LIMIT_PREFIX}{name}"] = Quantity(limits[name] + extra, formats.get(name, Format.DECIMAL_SI))
    return used


def _with_limits_as_requests(pod: Pod) -> Pod:
    """So that limits are added up by the same rules."""

    def container(each: Container) -> Container:
        return replace(each, resources=ResourceRequirements(requests=each.resources.limits))

    def status(each: ContainerStatus) -> ContainerStatus:
        resources = ResourceRequirements(requests=each.resources.limits) if each.resources is not None else None
        return replace(each, resources=resources, allocated_resources={})

    spec, found = pod.spec, pod.status
    whole = ResourceRequirements(requests=spec.resources.limits) if spec.resources is not None else None
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(map(container, spec.containers)),
            init_containers=tuple(map(container, spec.init_containers)),
            resources=whole,
        ),
        status=replace(
            found,
            container_statuses=tuple(map(status, found.container_statuses)),
            init_container_statuses=tuple(map(status, found.init_container_statuses)),
            resources=None,
            allocated_resources={},
        ),
    )


def _formats(pod: Pod) -> Mapping[str, Format]:
    """How each resource is written where it is said first."""
    formats: dict[str, Format] = {}
    for resources in _resource_lists(pod):
        for name, raw in resources.items():
            if name not in formats:
                formats[name] = parse_quantity(raw).format
    return formats


def _resource_lists(pod: Pod) -> Iterable[ResourceList]:
    if pod.spec.resources is not None:
        yield pod.spec.resources.requests
        yield pod.spec.resources.limits
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        yield container.resources.requests
        yield container.resources.limits
    yield pod.spec.overhead


def _said(pod: Pod) -> tuple[object, ...]:
    """Everything that decides what it uses."""
    spec, status = pod.spec, pod.status
    said: list[object] = [tuple(spec.overhead.items())]
    if spec.resources is not None:
        said.append(_items(spec.resources))
    said += [(each.name, _items(each.resources)) for each in spec.containers]
    said += [(each.name, each.restart_policy, _items(each.resources)) for each in spec.init_containers]
    for each in (*status.container_statuses, *status.init_container_statuses):
        if each.resources is not None:
            said.append((each.name, _items(each.resources), tuple(each.allocated_resources.items())))
    if said[1:] and any(condition.type == "PodResizePending" for condition in status.conditions):
        said.append(tuple((each.type, each.reason) for each in status.conditions))
    if status.resources is not None:
        said.append((_items(status.resources), tuple(status.allocated_resources.items())))
    return tuple(said)


def _items(resources: ResourceRequirements) -> tuple[object, ...]:
    return tuple(resources.requests.items()), tuple(resources.limits.items())


# --- scopes -----------------------------------------------------------------------------------------------------


def _is_best_effort(pod: Pod) -> bool:
    if pod.status.qos_class:
        return pod.status.qos_class == "BestEffort"
    lists = _resource_lists(pod)
    return not any(is_pod_level_resource(name) and name in (CPU, MEMORY) for each in lists for name in each)


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


def _is_extended(name: str) -> bool:
    return name.startswith(QUOTA_PREFIX) and "/" in name and "kubernetes.io/" not in name
