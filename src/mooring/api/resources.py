"""Resources: their names, requests of pods and resources of nodes as integers, amounts of pods as quantities.

As integers, cpu is counted in thousandths, everything else in whole units. kube-scheduler v1.36 computes the requests
of a pod in four places, in four different ways. With the default feature gates:

    place                        status of running containers   pod-level requests   default without a request
    node_accounting_requests     counted                        counted              only in the non-zero amounts
    fit_filter_requests          ignored                        counted              no
    fit_score_requests           ignored                        ignored              yes: 100m and 200Mi
    balanced_score_requests      counted                        counted              no

 1. Amounts are added exactly and rounded once at the end: two halves of a milli are one.
 2. Containers run at the same time, init containers one after the other, and a sidecar from its start on. A pod needs
    the maximum over time, plus its overhead.
 3. While a container is resized, it counts with the largest of its requested, allocated and actual resources; if the
    resize is infeasible, without the requested ones.
 4. Results are cached by the resource fields of the pod, and shared: no caller changes one.
 5. A quantity that cannot be parsed raises `QuantityError`: views hold quantities as they were written.

Names of resources: besides cpu, memory and ephemeral storage, the scheduler counts *scalar* resources: extended
resources (`vendor.example/gpu`), huge pages, attachable volumes, and names with a prefix of Kubernetes. Any other name
is not counted.

As quantities, `pod_requests` and `pod_limits` are the totals of a pod over its containers:

1. Containers are added. Init containers run one after the other, so the largest counts, together with the sidecars
   that run already; sidecars also run together with the containers.
2. Pod-level resources override the sum.
3. LimitRanger, quotas and the fit check of a resize count differently; `CountingRules` has the differences. These
   amounts are printed, so quantities keep their format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias, TypeVar

from mooring.api.caches import BoundedCache
from mooring.api.labels import label_key_errors
from mooring.api.quantity import (
    NANO,
    NANO_IN_MILLI,
    Quantity,
    milli_of_nano,
    parse_quantity,
    quantity_nano,
    value_of_nano,
)
from mooring.api.views.meta import ResourceList, find_condition
from mooring.api.views.node import Node
from mooring.api.views.pod import Container, ContainerStatus, Pod, ResourceRequirements

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

HUGE_PAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_PREFIX = "kubernetes.io/"
QUOTA_PREFIX = "requests."
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

NAMES_REMEMBERED_MAX = 4096


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def is_scalar_resource(name: str) -> bool:
    """Whether a resource is counted besides cpu, memory and ephemeral storage."""
    return (
        is_extended_resource(name)
        or is_huge_page_resource(name)
        or NATIVE_PREFIX in name
        or name.startswith(ATTACHABLE_VOLUMES_PREFIX)
    )


@lru_cache(maxsize=NAMES_REMEMBERED_MAX)
def is_counted_resource(name: str) -> bool:
    """Whether the scheduler counts a resource."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def is_extended_resource(name: str) -> bool:
    """Whether a resource is an extended resource. The name must also be valid as the name of a quota."""
    is_native = "/" not in name or NATIVE_PREFIX in name
    if is_native or name.startswith(QUOTA_PREFIX):
        return False
    return not label_key_errors(QUOTA_PREFIX + name)


def is_device_backed_resource(name: str) -> bool:
    """Whether devices can provide a resource: an extended resource, or the name of a device class."""
    return name.startswith(DEVICE_CLASS_PREFIX) or is_extended_resource(name)


def is_huge_page_resource(name: str) -> bool:
    return name.startswith(HUGE_PAGES_PREFIX)


def is_pod_level_resource(name: str) -> bool:
    """Whether pod-level resources may contain it."""
    return name in (CPU, MEMORY) or is_huge_page_resource(name)


# --- requests and resources as integers -----------------------------------------------------------------------


CPU_MILLI_DEFAULT = 100
MEMORY_DEFAULT = 200 * 1024 * 1024

PODS_REMEMBERED_MAX = 16_384
"""Maximum number of cached results. Replicas share one."""

_DEFAULTS_NANO: Mapping[str, int] = {CPU: CPU_MILLI_DEFAULT * NANO_IN_MILLI, MEMORY: MEMORY_DEFAULT * NANO}

Nanos = dict[str, int]
"""Resource name -> exact amount."""
_Amount = TypeVar("_Amount", int, Quantity)


