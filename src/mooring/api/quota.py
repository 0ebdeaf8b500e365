"""Resource quotas: what an object uses of a quota, and which quotas apply to it.

Input: kinds, names of a quota (`count/deployments.apps`, `configmaps`), quotas. Output: the kind that a name counts;
the scopes of a quota, and whether they match an object.

The API server charges quotas before it stores an object, and the quota controller recounts what is stored. Both use the
rules of this module.

 1. Every kind can be counted as `count/<plural>.<group>`; a few also have an older name.
 2. Pods, services and claims use more than a number; each has a section.
 3. A quota with scopes does not apply to kinds without scopes.

Pods: their number, requests and limits under all names of a quota, and the scopes that match.

1. A pod that has ended uses only its object count, and so does one whose grace period is long over.
2. Usage is cached by the resource fields of the pod, and shared: no caller changes one.

Services: node ports and load balancers. A load balancer with `allocateLoadBalancerNodePorts: false` still uses the node
ports that it names.

PersistentVolumeClaims: number and requested storage, in total and by class, and matching scopes.

1. A claim that was shrunk during an expansion uses its allocated storage.
2. Storage is counted in whole bytes.

ResourceClaims: their number, and devices by class and by extended resource.

 1. A request counts with its maximum: `All` means the most devices that one allocation can hold, and of several
    alternatives the largest of each class counts.
 2. Devices that a pod requests as an extended resource are charged to the pod. The claim that the scheduler creates for
    them is charged only for what exceeds that.
 3. A pod has one such claim: the one in its status, or the first while its status has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from mooring.api.caches import BoundedCache
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM, SERVICE, Kind, all_kinds
from mooring.api.quantity import NANO, ZERO, Quantity, parse_quantity, quantity_nano
from mooring.api.resources import (
    CPU,
    DEVICE_CLASS_PREFIX,
    EPHEMERAL_STORAGE,
    FOR_QUOTAS,
    HUGE_PAGES_PREFIX,
    MEMORY,
    NATIVE_PREFIX,
    PODS,
    QUOTA_PREFIX,
    amounts,
    is_device_backed_resource,
    is_resize_infeasible,
    pod_limits,
    pod_requests,
)
from mooring.api.storage import class_of_claim, storage_requested
from mooring.api.views.administration import ResourceQuotaSpec, ScopeRequirement
from mooring.api.views.devices import DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from mooring.api.views.meta import RawQuantity, controller_of
from mooring.api.views.pod import Affinity, Pod, PodAffinityTerm, ResourceRequirements
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service
from mooring.kit.clock import parse_rfc3339

Amounts: TypeAlias = Mapping[str, Quantity]

COUNT_PREFIX = "count/"

_OLD_NAMES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})


def whole(number: int) -> Quantity:
    return Quantity(number * NANO)


ONE = whole(1)


def count_name(kind: Kind) -> str:
    return f"{COUNT_PREFIX}{kind.resource}"


def names_of(kind: Kind) -> frozenset[str]:
    """All names under which objects of a kind are counted."""
    return frozenset({count_name(kind), *({kind.resource} & _OLD_NAMES)})


def kind_counted_as(name: str, custom: Iterable[Kind] = ()) -> Kind | None:
    if name not in _OLD_NAMES and not name.startswith(COUNT_PREFIX):
        return None
    resource = name.removeprefix(COUNT_PREFIX)
    return next((kind for kind in (*all_kinds(), *custom) if kind.is_namespaced and kind.resource == resource), None)


def scopes_of(spec: ResourceQuotaSpec) -> list[ScopeRequirement]:
    """The conditions of a quota's scopes, all of which an object must meet."""
    scopes = [ScopeRequirement(scope_name=name, operator="Exists") for name in spec.scopes]
    if spec.scope_selector is not None:
        scopes += spec.scope_selector.match_expressions
    return scopes


def matches_value(scope: ScopeRequirement, value: str) -> bool:
    """Whether a scope with an operator means an object that names this class; an empty name is none."""
    match scope.operator:
        case "In":
            return bool(value) and value in scope.values
        case "NotIn":
            return not value or value not in scope.values
        case "Exists":
            return bool(value)
        case "DoesNotExist":
            return not value
        case _:
            return False


# --- pods -----------------------------------------------------------------------------------------------------


IMPLICIT_DEVICE_PREFIX = f"{QUOTA_PREFIX}{DEVICE_CLASS_PREFIX}"
PODS_REMEMBERED_MAX = 4096

_POD_COUNT = count_name(POD)
_LIMIT_PREFIX = "limits."
_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_NAMES = frozenset(
    {_POD_COUNT, PODS} | {f"{prefix}{name}" for prefix in ("", QUOTA_PREFIX, _LIMIT_PREFIX) for name in _PLAIN}
)
_ENDED = ("Succeeded", "Failed")

