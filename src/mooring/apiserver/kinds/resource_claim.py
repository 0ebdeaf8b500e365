"""ResourceClaim (resource.k8s.io/v1).

1. A request is exact, or a list of sub-requests of which the first available one is taken. Others refer to it as
   `request` or `request/subrequest`.
2. The spec is immutable. An allocation is set and removed as a whole, and never changed.
3. Only an allocated claim can be reserved. A claim that is being deleted gets no new consumers.
4. Drivers report the status of allocated devices only. The report of a deallocated device is removed.
5. Package `access.device_guard` makes the checks that need a lookup: admin access and permission to allocate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.devices import (
    CONFIGS_COUNT_MAX,
    binding_conditions_faults,
    configuration_faults,
    driver_faults,
    each_faults,
    full_device_name_faults,
    json_object_faults,
    label_faults,
    pool_name_faults,
    selectors_faults,
    set_faults,
    share_id_faults,
)
from mooring.apiserver.kinds.pod.scheduling import node_selector_faults
from mooring.apiserver.kinds.pod.volumes import template_metadata_faults
from mooring.apiserver.kinds.volume_attachment import keep_metadata
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.tables.cells import age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, column
from mooring.apiserver.validation.addresses import interface_address_faults
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required, too_long, too_many
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import dns_subdomain_faults
from mooring.apiserver.validation.selectors import conditions_faults, label_name_faults
from mooring.apiserver.validation.values import internal_value, means_the_same

REQUESTS_COUNT_MAX = 32
CONSTRAINTS_COUNT_MAX = 32
ALTERNATIVES_COUNT_MAX = 8
ALLOCATION_MODES = ("All", "ExactCount")
OPERATORS = ("Equal", "Exists")
EFFECTS = ("NoExecute", "NoSchedule", "None")

RequestNames: TypeAlias = Mapping[str, frozenset[str]]
"""The names of the requests, and for each those of its alternatives."""

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
INTERFACE_NAME_BYTES_MAX = 256
HARDWARE_ADDRESS_BYTES_MAX = 128
SOURCES = ("FromClaim", "FromClass")

_NO_LIMIT = 2**63
_NEW_USERS = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"

DeviceKey = tuple[str, str, str, str]
"""Driver, pool, device and share."""


def default_resource_claim(obj: Document) -> None:
    _default_claim_spec(obj["spec"])
    allocation = (obj.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        _default_tolerations(result.get("tolerations") or ())


def default_resource_claim_template(obj: Document) -> None:
    _default_claim_spec(obj["spec"]["spec"])


def _default_claim_spec(spec: Document) -> None:
    for request in spec["devices"].get("requests") or ():
        if "exactly" in request:
            _default_wish(request["exactly"])
        for alternative in request.get("firstAvailable") or ():
            _default_wish(alternative)


def _default_wish(wish: Document) -> None:
    if wish.setdefault("allocationMode", "ExactCount") == "ExactCount":
        wish.setdefault("count", 1)
    _default_tolerations(wish.get("tolerations") or ())


def _default_tolerations(tolerations: Sequence[Document]) -> None:
    for toleration in tolerations:
        toleration.setdefault("operator", "Equal")


def resource_claim_spec_faults(spec: Document, path: str) -> list[Fault]:
    devices = spec.get("devices") or {}
    here, names = f"{path}.devices", request_names(devices)
    faults = set_faults(
        devices.get("requests") or (), REQUESTS_COUNT_MAX, _device_request_faults, f"{here}.requests", key=_name_of
    )
    faults += each_faults(
        devices.get("constraints") or (),
        CONSTRAINTS_COUNT_MAX,
        partial(_constraint_faults, names=names),
        f"{here}.constraints",
    )
    return faults + each_faults(
        devices.get("config") or (), CONFIGS_COUNT_MAX, partial(_config_faults, names=names), f"{here}.config"
    )


def resource_claim_template_faults(spec: Document, path: str) -> list[Fault]:
    faults = template_metadata_faults(spec.get("metadata") or {}, f"{path}.metadata")
    return faults + resource_claim_spec_faults(spec.get("spec") or {}, f"{path}.spec")


def request_names(devices: Document) -> RequestNames:
    return {
        request.get("name", ""): frozenset(sub.get("name", "") for sub in request.get("firstAvailable") or ())
        for request in devices.get("requests") or ()
    }


def request_reference_faults(name: str, path: str, names: RequestNames) -> list[Fault]:
    """What is wrong with a name that should be one of the claim's requests."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _UNKNOWN_REQUEST)]
    faults: list[Fault] = []
    for part in parts:
        faults += label_faults(part, path)
    is_known = parts[0] in names and (len(parts) == 1 or parts[1] in names[parts[0]])
    return faults if is_known else [*faults, invalid(path, name, _UNKNOWN_REQUEST)]


def request_references_faults(names: Sequence[str], path: str, known: RequestNames) -> list[Fault]:
    return set_faults(names, REQUESTS_COUNT_MAX, lambda name, here: request_reference_faults(name, here, known), path)


