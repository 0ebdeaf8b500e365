"""Volumes, claims and storage classes in a table."""

from __future__ import annotations

from mooring.api import kinds
from mooring.api.document import Document
from mooring.apiserver.tables.cells import NONE, UNSET, access_modes_text, age
from mooring.apiserver.tables.columns import AGE, NAME, Cell, KindTable, boolean, column, integer, wide

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_MARKS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _volume(volume: Document, now_s: float) -> list[Cell]:
    spec, status = volume.get("spec") or {}, volume.get("status") or {}
    claim = spec.get("claimRef")
    return [
        volume["metadata"]["name"],
        _storage(spec.get("capacity")),
        access_modes_text(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(volume, status),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(volume, spec),
        _or_unset(spec.get("volumeAttributesClassName")),
        status.get("reason", ""),
        age(volume, now_s),
        _or_unset(spec.get("volumeMode")),
    ]


def _claim(claim: Document, now_s: float) -> list[Cell]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    volume = spec.get("volumeName", "")
    return [
        claim["metadata"]["name"],
        _phase(claim, status),
        volume,
        _storage(status.get("capacity")) if volume else "",
        access_modes_text(status.get("accessModes")) if volume else "",
        _class(claim, spec),
        _or_unset(spec.get("volumeAttributesClassName")),
        age(claim, now_s),
        _or_unset(spec.get("volumeMode")),
    ]


def _phase(obj: Document, status: Document) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")


def _storage(amounts: Document | None) -> str:
    return str((amounts or {}).get("storage", "0"))


def _class(obj: Document, spec: Document) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations[_OLD_CLASS] if _OLD_CLASS in annotations else spec.get("storageClassName") or "")


def _or_unset(text: str | None) -> str:
    return UNSET if text is None else text


def _storage_class(obj: Document, now_s: float) -> list[Cell]:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    is_default = any(annotations.get(mark) == "true" for mark in _DEFAULT_MARKS)
    return [
        f"{metadata['name']} (default)" if is_default else metadata["name"],
        obj.get("provisioner", ""),
        obj["reclaimPolicy"] if obj.get("reclaimPolicy") is not None else "Delete",
        obj["volumeBindingMode"] if obj.get("volumeBindingMode") is not None else "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now_s),
    ]


def _attributes_class(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now_s)]


def _attachment(obj: Document, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool((obj.get("status") or {}).get("attached")),
        age(obj, now_s),
    ]


def _csi_node(obj: Document, now_s: float) -> list[Cell]:
    return [obj["metadata"]["name"], len((obj.get("spec") or {}).get("drivers") or ()), age(obj, now_s)]


def _csi_driver(obj: Document, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    requests = spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(each.get("audience", "") for each in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now_s),
    ]


_STATUS = column("Status", "Whether it is free, bound or about to go.")
_CAPACITY = column("Capacity", "How much fits into it.")
_ACCESS_MODES = column("Access Modes", "Who may use it at the same time, and how.")
_CLASS = column("StorageClass", "The class that it is of.")
_ATTRIBUTES = column("VolumeAttributesClass", "The class of its attributes.")
_MODE = wide("VolumeMode", "Whether it is a file system or a raw device.")

PERSISTENT_VOLUME_TABLE = KindTable(
    (
        NAME,
        _CAPACITY,
        _ACCESS_MODES,
        column("Reclaim Policy", "What becomes of it after its claim."),
        _STATUS,
        column("Claim", "The claim that it is for."),
        _CLASS,
        _ATTRIBUTES,
        column("Reason", "Why it failed, if it did."),
        AGE,
        _MODE,
    ),
    _volume,
)

PERSISTENT_VOLUME_CLAIM_TABLE = KindTable(
    (
        NAME,
        _STATUS,
        column("Volume", "The volume that it has."),
        _CAPACITY,
        _ACCESS_MODES,
        _CLASS,
        _ATTRIBUTES,
        AGE,
        _MODE,
    ),
    _claim,
)

STORAGE_CLASS_TABLE = KindTable(
    (
        NAME,
        column("Provisioner", "Who makes its volumes."),
        column("ReclaimPolicy", "What becomes of them after their claims."),
        column("VolumeBindingMode", "When a claim gets its volume."),
        column("AllowVolumeExpansion", "Whether volumes may grow."),
        AGE,
    ),
    _storage_class,
)

VOLUME_ATTRIBUTES_CLASS_TABLE = KindTable(
    (NAME, column("DriverName", "The driver that understands it."), AGE), _attributes_class
)

VOLUME_ATTACHMENT_TABLE = KindTable(
    (
        NAME,
        column("Attacher", "Who attaches.", form="name"),
        column("PV", "The volume."),
        column("Node", "The node that it is attached to."),
        boolean("Attached", "Whether it is attached already."),
        AGE,
    ),
    _attachment,
)

CSI_NODE_TABLE = KindTable((NAME, integer("Drivers", "How many drivers the node has."), AGE), _csi_node)

CSI_DRIVER_TABLE = KindTable(
    (
        NAME,
        boolean("AttachRequired", "Whether volumes are attached before they are used."),
        boolean("PodInfoOnMount", "Whether it is told about the pod."),
        boolean("StorageCapacity", "Whether it says how much room is left."),
        column("TokenRequests", "For whom it wants tokens of the pod's account."),
        boolean("RequiresRepublish", "Whether it wants to be called again and again."),
        column("Modes", "The lives that its volumes may have."),
        AGE,
    ),
    _csi_driver,
)

TABLES = {
    kinds.PERSISTENT_VOLUME: PERSISTENT_VOLUME_TABLE,
    kinds.PERSISTENT_VOLUME_CLAIM: PERSISTENT_VOLUME_CLAIM_TABLE,
    kinds.STORAGE_CLASS: STORAGE_CLASS_TABLE,
    kinds.VOLUME_ATTRIBUTES_CLASS: VOLUME_ATTRIBUTES_CLASS_TABLE,
    kinds.VOLUME_ATTACHMENT: VOLUME_ATTACHMENT_TABLE,
    kinds.CSI_NODE: CSI_NODE_TABLE,
    kinds.CSI_DRIVER: CSI_DRIVER_TABLE,
}
