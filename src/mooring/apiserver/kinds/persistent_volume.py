"""PersistentVolume (v1).

1. A volume has exactly one source, which is immutable. Node affinity may change from absent to present, and from
   deprecated label names to their successors.
2. Some field paths differ from the fields, because kube-apiserver prints them that way.
"""

from __future__ import annotations

from posixpath import normpath

from mooring.api.document import Document
from mooring.api.quantity import quantity_value
from mooring.api.storage import STORAGE_CLASS_BETA
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.node import node_selector_term_warnings
from mooring.apiserver.kinds.pod.defaults import SOURCE_DEFAULTS, round_amounts
from mooring.apiserver.kinds.pod.resources import validate_positive_quantity
from mooring.apiserver.kinds.pod.scheduling import has_invalid_node_values, validate_node_selector
from mooring.apiserver.kinds.volume_sources import PERSISTENT_SOURCES, validate_sources
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.tables import AGE, NAME, UNSET, Cell, KindTable, access_modes_text, age, column, wide
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.metadata import IMMUTABLE, validate_immutable
from mooring.apiserver.validation.names import dns_subdomain_errors
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules
from mooring.apiserver.validation.values import internal_diff, internal_value

ACCESS_MODES = sorted_enum_values("core", "PersistentVolumeAccessMode")
SINGLE_POD = "ReadWriteOncePod"
_SPEC = struct_rules("core", "PersistentVolumeSpec")
MOUNT_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"

