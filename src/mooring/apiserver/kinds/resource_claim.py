"""ResourceClaim (resource.k8s.io/v1).

1. A request is exact, or a list of sub-requests of which the first available one is taken. Others refer to it as
   `request` or `request/subrequest`.
2. The spec is immutable. An allocation is set and removed as a whole, and never changed.
3. Only an allocated claim can be reserved. A claim that is being deleted gets no new consumers.
4. Drivers report the status of allocated devices only. The report of a deallocated device is removed.
5. Package `access.admin_access` makes the checks that need a lookup: admin access and permission to allocate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.labels import label_value_errors
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.devices import (
    CONFIGS_COUNT_MAX,
    validate_binding_conditions,
    validate_configuration,
    validate_each,
    validate_full_device_name,
    validate_json_object,
    validate_label,
    validate_pool_name,
    validate_selectors,
    validate_set,
    validate_share_id,
)
from mooring.apiserver.kinds.pod.scheduling import validate_node_selector
from mooring.apiserver.kinds.pod.volumes import validate_template_metadata
from mooring.apiserver.kinds.volume_sources import validate_driver_name
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep, keep_metadata
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.addresses import validate_interface_address
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, not_supported, required, too_many
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules
from mooring.apiserver.validation.selectors import validate_conditions, validate_label_name
from mooring.apiserver.validation.values import internal_value, means_the_same

REQUESTS_COUNT_MAX = 32
CONSTRAINTS_COUNT_MAX = 32
ALTERNATIVES_COUNT_MAX = 8
ALLOCATION_MODES = sorted_enum_values("resource", "DeviceAllocationMode")
OPERATORS = sorted_enum_values("resource", "DeviceTolerationOperator")
EFFECTS = sorted_enum_values("resource", "DeviceTaintEffect")

RequestNames: TypeAlias = Mapping[str, frozenset[str]]
"""The names of the requests, and for each the names of its sub-requests."""

_ONE_WAY = "exactly one of `exactly` or `firstAvailable` is required"
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_NO_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'  # as it says
)

USERS_COUNT_MAX = 256
RESULTS_COUNT_MAX = 32
CONDITIONS_COUNT_MAX = 8
DATA_BYTES_MAX = 10 * 1024
ADDRESSES_COUNT_MAX = 16

_DEVICE_REQUEST = struct_rules("resource", "ExactDeviceRequest")
_TOLERATION = struct_rules("resource", "DeviceToleration")
_CONSUMER = struct_rules("resource", "ResourceClaimConsumerReference")
_ALLOCATED_CONFIG = struct_rules("resource", "DeviceAllocationConfiguration")

_NO_LIMIT = 2**63
_NEW_USERS = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"

DeviceKey = tuple[str, str, str, str]
"""Driver, pool, device and share."""


# --- defaults ----------------------------------------------------------------------------------------------------


def default_resource_claim_spec(spec: Document) -> None:
    for request in spec["devices"].get("requests") or ():
        if "exactly" in request:
            _default_request(request["exactly"])
        for alternative in request.get("firstAvailable") or ():
            _default_request(alternative)


def _default_request(exact_request: Document) -> None:
    if exact_request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        exact_request.setdefault("count", 1)
    _default_tolerations(exact_request.get("tolerations") or ())


def _default_tolerations(tolerations: Sequence[Document]) -> None:
    for toleration in tolerations:
        toleration.setdefault("operator", "Equal")


# --- validation --------------------------------------------------------------------------------------------------


def validate_resource_claim_spec(spec: Document, path: str) -> list[FieldError]:
    devices = spec.get("devices") or {}
    here, names = f"{path}.devices", request_names(devices)
    errors = validate_set(
        devices.get("requests") or (), REQUESTS_COUNT_MAX, _validate_device_request, f"{here}.requests", key=_name_of
    )
    errors += validate_each(
        devices.get("constraints") or (),
        CONSTRAINTS_COUNT_MAX,
        partial(_validate_constraint, names=names),
        f"{here}.constraints",
    )
    return errors + validate_each(
        devices.get("config") or (), CONFIGS_COUNT_MAX, partial(_validate_config, names=names), f"{here}.config"
    )


def validate_resource_claim_template(spec: Document, path: str) -> list[FieldError]:
    errors = validate_template_metadata(spec.get("metadata") or {}, f"{path}.metadata")
    return errors + validate_resource_claim_spec(spec.get("spec") or {}, f"{path}.spec")


def request_names(devices: Document) -> RequestNames:
    return {
        request.get("name", ""): frozenset(sub.get("name", "") for sub in request.get("firstAvailable") or ())
        for request in devices.get("requests") or ()
    }


def validate_request_reference(name: str, path: str, names: RequestNames) -> list[FieldError]:
    """Field errors of a reference to a request of the claim."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _UNKNOWN_REQUEST)]
    errors: list[FieldError] = []
    for part in parts:
        errors += validate_label(part, path)
    is_known = parts[0] in names and (len(parts) == 1 or parts[1] in names[parts[0]])
    return errors if is_known else [*errors, invalid(path, name, _UNKNOWN_REQUEST)]


