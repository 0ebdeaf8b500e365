"""PersistentVolumeClaim (v1).

1. The spec is immutable with these exceptions: the volume is named once; the storage class is named once, or moves from
   the annotation to the field; a bound claim may request more storage or another VolumeAttributesClass.
2. After a failed expansion a claim may shrink, but not below its capacity.
3. `dataSource` and `dataSourceRef` mirror each other. `dataSource` keeps only claims and snapshots; other references
   are dropped without an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.quantity import quantity_milli, quantity_nano
from mooring.api.resources import NATIVE_PREFIX
from mooring.api.storage import STORAGE_CLASS_BETA
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.persistent_volume import (
    ACCESS_MODES_COLUMN,
    ATTRIBUTES_CLASS_COLUMN,
    CAPACITY_COLUMN,
    STATUS_COLUMN,
    STORAGE_CLASS_COLUMN,
    VOLUME_MODE_COLUMN,
    phase_cell,
    storage_cell,
    storage_class_cell,
    text_or_unset,
    validate_access_modes,
    validate_basic_quantity,
)
from mooring.apiserver.kinds.pod.defaults import round_amounts
from mooring.apiserver.kinds.pod.resources import validate_positive_quantity, validate_resource_quantity
from mooring.apiserver.strategy import Strategy, keep
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, access_modes_text, age, column
from mooring.apiserver.validation.fields import FieldError, Verbatim, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.metadata import IMMUTABLE, validate_immutable
from mooring.apiserver.validation.names import dns_label_errors, dns_subdomain_errors, qualified_name_errors
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules
from mooring.apiserver.validation.selectors import validate_label_selector
from mooring.apiserver.validation.values import internal_diff, means_the_same

_SPEC = struct_rules("core", "PersistentVolumeClaimSpec")

RESIZE_STATUSES = sorted_enum_values("core", "ClaimResourceStatus")

_ONLY_FOR_BOUND = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)

_KNOWN_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


# --- defaults ----------------------------------------------------------------------------------------------------


def default_claim(claim: Document) -> None:
    status = claim["status"]
    status.setdefault("phase", "Pending")
    default_claim_spec(claim["spec"])
    for field in ("capacity", "allocatedResources"):
        if field in status:
            round_amounts(status[field])


def default_claim_spec(spec: Document) -> None:
    """Also for the templates of claims in other kinds."""
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.get("resources") or {}
    for field in ("limits", "requests"):
        if field in resources:
            round_amounts(resources[field])


@dataclass(frozen=True, slots=True)
class ClaimValidationOptions:
    """Rules that an update relaxes because the stored claim violates them."""

    api_groups: bool = False
    label_values: bool = False


STRICT = ClaimValidationOptions()


def tolerance_for(old: Document) -> ClaimValidationOptions:
    spec = old["spec"]
    has_group = any((spec.get(field) or {}).get("apiGroup") is not None for field in ("dataSource", "dataSourceRef"))
    return ClaimValidationOptions(has_group, bool(validate_label_selector(spec.get("selector"), "")))


# --- validation --------------------------------------------------------------------------------------------------


def validate_persistent_volume_claim_spec(
    spec: Document, path: str, tolerance: ClaimValidationOptions = STRICT
) -> list[FieldError]:
    """Also for the templates of claims in other kinds."""
    errors: list[FieldError] = []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if "selector" in spec:
        errors += validate_label_selector(spec["selector"], f"{path}.selector", tolerance.label_values)
    errors += validate_access_modes(modes, f"{path}.accessModes")
    errors += _validate_size(spec, f"{path}.resources[storage]")
    errors += _SPEC.validate(spec, path, "storageClassName", "volumeMode")
    errors += _validate_sources(spec, path, tolerance)
    return errors + _SPEC.validate(spec, path, "volumeAttributesClassName")


def validate_claim_update(claim: Document, old: Document) -> list[FieldError]:
    """Errors of changed immutable fields. The data sources of the old claim are compared as a GET returns them."""
    annotation, old_annotation = _class_annotation(claim), _class_annotation(old)
    spec, old_spec = dict(claim["spec"]), dict(old["spec"])
    errors: list[FieldError] = []
    if not old_spec.get("volumeName"):
        old_spec["volumeName"] = spec.get("volumeName", "")
    name, old_name = spec.get("storageClassName"), old_spec.get("storageClassName")
    is_moved = old_annotation is not None and old_name is None and name == old_annotation
    if is_moved and annotation in (None, old_annotation):
        spec.pop("storageClassName")
    else:
        if (annotation or "") != (old_annotation or ""):
            path = f"metadata.annotations.{STORAGE_CLASS_BETA}"
            errors.append(invalid(path, annotation or "", IMMUTABLE))
        if name is not None and old_name is None and old_annotation in (None, name):
            spec.pop("storageClassName")
    if claim["status"].get("phase") == "Bound":
        _ignore_growth(spec, old_spec)
    if not means_the_same(
        _without_empty_volume_name(spec), _without_empty_volume_name(old_spec), "core", "PersistentVolumeClaimSpec"
    ):
        difference = internal_diff(old_spec, spec, "PersistentVolumeClaimSpec")
        errors.append(forbidden("spec", f"{_ONLY_FOR_BOUND}\n{difference}"))
    errors += _validate_shrinking(claim, old)
    errors += validate_immutable(claim["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")
    return errors + _validate_attributes_class_update(claim, old)


def validate_persistent_volume_claim_status(claim: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    status = claim["status"]
    if not claim["metadata"].get("resourceVersion"):
        errors.append(required("resourceVersion"))
    if not claim["spec"].get("accessModes"):
        errors.append(required("Spec.accessModes"))
    for name, text in (status.get("capacity") or {}).items():
        errors += validate_basic_quantity(text, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errors += _validate_resource_key(name, path)
        if state not in RESIZE_STATUSES:
            errors.append(not_supported(path, name, RESIZE_STATUSES))
    path = "status.allocatedResources"
    for name, text in (status.get("allocatedResources") or {}).items():
        here = f"{path}[{name}]"
        errors += (
            _validate_resource_key(name, path)
            or validate_basic_quantity(text, here)
            or validate_resource_quantity("storage", text, here)
        )
    return errors


def _validate_size(spec: Document, path: str) -> list[FieldError]:
    size = _requested(spec)
    if size is None:
        return [required(path)]
    return validate_positive_quantity(size, path) or validate_resource_quantity("storage", size, path)


def _validate_sources(spec: Document, path: str, tolerance: ClaimValidationOptions) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    errors: list[FieldError] = []
    if source is not None:
        errors += _validate_claim_source(source, f"{path}.dataSource", tolerance)
    if reference is None:
        return errors
    here = f"{path}.dataSourceRef"
    errors += _validate_claim_source(reference, here, tolerance)
    namespace = reference.get("namespace")
    if namespace:
        errors += [invalid(f"{here}.namespace", namespace, text) for text in dns_label_errors(namespace)]
    if source is None:
        return errors
    # The value is the path itself, which Go prints as an empty struct.
    if namespace:
        detail = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(invalid(path, Verbatim("{}"), detail))
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, Verbatim("{}"), "must match dataSourceRef"))
    return errors


def _validate_claim_source(source: Document, path: str, tolerance: ClaimValidationOptions) -> list[FieldError]:
    errors = struct_rules("core", "TypedLocalObjectReference").validate(source, path, "name", "kind")
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, kind, detail))
    if group and not tolerance.api_groups:
        errors += [invalid(f"{path}.apiGroup", group, text) for text in dns_subdomain_errors(group)]
    return errors


def _ignore_growth(spec: Document, old_spec: Document) -> None:
    resources = spec.get("resources") or {}
    if "requests" in resources:
        old_size = _requested(old_spec)
        requests = {**resources["requests"], "storage": old_size if old_size is not None else "0"}
        spec["resources"] = {**resources, "requests": requests}
    if "volumeAttributesClassName" in old_spec:
        spec["volumeAttributesClassName"] = old_spec["volumeAttributesClassName"]
    else:
        spec.pop("volumeAttributesClassName", None)


def _validate_shrinking(claim: Document, old: Document) -> list[FieldError]:
    new_nano, old_nano = (quantity_nano(_requested(obj["spec"]) or "0") for obj in (claim, old))
    if new_nano >= old_nano:
        return []
    reached = (old["status"].get("capacity") or {}).get("storage", "0")
    if new_nano > quantity_nano(reached):
        return []
    return [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]


def _validate_attributes_class_update(claim: Document, old: Document) -> list[FieldError]:
    name, old_name = (obj["spec"].get("volumeAttributesClassName") for obj in (claim, old))
    if name == old_name or "currentVolumeAttributesClassName" not in old["status"] or name:
        return []
    cleared_to = "nil" if name is None else "empty string"
    detail = f"update to {cleared_to} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden("spec.volumeAttributesClassName", detail)]


def _validate_resource_key(name: str, path: str) -> list[FieldError]:
    errors = [invalid(path, name, text) for text in qualified_name_errors(name)]
    is_native = "/" not in name or NATIVE_PREFIX in name
    if not errors and is_native and name != "storage":
        errors.append(not_supported(path, name, ("storage",)))
    return errors


def _requested(spec: Document) -> str | None:
    size: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return size


def _class_annotation(claim: Document) -> str | None:
    name: str | None = (claim["metadata"].get("annotations") or {}).get(STORAGE_CLASS_BETA)
    return name


def _without_empty_volume_name(spec: Document) -> Document:
    """The spec without an empty volume name, which means no volume."""
    return spec if spec.get("volumeName") else {field: value for field, value in spec.items() if field != "volumeName"}


# --- table -------------------------------------------------------------------------------------------------------


def _persistent_volume_claim_cells(claim: Document, now_s: float) -> list[Cell]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    volume = spec.get("volumeName", "")
    return [
        claim["metadata"]["name"],
        phase_cell(claim, status),
        volume,
        storage_cell(status.get("capacity")) if volume else "",
        access_modes_text(status.get("accessModes")) if volume else "",
        storage_class_cell(claim, spec),
        text_or_unset(spec.get("volumeAttributesClassName")),
        age(claim, now_s),
        text_or_unset(spec.get("volumeMode")),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class PersistentVolumeClaimStrategy(Strategy):
    """Writing a claim."""

    table = KindTable(
        (
            NAME,
            STATUS_COLUMN,
            column("Volume", "The volume that it has."),
            CAPACITY_COLUMN,
            ACCESS_MODES_COLUMN,
            STORAGE_CLASS_COLUMN,
            ATTRIBUTES_CLASS_COLUMN,
            AGE,
            VOLUME_MODE_COLUMN,
        ),
        _persistent_volume_claim_cells,
    )

    def default(self, obj: Document) -> None:
        default_claim(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"phase": "Pending"}
        normalize_data_sources(obj["spec"], {})

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_persistent_volume_claim_spec(obj["spec"], "spec")

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        normalize_data_sources(obj["spec"], old["spec"])

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        old_spec = dict(old["spec"])
        _mirror_data_sources(old_spec)
        old = {**old, "spec": old_spec}
        errors = self.validate_meta_update(obj, old)
        errors += self.validate_meta(obj)
        errors += validate_persistent_volume_claim_spec(obj["spec"], "spec", tolerance_for(old))
        return errors + validate_claim_update(obj, old)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return validate_persistent_volume_claim_status(obj)

    def warnings(self, obj: Document) -> list[str]:
        warnings = []
        if STORAGE_CLASS_BETA in (obj["metadata"].get("annotations") or {}):
            path = f"metadata.annotations[{STORAGE_CLASS_BETA}]"
            warnings.append(f'{path}: deprecated since v1.8; use "storageClassName" attribute instead')
        return warnings + claim_spec_warnings(obj["spec"], "spec")


def claim_spec_warnings(spec: Document, path: str) -> list[str]:
    """Also for the templates of claims in other kinds."""
    warnings = []
    for field in ("requests", "limits"):
        size = ((spec.get("resources") or {}).get(field) or {}).get("storage")
        if size is not None and quantity_milli(size) % 1000:
            here = f"{path}.resources.{field}[storage]"
            warnings.append(f"{here}: fractional byte value {quoted(size)} is invalid, must be an integer")
    return warnings


def normalize_data_sources(spec: Document, old_spec: Document) -> None:
    """Drop invalid data sources, and make `dataSource` and `dataSourceRef` equal."""
    drop_disabled_claim_fields(spec, old_spec)
    has_old = "dataSource" in old_spec or "dataSourceRef" in old_spec
    if not has_old and "dataSourceRef" not in spec and "dataSource" in spec:
        source = spec["dataSource"]
        if (source.get("apiGroup") or "", source.get("kind", "")) not in _KNOWN_SOURCES:
            del spec["dataSource"]
    _mirror_data_sources(spec)


def drop_disabled_claim_fields(spec: Document, old_spec: Document) -> None:
    """Drop data sources in other namespaces, which are behind a feature gate. Also for the claim templates of other
    kinds."""
    if (spec.get("dataSourceRef") or {}).get("namespace") and "dataSourceRef" not in old_spec:
        del spec["dataSourceRef"]


def _mirror_data_sources(spec: Document) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _reference(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _reference(reference)


def _reference(source: Document) -> Document:
    return {"apiGroup": source.get("apiGroup"), "kind": source.get("kind", ""), "name": source.get("name", "")}


STRATEGY = PersistentVolumeClaimStrategy
