"""Validation of object metadata.

1. Errors of labels and annotations have the order of the fields in the request. In Go that order is random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mooring.api.document import Document
from mooring.api.field_errors import go_json
from mooring.api.labels import label_value_errors
from mooring.api.well_known import FOREGROUND_FINALIZER, NAMESPACE_FINALIZER, ORPHAN_FINALIZER
from mooring.apiserver.validation.fields import FieldError, forbidden, invalid, required, too_long
from mooring.apiserver.validation.names import (
    dns_label_errors,
    dns_subdomain_errors,
    path_segment_errors,
    qualified_name_errors,
)

ANNOTATIONS_BYTES_MAX = 256 * 1024
FIELD_MANAGER_BYTES_MAX = 128
SUBRESOURCE_BYTES_MAX = 256
IMMUTABLE = "field is immutable"

STANDARD_FINALIZERS = (NAMESPACE_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER)

NOTHING_STORED: Document = {}

NameCheck: TypeAlias = Callable[[str, bool], Sequence[str]]
"""Messages about a name, or about the prefix of a generated name."""


def name_is_dns_subdomain(name: str, is_prefix: bool) -> Sequence[str]:
    return dns_subdomain_errors(without_trailing_dash(name) if is_prefix else name)


def name_is_dns_label(name: str, is_prefix: bool) -> Sequence[str]:
    return dns_label_errors(without_trailing_dash(name) if is_prefix else name)


def name_is_path_segment(name: str, is_prefix: bool) -> Sequence[str]:
    if is_prefix:
        return tuple(f"may not contain '{character}'" for character in "/%" if character in name)
    return path_segment_errors(name)


def without_trailing_dash(name: str) -> str:
    """A prefix of a generated name may end with a dash."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


def validate_object_meta(
    metadata: Document, is_namespaced: bool, name_check: NameCheck, path: str, stored: Document = NOTHING_STORED
) -> list[FieldError]:
    """Field errors of the metadata of an object. Parts that equal those of `stored` are valid."""
    errors: list[FieldError] = []
    if not stored or any(metadata.get(field) != stored.get(field) for field in ("name", "generateName")):
        errors += validate_object_name(metadata, name_check, path)
    if not stored or metadata.get("namespace") != stored.get("namespace"):
        errors += _validate_namespace(metadata.get("namespace", ""), is_namespaced, f"{path}.namespace")
    if metadata.get("generation", 0) < 0:
        errors.append(invalid(f"{path}.generation", metadata["generation"], "must be greater than or equal to 0"))
    errors += _validate_common(metadata, path, stored)
    if "finalizers" in metadata and metadata["finalizers"] != stored.get("finalizers"):
        errors += validate_finalizers(metadata["finalizers"], f"{path}.finalizers")
    errors += _validate_managed_fields(metadata, path, stored)
    return errors


def validate_object_name(metadata: Document, name_check: NameCheck, path: str) -> list[FieldError]:
    """Field errors of the name of an object."""
    errors: list[FieldError] = []
    prefix = metadata.get("generateName")
    if prefix:
        errors += [invalid(f"{path}.generateName", prefix, text) for text in name_check(prefix, True)]
    name = metadata.get("name")
    if name:
        errors += [invalid(f"{path}.name", name, text) for text in name_check(name, False)]
    else:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    return errors


