"""What is wrong with the names of a custom kind, wanted or accepted."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.names import dns_1035_label_faults

_MIXED_CASE = "may have mixed case, but should otherwise match: "


def names_faults(names: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for field in ("plural", "singular"):
        faults += _label_faults(names.get(field, ""), f"{path}.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field, "")
        wrong = dns_1035_label_faults(name.lower()) if name else ()
        if wrong:
            faults.append(invalid(f"{path}.{field}", name, _MIXED_CASE + ",".join(wrong)))
    for index, name in enumerate(names.get("shortNames") or ()):
        faults += _label_faults(name, f"{path}.shortNames[{index}]", is_optional=False)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        faults.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for index, name in enumerate(names.get("categories") or ()):
        faults += _label_faults(name, f"{path}.categories[{index}]", is_optional=False)
    return faults


def _label_faults(name: str, path: str, *, is_optional: bool = True) -> list[Fault]:
    if is_optional and not name:
        return []
    wrong = dns_1035_label_faults(name)
    return [invalid(path, name, ",".join(wrong))] if wrong else []
