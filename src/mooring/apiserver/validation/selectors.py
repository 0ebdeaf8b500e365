"""Validation of label selectors and of `metav1.Condition` lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.validation.fields import Fault, duplicate, forbidden, invalid, not_supported, required, too_long
from mooring.apiserver.validation.metadata import labels_faults
from mooring.apiserver.validation.names import matching_rule, qualified_name_faults


def label_selector_faults(
    selector: Document | None,
    path: str,
    tolerates_values: bool = False,
    tolerates_operators: bool = False,
) -> list[Fault]:
    """What is wrong with a selector; an absent one is right. `tolerates_…` overlooks bad values or operators."""
    if not selector:
        return []
    faults: list[Fault] = []
    if "matchLabels" in selector:
        faults += labels_faults(selector["matchLabels"], f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        faults += label_requirement_faults(requirement, here, tolerates_values, tolerates_operators)
    return faults


def label_requirement_faults(
    requirement: Document, path: str, tolerates_values: bool = False, tolerates_operators: bool = False
) -> list[Fault]:
    faults: list[Fault] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                faults.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                faults.append(forbidden(f"{path}.values", detail))
        case _:
            if not tolerates_operators:
                faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    faults += label_name_faults(requirement.get("key", ""), f"{path}.key")
    if not tolerates_values:
        faults += label_values_faults(values, f"{path}.values")
    return faults


def label_name_faults(name: str, path: str) -> list[Fault]:
    return [invalid(path, name, text) for text in qualified_name_faults(name)]


def label_values_faults(values: object, path: str) -> list[Fault]:
    assert isinstance(values, list | tuple)
    return [
        invalid(f"{path}[{index}]", value, text)
        for index, value in enumerate(values)
        for text in label_value_faults(value)
    ]


def plain_selector_matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether labels carry everything that a plain map asks for."""
    return all(labels.get(key) == value for key, value in selector.items())


REASON_BYTES_MAX = 1024
MESSAGE_BYTES_MAX = 32 * 1024

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)


def conditions_faults(conditions: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in seen:
            faults.append(duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
        faults += _condition_faults(condition, f"{path}[{index}]")
    return faults


def _condition_faults(condition: Document, path: str) -> list[Fault]:
    faults = label_name_faults(condition.get("type", ""), f"{path}.type")
    status, reason = condition.get("status", ""), condition.get("reason", "")
    if status not in _STATUSES:
        faults.append(not_supported(f"{path}.status", status, _STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        faults.append(invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        faults.append(required(f"{path}.lastTransitionTime"))
    if not reason:
        faults.append(required(f"{path}.reason"))
    else:
        if not _is_reason(reason):
            rule = matching_rule(
                _REASON_RULE, _REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"
            )
            faults.append(invalid(f"{path}.reason", reason, rule))
        if len(reason.encode()) > REASON_BYTES_MAX:
            faults.append(too_long(f"{path}.reason", REASON_BYTES_MAX))
    if len(condition.get("message", "").encode()) > MESSAGE_BYTES_MAX:
        faults.append(too_long(f"{path}.message", MESSAGE_BYTES_MAX))
    return faults