_known: BoundedCache[tuple[object, ...], Amounts] = BoundedCache(PODS_REMEMBERED_MAX)


def is_pod_name(name: str) -> bool:
    """Whether a quota limits something by this name that pods use."""
    is_huge_page = name.startswith((HUGE_PAGES_PREFIX, f"{QUOTA_PREFIX}{HUGE_PAGES_PREFIX}"))
    return name in _POD_NAMES or is_huge_page or is_extended_name(name)


def is_extended_name(name: str) -> bool:
    """Whether a name that a quota limits is that of a vendor's resource, or of a device class as if it were one."""
    is_foreign = "/" in name and NATIVE_PREFIX not in name
    return name.startswith(QUOTA_PREFIX) and (is_foreign or name.startswith(IMPLICIT_DEVICE_PREFIX))


def pod_usage(pod: Pod, now_s: float) -> Amounts:
    if not is_alive(pod, now_s):
        return {_POD_COUNT: ONE}
    question = _pod_key(pod)
    known = _known.get(question)
    return known if known is not None else _known.put(question, _alive_usage(pod))


def is_alive(pod: Pod, now_s: float) -> bool:
    """Whether a pod counts: it has not terminated, and its grace period is not over."""
    if pod.status.phase in _ENDED:
        return False
    metadata = pod.metadata
    if metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return True
    return now_s <= parse_rfc3339(metadata.deletion_timestamp) + metadata.deletion_grace_period_seconds


def container_usage(resources: ResourceRequirements) -> Amounts:
    """The requests and limits of a container, under the names of quotas."""
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
    return {_POD_COUNT: ONE, **_under_quota_names(pod_requests(pod, FOR_QUOTAS), pod_limits(pod, FOR_QUOTAS))}


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
    given = [entry for entry in statuses if entry.resources is not None]
    return (
        tuple(spec.overhead.items()),
        _items(spec.resources),
        tuple([(container.name, _items(container.resources)) for container in spec.containers]),
        tuple(
            [
                (init_container.name, init_container.restart_policy, _items(init_container.resources))
                for init_container in spec.init_containers
            ]
        ),
        tuple([(entry.name, _items(entry.resources), tuple(entry.allocated_resources.items())) for entry in given]),
        bool(given) and is_resize_infeasible(pod),
    )


def _items(resources: ResourceRequirements | None) -> tuple[object, ...]:
    return () if resources is None else (tuple(resources.requests.items()), tuple(resources.limits.items()))


# --- scopes -----------------------------------------------------------------------------------------------------


def _is_best_effort(pod: Pod) -> bool:
    if pod.status.qos_class:
        return pod.status.qos_class == "BestEffort"
    spec = pod.spec
    containers = [container.resources for container in (*spec.containers, *spec.init_containers)]
    holders = [spec.resources] if spec.resources is not None else containers
    return not any(_has_requests(holder) for holder in holders)


def _has_requests(resources: ResourceRequirements) -> bool:
    raw_amounts = [
        quantities.get(name) for quantities in (resources.requests, resources.limits) for name in (CPU, MEMORY)
    ]
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


# --- services -------------------------------------------------------------------------------------------------


_SERVICE_COUNT = count_name(SERVICE)
_SERVICES = "services"
_NODE_PORTS = "services.nodeports"
_LOAD_BALANCERS = "services.loadbalancers"

SERVICE_NAMES = frozenset({_SERVICE_COUNT, _SERVICES, _NODE_PORTS, _LOAD_BALANCERS})


def service_usage(service: Service) -> Amounts:
    spec = service.spec
    node_ports = len(spec.ports) if spec.type in ("NodePort", "LoadBalancer") else 0
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
        node_ports = sum(1 for port in spec.ports if port.node_port)
    return {
        _SERVICE_COUNT: ONE,
        _SERVICES: ONE,
        _NODE_PORTS: whole(node_ports),
        _LOAD_BALANCERS: whole(int(spec.type == "LoadBalancer")),
    }


# --- volume claims --------------------------------------------------------------------------------------------


_CLAIM_COUNT = count_name(PERSISTENT_VOLUME_CLAIM)
_STORAGE = "requests.storage"
_CLAIMS = "persistentvolumeclaims"
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_SUFFIXES = (_OF_STORAGE_CLASS + _CLAIMS, _OF_STORAGE_CLASS + _STORAGE)


def is_volume_claim_name(name: str) -> bool:
    """Whether a quota limits something by this name that claims of volumes use."""
    return name in (_CLAIM_COUNT, _CLAIMS, _STORAGE) or name.endswith(_SUFFIXES)


def volume_claim_usage(claim: PersistentVolumeClaim) -> Amounts:
    used = {_CLAIMS: ONE, _CLAIM_COUNT: ONE}
    storage = _storage_of(claim)
    if storage is not None:
        used[_STORAGE] = storage
    class_name = class_of_claim(claim)
    if class_name:
        used[f"{class_name}{_OF_STORAGE_CLASS}{_CLAIMS}"] = ONE
        if storage is not None:
            used[f"{class_name}{_OF_STORAGE_CLASS}{_STORAGE}"] = storage
    return used