@dataclass(frozen=True, slots=True)
class RequestRules:
    """How requests are counted. The default counts the spec of the pod only."""

    counts_status: bool = False
    counts_pod_level: bool = True
    counts_overhead: bool = True
    defaults_nano: Mapping[str, int] = field(default_factory=dict)
    """The default requests of a container without requests for these resources. Zero is a request."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    """The resources that a pod uses on its node."""

    requests: Mapping[str, int]
    cpu_milli_non_zero: int
    memory_non_zero: int
    """The requests for scoring: a container without requests counts with default requests."""


_ACCOUNTING = RequestRules(counts_status=True)
_FILTER = RequestRules()
_FIT_SCORE = RequestRules(counts_pod_level=False, defaults_nano=_DEFAULTS_NANO)
_BALANCED_SCORE = RequestRules(counts_status=True)

_uses: BoundedCache[tuple[object, ...], PodUsage] = BoundedCache(PODS_REMEMBERED_MAX)
_filter_requests: BoundedCache[tuple[object, ...], Mapping[str, int]] = BoundedCache(PODS_REMEMBERED_MAX)
_fit_score_requests: BoundedCache[tuple[object, ...], Mapping[str, int]] = BoundedCache(PODS_REMEMBERED_MAX)
_balanced_score_requests: BoundedCache[tuple[object, ...], Mapping[str, int]] = BoundedCache(PODS_REMEMBERED_MAX)


def node_accounting_requests(pod: Pod) -> PodUsage:
    """The resources that a pod on a node is counted with."""
    question = (*_spec_key(pod), *_status_key(pod))
    use = _uses.get(question)
    return use if use is not None else _uses.put(question, _pod_use(pod))


def fit_filter_requests(pod: Pod) -> Mapping[str, int]:
    """The resources that NodeResourcesFit requires for a pending pod."""
    if not _status_key(pod):
        return node_accounting_requests(pod).requests
    question = _spec_key(pod)
    requests = _filter_requests.get(question)
    if requests is None:
        requests = _filter_requests.put(question, _counted(pod_requests_nano(pod, _FILTER)))
    return requests


def fit_score_requests(pod: Pod) -> Mapping[str, int]:
    """The requests with which NodeResourcesFit scores a pending pod, without pod-level requests."""
    question = _spec_key(pod)
    requests = _fit_score_requests.get(question)
    if requests is None:
        requests = _fit_score_requests.put(question, _rounded(pod_requests_nano(pod, _FIT_SCORE)))
    return requests


def balanced_score_requests(pod: Pod) -> Mapping[str, int]:
    """The requests with which NodeResourcesBalancedAllocation scores a pending pod."""
    question = (*_spec_key(pod), *_status_key(pod))
    requests = _balanced_score_requests.get(question)
    if requests is None:
        requests = _balanced_score_requests.put(question, _rounded(pod_requests_nano(pod, _BALANCED_SCORE)))
    return requests


def _pod_use(pod: Pod) -> PodUsage:
    requests_nano = pod_requests_nano(pod, _ACCOUNTING)
    believed_nano = requests_nano
    defaults_nano = _defaults_for(pod, requests_nano)
    if defaults_nano and _may_be_silent(pod, defaults_nano):
        believed_nano = pod_requests_nano(pod, RequestRules(counts_status=True, defaults_nano=defaults_nano))
    return PodUsage(
        requests=_counted(requests_nano),
        cpu_milli_non_zero=milli_of_nano(believed_nano.get(CPU, 0)),
        memory_non_zero=value_of_nano(believed_nano.get(MEMORY, 0)),
    )


def node_allocatable(node: Node) -> dict[str, int]:
    """The allocatable resources of a node, `pods` included."""
    return {
        name: milli_of_nano(quantity_nano(raw)) if name == CPU else value_of_nano(quantity_nano(raw))
        for name, raw in node.status.allocatable.items()
        if name == PODS or is_counted_resource(name)
    }


def pod_requests_nano(pod: Pod, rules: RequestRules) -> Nanos:
    """The exact requests of a pod."""
    requests = _container_requests(pod, rules)
    if rules.counts_pod_level and has_pod_level_requests(pod):
        requests.update(_pod_level_requests(pod, rules))
    if rules.counts_overhead and pod.spec.overhead:
        _add(requests, _nanos(pod.spec.overhead))
    return requests


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod has pod-level requests."""
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level_resource(name) for name in resources.requests)


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet has reported that the resize is infeasible."""
    condition = find_condition(pod.status.conditions, "PodResizePending")
    return condition is not None and condition.reason == "Infeasible"


def is_sidecar(container: Container) -> bool:
    """Whether the init container is a sidecar, which keeps running."""
    return container.restart_policy == "Always"


# --- containers -------------------------------------------------------------------------------------------------


def _container_requests(pod: Pod, rules: RequestRules) -> Nanos:
    statuses = _statuses(pod) if rules.counts_status else {}
    return _most_of_pod(pod, lambda container: _requests_of(pod, container, statuses.get(container.name), rules))


def _most_of_pod(pod: Pod, amounts_of: Callable[[Container], dict[str, _Amount]]) -> dict[str, _Amount]:
    init_containers = [(is_sidecar(container), amounts_of(container)) for container in pod.spec.init_containers]
    return most_at_once(map(amounts_of, pod.spec.containers), init_containers)


def most_at_once(
    containers: Iterable[dict[str, _Amount]], init_containers: Sequence[tuple[bool, dict[str, _Amount]]]
) -> dict[str, _Amount]:
    """The most that containers need at any one time. Init containers come with whether they are sidecars."""
    running: dict[str, _Amount] = {}
    for own in containers:
        _add(running, own)
    if not init_containers:
        return running
    sidecars: dict[str, _Amount] = {}
    starting: dict[str, _Amount] = {}
    for keeps_running, own in init_containers:
        if keeps_running:
            _add(running, own)
            _add(sidecars, own)
            _raise_to(starting, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(starting, own)
    _raise_to(running, starting)
    return running


def _requests_of(pod: Pod, container: Container, status: ContainerStatus | None, rules: RequestRules) -> Nanos:
    """A fresh map of what one container requests."""
    requests = _nanos(container.resources.requests)
    if status is not None and status.resources is not None:
        requests = _while_resizing(pod, requests, status.resources.requests, status.allocated_resources)
    for name, default_nano in rules.defaults_nano.items():
        requests.setdefault(name, default_nano)
    return requests


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    """The statuses that count: init containers other than sidecars are counted without their status."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    if not statuses:
        return {}
    without = {container.name for container in pod.spec.init_containers if not is_sidecar(container)}
    return {status.name: status for status in statuses if status.name not in without}