# --- requests -----------------------------------------------------------------------------------------------------


def _name_of(named: Document) -> str:
    return str(named.get("name", ""))


def _device_request_faults(request: Document, path: str) -> list[Fault]:
    faults = label_faults(request.get("name", ""), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        return [*faults, required(path, _ONE_WAY)]
    if exactly is not None and alternatives:
        return [*faults, invalid(path, None, f"{_ONE_WAY}, but multiple fields are set")]
    if exactly is not None:
        return faults + _wish_faults(exactly, f"{path}.exactly")
    return faults + set_faults(
        alternatives or (), ALTERNATIVES_COUNT_MAX, _alternative_faults, f"{path}.firstAvailable", key=_name_of
    )


def _alternative_faults(alternative: Document, path: str) -> list[Fault]:
    return label_faults(alternative.get("name", ""), f"{path}.name") + _wish_faults(alternative, path)


def _wish_faults(wish: Document, path: str) -> list[Fault]:
    """Which devices, and how many."""
    name = wish.get("deviceClassName", "")
    if name:
        faults = [invalid(f"{path}.deviceClassName", name, text) for text in dns_subdomain_faults(name)]
    else:
        faults = [required(f"{path}.deviceClassName")]
    faults += selectors_faults(wish.get("selectors") or (), f"{path}.selectors")
    faults += _count_faults(wish.get("allocationMode", ""), wish.get("count", 0), path)
    for index, toleration in enumerate(wish.get("tolerations") or ()):
        faults += _toleration_faults(toleration, f"{path}.tolerations[{index}]")
    return faults


def _count_faults(mode: str, count: int, path: str) -> list[Fault]:
    match mode:
        case "All":
            detail = "must not be specified when allocationMode is 'All'"
            return [invalid(f"{path}.count", count, detail)] if count else []
        case "ExactCount":
            return [invalid(f"{path}.count", count, "must be greater than zero")] if count <= 0 else []
        case _:
            return [not_supported(f"{path}.allocationMode", mode, ALLOCATION_MODES)]


def _toleration_faults(toleration: Document, path: str) -> list[Fault]:
    key, value, effect = toleration.get("key", ""), toleration.get("value", ""), toleration.get("effect", "")
    faults = label_name_faults(key, f"{path}.key") if key else []
    match toleration.get("operator", ""):
        case "Exists":
            if value:
                faults.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
        case "Equal":
            faults += [invalid(f"{path}.value", value, text) for text in label_value_faults(value)]
        case "":
            faults.append(required(f"{path}.operator"))
        case operator:
            faults.append(not_supported(f"{path}.operator", operator, OPERATORS))
    if effect and effect not in EFFECTS:
        faults.append(not_supported(f"{path}.effect", effect, EFFECTS))
    return faults


# --- constraints and configuration --------------------------------------------------------------------------------


def _constraint_faults(constraint: Document, path: str, names: RequestNames) -> list[Fault]:
    faults = request_references_faults(constraint.get("requests") or (), f"{path}.requests", names)
    for field in ("matchAttribute", "distinctAttribute"):
        attribute = constraint.get(field)
        if attribute is not None:
            return faults + full_device_name_faults(attribute, f"{path}.{field}")
    return [*faults, required(path, _NO_ATTRIBUTE)]


def _config_faults(config: Document, path: str, names: RequestNames) -> list[Fault]:
    faults = request_references_faults(config.get("requests") or (), f"{path}.requests", names)
    return faults + configuration_faults(config, path)


def resource_claim_status_faults(claim: Document, old: Document) -> list[Fault]:
    status, old_status = claim.get("status") or {}, old.get("status") or {}
    allocation, old_allocation = status.get("allocation"), old_status.get("allocation")
    users = status.get("reservedFor") or []
    faults = set_faults(
        users, USERS_COUNT_MAX, _user_faults, "status.reservedFor", key=lambda user: user.get("uid", "")
    )
    faults += set_faults(
        status.get("devices") or (),
        _NO_LIMIT,
        partial(_device_faults, allocated=allocated_devices(status)),
        "status.devices",
        key=device_key,
        shown=_shown_key,
    )
    if users and allocation is None:
        faults.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif claim["metadata"].get("deletionTimestamp"):
        known = old_status.get("reservedFor") or []
        if any(user not in known for user in users):
            faults.append(forbidden("status.reservedFor", _NEW_USERS))
    if allocation is None:
        return faults
    if old_allocation is None:
        names = request_names(claim["spec"].get("devices") or {})
        return faults + _allocation_faults(allocation, "status.allocation", names)
    if not means_the_same(allocation, old_allocation, "resource", "AllocationResult"):
        shown = internal_value(allocation, "AllocationResult", "resource")
        faults.append(invalid("status.allocation", shown, IMMUTABLE))
    return faults


def device_key(device: Document) -> DeviceKey:
    """What tells devices apart, in results and in reports on them."""
    return device.get("driver", ""), device.get("pool", ""), device.get("device", ""), device.get("shareID", "")


def allocated_devices(status: Document) -> frozenset[DeviceKey]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return frozenset(map(device_key, results))


def _shown_key(device: Document) -> Document:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(device), strict=True))