def is_volume_claim_in_scope(scope: ScopeRequirement, claim: PersistentVolumeClaim) -> bool:
    if scope.scope_name != "VolumeAttributesClass":
        return False
    target = claim.status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        claim.status.current_volume_attributes_class_name,
        target.target_volume_attributes_class_name if target is not None else None,
    )
    named = [name for name in names if name]
    return any(matches_value(scope, name) for name in named) if named else matches_value(scope, "")


def _storage_of(claim: PersistentVolumeClaim) -> Quantity | None:
    requested = storage_requested(claim.spec)
    if requested is None:
        return None
    given = claim.status.allocated_resources.get("storage")
    return max(_in_whole_bytes(raw) for raw in (requested, given) if raw is not None)


def _in_whole_bytes(raw: RawQuantity) -> Quantity:
    amount = parse_quantity(raw)
    rest = -amount.amount_nano % NANO
    return replace(amount, amount_nano=amount.amount_nano + rest, written="") if rest else amount


# --- device claims --------------------------------------------------------------------------------------------


DEVICES_IN_CLAIM_MAX = 32

_DEVICE_CLAIM_COUNT = count_name(RESOURCE_CLAIM)
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


def extended_names(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """The extended resource of each device class."""
    named = {device_class.metadata.name: device_class.spec.extended_resource_name for device_class in classes}
    return {name: extended for name, extended in named.items() if extended}


def is_device_claim_name(name: str, extended: Mapping[str, str]) -> bool:
    """Whether a quota limits something by this name that claims of devices use."""
    if name == _DEVICE_CLAIM_COUNT or name.endswith(_OF_DEVICE_CLASS):
        return True
    if not is_extended_name(name):
        return False
    return name.removeprefix(IMPLICIT_DEVICE_PREFIX) in extended or name.removeprefix(QUOTA_PREFIX) in extended.values()


def device_claim_usage(claim: ResourceClaim, extended: Mapping[str, str], charged: Amounts) -> Amounts:
    """The usage of a claim, without the devices that are charged to the pod for which it was created."""
    used: dict[str, Quantity] = {_DEVICE_CLAIM_COUNT: ONE}
    for class_name, number in _devices_by_class(claim).items():
        used[f"{class_name}{_OF_DEVICE_CLASS}"] = whole(number)
        names = [f"{IMPLICIT_DEVICE_PREFIX}{class_name}"]
        if class_name in extended:
            names.append(f"{QUOTA_PREFIX}{extended[class_name]}")
        for name in names:
            beyond = whole(number) - charged.get(name, ZERO)
            if beyond > ZERO:
                used[name] = beyond
    return used


def pod_behind(claim: ResourceClaim) -> str:
    """The name of the pod for whose extended resources the claim was created; "" for any other claim."""
    owner = controller_of(claim.metadata)
    if not _is_for_extended_resources(claim) or owner is None:
        return ""
    return owner.name if (owner.api_version, owner.kind) == (Pod.api_version, Pod.kind) else ""


def is_charged_to(pod: Pod, claim: ResourceClaim, claims: Iterable[ResourceClaim]) -> bool:
    """Whether the claim's devices are counted with this pod, which it names. `claims` are all of the namespace."""
    if not _is_owned_by(claim, pod):
        return False
    known = pod.status.extended_resource_claim_status
    if known is not None:
        return known.resource_claim_name == claim.metadata.name
    rivals = (other for other in claims if _is_for_extended_resources(other) and _is_owned_by(other, pod))
    return not any(_age(rival) < _age(claim) for rival in rivals)


def _devices_by_class(claim: ResourceClaim) -> dict[str, int]:
    total: dict[str, int] = {}
    for request in claim.spec.devices.requests:
        worst: dict[str, int] = {}
        for option in _options(request):
            name = option.device_class_name
            if name:
                worst[name] = max(worst.get(name, 0), _device_count(option))
        for name, number in worst.items():
            total[name] = total.get(name, 0) + number
    return total


def _options(request: DeviceRequest) -> tuple[ExactDeviceRequest | DeviceSubRequest, ...]:
    if request.first_available:
        return request.first_available
    return (request.exactly,) if request.exactly is not None else ()


def _device_count(option: ExactDeviceRequest | DeviceSubRequest) -> int:
    match option.allocation_mode:
        case "ExactCount":
            return option.count
        case "All":
            return DEVICES_IN_CLAIM_MAX
        case _:
            return 0


def _is_for_extended_resources(claim: ResourceClaim) -> bool:
    return claim.metadata.annotations.get(_EXTENDED_RESOURCE_CLAIM) == "true"


def _is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid


def _age(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.creation_timestamp or "", claim.metadata.name