def validate_request_references(names: Sequence[str], path: str, request_names: RequestNames) -> list[FieldError]:
    return validate_set(
        names, REQUESTS_COUNT_MAX, lambda name, here: validate_request_reference(name, here, request_names), path
    )


# --- requests -----------------------------------------------------------------------------------------------------


def _name_of(named: Document) -> str:
    return str(named.get("name", ""))


def _validate_device_request(request: Document, path: str) -> list[FieldError]:
    errors = validate_label(request.get("name", ""), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        return [*errors, required(path, _ONE_WAY)]
    if exactly is not None and alternatives:
        return [*errors, invalid(path, None, f"{_ONE_WAY}, but multiple fields are set")]
    if exactly is not None:
        return errors + _validate_exact_request(exactly, f"{path}.exactly")
    return errors + validate_set(
        alternatives or (), ALTERNATIVES_COUNT_MAX, _validate_alternative, f"{path}.firstAvailable", key=_name_of
    )


def _validate_alternative(alternative: Document, path: str) -> list[FieldError]:
    return validate_label(alternative.get("name", ""), f"{path}.name") + _validate_exact_request(alternative, path)


def _validate_exact_request(exact_request: Document, path: str) -> list[FieldError]:
    """Which devices, and how many."""
    errors = _DEVICE_REQUEST.validate(exact_request, path)
    errors += validate_selectors(exact_request.get("selectors") or (), f"{path}.selectors")
    errors += _validate_count(exact_request.get("allocationMode", ""), exact_request.get("count", 0), path)
    for index, toleration in enumerate(exact_request.get("tolerations") or ()):
        errors += _validate_toleration(toleration, f"{path}.tolerations[{index}]")
    return errors


def _validate_count(mode: str, count: int, path: str) -> list[FieldError]:
    match mode:
        case "All":
            detail = "must not be specified when allocationMode is 'All'"
            return [invalid(f"{path}.count", count, detail)] if count else []
        case "ExactCount":
            return [invalid(f"{path}.count", count, "must be greater than zero")] if count <= 0 else []
        case _:
            return [not_supported(f"{path}.allocationMode", mode, ALLOCATION_MODES)]


def _validate_toleration(toleration: Document, path: str) -> list[FieldError]:
    key, value = toleration.get("key", ""), toleration.get("value", "")
    errors = validate_label_name(key, f"{path}.key") if key else []
    match toleration.get("operator", ""):
        case "Exists":
            if value:
                errors.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
        case "Equal":
            errors += [invalid(f"{path}.value", value, text) for text in label_value_errors(value)]
        case "":
            errors.append(required(f"{path}.operator"))
        case operator:
            errors.append(not_supported(f"{path}.operator", operator, OPERATORS))
    return errors + _TOLERATION.validate(toleration, path, "effect")


# --- constraints and configuration --------------------------------------------------------------------------------


def _validate_constraint(constraint: Document, path: str, names: RequestNames) -> list[FieldError]:
    errors = validate_request_references(constraint.get("requests") or (), f"{path}.requests", names)
    for field in ("matchAttribute", "distinctAttribute"):
        attribute = constraint.get(field)
        if attribute is not None:
            return errors + validate_full_device_name(attribute, f"{path}.{field}")
    return [*errors, required(path, _NO_ATTRIBUTE)]


def _validate_config(config: Document, path: str, names: RequestNames) -> list[FieldError]:
    errors = validate_request_references(config.get("requests") or (), f"{path}.requests", names)
    return errors + validate_configuration(config, path)


def validate_resource_claim_status(claim: Document, old: Document) -> list[FieldError]:
    status, old_status = claim.get("status") or {}, old.get("status") or {}
    allocation, old_allocation = status.get("allocation"), old_status.get("allocation")
    users = status.get("reservedFor") or []
    errors = validate_set(
        users, USERS_COUNT_MAX, _CONSUMER.validate, "status.reservedFor", key=lambda user: user.get("uid", "")
    )
    errors += validate_set(
        status.get("devices") or (),
        _NO_LIMIT,
        partial(_validate_device, allocated=allocated_devices(status)),
        "status.devices",
        key=device_key,
        shown=_shown_key,
    )
    if users and allocation is None:
        errors.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif claim["metadata"].get("deletionTimestamp"):
        known = old_status.get("reservedFor") or []
        if any(user not in known for user in users):
            errors.append(forbidden("status.reservedFor", _NEW_USERS))
    if allocation is None:
        return errors
    if old_allocation is None:
        names = request_names(claim["spec"].get("devices") or {})
        return errors + _validate_allocation(allocation, "status.allocation", names)
    if not means_the_same(allocation, old_allocation, "resource", "AllocationResult"):
        shown = internal_value(allocation, "AllocationResult", "resource")
        errors.append(invalid("status.allocation", shown, IMMUTABLE))
    return errors


def device_key(device: Document) -> DeviceKey:
    """The identity of a device in results and reports."""
    return device.get("driver", ""), device.get("pool", ""), device.get("device", ""), device.get("shareID", "")


def allocated_devices(status: Document) -> frozenset[DeviceKey]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return frozenset(map(device_key, results))


def _shown_key(device: Document) -> Document:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(device), strict=True))


