"""Validation of names, status, approval and unknown-field handling of a CustomResourceDefinition."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.apiserver.custom.defaulting import copied
from mooring.apiserver.custom.naming import APPROVED_ANNOTATION, approval_of, is_protected
from mooring.apiserver.validation.fields import Fault, invalid, required
from mooring.apiserver.validation.names import dns_1035_label_faults

_MIXED_CASE = "may have mixed case, but should otherwise match: "


def names_faults(names: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for field in ("plural", "singular"):
        faults += _definition_label_faults(names.get(field, ""), f"{path}.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field, "")
        wrong = dns_1035_label_faults(name.lower()) if name else ()
        if wrong:
            faults.append(invalid(f"{path}.{field}", name, _MIXED_CASE + ",".join(wrong)))
    for index, name in enumerate(names.get("shortNames") or ()):
        faults += _definition_label_faults(name, f"{path}.shortNames[{index}]", is_optional=False)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        faults.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for index, name in enumerate(names.get("categories") or ()):
        faults += _definition_label_faults(name, f"{path}.categories[{index}]", is_optional=False)
    return faults


def _definition_label_faults(name: str, path: str, *, is_optional: bool = True) -> list[Fault]:
    if is_optional and not name:
        return []
    wrong = dns_1035_label_faults(name)
    return [invalid(path, name, ",".join(wrong))] if wrong else []


def status_faults(definition: Document) -> list[Fault]:
    status = definition["status"]
    faults = names_faults(status.get("acceptedNames") or {}, "status.acceptedNames")
    path, stored = "status.storedVersions", status.get("storedVersions")
    if not stored:
        return [*faults, invalid(path, stored, "must have at least one stored version")]
    left: dict[str, int] = {name: index for index, name in enumerate(stored)}
    for version in definition["spec"].get("versions") or ():
        name = version.get("name", "")
        if version.get("storage") and name not in left and name not in stored:
            faults.append(invalid(path, copied(stored), f"must have the storage version {name}"))
        left.pop(name, None)
    for name, index in left.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        faults.append(invalid(f"{path}[{index}]", name, why))
    return faults


def approval_faults(definition: Document, old: Document | None) -> list[Fault]:
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


def preserving_faults(definition: Document, old: Document | None) -> list[Fault]:
    def preserves(each: Any) -> bool:
        return bool(each["spec"].get("preserveUnknownFields", False))

    if not preserves(definition) or (old is not None and preserves(old)):
        return []
    why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid("spec.preserveUnknownFields", True, why)]