_NEW_LABEL_NAMES = {
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""Deprecated node labels and their stable names."""

_MOUNT_OPTION_SOURCES = (
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
)


_DEPRECATED_ANNOTATIONS = {
    STORAGE_CLASS_BETA: 'deprecated since v1.8; use "storageClassName" attribute instead',
    MOUNT_OPTIONS_ANNOTATION: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_DEPRECATED_SOURCES = {
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}


# --- defaults ----------------------------------------------------------------------------------------------------


def default_volume_spec(spec: Document) -> None:
    """Also for the volume inside a VolumeAttachment, but for its policy and mode."""
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    default_volume_source(spec)
    if "capacity" in spec:
        round_amounts(spec["capacity"])


def default_volume_source(spec: Document) -> None:
    for source, defaults in SOURCE_DEFAULTS.items():
        if source in spec:
            for field, value in defaults.items():
                spec[source].setdefault(field, value)


# --- validation --------------------------------------------------------------------------------------------------


def validate_volume(volume: Document) -> list[FieldError]:
    """Field errors of the spec of a volume, and with its annotations."""
    name = volume["metadata"].get("name", "")
    return validate_volume_spec(volume["spec"], name, "spec") + validate_mount_options(volume)


def validate_volume_spec(
    spec: Document, name: str, path: str, *, is_inline: bool = False, tolerates_label_values: bool = False
) -> list[FieldError]:
    """`is_inline` is for the volume inside a VolumeAttachment, which was never an object of its own."""
    errors = _validate_inline(spec, path) if is_inline else []
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes"))
    errors += validate_access_modes(spec.get("accessModes") or (), f"{path}.accessModes")
    if not is_inline:
        errors += _validate_capacity(spec.get("capacity"), f"{path}.capacity")
    errors += _validate_reclaim(spec, path, is_inline)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        errors += _validate_persistent_volume_affinity(
            affinity, f"{path}.nodeAffinity", is_inline, tolerates_label_values
        )
    has_affinity = affinity is not None and not is_inline
    errors += validate_sources(spec, name, path, has_affinity)
    errors += _validate_recycling_root(spec, path)
    errors += _validate_class(spec, path, is_inline)
    errors += _validate_mode(spec, path, is_inline)
    return errors if is_inline else errors + _validate_attributes_class(spec, path)


def validate_volume_update(volume: Document, old: Document) -> list[FieldError]:
    """Errors of changed immutable fields."""
    spec, old_spec = volume["spec"], old["spec"]
    errors = _validate_source_update(spec, old_spec)
    errors += validate_immutable(spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode")
    if "nodeAffinity" in old_spec:
        errors += _validate_affinity_update(spec.get("nodeAffinity"), old_spec["nodeAffinity"])
    if "volumeAttributesClassName" in old_spec and "volumeAttributesClassName" not in spec:
        detail = "update from non-nil value to nil is forbidden"
        errors.append(forbidden("spec.volumeAttributesClassName", detail))
    return errors


def validate_access_modes(modes: object, path: str) -> list[FieldError]:
    """Shared by volumes and claims."""
    assert isinstance(modes, list | tuple)
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if SINGLE_POD in modes and any(mode in ACCESS_MODES and mode != SINGLE_POD for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_basic_quantity(text: str, path: str) -> list[FieldError]:
    value = quantity_value(text)
    return [invalid(path, value, "must be a valid resource quantity")] if value < 0 else []


def validate_mount_options(volume: Document) -> list[FieldError]:
    annotations = volume["metadata"].get("annotations") or {}
    if MOUNT_OPTIONS_ANNOTATION not in annotations or any(source in volume["spec"] for source in _MOUNT_OPTION_SOURCES):
        return []
    path = f"metadata.annotations.{MOUNT_OPTIONS_ANNOTATION}"
    return [forbidden(path, "may not specify mount options for this volume type")]


def has_bad_label_values(volume: Document) -> bool:
    """Whether a stored volume selects nodes by invalid label values, which an update then may keep."""
    return has_invalid_node_values((volume["spec"].get("nodeAffinity") or {}).get("required") or {})


# --- parts of the spec ------------------------------------------------------------------------------------------


def _validate_inline(spec: Document, path: str) -> list[FieldError]:
    detail = "may not be specified in the context of inline volumes"
    errors = []
    if "claimRef" in spec:
        errors.append(forbidden(f"{path}.claimRef", detail))
    if spec.get("capacity"):
        errors.append(forbidden(f"{path}.capacity", detail))
    if "csi" not in spec:
        errors.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    return errors


def _validate_capacity(capacity: Document | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not capacity:
        errors.append(required(path))
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        shown = dict(sorted(capacity.items())) if capacity else None
        errors.append(not_supported(path, shown, ("storage",)))
    for name, text in (capacity or {}).items():
        errors += validate_basic_quantity(text, f"{path}[{name}]")
        errors += validate_positive_quantity(text, f"{path}[{name}]")
    return errors


def _validate_reclaim(spec: Document, path: str, is_inline: bool) -> list[FieldError]:
    policy = spec.get("persistentVolumeReclaimPolicy")
    here = f"{path}.persistentVolumeReclaimPolicy"
    if not policy:
        return []
    if is_inline:
        detail = "may only be Retain in the context of inline volumes"
        return [] if policy == "Retain" else [forbidden(here, detail)]
    return _SPEC.validate(spec, path, "persistentVolumeReclaimPolicy")


def _validate_persistent_volume_affinity(
    affinity: Document, path: str, is_inline: bool, tolerates_values: bool
) -> list[FieldError]:
    if is_inline:
        return [forbidden(path, "may not be specified in the context of inline volumes")]
    if "required" not in affinity:
        return [required(f"{path}.required", "must specify required node constraints")]
    return validate_node_selector(affinity["required"], f"{path}.required", tolerates_values)


def _validate_recycling_root(spec: Document, path: str) -> list[FieldError]:
    root = spec.get("hostPath")
    if root is None or spec.get("persistentVolumeReclaimPolicy") != "Recycle":
        return []
    written = root.get("path", "")
    if not written or normpath(written) not in ("/", "//"):
        return []
    detail = "may not be 'recycle' for a hostPath mount of '/'"
    return [forbidden(f"{path}.persistentVolumeReclaimPolicy", detail)]


def _validate_class(spec: Document, path: str, is_inline: bool) -> list[FieldError]:
    name = spec.get("storageClassName")
    here = f"{path}.storageClassName"
    if not name:
        return []
    if is_inline:
        return [forbidden(here, "may not be specified in the context of inline volumes")]
    return _SPEC.validate(spec, path, "storageClassName")


def _validate_mode(spec: Document, path: str, is_inline: bool) -> list[FieldError]:
    mode = spec.get("volumeMode")
    if mode is None:
        return []
    if is_inline:
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        return [] if mode == "Filesystem" else [forbidden(f"{path}.volumeMode", detail)]
    return _SPEC.validate(spec, path, "volumeMode")


def _validate_attributes_class(spec: Document, path: str) -> list[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return []
    here = f"{path}.volumeAttributesClassName"
    errors = [invalid(here, name, text) for text in dns_subdomain_errors(name)] if name else []
    if not name:
        errors.append(required(here, "an empty string is disallowed"))
    if "csi" not in spec:
        errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


# --- parts of an update -----------------------------------------------------------------------------------------


def _validate_source_update(spec: Document, old_spec: Document) -> list[FieldError]:
    source = {field: spec[field] for field in PERSISTENT_SOURCES if field in spec}
    old_source = {field: old_spec[field] for field in PERSISTENT_SOURCES if field in old_spec}
    csi, old_csi = source.get("csi"), old_source.get("csi")
    if csi and old_csi and "controllerExpandSecretRef" in csi and "controllerExpandSecretRef" not in old_csi:
        # The secret for growing may be added later.
        source["csi"] = {field: value for field, value in csi.items() if field != "controllerExpandSecretRef"}
    if source == old_source:
        return []
    difference = internal_diff(old_source, source, "PersistentVolumeSource")
    detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
    return [forbidden("spec.persistentvolumesource", detail)]


def _validate_affinity_update(affinity: Document | None, old: Document) -> list[FieldError]:
    if affinity is not None and _is_same_affinity(affinity, old):
        return []
    shown = internal_value(affinity, "VolumeNodeAffinity") if affinity is not None else None
    return [invalid("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA")]


def _is_same_affinity(new: object, old: object) -> bool:
    """Whether two parts of an affinity are the same, renamed labels apart."""
    if isinstance(new, dict) and isinstance(old, dict):
        if "operator" in old and _NEW_LABEL_NAMES.get(old.get("key", "")) == new.get("key"):
            old = {**old, "key": new.get("key")}
        return new.keys() == old.keys() and all(_is_same_affinity(value, old[key]) for key, value in new.items())
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(
            _is_same_affinity(first, second) for first, second in zip(new, old, strict=True)
        )
    return new == old


# --- table -------------------------------------------------------------------------------------------------------


def _persistent_volume_cells(volume: Document, now_s: float) -> list[Cell]:
    spec, status = volume.get("spec") or {}, volume.get("status") or {}
    claim = spec.get("claimRef")
    return [
        volume["metadata"]["name"],
        storage_cell(spec.get("capacity")),
        access_modes_text(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase_cell(volume, status),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        storage_class_cell(volume, spec),
        text_or_unset(spec.get("volumeAttributesClassName")),
        status.get("reason", ""),
        age(volume, now_s),
        text_or_unset(spec.get("volumeMode")),
    ]


def phase_cell(obj: Document, status: Document) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")


def storage_cell(amounts: Document | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def storage_class_cell(obj: Document, spec: Document) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(
        annotations[STORAGE_CLASS_BETA] if STORAGE_CLASS_BETA in annotations else spec.get("storageClassName") or ""
    )


def text_or_unset(text: str | None) -> str:
    return UNSET if text is None else text


STATUS_COLUMN = column("Status", "Whether it is free, bound or about to go.")
CAPACITY_COLUMN = column("Capacity", "How much fits into it.")
ACCESS_MODES_COLUMN = column("Access Modes", "Who may use it at the same time, and how.")
STORAGE_CLASS_COLUMN = column("StorageClass", "The class that it is of.")
ATTRIBUTES_CLASS_COLUMN = column("VolumeAttributesClass", "The class of its attributes.")
VOLUME_MODE_COLUMN = wide("VolumeMode", "Whether it is a file system or a raw device.")


# --- strategy ----------------------------------------------------------------------------------------------------


class PersistentVolumeStatusStrategy(StatusStrategy):
    """Writing the phase, and when it last changed."""

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        status, old_status = obj["status"], old["status"]
        since, old_since = status.get("lastPhaseTransitionTime"), old_status.get("lastPhaseTransitionTime")
        if status.get("phase") == old_status.get("phase"):
            if since is None:
                keep(status, old_status, "lastPhaseTransitionTime")
        elif since is None or since == old_since:
            status["lastPhaseTransitionTime"] = call.now


class PersistentVolumeStrategy(Strategy):
    """Writing a volume."""

    table = KindTable(
        (
            NAME,
            CAPACITY_COLUMN,
            ACCESS_MODES_COLUMN,
            column("Reclaim Policy", "What becomes of it after its claim."),
            STATUS_COLUMN,
            column("Claim", "The claim that it is for."),
            STORAGE_CLASS_COLUMN,
            ATTRIBUTES_CLASS_COLUMN,
            column("Reason", "Why it failed, if it did."),
            AGE,
            VOLUME_MODE_COLUMN,
        ),
        _persistent_volume_cells,
    )

    status_strategy = PersistentVolumeStatusStrategy

    def default(self, obj: Document) -> None:
        obj["status"].setdefault("phase", "Pending")
        default_volume_spec(obj["spec"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": call.now}

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_volume(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        tolerates = has_bad_label_values(old)
        name = obj["metadata"].get("name", "")
        errors = self.validate_meta(obj)
        errors += validate_volume_spec(obj["spec"], name, "spec", tolerates_label_values=tolerates)
        # kube-apiserver validates the volume twice: as a new object and as an update.
        return [*errors, *validate_mount_options(obj), *errors, *validate_volume_update(obj, old)]

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return [] if obj["metadata"].get("resourceVersion") else [required("resourceVersion")]

    def warnings(self, obj: Document) -> list[str]:
        spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
        warnings = [
            f"metadata.annotations[{key}]: {text}"
            for key, text in _DEPRECATED_ANNOTATIONS.items()
            if key in annotations
        ]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            warnings.append(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                "Instead, the recommended approach is to use dynamic provisioning."
            )
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
        for index, term in enumerate(terms):
            warnings += node_selector_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
        return warnings + [
            f"spec.{shown}: {text}" for field, (shown, text) in _DEPRECATED_SOURCES.items() if field in spec
        ]


STRATEGY = PersistentVolumeStrategy
