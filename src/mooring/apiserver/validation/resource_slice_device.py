"""What is wrong with a device of a slice.

Comes in   a device, and what it was
Goes out   faults

 1. Taints that did not change are not judged again.
 2. Quantities of counters are never wrong once they can be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.validation.affinity import node_selector_faults
from mooring.apiserver.validation.device_capacity import shared_capacity_faults, whole_capacity_faults
from mooring.apiserver.validation.device_conditions import binding_conditions_faults
from mooring.apiserver.validation.device_names import (
    each_faults,
    label_faults,
    map_faults,
    qualified_device_name_faults,
    set_faults,
)
from mooring.apiserver.validation.fields import Fault, invalid, not_supported, required, too_long, too_many
from mooring.apiserver.validation.names import dns_subdomain_faults
from mooring.apiserver.validation.resource_claim import EFFECTS
from mooring.apiserver.validation.selectors import label_name_faults
from mooring.apiserver.validation.values import internal_value

PROPERTIES_COUNT_MAX = 32
VALUES_COUNT_MAX = 48
VALUE_BYTES_MAX = 64
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
_ONE_WAY = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {_PER_DEVICE}"
_NOT_PER_DEVICE = f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {_PER_DEVICE}"


def device_faults(device: Document, old: Document | None, path: str, is_per_device: bool) -> list[Fault]:
    """`is_per_device`: whether each device says from which nodes it can be used."""
    faults = label_faults(device.get("name", ""), f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacity)
    if count > PROPERTIES_COUNT_MAX:
        detail = f"the total number of attributes and capacities must not exceed {PROPERTIES_COUNT_MAX}"
        faults.append(invalid(path, count, detail))
    if len(attributes) > VALUES_COUNT_MAX:
        detail = f"the total number of attribute values must not exceed {VALUES_COUNT_MAX}"
        faults.append(invalid(path, len(attributes), detail))
    faults += map_faults(attributes, qualified_device_name_faults, _attribute_faults, f"{path}.attributes")
    check = shared_capacity_faults if device.get("allowMultipleAllocations") else whole_capacity_faults
    faults += map_faults(capacity, qualified_device_name_faults, check, f"{path}.capacity")
    taints = device.get("taints") or []
    if old is None or (old.get("taints") or []) != taints:
        faults += each_faults(taints, TAINTS_COUNT_MAX, _taint_faults, f"{path}.taints")
    faults += set_faults(
        device.get("consumesCounters") or (),
        CONSUMPTIONS_COUNT_MAX,
        _consumption_faults,
        f"{path}.consumesCounters",
        key=lambda consumption: consumption.get("counterSet", ""),
    )
    faults += _nodes_faults(device, path, is_per_device)
    return faults + binding_conditions_faults(device, path)


def counters_faults(counters: Mapping[str, Document], path: str) -> list[Fault]:
    """Of a set of counters, and of what a device consumes of one."""
    if not counters:
        return [required(path)]
    if len(counters) > COUNTERS_COUNT_MAX:
        return [too_many(path, len(counters), COUNTERS_COUNT_MAX)]
    return map_faults(counters, label_faults, lambda counter, here: [], path)


def _attribute_faults(attribute: Document, path: str) -> list[Fault]:
    text, version = attribute.get("string"), attribute.get("version")
    faults = []
    if text is not None and len(text.encode()) > VALUE_BYTES_MAX:
        faults.append(too_long(f"{path}.string", VALUE_BYTES_MAX))
    if version is not None:
        if not _is_version(version):
            faults.append(invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0"))
        if len(version.encode()) > VALUE_BYTES_MAX:
            faults.append(too_long(f"{path}.version", VALUE_BYTES_MAX))
    if len(attribute) != 1:
        shown = internal_value(attribute, "DeviceAttribute", "resource") if attribute else ""
        faults.append(invalid(path, shown, "exactly one value must be specified"))
    return faults


def _taint_faults(taint: Document, path: str) -> list[Fault]:
    value, effect = taint.get("value", ""), taint.get("effect", "")
    faults = label_name_faults(taint.get("key", ""), f"{path}.key")
    if value:
        faults += [invalid(f"{path}.value", value, text) for text in label_value_faults(value)]
    if not effect:
        faults.append(required(f"{path}.effect"))
    elif effect not in EFFECTS:
        faults.append(not_supported(f"{path}.effect", effect, EFFECTS))
    return faults


def _consumption_faults(consumption: Document, path: str) -> list[Fault]:
    name = consumption.get("counterSet", "")
    faults = label_faults(name, f"{path}.counterSet") if name else [required(f"{path}.counterSet")]
    return faults + counters_faults(consumption.get("counters") or {}, f"{path}.counters")


def _nodes_faults(device: Document, path: str, is_per_device: bool) -> list[Fault]:
    node, selector, is_everywhere = device.get("nodeName"), device.get("nodeSelector"), device.get("allNodes")
    if not is_per_device:
        is_said = node is not None or selector is not None or is_everywhere is not None
        return [invalid(path, None, _NOT_PER_DEVICE)] if is_said else []
    faults: list[Fault] = []
    ways = []
    if node:
        ways.append("`nodeName`")
        faults += [invalid(f"{path}.nodeName", node, text) for text in dns_subdomain_faults(node)]
    elif node is not None:
        faults.append(invalid(f"{path}.nodeName", node, "must not be empty"))
    if selector is not None:
        ways.append("`nodeSelector`")
        faults += node_selector_faults(selector, f"{path}.nodeSelector")
    if is_everywhere:
        ways.append("`allNodes`")
    elif is_everywhere is not None:
        faults.append(invalid(f"{path}.allNodes", False, "must be either unset or set to true"))
    if not ways:
        faults.append(required(path, _ONE_WAY))
    elif len(ways) > 1:
        faults.append(invalid(path, f"{{{', '.join(ways)}}}", _ONE_WAY))
    return faults
