"""ResourceSlice (resource.k8s.io/v1).

1. A slice states in exactly one way which nodes can use its devices, or leaves it to each device.
2. A slice has devices or shared counters, not both. Driver, pool and node are immutable.
3. A capacity policy lists valid amounts or a range, never both. The default is a valid amount, and no amount exceeds
   the capacity.
4. Unchanged taints are not validated again. A taint without a time gets the current time.
5. List attributes and devices that represent node resources are behind feature gates: their fields are dropped, unless
   the stored slice uses them.
6. The generation counts every change of the request, including changes of dropped fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.labels import label_value_errors
from mooring.api.quantity import parse_quantity, quantity_nano, quantity_value
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.devices import (
    validate_binding_conditions,
    validate_each,
    validate_label,
    validate_map,
    validate_pool_name,
    validate_qualified_device_name,
    validate_set,
)
from mooring.apiserver.kinds.pod.scheduling import validate_node_selector
from mooring.apiserver.kinds.volume_sources import validate_driver_name
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, column
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, required, too_many
from mooring.apiserver.validation.names import dns_subdomain_errors
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.selectors import validate_label_name
from mooring.apiserver.validation.values import internal_value, internal_values, means_the_same

_ATTRIBUTE = struct_rules("resource", "DeviceAttribute")
_TAINT = struct_rules("resource", "DeviceTaint")
_COUNTER_SET = struct_rules("resource", "CounterSet")
_CONSUMPTION = struct_rules("resource", "DeviceCounterConsumption")
_POOL = struct_rules("resource", "ResourcePool")
_SLICE_SPEC = struct_rules("resource", "ResourceSliceSpec")

AMOUNTS_COUNT_MAX = 10

PROPERTIES_COUNT_MAX = 32
VALUES_COUNT_MAX = 48
TAINTS_COUNT_MAX = 16
CONSUMPTIONS_COUNT_MAX = 2
COUNTERS_COUNT_MAX = 32

_NUMBER = r"(0|[1-9]\d*)"
_BEFORE_RELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE_RELEASE}(\.{_BEFORE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch

_PER_DEVICE = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
_DEVICE_ONE_WAY = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {_PER_DEVICE}"
_NOT_PER_DEVICE = f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {_PER_DEVICE}"

DEVICES_COUNT_MAX = 128
INTRICATE_DEVICES_COUNT_MAX = 64
"""For slices in which any device has taints or consumes counters."""
COUNTER_SETS_COUNT_MAX = 8

_ONE_WAY = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"

_MAPPINGS = "nodeAllocatableResourceMappings"
_LISTS = ("ints", "bools", "strings", "versions")


# --- validation --------------------------------------------------------------------------------------------------


def validate_shared_capacity(capacity: Document, path: str) -> list[FieldError]:
    """The capacity of a device that allows multiple allocations."""
    policy = capacity.get("requestPolicy")
    return [] if policy is None else _validate_policy(policy, capacity.get("value", "0"), f"{path}.requestPolicy")


def validate_whole_capacity(capacity: Document, path: str) -> list[FieldError]:
    """The capacity of any other device: it is allocated as a whole, and has no request policy."""
    if "requestPolicy" not in capacity:
        return []
    return [forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")]


def _validate_policy(policy: Document, total: str, path: str) -> list[FieldError]:
    amounts, span, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if amounts and span is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(path, detail)]
    if amounts:
        if default is None:
            return [required(f"{path}.default", "required when validValues is defined")]
        return _validate_capacity_amounts(amounts, default, total, f"{path}.validValues")
    if span is not None:
        if default is None:
            return [required(f"{path}.default", "required when validRange is defined")]
        return _validate_range(span, default, total, f"{path}.validRange")
    return []


def _validate_capacity_amounts(amounts: Sequence[str], default: str, total: str, path: str) -> list[FieldError]:
    errors = [
        invalid(f"{path}[{index}]", amounts[index], "values must be sorted in ascending order")
        for index in range(1, len(amounts))
        if _is_more(amounts[index - 1], amounts[index])
    ]

    def too_large(amount: str, path: str) -> list[FieldError]:
        return (
            [invalid(path, amount, f"option is larger than capacity value: {total}")] if _is_more(amount, total) else []
        )

    errors += validate_set(
        amounts,
        AMOUNTS_COUNT_MAX,
        too_large,
        path,
        key=quantity_value,
        shown=lambda amount: str(quantity_value(amount)),
    )
    # A list that is too long is not read, so the default is not checked against it.
    is_found = len(amounts) <= AMOUNTS_COUNT_MAX and any(_is_same_amount(amount, default) for amount in amounts)
    if not is_found:
        errors.append(invalid(path, default, "default value is not valid according to the requestPolicy"))
    return errors


def _validate_range(span: Document, default: str, total: str, path: str) -> list[FieldError]:
    low, high, step = span.get("min"), span.get("max"), span.get("step")
    if low is None:
        return [required(f"{path}.min", "required when validRange is defined")]
    errors = []
    if _is_more(low, total):
        errors.append(invalid(f"{path}.min", low, f"min is larger than capacity value: {total}"))
    if _is_more(low, default):
        errors.append(invalid(f"{path}.min", default, f"default is less than min: {low}"))
    if high is not None:
        if _is_more(low, high):
            errors.append(invalid(f"{path}.max", low, f"min is larger than max: {high}"))
        if _is_more(high, total):
            errors.append(invalid(f"{path}.max", high, f"max is larger than capacity value: {total}"))
        if _is_more(default, high):
            errors.append(invalid(f"{path}.max", default, f"default is more than max: {high}"))
    if step is not None:
        errors += _validate_step(step, low, high, default, total, f"{path}.step")
    return errors


def _validate_step(step: str, low: str, high: str | None, default: str, total: str, path: str) -> list[FieldError]:
    errors = []
    first = parse_quantity(low) + parse_quantity(step)
    if first > parse_quantity(total):
        errors.append(invalid(path, step, f"one step {first} is larger than capacity value: {total}"))
    for amount in (default, high):
        # kube-apiserver divides by a step of zero and panics; here it is accepted.
        if amount is None or not quantity_value(step):
            continue
        if (quantity_value(amount) - quantity_value(low)) % quantity_value(step):
            errors.append(invalid(path, amount, f"value is not a multiple of a given step ({step}) from ({low})"))
    return errors


def _is_more(one: str, other: str) -> bool:
    return quantity_nano(one) > quantity_nano(other)


def _is_same_amount(one: str, other: str) -> bool:
    return quantity_nano(one) == quantity_nano(other)


def validate_device(device: Document, old: Document | None, path: str, is_per_device: bool) -> list[FieldError]:
    """`is_per_device`: whether each device has its own node selection."""
    errors = validate_label(device.get("name", ""), f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > PROPERTIES_COUNT_MAX:
        detail = f"the total number of attributes and capacities must not exceed {PROPERTIES_COUNT_MAX}"
        errors.append(invalid(path, count, detail))
    if len(attributes) > VALUES_COUNT_MAX:
        detail = f"the total number of attribute values must not exceed {VALUES_COUNT_MAX}"
        errors.append(invalid(path, len(attributes), detail))
    errors += validate_map(attributes, validate_qualified_device_name, _validate_attribute, f"{path}.attributes")
    check = validate_shared_capacity if device.get("allowMultipleAllocations") else validate_whole_capacity
    errors += validate_map(capacity, validate_qualified_device_name, check, f"{path}.capacity")
    taints = device.get("taints") or []
    if old is None or (old.get("taints") or []) != taints:
        errors += validate_each(taints, TAINTS_COUNT_MAX, _validate_taint, f"{path}.taints")
    errors += validate_set(
        device.get("consumesCounters") or (),
        CONSUMPTIONS_COUNT_MAX,
        _validate_consumption,
        f"{path}.consumesCounters",
        key=lambda consumption: consumption.get("counterSet", ""),
    )
    errors += _validate_device_nodes(device, path, is_per_device)
    return errors + validate_binding_conditions(device, path)


def validate_counters(counters: Mapping[str, Document], path: str) -> list[FieldError]:
    """Field errors of a counter set, or of a device's consumption of one."""
    if not counters:
        return [required(path)]
    if len(counters) > COUNTERS_COUNT_MAX:
        return [too_many(path, len(counters), COUNTERS_COUNT_MAX)]
    return validate_map(counters, validate_label, lambda counter, here: [], path)


