"""Validation of label selectors and of `metav1.Condition` lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mooring.api.document import Document
from mooring.api.labels import label_value_errors
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, invalid, required
from mooring.apiserver.validation.metadata import validate_labels
from mooring.apiserver.validation.names import matching_rule, qualified_name_errors
from mooring.apiserver.validation.schema_rules import struct_rules

SET_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NUMERIC_OPERATORS = ("Lt", "Gt")
INVALID_OPERATOR = "not a valid selector operator"


def validate_label_selector(selector: Document | None, path: str, tolerates_values: bool = False) -> list[FieldError]:
    """Field errors of a selector; an absent one is valid. `tolerates_values` accepts invalid values."""
    if not selector:
        return []
    errors: list[FieldError] = []
    if "matchLabels" in selector:
        errors += validate_labels(selector["matchLabels"], f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        errors += validate_label_requirement(requirement, here, tolerates_values)
    return errors


def validate_label_requirement(
    requirement: Document, path: str, tolerates_values: bool = False, *, may_compare: bool = False
) -> list[FieldError]:
    """`may_compare`: numbers may be compared, as in selectors of nodes."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    errors: list[FieldError] = []
    if operator in SET_OPERATORS:
        errors += validate_set_operator(operator, values, path)
    elif not may_compare or operator not in NUMERIC_OPERATORS:
        errors.append(invalid(f"{path}.operator", operator, INVALID_OPERATOR))
    elif len(values) != 1:
        errors.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    errors += validate_label_name(requirement.get("key", ""), f"{path}.key")
    if not tolerates_values:
        errors += validate_label_values(values, f"{path}.values")
    return errors


def validate_set_operator(operator: str, values: Sequence[str], path: str) -> list[FieldError]:
    """Whether a requirement with a set operator has values; `path` is the requirement's."""
    if operator in ("In", "NotIn"):
        return [] if values else [required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    return [forbidden(f"{path}.values", detail)] if values else []


def validate_label_name(name: str, path: str) -> list[FieldError]:
    return [invalid(path, name, text) for text in qualified_name_errors(name)]


def validate_label_values(values: Sequence[str], path: str) -> list[FieldError]:
    return [
        invalid(f"{path}[{index}]", value, text)
        for index, value in enumerate(values)
        for text in label_value_errors(value)
    ]


def plain_selector_matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether labels contain all pairs of a map."""
    return all(labels.get(key) == value for key, value in selector.items())


_CONDITION = struct_rules("meta", "Condition")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)


def validate_conditions(conditions: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
        errors += _validate_condition(condition, f"{path}[{index}]")
    return errors


def _validate_condition(condition: Document, path: str) -> list[FieldError]:
    errors = _CONDITION.validate(condition, path, "type", "status")
    generation, reason = condition.get("observedGeneration", 0), condition.get("reason", "")
    if generation < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    errors += _CONDITION.validate(condition, path, "lastTransitionTime")
    if reason and not _is_reason(reason):
        rule = matching_rule(
            _REASON_RULE, _REASON, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"
        )
        errors.append(invalid(f"{path}.reason", reason, rule))
    return errors + _CONDITION.validate(condition, path, "reason", "message")
