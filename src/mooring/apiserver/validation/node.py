"""What is wrong with a node.

1. Faults of taints are told under `metadata.taints`, where they never stood: users know that path.
2. The same checks run twice in an update, once for the node and once for the change, and so do their faults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.validation.addresses import are_of_both_families, parse_range, range_faults
from mooring.apiserver.validation.fields import Fault, FaultKind, duplicate, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.names import DNS_SUBDOMAIN_LENGTH_MAX, qualified_name_faults
from mooring.apiserver.validation.node_config import config_source_faults, config_status_faults
from mooring.apiserver.validation.resources import positive_faults, resource_quantity_faults
from mooring.apiserver.validation.values import internal_value, json_fault

TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_is_feature_name = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch
_ONCE_ONLY = 'node updates may not change {field} except from "" to valid'


def node_faults(node: Document) -> list[Fault]:
    """What is wrong with a node apart from its metadata."""
    spec, status = node["spec"], node["status"]
    faults = annotations_faults(node)
    faults += taints_faults(spec.get("taints") or (), "metadata.taints")
    faults += _amounts_faults(status)
    capacity = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if capacity is not None:
        faults += positive_faults(capacity, "metadata.nodeSwapStatus.capacity")
    faults += _declared_features_faults(status)
    return faults + _pod_ranges_faults(spec.get("podCIDRs") or [])


def node_update_faults(node: Document, old: Document) -> list[Fault]:
    """What is wrong with a change of a node, or of its status, apart from its metadata."""
    spec, old_spec, status = node["spec"], old["spec"], node["status"]
    faults = annotations_faults(node)
    faults += _amounts_faults(status)
    faults += _declared_features_faults(status)
    faults += _addresses_faults(status.get("addresses") or ())
    faults += _pod_ranges_update_faults(spec.get("podCIDRs") or [], old_spec.get("podCIDRs") or [])
    if old_spec.get("providerID") and old_spec["providerID"] != spec.get("providerID"):
        faults.append(forbidden("spec.providerID", _ONCE_ONLY.format(field="providerID")))
    if "configSource" in spec:
        faults += config_source_faults(spec["configSource"], "spec.configSource")
    if "config" in status:
        faults += config_status_faults(status["config"], "status.config")
    faults += taints_faults(spec.get("taints") or (), "metadata.taints")
    if spec.get("externalID", "") != old_spec.get("externalID", ""):
        faults.append(forbidden("spec.externalID", "may not be updated"))
    return faults


def taints_faults(taints: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    seen: list[tuple[str, str]] = []
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        faults += [invalid(f"{here}.key", key, text) for text in qualified_name_faults(key)]
        texts = label_value_faults(value)
        if texts:
            faults.append(invalid(f"{here}.value", value, ";".join(texts)))
        if not effect:
            faults.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            faults.append(not_supported(f"{here}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            faults.append(Fault(FaultKind.DUPLICATE, here, detail, internal_value(taint, "Taint")))
        seen.append((key, effect))
    return faults


def annotations_faults(node: Document) -> list[Fault]:
    """Two annotations of the scheduler's youth hold JSON."""
    annotations = node["metadata"].get("annotations")
    if not annotations:
        return []
    faults: list[Fault] = []
    if annotations.get(TAINTS_ANNOTATION):
        faults += _taints_annotation_faults(annotations[TAINTS_ANNOTATION], "metadata.annotations")
    if annotations.get(AVOID_PODS_ANNOTATION):
        faults += _avoid_pods_faults(annotations[AVOID_PODS_ANNOTATION], "metadata.annotations")
    return faults


# --- parts ------------------------------------------------------------------------------------------------------


def _amounts_faults(status: Document) -> list[Fault]:
    return [
        fault
        for field in ("capacity", "allocatable")
        for name, text in (status.get(field) or {}).items()
        for fault in resource_quantity_faults(name, text, f"status.{field}.{name}")
    ]