# --- the allocation -----------------------------------------------------------------------------------------------


def _validate_allocation(allocation: Document, path: str, names: RequestNames) -> list[FieldError]:
    devices = allocation.get("devices") or {}
    errors = validate_each(
        devices.get("results") or (),
        RESULTS_COUNT_MAX,
        partial(_validate_result, names=names),
        f"{path}.devices.results",
    )
    errors += validate_each(
        devices.get("config") or (),
        2 * CONFIGS_COUNT_MAX,  # those of the claim and those of its classes
        partial(_validate_allocated_config, names=names),
        f"{path}.devices.config",
    )
    if "nodeSelector" in allocation:
        errors += validate_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")
    return errors


def _validate_result(result: Document, path: str, names: RequestNames) -> list[FieldError]:
    errors = validate_request_reference(result.get("request", ""), f"{path}.request", names)
    errors += validate_driver_name(result.get("driver", ""), f"{path}.driver")
    errors += validate_pool_name(result.get("pool", ""), f"{path}.pool")
    errors += validate_label(result.get("device", ""), f"{path}.device")
    errors += validate_binding_conditions(result, path)
    share = result.get("shareID")
    return errors if share is None else errors + validate_share_id(share, f"{path}.shareID")


def _validate_allocated_config(config: Document, path: str, names: RequestNames) -> list[FieldError]:
    errors = _ALLOCATED_CONFIG.validate(config, path, "source")
    errors += validate_request_references(config.get("requests") or (), f"{path}.requests", names)
    return errors + validate_configuration(config, path)


# --- reports of drivers ------------------------------------------------------------------------------------------


def _validate_device(device: Document, path: str, allocated: frozenset[DeviceKey]) -> list[FieldError]:
    errors = validate_driver_name(device.get("driver", ""), f"{path}.driver")
    errors += validate_pool_name(device.get("pool", ""), f"{path}.pool")
    errors += validate_label(device.get("device", ""), f"{path}.device")
    if "shareID" in device:
        errors += validate_share_id(device["shareID"], f"{path}.shareID")
    if device_key(device) not in allocated:
        errors.append(invalid(path, _shown_key(device), "must be an allocated device in the claim"))
    conditions = device.get("conditions") or ()
    if len(conditions) > CONDITIONS_COUNT_MAX:
        errors.append(too_many(f"{path}.conditions", len(conditions), CONDITIONS_COUNT_MAX))
    errors += validate_conditions(conditions, f"{path}.conditions")
    if device.get("data") is not None:
        errors += validate_json_object(device["data"], f"{path}.data", DATA_BYTES_MAX)
    return errors + _validate_network(device.get("networkData") or {}, f"{path}.networkData")


def _validate_network(network: Document, path: str) -> list[FieldError]:
    errors = struct_rules("resource", "NetworkDeviceData").validate(network, path)
    addresses = network.get("ips") or ()
    return errors + validate_set(addresses, ADDRESSES_COUNT_MAX, validate_interface_address, f"{path}.ips")


# --- table -------------------------------------------------------------------------------------------------------


def _resource_claim_cells(obj: Document, now_s: float) -> list[Cell]:
    status, is_deleted = obj.get("status") or {}, bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [obj["metadata"]["name"], ",".join(states), age(obj, now_s)]


# --- strategy ----------------------------------------------------------------------------------------------------


class ResourceClaimStatusStrategy(StatusStrategy):
    """How the scheduler allocates and reserves, and drivers report."""

    reset_fields = (("metadata",), ("spec",))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        keep_metadata(obj, old)
        drop_reports_on_lost_devices(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return call.prior_errors + super().validate_update(obj, old, call)


class ResourceClaimStrategy(Strategy):
    is_costly = True
    table = KindTable((NAME, column("State", "Whether it has devices and users."), AGE), _resource_claim_cells)

    status_strategy = ResourceClaimStatusStrategy

    def default(self, obj: Document) -> None:
        default_resource_claim_spec(obj["spec"])
        allocation = (obj.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            _default_tolerations(result.get("tolerations") or ())

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        return call.prior_errors + super().validate(obj, call)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_resource_claim_spec(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta(obj)
        errors += self.validate_meta_update(obj, old)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceClaimSpec"):
            errors.append(invalid("spec", internal_value(obj["spec"], "ResourceClaimSpec", "resource"), IMMUTABLE))
        return errors

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_resource_claim_status(obj, old)


def drop_reports_on_lost_devices(obj: Document, old: Document) -> None:
    status = obj.get("status") or {}
    if not status.get("devices"):
        return
    lost = allocated_devices(old.get("status") or {}) - allocated_devices(status)
    kept = [device for device in status["devices"] if device_key(device) not in lost]
    if kept:
        status["devices"] = kept
    else:
        del status["devices"]


STRATEGY = ResourceClaimStrategy
