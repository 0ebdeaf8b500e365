"""What is wrong with a slice of a driver's pool of devices.

Comes in   the spec of a slice, and what it was
Goes out   faults

 1. A slice says in exactly one way from which nodes its devices can be used, or leaves it to each device.
 2. A slice has devices or the counters that devices share, not both. Driver, pool and node never change.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.affinity import node_selector_faults
from mooring.apiserver.validation.device_names import (
    driver_faults,
    label_faults,
    pool_name_faults,
    set_faults,
)
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.metadata import immutable_faults
from mooring.apiserver.validation.names import dns_subdomain_faults
from mooring.apiserver.validation.resource_slice_device import counters_faults, device_faults
from mooring.apiserver.validation.values import internal_values

DEVICES_COUNT_MAX = 128
INTRICATE_DEVICES_COUNT_MAX = 64
"""For slices in which any device has taints or consumes counters."""
COUNTER_SETS_COUNT_MAX = 8

_ONE_WAY = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def resource_slice_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = driver_faults(spec.get("driver", ""), f"{path}.driver")
    faults += _pool_faults(spec.get("pool") or {}, f"{path}.pool")
    if old is not None:
        faults += _update_faults(spec, old, path)
    faults += _nodes_faults(spec, path)
    devices, counter_sets = spec.get("devices") or (), spec.get("sharedCounters") or ()
    if devices and counter_sets:
        faults.append(invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"))
    before = {device.get("name", ""): device for device in reversed((old or {}).get("devices") or ())}
    is_per_device = bool(spec.get("perDeviceNodeSelection"))
    is_intricate = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    faults += set_faults(
        devices,
        INTRICATE_DEVICES_COUNT_MAX if is_intricate else DEVICES_COUNT_MAX,
        lambda device, here: device_faults(device, before.get(device.get("name", "")), here, is_per_device),
        f"{path}.devices",
        key=lambda device: device.get("name", ""),
    )
    return faults + set_faults(
        counter_sets,
        COUNTER_SETS_COUNT_MAX,
        _counter_set_faults,
        f"{path}.sharedCounters",
        key=lambda counter_set: counter_set.get("name", ""),
    )


def _pool_faults(pool: Document, path: str) -> list[Fault]:
    faults = pool_name_faults(pool.get("name", ""), f"{path}.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        faults.append(invalid(f"{path}.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        faults.append(invalid(f"{path}.generation", generation, "must be greater than or equal to zero"))
    return faults


def _update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    pool, old_pool = spec.get("pool") or {}, old.get("pool") or {}
    faults = immutable_faults(pool.get("name", ""), old_pool.get("name", ""), f"{path}.pool.name")
    faults += immutable_faults(spec.get("driver", ""), old.get("driver", ""), f"{path}.driver")
    return faults + immutable_faults(spec.get("nodeName"), old.get("nodeName"), f"{path}.nodeName")


def _nodes_faults(spec: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    ways = []
    node, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if node:
        ways.append("`nodeName`")
        faults += [invalid(f"{path}.nodeName", node, text) for text in dns_subdomain_faults(node)]
    elif node is not None:
        faults.append(invalid(f"{path}.nodeName", node, "must be either unset or set to a non-empty string"))
    if selector is not None:
        ways.append("`nodeSelector`")
        faults += node_selector_faults(selector, f"{path}.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            shown = internal_values(terms, "NodeSelectorTerm")
            here = f"{path}.nodeSelector.nodeSelectorTerms"
            faults.append(invalid(here, shown, "must have exactly one node selector term"))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            ways.append(f"`{field}`")
        elif field in spec:
            faults.append(invalid(f"{path}.{field}", False, "must be either unset or set to true"))
    if not ways:
        faults.append(required(path, _ONE_WAY))
    elif len(ways) > 1:
        shown_ways = f"{{{', '.join(ways)}}}"
        faults.append(invalid(path, shown_ways, f"{_ONE_WAY}, but multiple fields are set"))
    return faults


def _counter_set_faults(counter_set: Document, path: str) -> list[Fault]:
    name = counter_set.get("name", "")
    faults = label_faults(name, f"{path}.name") if name else [required(f"{path}.name")]
    return faults + counters_faults(counter_set.get("counters") or {}, f"{path}.counters")