def _validate_attribute(attribute: Document, path: str) -> list[FieldError]:
    version = attribute.get("version")
    errors = _ATTRIBUTE.validate(attribute, path, "string")
    if version is not None and not _is_version(version):
        errors.append(invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0"))
    errors += _ATTRIBUTE.validate(attribute, path, "version")
    if len(attribute) != 1:
        shown = internal_value(attribute, "DeviceAttribute", "resource") if attribute else ""
        errors.append(invalid(path, shown, "exactly one value must be specified"))
    return errors


def _validate_taint(taint: Document, path: str) -> list[FieldError]:
    value = taint.get("value", "")
    errors = validate_label_name(taint.get("key", ""), f"{path}.key")
    if value:
        errors += [invalid(f"{path}.value", value, text) for text in label_value_errors(value)]
    return errors + _TAINT.validate(taint, path)


def _validate_consumption(consumption: Document, path: str) -> list[FieldError]:
    return _CONSUMPTION.validate(consumption, path) + validate_counters(
        consumption.get("counters") or {}, f"{path}.counters"
    )


def _validate_device_nodes(device: Document, path: str, is_per_device: bool) -> list[FieldError]:
    node, selector, is_everywhere = device.get("nodeName"), device.get("nodeSelector"), device.get("allNodes")
    if not is_per_device:
        is_said = node is not None or selector is not None or is_everywhere is not None
        return [invalid(path, None, _NOT_PER_DEVICE)] if is_said else []
    errors: list[FieldError] = []
    ways = []
    if node:
        ways.append("`nodeName`")
        errors += [invalid(f"{path}.nodeName", node, text) for text in dns_subdomain_errors(node)]
    elif node is not None:
        errors.append(invalid(f"{path}.nodeName", node, "must not be empty"))
    if selector is not None:
        ways.append("`nodeSelector`")
        errors += validate_node_selector(selector, f"{path}.nodeSelector")
    if is_everywhere:
        ways.append("`allNodes`")
    elif is_everywhere is not None:
        errors.append(invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    if not ways:
        errors.append(required(path, _DEVICE_ONE_WAY))
    elif len(ways) > 1:
        errors.append(invalid(path, f"{{{', '.join(ways)}}}", _DEVICE_ONE_WAY))
    return errors


def validate_resource_slice(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    errors = validate_driver_name(spec.get("driver", ""), f"{path}.driver")
    errors += _validate_pool(spec.get("pool") or {}, f"{path}.pool")
    if old is not None:
        errors += _validate_update(spec, old, path)
    errors += _validate_nodes(spec, path)
    devices, counter_sets = spec.get("devices") or (), spec.get("sharedCounters") or ()
    if devices and counter_sets:
        errors.append(invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"))
    before = {device.get("name", ""): device for device in reversed((old or {}).get("devices") or ())}
    is_per_device = bool(spec.get("perDeviceNodeSelection"))
    is_intricate = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    errors += validate_set(
        devices,
        INTRICATE_DEVICES_COUNT_MAX if is_intricate else DEVICES_COUNT_MAX,
        lambda device, here: validate_device(device, before.get(device.get("name", "")), here, is_per_device),
        f"{path}.devices",
        key=lambda device: device.get("name", ""),
    )
    return errors + validate_set(
        counter_sets,
        COUNTER_SETS_COUNT_MAX,
        _validate_counter_set,
        f"{path}.sharedCounters",
        key=lambda counter_set: counter_set.get("name", ""),
    )


def _validate_pool(pool: Document, path: str) -> list[FieldError]:
    errors = validate_pool_name(pool.get("name", ""), f"{path}.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(invalid(f"{path}.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid(f"{path}.generation", generation, "must be greater than or equal to zero"))
    return errors


def _validate_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    errors = _POOL.validate_update(spec.get("pool") or {}, old.get("pool") or {}, f"{path}.pool")
    return errors + _SLICE_SPEC.validate_update(spec, old, path, "driver", "nodeName")


def _validate_nodes(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    ways = []
    node, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if node:
        ways.append("`nodeName`")
        errors += [invalid(f"{path}.nodeName", node, text) for text in dns_subdomain_errors(node)]
    elif node is not None:
        errors.append(invalid(f"{path}.nodeName", node, "must be either unset or set to a non-empty string"))
    if selector is not None:
        ways.append("`nodeSelector`")
        errors += validate_node_selector(selector, f"{path}.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            shown = internal_values(terms, "NodeSelectorTerm")
            here = f"{path}.nodeSelector.nodeSelectorTerms"
            errors.append(invalid(here, shown, "must have exactly one node selector term"))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            ways.append(f"`{field}`")
        elif field in spec:
            errors.append(invalid(f"{path}.{field}", False, "must be either unset or set to true"))
    if not ways:
        errors.append(required(path, _ONE_WAY))
    elif len(ways) > 1:
        shown_ways = f"{{{', '.join(ways)}}}"
        errors.append(invalid(path, shown_ways, f"{_ONE_WAY}, but multiple fields are set"))
    return errors


def _validate_counter_set(counter_set: Document, path: str) -> list[FieldError]:
    return _COUNTER_SET.validate(counter_set, path) + validate_counters(
        counter_set.get("counters") or {}, f"{path}.counters"
    )


# --- table -------------------------------------------------------------------------------------------------------


def _resource_slice_cells(obj: Document, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("nodeName") or "",
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        age(obj, now_s),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class ResourceSliceStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            column("Node", "Where its devices are."),
            column("Driver", "Who speaks for them."),
            column("Pool", "The pool that they are of."),
            AGE,
        ),
        _resource_slice_cells,
    )

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["metadata"]["generation"] = 1
        _fill_taint_times(_devices(obj), call.now)
        _drop_disabled(_devices(obj), ())

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _fill_taint_times(_devices(obj), call.now)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceSliceSpec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        _drop_disabled(_devices(obj), _devices(old))

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_resource_slice(obj["spec"], None, "spec")

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return validate_resource_slice(obj["spec"], old["spec"], "spec")

    def warnings(self, obj: Document) -> list[str]:
        driver = obj["spec"].get("driver", "")
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {quoted(driver)} contains uppercase characters"]

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        spec = obj["spec"]
        return {"spec.nodeName": spec.get("nodeName") or "", "spec.driver": spec.get("driver", "")}


def _devices(obj: Document) -> Sequence[Document]:
    return obj["spec"].get("devices") or ()


def _fill_taint_times(devices: Sequence[Document], now: str) -> None:
    for device in devices:
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


def _drop_disabled(devices: Sequence[Document], old: Sequence[Document]) -> None:
    if not any(_MAPPINGS in device for device in old):
        for device in devices:
            device.pop(_MAPPINGS, None)
    if not any(field in attribute for attribute in _attributes(old) for field in _LISTS):
        for attribute in _attributes(devices):
            for field in _LISTS:
                attribute.pop(field, None)


def _attributes(devices: Sequence[Document]) -> Sequence[Document]:
    return [attribute for device in devices for attribute in (device.get("attributes") or {}).values()]


STRATEGY = ResourceSliceStrategy