def _pod_level_requests(pod: Pod, rules: RequestRules) -> Nanos:
    assert pod.spec.resources is not None, f"pod {pod.key} has no pod-level resources"
    requests = {name: nano for name, nano in _nanos(pod.spec.resources.requests).items() if is_pod_level_resource(name)}
    if not rules.counts_status or pod.status.resources is None:
        return requests
    effective = _while_resizing(pod, requests, pod.status.resources.requests, pod.status.allocated_resources)
    return {name: effective.get(name, 0) for name in requests}


def _while_resizing(pod: Pod, desired: Nanos, actual: ResourceList, allocated: ResourceList) -> Nanos:
    effective = {} if is_resize_infeasible(pod) else dict(desired)
    _raise_to(effective, _nanos(actual))
    _raise_to(effective, _nanos(allocated))
    return effective


# --- defaults for containers without requests -------------------------------------------------------------------


def _defaults_for(pod: Pod, requests_nano: Nanos) -> Mapping[str, int]:
    """A pod with pod-level requests gets defaults only for resources that no container requests."""
    if not has_pod_level_requests(pod):
        return _DEFAULTS_NANO
    return {name: nano for name, nano in _DEFAULTS_NANO.items() if name not in requests_nano}


def _may_be_silent(pod: Pod, names: Iterable[str]) -> bool:
    """Whether a container may lack a request. Most pods have all of them and need not be counted twice."""
    if pod.status.container_statuses or pod.status.init_container_statuses:
        return True
    return any(
        name not in container.resources.requests
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for name in names
    )


# --- what an answer depends on ----------------------------------------------------------------------------------


def _spec_key(pod: Pod) -> tuple[object, ...]:
    """The fields of the spec that determine the requests: the key of the cache."""
    spec = pod.spec
    return (
        tuple([tuple(container.resources.requests.items()) for container in spec.containers]),
        tuple([(container.restart_policy, *container.resources.requests.items()) for container in spec.init_containers])
        if spec.init_containers
        else None,
        tuple(spec.overhead.items()) if spec.overhead else None,
        tuple(spec.resources.requests.items()) if spec.resources is not None else None,
    )


