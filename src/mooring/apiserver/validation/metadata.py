"""What is wrong with the metadata that every object has.

Comes in   `metadata`, as it is or as it was and shall become
Goes out   faults

 1. Faults of labels and annotations come in the order in which they are written; in Go that order is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.validation.fields import Fault, forbidden, go_json, invalid, required, too_long
from mooring.apiserver.validation.names import (
    dns_1035_label_faults,
    dns_label_faults,
    dns_subdomain_faults,
    path_segment_faults,
    qualified_name_faults,
)

ANNOTATIONS_BYTES_MAX = 256 * 1024
FIELD_MANAGER_BYTES_MAX = 128
SUBRESOURCE_BYTES_MAX = 256
IMMUTABLE = "field is immutable"

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
STANDARD_FINALIZERS = ("kubernetes", ORPHAN_FINALIZER, FOREGROUND_FINALIZER)

NOTHING_STORED: Document = {}

NameCheck: TypeAlias = Callable[[str, bool], Sequence[str]]
"""From a name, and whether it is the prefix of one that will be generated, to what is wrong with it."""


def name_is_dns_subdomain(name: str, is_prefix: bool) -> Sequence[str]:
    return dns_subdomain_faults(without_trailing_dash(name) if is_prefix else name)


def name_is_dns_label(name: str, is_prefix: bool) -> Sequence[str]:
    return dns_label_faults(without_trailing_dash(name) if is_prefix else name)


def name_is_dns_1035_label(name: str, is_prefix: bool) -> Sequence[str]:
    return dns_1035_label_faults(without_trailing_dash(name) if is_prefix else name)


def name_is_path_segment(name: str, is_prefix: bool) -> Sequence[str]:
    if is_prefix:
        return tuple(f"may not contain '{character}'" for character in "/%" if character in name)
    return path_segment_faults(name)


def without_trailing_dash(name: str) -> str:
    """A prefix may end with the dash after which the generated part will come."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def object_meta_faults(
    metadata: Document, is_namespaced: bool, name_check: NameCheck, path: str, stored: Document = NOTHING_STORED
) -> list[Fault]:
    """What is wrong with the metadata of an object. What is as it was in the `stored` ones was right already."""
    faults: list[Fault] = []
    if not stored or any(metadata.get(field) != stored.get(field) for field in ("name", "generateName")):
        faults += object_name_faults(metadata, name_check, path)
    if not stored or metadata.get("namespace") != stored.get("namespace"):
        faults += _namespace_faults(metadata.get("namespace", ""), is_namespaced, f"{path}.namespace")
    if metadata.get("generation", 0) < 0:
        faults.append(invalid(f"{path}.generation", metadata["generation"], "must be greater than or equal to 0"))
    faults += _common_faults(metadata, path, stored)
    if "finalizers" in metadata and metadata["finalizers"] != stored.get("finalizers"):
        faults += finalizers_faults(metadata["finalizers"], f"{path}.finalizers")
    faults += _managed_fields_faults(metadata, path, stored)
    return faults


def object_name_faults(metadata: Document, name_check: NameCheck, path: str) -> list[Fault]:
    """What is wrong with the name of an object."""
    faults: list[Fault] = []
    prefix = metadata.get("generateName")
    if prefix:
        faults += [invalid(f"{path}.generateName", prefix, text) for text in name_check(prefix, True)]
    name = metadata.get("name")
    if name:
        faults += [invalid(f"{path}.name", name, text) for text in name_check(name, False)]
    else:
        faults.append(required(f"{path}.name", "name or generateName is required"))
    return faults


def object_meta_update_faults(metadata: Document, old: Document, path: str) -> list[Fault]:
    """What is wrong with a change of metadata."""
    faults: list[Fault] = []
    if old.get("deletionTimestamp"):
        faults += _new_finalizers_faults(metadata, old, path)
    if not metadata.get("resourceVersion"):
        faults.append(invalid(f"{path}.resourceVersion", "", "must be specified for an update"))
    if metadata.get("generation", 0) < old.get("generation", 0):
        faults.append(invalid(f"{path}.generation", metadata.get("generation", 0), "must not be decremented"))
    for field, absent in _IMMUTABLE_FIELDS:
        new, was = metadata.get(field, absent), old.get(field, absent)
        if new != was:
            faults += immutable_faults(new, was, f"{path}.{field}")
    faults += _common_faults(metadata, path, old)
    faults += _managed_fields_faults(metadata, path, old)
    return faults


def immutable_faults(new: object, old: object, path: str) -> list[Fault]:
    """A field that may not change. Absent and empty lists and maps are the same to Kubernetes."""
    if new == old or (not new and not old and isinstance(new or old or [], list | dict)):
        return []
    return [invalid(path, new, IMMUTABLE)]


