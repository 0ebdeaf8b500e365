"""What is wrong with a VolumeAttachment: the wish to have a volume at a node, and what became of it.

Comes in   an attachment, and what it was
Goes out   faults

 1. The wish never changes.
 2. A message that is too long is told with the limit of the metadata, which is another one: so does kube-apiserver.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, required, too_long
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.names import dns_subdomain_faults, range_rule
from mooring.apiserver.validation.persistent_volume import volume_spec_faults
from mooring.apiserver.validation.persistent_volume_sources import csi_driver_name_faults
from mooring.apiserver.validation.values import internal_value, means_the_same

METADATA_BYTES_MAX = 256 * 1024
MESSAGE_BYTES_MAX = 1024
ERROR_CODE_MAX = 2**31 - 1

_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def volume_attachment_faults(obj: Document) -> list[Fault]:
    spec, status = obj["spec"], obj.get("status") or {}
    source, node = spec.get("source") or {}, spec.get("nodeName", "")
    faults = csi_driver_name_faults(spec.get("attacher", ""), "spec.attacher")
    faults += _source_faults(source, "spec.source")
    faults += [invalid("spec.nodeName", node, text) for text in dns_subdomain_faults(node)]
    faults += _status_faults(status, "status")
    name = source.get("persistentVolumeName")
    if name is not None:
        faults += [invalid("spec.source.persistentVolumeName", name, text) for text in dns_subdomain_faults(name)]
    return faults


def volume_attachment_update_faults(obj: Document, old: Document) -> list[Fault]:
    if means_the_same(obj["spec"], old["spec"], "storage", "VolumeAttachmentSpec"):
        return []
    return [invalid("spec", internal_value(obj["spec"], "VolumeAttachmentSpec", "storage"), IMMUTABLE)]


def _source_faults(source: Document, path: str) -> list[Fault]:
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        return [required(path, _ONE_SOURCE)]
    if name is not None and inline is not None:
        return [forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return volume_spec_faults(inline, "", f"{path}.inlineVolumeSpec", is_inline=True)
    return [] if name else [required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]


def _status_faults(status: Document, path: str) -> list[Fault]:
    faults = []
    metadata = status.get("attachmentMetadata") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > METADATA_BYTES_MAX:
        faults.append(too_long(f"{path}.attachmentMetadata", METADATA_BYTES_MAX))
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if len(error.get("message", "").encode()) > MESSAGE_BYTES_MAX:
            faults.append(too_long(f"{path}.{field}.message", METADATA_BYTES_MAX))
        code = error.get("errorCode")
        if code is not None and code < 0:
            faults.append(invalid(f"{path}.{field}.errorCode", code, range_rule(0, ERROR_CODE_MAX)))
    return faults
