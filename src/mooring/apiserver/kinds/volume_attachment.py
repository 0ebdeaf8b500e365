"""VolumeAttachment (storage.k8s.io/v1).

1. The spec is immutable.
2. The error for a message that is too long names the size limit of metadata, because kube-apiserver does.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.persistent_volume import default_volume_source, validate_volume_spec
from mooring.apiserver.kinds.pod.defaults import round_amounts
from mooring.apiserver.kinds.volume_sources import validate_driver_name
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep, keep_metadata
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, boolean, column
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, required, too_long
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import range_rule
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.values import internal_value, means_the_same

METADATA_BYTES_MAX = 256 * 1024
MESSAGE_BYTES_MAX = 1024
ERROR_CODE_MAX = 2**31 - 1

_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


# --- validation --------------------------------------------------------------------------------------------------


def validate_volume_attachment(obj: Document) -> list[FieldError]:
    spec, status = obj["spec"], obj.get("status") or {}
    source = spec.get("source") or {}
    errors = validate_driver_name(spec.get("attacher", ""), "spec.attacher")
    errors += _validate_attachment_source(source, "spec.source")
    errors += struct_rules("storage", "VolumeAttachmentSpec").validate(spec, "spec")
    errors += _validate_status(status, "status")
    return errors + struct_rules("storage", "VolumeAttachmentSource").validate(source, "spec.source")


def validate_volume_attachment_update(obj: Document, old: Document) -> list[FieldError]:
    if means_the_same(obj["spec"], old["spec"], "storage", "VolumeAttachmentSpec"):
        return []
    return [invalid("spec", internal_value(obj["spec"], "VolumeAttachmentSpec", "storage"), IMMUTABLE)]


def _validate_attachment_source(source: Document, path: str) -> list[FieldError]:
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        return [required(path, _ONE_SOURCE)]
    if name is not None and inline is not None:
        return [forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return validate_volume_spec(inline, "", f"{path}.inlineVolumeSpec", is_inline=True)
    return [] if name else [required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]


def _validate_status(status: Document, path: str) -> list[FieldError]:
    errors = []
    metadata = status.get("attachmentMetadata") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > METADATA_BYTES_MAX:
        errors.append(too_long(f"{path}.attachmentMetadata", METADATA_BYTES_MAX))
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if len(error.get("message", "").encode()) > MESSAGE_BYTES_MAX:
            errors.append(too_long(f"{path}.{field}.message", METADATA_BYTES_MAX))
        code = error.get("errorCode")
        if code is not None and code < 0:
            errors.append(invalid(f"{path}.{field}.errorCode", code, range_rule(0, ERROR_CODE_MAX)))
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _volume_attachment_cells(obj: Document, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool((obj.get("status") or {}).get("attached")),
        age(obj, now_s),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class VolumeAttachmentStatusStrategy(StatusStrategy):
    """Strategy of the status; validated like any other write."""

    reset_fields = (("metadata",), ("spec",))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        keep_metadata(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return self.main.validate_update(obj, old, call)


class VolumeAttachmentStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            column("Attacher", "Who attaches.", form="name"),
            column("PV", "The volume."),
            column("Node", "The node that it is attached to."),
            boolean("Attached", "Whether it is attached already."),
            AGE,
        ),
        _volume_attachment_cells,
    )
    allows_unconditional_update = False

    status_strategy = VolumeAttachmentStatusStrategy

    def default(self, obj: Document) -> None:
        inline = obj["spec"]["source"].get("inlineVolumeSpec")
        if inline is not None:
            default_volume_source(inline)
            if "capacity" in inline:
                round_amounts(inline["capacity"])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"attached": False}

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_volume_attachment(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        """As a new attachment, then as a change."""
        errors = self.validate_meta(obj)
        errors += validate_volume_attachment(obj)
        return errors + validate_volume_attachment_update(obj, old)


STRATEGY = VolumeAttachmentStrategy
