"""Conditions of definitions: are the names accepted, is the kind served, is it being deleted?"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document


def condition_of(definition: Document, type_name: str) -> Document | None:
    conditions: Sequence[Document] = (definition.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_name), None)


def is_true(definition: Document, type_name: str) -> bool:
    condition = condition_of(definition, type_name)
    return condition is not None and condition["status"] == "True"


def is_served(definition: Document) -> bool:
    """Whether the kinds of a definition can be asked for."""
    return is_true(definition, "NamesAccepted") or is_true(definition, "Established")


def condition(type_name: str, *, is_met: bool, reason: str, message: str) -> Document:
    return {"type": type_name, "status": "True" if is_met else "False", "reason": reason, "message": message}


def with_condition(status: Document, wanted: Document, now: str) -> Document:
    """The status with a condition; its time changes only when its status does. Nothing is changed in place."""
    changed = {"type": wanted["type"], "status": wanted["status"], "lastTransitionTime": now}
    changed |= {name: wanted[name] for name in ("reason", "message") if wanted.get(name)}
    conditions: list[Document] = list(status.get("conditions") or ())
    for index, have in enumerate(conditions):
        if have["type"] == wanted["type"]:
            if have["status"] == wanted["status"] and have.get("lastTransitionTime"):
                changed["lastTransitionTime"] = have["lastTransitionTime"]
            conditions[index] = changed
            break
    else:
        conditions.append(changed)
    return {**status, "conditions": conditions}