def _declared_features_faults(status: Document) -> list[Fault]:
    path = "status.declaredFeatures"
    faults: list[Fault] = []
    names = status.get("declaredFeatures") or ()
    for index, name in enumerate(names):
        faults += [invalid(f"{path}[{index}]", name, text) for text in _feature_name_faults(name)]
        if index + 1 == len(names):
            break
        following = names[index + 1]
        if name == following:
            faults.append(duplicate(f"{path}[{index + 1}]", following))
        elif name > following:
            faults.append(invalid(f"{path}[{index + 1}]", following, "list must be sorted alphabetically"))
    return faults


def _feature_name_faults(name: str) -> list[str]:
    if len(name.encode()) > DNS_SUBDOMAIN_LENGTH_MAX:
        return [f"invalid feature name {quoted(name)}: must be no more than {DNS_SUBDOMAIN_LENGTH_MAX} characters"]
    if _is_feature_name(name):
        return []
    return [
        f"invalid feature name {quoted(name)}: must start with an UpperCamelCase segment, with subsequent segments "
        "separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and "
        "slashes"
    ]


def _pod_ranges_faults(ranges: list[str]) -> list[Fault]:
    faults: list[Fault] = []
    for index, value in enumerate(ranges):
        faults += range_faults(value, f"spec.podCIDRs[{index}]")
    if len(ranges) < 2:
        return faults
    broken = next((index for index, value in enumerate(ranges) if parse_range(value) is None), None)
    if broken is not None:
        why = f"invalid CIDR[{broken}]: <nil> (invalid CIDR address: {ranges[broken]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
        faults.append(Fault(FaultKind.INTERNAL, "spec.podCIDRs", detail))
    if broken is not None or len(ranges) > 2 or not are_of_both_families(ranges):
        faults.append(invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family"))
    return faults


def _pod_ranges_update_faults(ranges: list[str], old: list[str]) -> list[Fault]:
    if not old:
        return []
    fault = forbidden("spec.podCIDRs", _ONCE_ONLY.format(field="podCIDR"))
    if len(ranges) != len(old):
        return [fault]
    return [fault for new, known in zip(ranges, old, strict=True) if new != known]


def _addresses_faults(addresses: Sequence[Document]) -> list[Fault]:
    faults = []
    seen: list[tuple[str, str]] = []
    for index, address in enumerate(addresses):
        identity = (address.get("type", ""), address.get("address", ""))
        if identity in seen:
            shown = {"Type": identity[0], "Address": identity[1]}
            faults.append(duplicate(f"status.addresses[{index}]", shown))
        seen.append(identity)
    return faults


def _taints_annotation_faults(text: str, path: str) -> list[Fault]:
    fault = json_fault(text.encode())
    taints = json.loads(text) if not fault else None
    if not fault and taints is not None and not isinstance(taints, list):
        fault = f"json: cannot unmarshal {_json_type(taints)} into Go value of type []core.Taint"
    if fault:
        return [invalid(path, TAINTS_ANNOTATION, fault)]
    # Go matches the names of fields whatever their case.
    lowered = [{str(key).lower(): value for key, value in (taint or {}).items()} for taint in taints or ()]
    return taints_faults(lowered, f"{path}.{TAINTS_ANNOTATION}")


def _avoid_pods_faults(text: str, path: str) -> list[Fault]:
    fault = json_fault(text.encode(), "v1.AvoidPods")
    if fault:
        return [invalid(f"{path}.AvoidPods", AVOID_PODS_ANNOTATION, fault)]
    avoided = json.loads(text) or {}
    faults = []
    for index, entry in enumerate(avoided.get("preferAvoidPods") or ()):
        here = f"{path}.{AVOID_PODS_ANNOTATION}[{index}].PodSignature"
        controller = (entry.get("podSignature") or {}).get("podController")
        if controller is None:
            faults.append(required(here))
        elif not controller.get("controller"):
            faults.append(invalid(f"{here}.PodController.Controller", False, "must point to a controller"))
    return faults


def _json_type(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "number"
