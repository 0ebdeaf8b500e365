"""The names of a definition: which are accepted, and the conditions of its status.

Input: a definition, and the names of the others in its group. Output: the status that it should have.

    NamesAccepted   no other kind of the group has one of these names
    Established     the kind is served, and stays so if its names are changed to names that are taken

1. A definition keeps its accepted names while its spec has names that are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mooring.api.document import Document
from mooring.api.field_errors import quoted


def condition_of(definition: Document, type_name: str) -> Document | None:
    conditions: Sequence[Document] = (definition.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == type_name), None)


def is_true(definition: Document, type_name: str) -> bool:
    condition = condition_of(definition, type_name)
    return condition is not None and condition["status"] == "True"


def is_served(definition: Document) -> bool:
    """Whether the kinds of a definition are served."""
    return is_true(definition, "NamesAccepted") or is_true(definition, "Established")


def condition(type_name: str, *, is_met: bool, reason: str, message: str) -> Document:
    return {"type": type_name, "status": "True" if is_met else "False", "reason": reason, "message": message}


def with_condition(status: Document, new_condition: Document, now: str) -> Document:
    """A copy of the status with a condition, whose time changes only with its status."""
    changed = {"type": new_condition["type"], "status": new_condition["status"], "lastTransitionTime": now}
    changed |= {name: new_condition[name] for name in ("reason", "message") if new_condition.get(name)}
    conditions: list[Document] = list(status.get("conditions") or ())
    for index, have in enumerate(conditions):
        if have["type"] == new_condition["type"]:
            if have["status"] == new_condition["status"] and have.get("lastTransitionTime"):
                changed["lastTransitionTime"] = have["lastTransitionTime"]
            conditions[index] = changed
            break
    else:
        conditions.append(changed)
    return {**status, "conditions": conditions}


APPROVED_ANNOTATION = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
_RULES = "see https://github.com/kubernetes/enhancements/pull/1111"


@dataclass(slots=True)
class NamesInUse:
    """Names that are in use in a group."""

    resources: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)


def names_in_use(definitions: Iterable[Document]) -> NamesInUse:
    taken = NamesInUse()
    for definition in definitions:
        names = (definition.get("status") or {}).get("acceptedNames") or {}
        taken.resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        taken.kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return taken


def named_status(definition: Document, taken: NamesInUse, now: str) -> Document | None:
    """The status with the names decided; None if nothing is to be decided."""
    status, requested = definition["status"], definition["spec"]["names"]
    accepted: Document = status.get("acceptedNames") or {}
    if requested == accepted:
        return None
    names, conflict = _decided(requested, accepted, taken)
    verdict = conflict or condition("NamesAccepted", is_met=True, reason="NoConflicts", message="no conflicts found")
    if names == accepted and _is_equivalent(verdict, condition_of(definition, "NamesAccepted")):
        return None
    changed = with_condition({**status, "acceptedNames": names}, verdict, now)
    established = condition_of(definition, "Established")
    if conflict is None and (established is None or established["status"] != "True"):
        text = "the initial names have been accepted"
        established = condition("Established", is_met=False, reason="Installing", message=text)
    elif established is None:
        text = "not all names are accepted"
        established = condition("Established", is_met=False, reason="NotAccepted", message=text)
    return with_condition(changed, established, now)


def established_status(definition: Document, now: str) -> Document | None:
    """The status of a definition whose names are accepted; None if it is established already, or cannot be yet."""
    if not is_true(definition, "NamesAccepted") or is_true(definition, "Established"):
        return None
    text = "the initial names have been accepted"
    established = condition("Established", is_met=True, reason="InitialNamesAccepted", message=text)
    return with_condition(definition["status"], established, now)


def _decided(requested: Document, accepted: Document, taken: NamesInUse) -> tuple[Document, Document | None]:
    names = dict(accepted)
    conflict: Document | None = None

    def reject(reason: str, message: str) -> None:
        nonlocal conflict
        conflict = condition("NamesAccepted", is_met=False, reason=reason, message=message)

    for name, used in (("plural", taken.resources), ("singular", taken.resources)):
        error = _in_use(requested.get(name, ""), accepted.get(name, ""), used)
        if error:
            reject(f"{name.capitalize()}Conflict", error)
        else:
            _set(names, name, requested.get(name))
    if requested.get("shortNames") != accepted.get("shortNames"):
        own = accepted.get("shortNames") or ()
        errors = [_in_use(name, "", taken.resources) for name in requested.get("shortNames") or () if name not in own]
        errors = list(dict.fromkeys(error for error in errors if error))
        if errors:
            reject("ShortNamesConflict", errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        else:
            _set(names, "shortNames", requested.get("shortNames"))
    for name, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        error = _in_use(requested.get(name, ""), accepted.get(name, ""), taken.kinds)
        if error:
            reject(reason, error)
        else:
            _set(names, name, requested.get(name))
    _set(names, "categories", requested.get("categories"))
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {name: names[name] for name in order if name in names}, conflict


def _set(names: Document, name: str, value: object) -> None:
    if value:
        names[name] = value
    elif name in ("plural", "kind"):
        names[name] = ""
    else:
        names.pop(name, None)


def _in_use(requested: str, accepted: str, used: set[str]) -> str:
    return f"{quoted(requested)} is already in use" if requested != accepted and requested in used else ""


def _is_equivalent(one: Document, other: Document | None) -> bool:
    return other is not None and all(one.get(name) == other.get(name) for name in ("status", "reason", "message"))


# --- groups that belong to Kubernetes ---------------------------------------------------------------------------


def is_protected(group: str) -> bool:
    return any(group == name or group.endswith(f".{name}") for name in _PROTECTED)


def approval_of(annotations: Document) -> tuple[str, str]:
    """How a definition in a protected group is approved (`Missing`, `Bypassed`, `Approved`, `Invalid`), and why."""
    text = annotations.get(APPROVED_ANNOTATION, "")
    if not text:
        return "Missing", f'protected groups must have approval annotation "{APPROVED_ANNOTATION}", {_RULES}'
    if text.startswith("unapproved"):
        return "Bypassed", f"not approved: {quoted(text)}"
    address = urlsplit(text)
    if address.scheme and address.netloc:
        return "Approved", f"approved in {text}"
    requirement = f'with either a URL or a reason starting with "unapproved", {_RULES}'
    return "Invalid", f'protected groups must have approval annotation "{APPROVED_ANNOTATION}" {requirement}'


def approval_status(definition: Document, now: str) -> Document | None:
    """The status with the approval of a definition in a protected group; None if it has it already."""
    if not is_protected(definition["spec"]["group"]):
        return None
    state, why = approval_of(definition["metadata"].get("annotations") or {})
    reasons = {
        "Missing": "MissingAnnotation",
        "Bypassed": "UnapprovedAnnotation",
        "Approved": "ApprovedAnnotation",
        "Invalid": "InvalidAnnotation",
    }
    approval = condition(
        "KubernetesAPIApprovalPolicyConformant", is_met=state == "Approved", reason=reasons[state], message=why
    )
    have = condition_of(definition, approval["type"])
    return None if _is_equivalent(approval, have) else with_condition(definition["status"], approval, now)
