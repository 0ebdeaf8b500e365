"""What is wrong with the status of a claim: which devices it was given, who uses it, and how the devices are.

Comes in   a claim with a new status, and what it was
Goes out   faults

 1. An allocation is taken away as a whole, and never changed.
 2. Only an allocated claim can be reserved, and one that is being deleted gets no new users.
 3. Drivers report on allocated devices only.
"""

from __future__ import annotations

from functools import partial

from mooring.api.document import Document
from mooring.apiserver.validation.addresses import interface_address_faults
from mooring.apiserver.validation.affinity import node_selector_faults
from mooring.apiserver.validation.device_conditions import binding_conditions_faults
from mooring.apiserver.validation.device_names import (
    driver_faults,
    each_faults,
    label_faults,
    pool_name_faults,
    set_faults,
    share_id_faults,
)
from mooring.apiserver.validation.device_selectors import (
    CONFIGS_COUNT_MAX,
    configuration_faults,
    json_object_faults,
)
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported, required, too_long, too_many
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.resource_claim import (
    RequestNames,
    request_names,
    request_reference_faults,
    request_references_faults,
)
from mooring.apiserver.validation.selectors import conditions_faults
from mooring.apiserver.validation.values import internal_value, means_the_same

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


def claim_status_faults(claim: Document, old: Document) -> list[Fault]:
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
        partial(_config_faults, names=names),
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


def _config_faults(config: Document, path: str, names: RequestNames) -> list[Fault]:
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