def _status_key(pod: Pod) -> tuple[object, ...]:
    """The same for the status. Names matter too: they relate statuses to containers."""
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return ()
    spec = pod.spec
    return (
        is_resize_infeasible(pod),
        tuple([container.name for container in (*spec.containers, *spec.init_containers)]),
        tuple([_container_status_key(container_status) for container_status in status.container_statuses]),
        tuple(
            [_container_status_key(init_container_status) for init_container_status in status.init_container_statuses]
        ),
        tuple(status.resources.requests.items()) if status.resources is not None else None,
        tuple(status.allocated_resources.items()),
    )


def _container_status_key(status: ContainerStatus) -> tuple[object, ...]:
    if status.resources is None:
        return (status.name,)
    return status.name, tuple(status.resources.requests.items()), tuple(status.allocated_resources.items())


# --- arithmetic on maps -----------------------------------------------------------------------------------------


def _nanos(resources: ResourceList) -> Nanos:
    return {name: quantity_nano(raw) for name, raw in resources.items()}


def _add(total: dict[str, _Amount], more: Mapping[str, _Amount]) -> None:
    for name, amount in more.items():
        have = total.get(name)
        total[name] = amount if have is None else have + amount


def _raise_to(least: dict[str, _Amount], other: Mapping[str, _Amount]) -> None:
    for name, amount in other.items():
        have = least.get(name)
        if have is None or amount > have:
            least[name] = amount


def _rounded(requests_nano: Nanos) -> dict[str, int]:
    return {name: milli_of_nano(nano) if name == CPU else value_of_nano(nano) for name, nano in requests_nano.items()}


def _counted(requests_nano: Nanos) -> dict[str, int]:
    return {
        name: milli_of_nano(nano) if name == CPU else value_of_nano(nano)
        for name, nano in requests_nano.items()
        if is_counted_resource(name)
    }


# --- amounts as quantities ------------------------------------------------------------------------------------


Amounts: TypeAlias = dict[str, Quantity]
_Which: TypeAlias = Callable[[ResourceRequirements], ResourceList]


@dataclass(frozen=True, slots=True)
class CountingRules:
    """How the amounts of a pod are counted."""

    sees_status: bool
    """Whether the allocated resources of a container count if they exceed its requests."""
    adds_overhead: bool
    is_pod_level: Callable[[str], bool]
    """Whether pod-level resources override a resource."""


FOR_LIMIT_RANGES = CountingRules(
    sees_status=False, adds_overhead=False, is_pod_level=lambda name: name in (CPU, MEMORY)
)
FOR_QUOTAS = CountingRules(sees_status=True, adds_overhead=True, is_pod_level=is_pod_level_resource)
FOR_NODES = CountingRules(sees_status=False, adds_overhead=True, is_pod_level=is_pod_level_resource)


def amounts(resources: ResourceList | None) -> Amounts:
    """A list of resources as quantities."""
    return {name: parse_quantity(raw) for name, raw in (resources or {}).items()}


def pod_requests(pod: Pod, counting: CountingRules) -> Amounts:
    total = _without_overhead(pod, _requests, counting)
    if counting.adds_overhead:
        _add(total, amounts(pod.spec.overhead))
    return total


def pod_limits(pod: Pod, counting: CountingRules) -> Amounts:
    total = _without_overhead(pod, _limits, counting)
    if counting.adds_overhead:
        for name, amount in amounts(pod.spec.overhead).items():
            if total.get(name):
                total[name] += amount
    return total


def _requests(resources: ResourceRequirements) -> ResourceList:
    return resources.requests


def _limits(resources: ResourceRequirements) -> ResourceList:
    return resources.limits


def _without_overhead(pod: Pod, which: _Which, counting: CountingRules) -> Amounts:
    statuses = _statuses(pod) if counting.sees_status else {}
    total = _most_of_pod(pod, lambda container: _of_container(pod, container, statuses.get(container.name), which))
    if pod.spec.resources is not None:
        pod_amounts = amounts(which(pod.spec.resources))
        total.update({name: amount for name, amount in pod_amounts.items() if counting.is_pod_level(name)})
    return total


def _of_container(pod: Pod, container: Container, status: ContainerStatus | None, which: _Which) -> Amounts:
    requested = amounts(which(container.resources))
    if status is None or status.resources is None:
        return requested
    actual = amounts(which(status.resources))
    if which is _requests:
        _raise_to(actual, amounts(status.allocated_resources))
    if is_resize_infeasible(pod):
        return actual
    _raise_to(requested, actual)
    return requested
