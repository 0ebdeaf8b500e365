"""Validation of names, status, approval and unknown-field handling of a CustomResourceDefinition."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.apiserver.custom.naming import APPROVED_ANNOTATION, approval_of, is_protected
from mooring.apiserver.custom.pruning import copied
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.names import dns_1035_label_errors

_MIXED_CASE = "may have mixed case, but should otherwise match: "


def validate_names(names: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("plural", "singular"):
        errors += _validate_definition_label(names.get(field, ""), f"{path}.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field, "")
        wrong = dns_1035_label_errors(name.lower()) if name else ()
        if wrong:
            errors.append(invalid(f"{path}.{field}", name, _MIXED_CASE + ",".join(wrong)))
    for index, name in enumerate(names.get("shortNames") or ()):
        errors += _validate_definition_label(name, f"{path}.shortNames[{index}]", is_optional=False)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for index, name in enumerate(names.get("categories") or ()):
        errors += _validate_definition_label(name, f"{path}.categories[{index}]", is_optional=False)
    return errors


def _validate_definition_label(name: str, path: str, *, is_optional: bool = True) -> list[FieldError]:
    if is_optional and not name:
        return []
    wrong = dns_1035_label_errors(name)
    return [invalid(path, name, ",".join(wrong))] if wrong else []


def validate_status(definition: Document) -> list[FieldError]:
    status = definition["status"]
    errors = validate_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    path, stored = "status.storedVersions", status.get("storedVersions")
    if not stored:
        return [*errors, invalid(path, stored, "must have at least one stored version")]
    left: dict[str, int] = {name: index for index, name in enumerate(stored)}
    for version in definition["spec"].get("versions") or ():
        name = version.get("name", "")
        if version.get("storage") and name not in left and name not in stored:
            errors.append(invalid(path, copied(stored), f"must have the storage version {name}"))
        left.pop(name, None)
    for name, index in left.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        errors.append(invalid(f"{path}[{index}]", name, why))
    return errors


def validate_approval(definition: Document, old: Document | None) -> list[FieldError]:
    if not is_protected(definition["spec"].get("group", "")):
        return []
    annotations = definition["metadata"].get("annotations") or {}
    state, why = approval_of(annotations)
    if old is not None and approval_of(old["metadata"].get("annotations") or {})[0] == state:
        return []
    path = f"metadata.annotations[{APPROVED_ANNOTATION}]"
    if state == "Missing":
        return [required(path, why)]
    return [invalid(path, annotations[APPROVED_ANNOTATION], why)] if state == "Invalid" else []


def validate_preserving(definition: Document, old: Document | None) -> list[FieldError]:
    def preserves(each: Any) -> bool:
        return bool(each["spec"].get("preserveUnknownFields", False))

    if not preserves(definition) or (old is not None and preserves(old)):
        return []
    why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid("spec.preserveUnknownFields", True, why)]
