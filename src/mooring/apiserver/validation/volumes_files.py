"""What is wrong with volumes whose files come from objects: secrets, config maps, the pod itself.

Comes in   the source of a volume
Goes out   faults
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.containers_environment import (
    FILE_FIELDS,
    field_reference_faults,
    resource_reference_faults,
)
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.names import file_mode_faults, unreserved_faults


def secret_volume_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return faults + _items_and_mode_faults(source, path)


def config_map_volume_faults(source: Document, path: str) -> list[Fault]:
    faults = [] if source.get("name") else [required(f"{path}.name")]
    return faults + _items_and_mode_faults(source, path)


def downward_volume_faults(source: Document, path: str) -> list[Fault]:
    """Its items are told without their index, as kube-apiserver does."""
    faults = file_mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        faults += downward_file_faults(item, path)
    return faults


def keys_faults(items: Sequence[Document], path: str) -> list[Fault]:
    """What is wrong with the keys that become files."""
    faults: list[Fault] = []
    for index, item in enumerate(items):
        faults += key_faults(item, f"{path}[{index}]")
    return faults


def key_faults(item: Document, path: str) -> list[Fault]:
    faults = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    faults += unreserved_faults(item.get("path", ""), f"{path}.path")
    return faults + file_mode_faults(item.get("mode"), f"{path}.mode")


def downward_file_faults(file: Document, path: str) -> list[Fault]:
    """What is wrong with a file that shows a field of the pod, or a resource of a container."""
    faults = [] if file.get("path") else [required(f"{path}.path")]
    faults += unreserved_faults(file.get("path", ""), f"{path}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        faults += field_reference_faults(field, FILE_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            faults.append(invalid(path, "resource", detail))
    elif resource is not None:
        faults += resource_reference_faults(resource, f"{path}.resourceFieldRef", True)
    else:
        faults.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return faults + file_mode_faults(file.get("mode"), f"{path}.mode")


def _items_and_mode_faults(source: Document, path: str) -> list[Fault]:
    faults = file_mode_faults(source.get("defaultMode"), f"{path}.defaultMode")
    return faults + keys_faults(source.get("items") or (), f"{path}.items")