def labels_faults(labels: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for key, value in labels.items():
        faults += [invalid(path, key, text) for text in qualified_name_faults(key)]
        faults += [invalid(path, value, text) for text in label_value_faults(value)]
    return faults


def annotations_faults(annotations: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    size = 0
    for key, value in annotations.items():
        size += _byte_count(key) + _byte_count(value)
        faults += [invalid(path, key, text) for text in qualified_name_faults(key.lower())]
    if size > ANNOTATIONS_BYTES_MAX:
        faults.append(too_long(path, ANNOTATIONS_BYTES_MAX))
    return faults


def finalizers_faults(finalizers: Sequence[str], path: str) -> list[Fault]:
    faults = [invalid(path, name, text) for name in finalizers for text in qualified_name_faults(name)]
    if ORPHAN_FINALIZER in finalizers and FOREGROUND_FINALIZER in finalizers:
        detail = f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set"
        faults.append(invalid(path, list(finalizers), detail))
    return faults


def odd_finalizers_faults(finalizers: Sequence[str], path: str) -> list[Fault]:
    """Finalizers that belong neither to a domain nor to Kubernetes itself."""
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{path}[{index}]", name, detail)
        for index, name in enumerate(finalizers)
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def field_manager_faults(manager: str, path: str) -> list[Fault]:
    if manager.isascii() and manager.isprintable() and len(manager) <= FIELD_MANAGER_BYTES_MAX:
        return []
    faults = []
    if _byte_count(manager) > FIELD_MANAGER_BYTES_MAX:
        faults.append(too_long(path, FIELD_MANAGER_BYTES_MAX))
    position = 0
    for character in manager:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            faults.append(invalid(path, manager, detail))
        position += _byte_count(character)
    return faults


# --- parts ------------------------------------------------------------------------------------------------------


def _namespace_faults(namespace: str, is_namespaced: bool, path: str) -> list[Fault]:
    if not is_namespaced:
        return [forbidden(path, "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(path)]
    return [invalid(path, namespace, text) for text in dns_label_faults(namespace)]


def _common_faults(metadata: Document, path: str, stored: Document) -> list[Fault]:
    faults: list[Fault] = []
    for field, faults_of in _COMMON_FIELDS:
        value = metadata.get(field)
        if value is not None and value != stored.get(field):
            faults += faults_of(value, f"{path}.{field}")
    return faults


def _owner_references_faults(references: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    controller = ""
    for reference in references:
        faults += _owner_reference_faults(reference, path)
        if not reference.get("controller"):
            continue
        called = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        if controller:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {called}'
            )
            faults.append(invalid(path, list(references), detail))
        else:
            controller = called
    return faults


def _owner_reference_faults(reference: Document, path: str) -> list[Fault]:
    faults = []
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    if not api_version.rpartition("/")[2]:
        faults.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
    faults += [
        invalid(f"{path}.{field}", "", "must not be empty")
        for field in ("kind", "name", "uid")
        if not reference.get(field)
    ]
    if (api_version, kind) == ("v1", "Event"):
        faults.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
    return faults


def _managed_fields_faults(metadata: Document, path: str, stored: Document) -> list[Fault]:
    faults: list[Fault] = []
    known = stored.get("managedFields") or ()
    for index, entry in enumerate(metadata.get("managedFields") or ()):
        if entry in known:
            continue  # who writes to an object leaves the entries of others as they are
        here = f"{path}.managedFields[{index}]"
        if entry.get("operation") not in ("Apply", "Update"):
            faults.append(invalid(f"{here}.operation", entry.get("operation", ""), "must be `Apply` or `Update`"))
        if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
            faults.append(invalid(f"{here}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        faults += field_manager_faults(entry.get("manager", ""), f"{here}.manager")
        if _byte_count(entry.get("subresource", "")) > SUBRESOURCE_BYTES_MAX:
            faults.append(too_long(f"{here}.subresource", SUBRESOURCE_BYTES_MAX))
    return faults


_COMMON_FIELDS: Sequence[tuple[str, Callable[[Any, str], list[Fault]]]] = (
    ("labels", labels_faults),
    ("annotations", annotations_faults),
    ("ownerReferences", _owner_references_faults),
)
_IMMUTABLE_FIELDS = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)


def _new_finalizers_faults(metadata: Document, old: Document, path: str) -> list[Fault]:
    known = old.get("finalizers") or ()
    added = sorted({name for name in metadata.get("finalizers") or () if name not in known})
    if not added:
        return []
    listed = ", ".join(go_json(name) for name in added)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden(f"{path}.finalizers", detail)]


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
