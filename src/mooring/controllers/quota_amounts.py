"""What objects use of a quota: amounts, and the kinds that are measured by more than their number.

Comes in   services, claims of volumes and of devices, as views
Goes out   amounts by the names that quotas limit (`services.nodeports`, `requests.storage`)

 1. Every kind can be counted as `count/<plural>.<group>`; a few have an older name for the same besides.
 2. A claim that was shrunk while it grew uses what it has been given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mooring.api.quantity import NANO, Quantity, parse_quantity
from mooring.api.storage import class_of_claim, storage_requested
from mooring.api.views.base import RawQuantity
from mooring.api.views.devices import DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from mooring.api.views.quotas import ScopeRequirement
from mooring.api.views.storage import PersistentVolumeClaim
from mooring.api.views.workloads import Service

Amounts: TypeAlias = Mapping[str, Quantity]

ONE = Quantity(NANO)

COUNT_PREFIX = "count/"
OLD_NAMES: Mapping[str, str] = {
    "configmaps": "configmaps",
    "resourcequotas": "resourcequotas",
    "replicationcontrollers": "replicationcontrollers",
    "secrets": "secrets",
}
"""The older names of what is only counted, with the resource that they mean."""

SERVICE_NAMES = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})

DEVICES_IN_CLAIM_MAX = 32

_STORAGE = "requests.storage"
_CLAIMS = "persistentvolumeclaims"
_COUNT_CLAIMS = f"{COUNT_PREFIX}{_CLAIMS}"
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_CLAIM_SUFFIXES = (_OF_STORAGE_CLASS + _CLAIMS, _OF_STORAGE_CLASS + _STORAGE)
_COUNT_DEVICE_CLAIMS = f"{COUNT_PREFIX}resourceclaims.resource.k8s.io"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"


def is_claim_name(name: str) -> bool:
    return name in (_COUNT_CLAIMS, _CLAIMS, _STORAGE) or name.endswith(_CLAIM_SUFFIXES)


def is_device_claim_name(name: str) -> bool:
    return name == _COUNT_DEVICE_CLAIMS or name.endswith(_OF_DEVICE_CLASS)


def service_usage(service: Service) -> Amounts:
    spec = service.spec
    node_ports = len(spec.ports) if spec.type in ("NodePort", "LoadBalancer") else 0
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
        node_ports = sum(1 for port in spec.ports if port.node_port)
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": Quantity(node_ports * NANO),
        "services.loadbalancers": Quantity(int(spec.type == "LoadBalancer") * NANO),
    }


def claim_usage(claim: PersistentVolumeClaim) -> Amounts:
    used = {_CLAIMS: ONE, _COUNT_CLAIMS: ONE}
    storage = _storage_of(claim)
    class_name = class_of_claim(claim)
    if storage is not None:
        used[_STORAGE] = storage
    if class_name:
        used[f"{class_name}{_OF_STORAGE_CLASS}{_CLAIMS}"] = ONE
        if storage is not None:
            used[f"{class_name}{_OF_STORAGE_CLASS}{_STORAGE}"] = storage
    return used


def is_claim_in_scope(scope: ScopeRequirement, claim: PersistentVolumeClaim) -> bool:
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


def device_claim_usage(claim: ResourceClaim) -> Amounts:
    """At its worst: all devices means the most that one claim can hold; of alternatives the largest of each class."""
    used: dict[str, Quantity] = {_COUNT_DEVICE_CLAIMS: ONE}
    for request in claim.spec.devices.requests:
        worst: dict[str, int] = {}
        options: tuple[ExactDeviceRequest | DeviceSubRequest, ...] = request.first_available
        if request.exactly is not None:
            options = (request.exactly,)
        for option in options:
            worst[option.device_class_name] = max(worst.get(option.device_class_name, 0), _device_count(option))
        for class_name, number in worst.items():
            name = f"{class_name}{_OF_DEVICE_CLASS}"
            used[name] = used.get(name, Quantity(0)) + Quantity(number * NANO)
    return used


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


def _device_count(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    match request.allocation_mode:
        case "ExactCount":
            return request.count
        case "All":
            return DEVICES_IN_CLAIM_MAX
        case _:
            return 0


def _storage_of(claim: PersistentVolumeClaim) -> Quantity | None:
    asked = storage_requested(claim.spec)
    if asked is None:
        return None
    given = claim.status.allocated_resources.get("storage")
    amounts = [_in_whole_bytes(raw) for raw in (asked, given) if raw is not None]
    return max(amounts)


def _in_whole_bytes(raw: RawQuantity) -> Quantity:
    amount = parse_quantity(raw)
    rest = -amount.amount_nano % NANO
    return Quantity(amount.amount_nano + rest, amount.format) if rest else amount
