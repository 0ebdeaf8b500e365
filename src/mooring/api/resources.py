"""The requests of pods and the resources of nodes, as integers.

Output: amounts by resource name, cpu in thousandths, everything else in whole units.

kube-scheduler v1.36 computes the requests of a pod in four places, in four different ways. With the default feature
gates:

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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mooring.api.memory import Memory
from mooring.api.quantity import NANO, NANO_IN_MILLI, milli_of_nano, quantity_nano, value_of_nano
from mooring.api.resource_names import CPU, MEMORY, PODS, is_counted_resource, is_pod_level_resource
from mooring.api.views.base import ResourceList
from mooring.api.views.node import Node
from mooring.api.views.pod import Container, ContainerStatus, Pod

CPU_MILLI_DEFAULT = 100
MEMORY_DEFAULT = 200 * 1024 * 1024

PODS_REMEMBERED_MAX = 16_384
"""Maximum number of cached results. Replicas share one."""

_DEFAULTS_NANO: Mapping[str, int] = {CPU: CPU_MILLI_DEFAULT * NANO_IN_MILLI, MEMORY: MEMORY_DEFAULT * NANO}

Nanos = dict[str, int]
"""Resource name -> exact amount."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """How requests are counted. The default counts the spec of the pod only."""

    counts_status: bool = False
    counts_pod_level: bool = True
    counts_overhead: bool = True
    defaults_nano: Mapping[str, int] = field(default_factory=dict)
    """The default requests of a container without requests for these resources. Zero is a request."""


@dataclass(frozen=True, slots=True)
class PodUse:
    """The resources that a pod uses on its node."""

    requests: Mapping[str, int]
    cpu_milli_non_zero: int
    memory_non_zero: int
    """What scoring believes of it: a container that requests nothing still uses something."""


_ACCOUNTING = RequestRules(counts_status=True)
_FILTER = RequestRules()
_FIT_SCORE = RequestRules(counts_pod_level=False, defaults_nano=_DEFAULTS_NANO)
_BALANCED_SCORE = RequestRules(counts_status=True)

_uses: Memory[tuple[object, ...], PodUse] = Memory(PODS_REMEMBERED_MAX)
_filter_requests: Memory[tuple[object, ...], Mapping[str, int]] = Memory(PODS_REMEMBERED_MAX)
_fit_score_requests: Memory[tuple[object, ...], Mapping[str, int]] = Memory(PODS_REMEMBERED_MAX)
_balanced_score_requests: Memory[tuple[object, ...], Mapping[str, int]] = Memory(PODS_REMEMBERED_MAX)


def node_accounting_requests(pod: Pod) -> PodUse:
    """What a pod on a node is believed to take from it."""
    question = (*_spec_key(pod), *_status_key(pod))
    use = _uses.get(question)
    return use if use is not None else _uses.put(question, _pod_use(pod))


def fit_filter_requests(pod: Pod) -> Mapping[str, int]:
    """What NodeResourcesFit wants a node to have free for a pending pod."""
    if not _status_key(pod):
        return node_accounting_requests(pod).requests
    question = _spec_key(pod)
    requests = _filter_requests.get(question)
    if requests is None:
        requests = _filter_requests.put(question, _counted(pod_requests_nano(pod, _FILTER)))
    return requests


def fit_score_requests(pod: Pod) -> Mapping[str, int]:
    """What NodeResourcesFit scores a pending pod with. Its scorer never hears of pod-level requests."""
    question = _spec_key(pod)
    requests = _fit_score_requests.get(question)
    if requests is None:
        requests = _fit_score_requests.put(question, _rounded(pod_requests_nano(pod, _FIT_SCORE)))
    return requests


def balanced_score_requests(pod: Pod) -> Mapping[str, int]:
    """What NodeResourcesBalancedAllocation scores a pending pod with."""
    question = (*_spec_key(pod), *_status_key(pod))
    requests = _balanced_score_requests.get(question)
    if requests is None:
        requests = _balanced_score_requests.put(question, _rounded(pod_requests_nano(pod, _BALANCED_SCORE)))
    return requests


def _pod_use(pod: Pod) -> PodUse:
    requests_nano = pod_requests_nano(pod, _ACCOUNTING)
    believed_nano = requests_nano
    defaults_nano = _defaults_for(pod, requests_nano)
    if defaults_nano and _may_be_silent(pod, defaults_nano):
        believed_nano = pod_requests_nano(pod, RequestRules(counts_status=True, defaults_nano=defaults_nano))
    return PodUse(
        requests=_counted(requests_nano),
        cpu_milli_non_zero=milli_of_nano(believed_nano.get(CPU, 0)),
        memory_non_zero=value_of_nano(believed_nano.get(MEMORY, 0)),
    )


def node_allocatable(node: Node) -> dict[str, int]:
    """What a node can give to pods, `pods` included."""
    return {
        name: milli_of_nano(quantity_nano(raw)) if name == CPU else value_of_nano(quantity_nano(raw))
        for name, raw in node.status.allocatable.items()
        if name == PODS or is_counted_resource(name)
    }


def pod_requests_nano(pod: Pod, rules: RequestRules) -> Nanos:
    """What a pod requests, exactly."""
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
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def is_sidecar(container: Container) -> bool:
    """Whether the init container is a sidecar, which keeps running."""
    return container.restart_policy == "Always"


# --- containers -------------------------------------------------------------------------------------------------


def _container_requests(pod: Pod, rules: RequestRules) -> Nanos:
    """The most that the containers need at any one time."""
    statuses = _statuses_with_resources(pod) if rules.counts_status else {}
    running: Nanos = {}
    for container in pod.spec.containers:
        _add(running, _requests_of(pod, container, statuses.get(container.name), rules))
    if not pod.spec.init_containers:
        return running
    sidecars: Nanos = {}
    starting: Nanos = {}
    for container in pod.spec.init_containers:
        if is_sidecar(container):
            own = _requests_of(pod, container, statuses.get(container.name), rules)
            _add(running, own)
            _add(sidecars, own)
            _raise_to(starting, sidecars)
        else:
            own = _requests_of(pod, container, None, rules)
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


def _statuses_with_resources(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _pod_level_requests(pod: Pod, rules: RequestRules) -> Nanos:
    assert pod.spec.resources is not None, f"pod {pod.key} has no pod-level resources"
    requests = {name: nano for name, nano in _nanos(pod.spec.resources.requests).items() if is_pod_level_resource(name)}
    if not rules.counts_status or pod.status.resources is None:
        return requests
    effective = _while_resizing(pod, requests, pod.status.resources.requests, pod.status.allocated_resources)
    return {name: effective.get(name, 0) for name in requests}


def _while_resizing(pod: Pod, wanted: Nanos, actual: ResourceList, allocated: ResourceList) -> Nanos:
    effective = {} if is_resize_infeasible(pod) else dict(wanted)
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
    """Whether some container may lack a request. Most pods have all of them and need not be counted twice."""
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
    """The same for the status. Names matter too then: they tell which status belongs to which container."""
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return ()
    spec = pod.spec
    return (
        is_resize_infeasible(pod),
        tuple([container.name for container in (*spec.containers, *spec.init_containers)]),
        tuple([_container_status_key(each) for each in status.container_statuses]),
        tuple([_container_status_key(each) for each in status.init_container_statuses]),
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


def _add(total: Nanos, more: Nanos) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(least: Nanos, other: Nanos) -> None:
    for name, nano in other.items():
        if name not in least or nano > least[name]:
            least[name] = nano


def _rounded(requests_nano: Nanos) -> dict[str, int]:
    return {name: milli_of_nano(nano) if name == CPU else value_of_nano(nano) for name, nano in requests_nano.items()}


def _counted(requests_nano: Nanos) -> dict[str, int]:
    return {
        name: milli_of_nano(nano) if name == CPU else value_of_nano(nano)
        for name, nano in requests_nano.items()
        if is_counted_resource(name)
    }