def validate_object_meta_update(metadata: Document, old: Document, path: str) -> list[FieldError]:
    """Field errors of a change of metadata."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _validate_new_finalizers(metadata, old, path)
    if not metadata.get("resourceVersion"):
        errors.append(invalid(f"{path}.resourceVersion", "", "must be specified for an update"))
    if metadata.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid(f"{path}.generation", metadata.get("generation", 0), "must not be decremented"))
    for field, absent in _IMMUTABLE_FIELDS:
        new, was = metadata.get(field, absent), old.get(field, absent)
        if new != was:
            errors += validate_immutable(new, was, f"{path}.{field}")
    errors += _validate_common(metadata, path, old)
    errors += _validate_managed_fields(metadata, path, old)
    return errors


def validate_immutable(new: object, old: object, path: str) -> list[FieldError]:
    """A field that may not change. Absent and empty lists and maps are the same to Kubernetes."""
    if new == old or (not new and not old and isinstance(new or old or [], list | dict)):
        return []
    return [invalid(path, new, IMMUTABLE)]


def validate_labels(labels: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += [invalid(path, key, text) for text in qualified_name_errors(key)]
        errors += [invalid(path, value, text) for text in label_value_errors(value)]
    return errors


def validate_annotations(annotations: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        size += _byte_count(key) + _byte_count(value)
        errors += [invalid(path, key, text) for text in qualified_name_errors(key.lower())]
    if size > ANNOTATIONS_BYTES_MAX:
        errors.append(too_long(path, ANNOTATIONS_BYTES_MAX))
    return errors


def validate_finalizers(finalizers: Sequence[str], path: str) -> list[FieldError]:
    errors = [invalid(path, name, text) for name in finalizers for text in qualified_name_errors(name)]
    if ORPHAN_FINALIZER in finalizers and FOREGROUND_FINALIZER in finalizers:
        detail = f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set"
        errors.append(invalid(path, list(finalizers), detail))
    return errors


def validate_known_finalizers(finalizers: Sequence[str], path: str) -> list[FieldError]:
    """Finalizers that belong neither to a domain nor to Kubernetes itself."""
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{path}[{index}]", name, detail)
        for index, name in enumerate(finalizers)
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def validate_field_manager(manager: str, path: str) -> list[FieldError]:
    if manager.isascii() and manager.isprintable() and len(manager) <= FIELD_MANAGER_BYTES_MAX:
        return []
    errors = []
    if _byte_count(manager) > FIELD_MANAGER_BYTES_MAX:
        errors.append(too_long(path, FIELD_MANAGER_BYTES_MAX))
    position = 0
    for character in manager:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(invalid(path, manager, detail))
        position += _byte_count(character)
    return errors


# --- parts ------------------------------------------------------------------------------------------------------


def _validate_namespace(namespace: str, is_namespaced: bool, path: str) -> list[FieldError]:
    if not is_namespaced:
        return [forbidden(path, "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(path)]
    return [invalid(path, namespace, text) for text in dns_label_errors(namespace)]


def _validate_common(metadata: Document, path: str, stored: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, validate_field in _COMMON_FIELDS:
        value = metadata.get(field)
        if value is not None and value != stored.get(field):
            errors += validate_field(value, f"{path}.{field}")
    return errors


def _validate_owner_references(references: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    for reference in references:
        errors += _validate_owner_reference(reference, path)
        if not reference.get("controller"):
            continue
        called = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        if controller:
            detail = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {called}'
            )
            errors.append(invalid(path, list(references), detail))
        else:
            controller = called
    return errors


def _validate_owner_reference(reference: Document, path: str) -> list[FieldError]:
    errors = []
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    if api_version.count("/") > 1 or not api_version.rpartition("/")[2]:
        errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
    errors += [
        invalid(f"{path}.{field}", "", "must not be empty")
        for field in ("kind", "name", "uid")
        if not reference.get(field)
    ]
    if (api_version, kind) == ("v1", "Event"):
        errors.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _manager_of(entry: Document) -> tuple[object, ...]:
    """What an entry is looked up by, because an object may have thousands."""
    return entry.get("manager"), entry.get("operation"), entry.get("subresource"), entry.get("apiVersion")


def _validate_managed_fields(metadata: Document, path: str, stored: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    known = {_manager_of(entry): entry for entry in stored.get("managedFields") or ()}
    for index, entry in enumerate(metadata.get("managedFields") or ()):
        if known.get(_manager_of(entry)) == entry:
            continue  # a write keeps the entries of other managers
        here = f"{path}.managedFields[{index}]"
        if entry.get("operation") not in ("Apply", "Update"):
            errors.append(invalid(f"{here}.operation", entry.get("operation", ""), "must be `Apply` or `Update`"))
        if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
            errors.append(invalid(f"{here}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager", ""), f"{here}.manager")
        if _byte_count(entry.get("subresource", "")) > SUBRESOURCE_BYTES_MAX:
            errors.append(too_long(f"{here}.subresource", SUBRESOURCE_BYTES_MAX))
    return errors


_COMMON_FIELDS: Sequence[tuple[str, Callable[[Any, str], list[FieldError]]]] = (
    ("labels", validate_labels),
    ("annotations", validate_annotations),
    ("ownerReferences", _validate_owner_references),
)
_IMMUTABLE_FIELDS = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)


def _validate_new_finalizers(metadata: Document, old: Document, path: str) -> list[FieldError]:
    known = old.get("finalizers") or ()
    added = sorted({name for name in metadata.get("finalizers") or () if name not in known})
    if not added:
        return []
    listed = ", ".join(go_json(name) for name in added)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden(f"{path}.finalizers", detail)]


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
