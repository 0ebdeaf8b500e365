"""Node (v1).

1. A kubelet registers a node together with its status. Afterwards the status changes through its subresource.
2. `podCIDR` equals the first of `podCIDRs`; the missing one is filled in. `podCIDR` wins if they differ.
3. Errors of taints name `metadata.taints`, as in kube-apiserver.
4. An update validates the node and the change, so some errors appear twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import json_type, quoted
from mooring.api.labels import label_value_errors
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import round_amounts
from mooring.apiserver.kinds.pod.resources import validate_positive, validate_resource_quantity
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.tables import AGE, NAME, NONE, UNKNOWN, Cell, KindTable, age, column, wide
from mooring.apiserver.validation.addresses import are_of_both_families, parse_range, range_warnings, validate_range
from mooring.apiserver.validation.fields import FieldError, FieldErrorType, duplicate, forbidden, invalid, required
from mooring.apiserver.validation.names import DNS_SUBDOMAIN_LENGTH_MAX, qualified_name_errors
from mooring.apiserver.validation.schema_rules import enum_values, struct_rules
from mooring.apiserver.validation.values import internal_value, json_error

_ONE_REFERENCE = "exactly one reference subfield must be non-nil"
_CONFIG_SOURCE_FIELDS = ("namespace", "name", "kubeletConfigKey")
_CONFIG_SOURCE = struct_rules("core", "ConfigMapNodeConfigSource")
_TAINT = struct_rules("core", "Taint")

TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
EFFECTS = enum_values("core", "TaintEffect")

_is_feature_name = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch
_ONCE_ONLY = 'node updates may not change {field} except from "" to valid'

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"

DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


# --- validation --------------------------------------------------------------------------------------------------


def validate_config_source(source: Document, path: str) -> list[FieldError]:
    """A source without the fields of the resolved object (`uid`, `resourceVersion`)."""
    reference = source.get("configMap")
    if reference is None:
        return [invalid(path, internal_value(source, "NodeConfigSource"), _ONE_REFERENCE)]
    here = f"{path}.configMap"
    errors = [
        forbidden(f"{here}.{field}", f"{field} must not be set in spec")
        for field in ("uid", "resourceVersion")
        if reference.get(field)
    ]
    return errors + _CONFIG_SOURCE.validate(reference, here, *_CONFIG_SOURCE_FIELDS)


def validate_config_status(status: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("assigned", "active", "lastKnownGood"):
        if field in status:
            errors += _validate_found_source(status[field], f"{path}.{field}")
    return errors


def _validate_found_source(source: Document, path: str) -> list[FieldError]:
    reference = source.get("configMap")
    if reference is None:
        return [invalid(path, internal_value(source, "NodeConfigSource"), _ONE_REFERENCE)]
    here = f"{path}.configMap"
    return _CONFIG_SOURCE.validate(reference, here, "uid", "resourceVersion", *_CONFIG_SOURCE_FIELDS)


def validate_node(node: Document) -> list[FieldError]:
    """Field errors of a node apart from its metadata."""
    spec, status = node["spec"], node["status"]
    errors = validate_annotations(node)
    errors += validate_taints(spec.get("taints") or (), "metadata.taints")
    errors += _validate_node_amounts(status)
    capacity = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if capacity is not None:
        errors += validate_positive(capacity, "metadata.nodeSwapStatus.capacity")
    errors += _validate_declared_features(status)
    return errors + _validate_pod_ranges(spec.get("podCIDRs") or [])


def validate_node_update(node: Document, old: Document) -> list[FieldError]:
    """Field errors of a change of a node, or of its status, apart from its metadata."""
    spec, old_spec, status = node["spec"], old["spec"], node["status"]
    errors = validate_annotations(node)
    errors += _validate_node_amounts(status)
    errors += _validate_declared_features(status)
    errors += _validate_node_addresses(status.get("addresses") or ())
    errors += _validate_pod_ranges_update(spec.get("podCIDRs") or [], old_spec.get("podCIDRs") or [])
    if old_spec.get("providerID") and old_spec["providerID"] != spec.get("providerID"):
        errors.append(forbidden("spec.providerID", _ONCE_ONLY.format(field="providerID")))
    if "configSource" in spec:
        errors += validate_config_source(spec["configSource"], "spec.configSource")
    if "config" in status:
        errors += validate_config_status(status["config"], "status.config")
    errors += validate_taints(spec.get("taints") or (), "metadata.taints")
    if spec.get("externalID", "") != old_spec.get("externalID", ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def validate_taints(taints: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += [invalid(f"{here}.key", key, text) for text in qualified_name_errors(key)]
        texts = label_value_errors(value)
        if texts:
            errors.append(invalid(f"{here}.value", value, ";".join(texts)))
        errors += _TAINT.validate(taint, here)
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError(FieldErrorType.DUPLICATE, here, detail, internal_value(taint, "Taint")))
        seen.add((key, effect))
    return errors


def validate_annotations(node: Document) -> list[FieldError]:
    """Two annotations of early schedulers hold JSON."""
    annotations = node["metadata"].get("annotations")
    if not annotations:
        return []
    errors: list[FieldError] = []
    if annotations.get(TAINTS_ANNOTATION):
        errors += _validate_taints_annotation(annotations[TAINTS_ANNOTATION], "metadata.annotations")
    if annotations.get(AVOID_PODS_ANNOTATION):
        errors += _validate_avoid_pods(annotations[AVOID_PODS_ANNOTATION], "metadata.annotations")
    return errors


def _validate_node_amounts(status: Document) -> list[FieldError]:
    return [
        error
        for field in ("capacity", "allocatable")
        for name, text in (status.get(field) or {}).items()
        for error in validate_resource_quantity(name, text, f"status.{field}.{name}")
    ]


def _validate_declared_features(status: Document) -> list[FieldError]:
    path = "status.declaredFeatures"
    errors: list[FieldError] = []
    names = status.get("declaredFeatures") or ()
    for index, name in enumerate(names):
        errors += [invalid(f"{path}[{index}]", name, text) for text in _feature_name_errors(name)]
        if index + 1 == len(names):
            break
        following = names[index + 1]
        if name == following:
            errors.append(duplicate(f"{path}[{index + 1}]", following))
        elif name > following:
            errors.append(invalid(f"{path}[{index + 1}]", following, "list must be sorted alphabetically"))
    return errors


def _feature_name_errors(name: str) -> list[str]:
    if len(name.encode()) > DNS_SUBDOMAIN_LENGTH_MAX:
        return [f"invalid feature name {quoted(name)}: must be no more than {DNS_SUBDOMAIN_LENGTH_MAX} characters"]
    if _is_feature_name(name):
        return []
    return [
        f"invalid feature name {quoted(name)}: must start with an UpperCamelCase segment, with subsequent segments "
        "separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and "
        "slashes"
    ]


def _validate_pod_ranges(ranges: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, value in enumerate(ranges):
        errors += validate_range(value, f"spec.podCIDRs[{index}]")
    if len(ranges) < 2:
        return errors
    broken = next((index for index, value in enumerate(ranges) if parse_range(value) is None), None)
    if broken is not None:
        why = f"invalid CIDR[{broken}]: <nil> (invalid CIDR address: {ranges[broken]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
        errors.append(FieldError(FieldErrorType.INTERNAL, "spec.podCIDRs", detail))
    if broken is not None or len(ranges) > 2 or not are_of_both_families(ranges):
        errors.append(invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family"))
    return errors


def _validate_pod_ranges_update(ranges: list[str], old: list[str]) -> list[FieldError]:
    if not old:
        return []
    error = forbidden("spec.podCIDRs", _ONCE_ONLY.format(field="podCIDR"))
    if len(ranges) != len(old):
        return [error]
    return [error for new, known in zip(ranges, old, strict=True) if new != known]


def _validate_node_addresses(addresses: Sequence[Document]) -> list[FieldError]:
    errors = []
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(addresses):
        identity = (address.get("type", ""), address.get("address", ""))
        if identity in seen:
            shown = {"Type": identity[0], "Address": identity[1]}
            errors.append(duplicate(f"status.addresses[{index}]", shown))
        seen.add(identity)
    return errors


def _validate_taints_annotation(text: str, path: str) -> list[FieldError]:
    error = json_error(text.encode())
    taints = json.loads(text) if not error else None
    if not error and taints is not None and not isinstance(taints, list):
        error = f"json: cannot unmarshal {json_type(taints)} into Go value of type []core.Taint"
    if error:
        return [invalid(path, TAINTS_ANNOTATION, error)]
    # Go matches the names of fields whatever their case.
    lowered = [{str(key).lower(): value for key, value in (taint or {}).items()} for taint in taints or ()]
    return validate_taints(lowered, f"{path}.{TAINTS_ANNOTATION}")


def _validate_avoid_pods(text: str, path: str) -> list[FieldError]:
    error = json_error(text.encode(), "v1.AvoidPods")
    if error:
        return [invalid(f"{path}.AvoidPods", AVOID_PODS_ANNOTATION, error)]
    avoided = json.loads(text) or {}
    errors = []
    for index, entry in enumerate(avoided.get("preferAvoidPods") or ()):
        here = f"{path}.{AVOID_PODS_ANNOTATION}[{index}].PodSignature"
        controller = (entry.get("podSignature") or {}).get("podController")
        if controller is None:
            errors.append(required(here))
        elif not controller.get("controller"):
            errors.append(invalid(f"{here}.PodController.Controller", False, "must point to a controller"))
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _node_cells(node: Document, now_s: float) -> list[Cell]:
    status = node.get("status") or {}
    system: Document = status.get("nodeInfo") or {}
    architecture = system.get("architecture")
    kernel = system.get("kernelVersion") or UNKNOWN
    return [
        node["metadata"]["name"],
        _node_status_cell(node, status),
        _roles_cell(node) or NONE,
        age(node, now_s),
        system.get("kubeletVersion", ""),
        _address_cell(status, "InternalIP"),
        _address_cell(status, "ExternalIP"),
        system.get("osImage") or UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        system.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status_cell(node: Document, status: Document) -> str:
    ready = [condition for condition in status.get("conditions") or () if condition["type"] == "Ready"]
    text = "Unknown"
    if ready:
        text = "Ready" if ready[-1].get("status") == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else text


def _roles_cell(node: Document) -> str:
    roles = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(role for role in roles if role))


def _address_cell(status: Document, type_name: str) -> str:
    for address in status.get("addresses") or ():
        if address["type"] == type_name:
            return str(address["address"])
    return NONE


def node_selector_term_warnings(term: Document, path: str, *, checks_values: bool = False) -> list[str]:
    """Warnings about a term that selects nodes."""
    warnings: list[str] = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here, key = f"{path}.matchExpressions[{index}]", expression.get("key", "")
        if key in DEPRECATED_NODE_LABELS:
            warnings.append(f"{here}.key: {key} is {DEPRECATED_NODE_LABELS[key]}")
        if checks_values:
            warnings += [
                f"{here}.values[{position}]: {value} is invalid, {text}"
                for position, value in enumerate(expression.get("values") or ())
                for text in label_value_errors(value)
            ]
    return warnings


# --- strategy ----------------------------------------------------------------------------------------------------


class NodeStatusStrategy(StatusStrategy):
    """Writing the status."""

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        if "config" not in old["status"]:
            obj["status"].pop("config", None)


class NodeStrategy(Strategy):
    """Writing a node."""

    table = KindTable(
        (
            NAME,
            column("Status", "Whether it can take pods."),
            column("Roles", "What it is there for."),
            AGE,
            column("Version", "Of its kubelet."),
            wide("Internal-IP", "Its first address inside the cluster."),
            wide("External-IP", "Its first address outside of it."),
            wide("OS-Image", "Its operating system."),
            wide("Kernel-Version", "Its kernel."),
            wide("Container-Runtime", "What runs its containers."),
        ),
        _node_cells,
    )

    shares_parts = True

    status_strategy = NodeStatusStrategy

    def default(self, obj: Document) -> None:
        spec, status = obj["spec"], obj["status"]
        capacity = status.get("capacity")
        if capacity and not status.get("allocatable"):
            status["allocatable"] = dict(capacity)
        for field in ("capacity", "allocatable"):
            if field in status:
                round_amounts(status[field])
        single, several = spec.get("podCIDR"), spec.get("podCIDRs")
        if single and (not several or several[0] != single):
            spec["podCIDRs"] = [single]
        elif several:
            spec["podCIDR"] = several[0]

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_node(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        if "configSource" not in old["spec"]:
            obj["spec"].pop("configSource", None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta(obj, old)
        errors += validate_node(obj)
        errors += self.validate_meta_update(obj, old)
        return errors + validate_node_update(obj, old)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_node_update(obj, old)

    def warnings(self, obj: Document) -> list[str]:
        spec = obj["spec"]
        warnings = []
        if "configSource" in spec:
            warnings.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for index, value in enumerate(spec.get("podCIDRs") or ()):
            warnings += range_warnings(value, f"spec.podCIDRs[{index}]")
        return warnings

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"spec.unschedulable": "true" if obj["spec"].get("unschedulable") else "false"}


STRATEGY = NodeStrategy
