"""What is wrong with a label selector, and what it selects.

Comes in   `matchLabels` and `matchExpressions` (or a plain map of labels), and labels
Goes out   faults; whether they match
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.apiserver.faults import Fault, forbidden, invalid, required
from mooring.apiserver.validation.metadata import labels_faults
from mooring.apiserver.validation.syntax import qualified_name_faults


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