def _user_faults(user: Document, path: str) -> list[Fault]:
    return [required(f"{path}.{field}") for field in ("resource", "name", "uid") if not user.get(field)]


# --- the allocation -----------------------------------------------------------------------------------------------


def _allocation_faults(allocation: Document, path: str, names: RequestNames) -> list[Fault]:
    devices = allocation.get("devices") or {}
    faults = each_faults(
        devices.get("results") or (),
        RESULTS_COUNT_MAX,
        partial(_result_faults, names=names),
        f"{path}.devices.results",
    )
    faults += each_faults(
        devices.get("config") or (),
        2 * CONFIGS_COUNT_MAX,  # those of the claim and those of its classes
        partial(_allocated_config_faults, names=names),
        f"{path}.devices.config",
    )
    if "nodeSelector" in allocation:
        faults += node_selector_faults(allocation["nodeSelector"], f"{path}.nodeSelector")
    return faults


def _result_faults(result: Document, path: str, names: RequestNames) -> list[Fault]:
    faults = request_reference_faults(result.get("request", ""), f"{path}.request", names)
    faults += driver_faults(result.get("driver", ""), f"{path}.driver")
    faults += pool_name_faults(result.get("pool", ""), f"{path}.pool")
    faults += label_faults(result.get("device", ""), f"{path}.device")
    faults += binding_conditions_faults(result, path)
    share = result.get("shareID")
    return faults if share is None else faults + share_id_faults(share, f"{path}.shareID")


def _allocated_config_faults(config: Document, path: str, names: RequestNames) -> list[Fault]:
    source = config.get("source", "")
    faults = [] if source else [required(f"{path}.source")]
    if source and source not in SOURCES:
        faults.append(not_supported(f"{path}.source", source, SOURCES))
    faults += request_references_faults(config.get("requests") or (), f"{path}.requests", names)
    return faults + configuration_faults(config, path)


# --- what drivers report ------------------------------------------------------------------------------------------


def _device_faults(device: Document, path: str, allocated: frozenset[DeviceKey]) -> list[Fault]:
    faults = driver_faults(device.get("driver", ""), f"{path}.driver")
    faults += pool_name_faults(device.get("pool", ""), f"{path}.pool")
    faults += label_faults(device.get("device", ""), f"{path}.device")
    if "shareID" in device:
        faults += share_id_faults(device["shareID"], f"{path}.shareID")
    if device_key(device) not in allocated:
        faults.append(invalid(path, _shown_key(device), "must be an allocated device in the claim"))
    conditions = device.get("conditions") or ()
    if len(conditions) > CONDITIONS_COUNT_MAX:
        faults.append(too_many(f"{path}.conditions", len(conditions), CONDITIONS_COUNT_MAX))
    faults += conditions_faults(conditions, f"{path}.conditions")
    if device.get("data") is not None:
        faults += json_object_faults(device["data"], f"{path}.data", DATA_BYTES_MAX)
    return faults + _network_faults(device.get("networkData") or {}, f"{path}.networkData")


def _network_faults(network: Document, path: str) -> list[Fault]:
    faults = [
        too_long(f"{path}.{field}", bytes_max)
        for field, bytes_max in (
            ("interfaceName", INTERFACE_NAME_BYTES_MAX),
            ("hardwareAddress", HARDWARE_ADDRESS_BYTES_MAX),
        )
        if len(network.get(field, "").encode()) > bytes_max
    ]
    addresses = network.get("ips") or ()
    return faults + set_faults(addresses, ADDRESSES_COUNT_MAX, interface_address_faults, f"{path}.ips")


def _resource_claim_cells(obj: Document, now_s: float) -> list[Cell]:
    status, is_deleted = obj.get("status") or {}, bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [obj["metadata"]["name"], ",".join(states), age(obj, now_s)]


RESOURCE_CLAIM_TABLE = KindTable(
    (NAME, column("State", "Whether it has devices and users."), AGE), _resource_claim_cells
)


class ResourceClaimStrategy(Strategy):
    table = RESOURCE_CLAIM_TABLE

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": ResourceClaimStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_resource_claim(obj)

    def validate(self, obj: Document, call: Call) -> list[Fault]:
        return call.prior_faults + super().validate(obj, call)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return resource_claim_spec_faults(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj)
        faults += self.meta_update_faults(obj, old)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceClaimSpec"):
            faults.append(invalid("spec", internal_value(obj["spec"], "ResourceClaimSpec", "resource"), IMMUTABLE))
        return faults


class ResourceClaimStatusStrategy(StatusStrategy):
    """How the scheduler allocates and reserves, and drivers report."""

    reset_fields = (("metadata",), ("spec",))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        keep_metadata(obj, old)
        drop_reports_on_lost_devices(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return call.prior_faults + super().validate_update(obj, old, call)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return resource_claim_status_faults(obj, old)


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
