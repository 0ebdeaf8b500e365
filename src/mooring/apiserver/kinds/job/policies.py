"""Validation of a Job's failure, success and replacement policies, and of index lists (`1,3-5,7`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.apiserver.validation.fields import (
    FieldError,
    FieldErrorType,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from mooring.apiserver.validation.schema_rules import sorted_enum_values, struct_rules
from mooring.apiserver.validation.selectors import validate_label_name

_is_integer = re.compile("[+-]?[0-9]+").fullmatch

FAILURE_RULES_MAX = 20
EXIT_CODES_MAX = 255
POD_CONDITIONS_MAX = 20
SUCCESS_RULES_MAX = 20
SUCCEEDED_INDEXES_BYTES_MAX = 64 * 1024

_ACTIONS = sorted_enum_values("batch", "PodFailurePolicyAction")
_OPERATORS = sorted_enum_values("batch", "PodFailurePolicyOnExitCodesOperator")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = sorted_enum_values("batch", "PodReplacementPolicy")


class IndexesError(ValueError):
    """A text of indexes that cannot be read."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text names. Raises `IndexesError`."""
    total = 0
    last: int | None = None
    for part in text.split(",") if text else ():
        first, final = _interval(part, completions)
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += final - first + 1
        last = final
    return total


def first_overlap(one: str, other: str, completions: int) -> int | None:
    """The first index that both texts name; parts that cannot be read are passed over."""
    ours, theirs = _readable(one, completions), _readable(other, completions)
    our, their = 0, 0
    while our < len(ours) and their < len(theirs):
        (start, end), (other_start, other_end) = ours[our], theirs[their]
        if start <= other_end and other_start <= end:
            return max(start, other_start)
        if start <= other_start:
            our += 1
        else:
            their += 1
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(_interval(part, completions))
        except IndexesError:
            continue
    return intervals


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {quoted(text)} violates the requirement that an index interval can have at most two parts "
            "separated by '-'"
        )
    numbers = [_index(limit, completions) for limit in limits]
    first, final = numbers[0], numbers[-1]
    if len(numbers) == 2 and first >= final:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {final}")
    return first, final


def _index(text: str, completions: int) -> int:
    if not _is_integer(text):
        raise IndexesError(f"cannot convert string to integer for index: {quoted(text)}")
    number = int(text)
    if number >= completions:
        raise IndexesError(f"too large index: {quoted(text)}")
    return number


def capitalised(value: object) -> object:
    """A value with Go's names of its fields, which is how kube-apiserver prints its own structs."""
    if isinstance(value, dict):
        return {name[:1].upper() + name[1:]: capitalised(field) for name, field in value.items()}
    if isinstance(value, list):
        return [capitalised(item) for item in value]
    return value


# --- failure ----------------------------------------------------------------------------------------------------


def validate_failure_policy(spec: Document, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors: list[FieldError] = []
    if len(rules) > FAILURE_RULES_MAX:
        errors.append(too_many(f"{path}.rules", len(rules), FAILURE_RULES_MAX))
    pod = spec["template"].get("spec") or {}
    containers = [
        container.get("name", "") for field in ("containers", "initContainers") for container in pod.get(field) or ()
    ]
    for index, rule in enumerate(rules):
        errors += _validate_failure_rule(spec, rule, f"{path}.rules[{index}]", containers)
    return errors


def _validate_failure_rule(spec: Document, rule: Document, path: str, containers: Sequence[str]) -> list[FieldError]:
    errors = _validate_job_policy_choice(rule.get("action", ""), _ACTIONS, f"{path}.action")
    if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(invalid(f"{path}.action", "FailIndex", "requires the backoffLimitPerIndex to be set"))
    exit_codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if exit_codes is not None:
        errors += _validate_exit_codes(exit_codes, f"{path}.onExitCodes", containers)
    if conditions:
        errors += _validate_pod_conditions(conditions, f"{path}.onPodConditions")
    if exit_codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(FieldError(FieldErrorType.INVALID, path, detail))
    if exit_codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(FieldError(FieldErrorType.INVALID, path, detail))
    return errors


def _validate_exit_codes(on_exit_codes: Document, path: str, containers: Sequence[str]) -> list[FieldError]:
    operator = on_exit_codes.get("operator", "")
    errors = _validate_job_policy_choice(operator, _OPERATORS, f"{path}.operator")
    container = on_exit_codes.get("containerName")
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", container, detail))
    values, here = on_exit_codes.get("values") or [], f"{path}.values"
    if not values:
        return [*errors, invalid(here, values, "at least one value is required")]
    if len(values) > EXIT_CODES_MAX:
        errors.append(too_many(here, len(values), EXIT_CODES_MAX))
    seen: set[int] = set()
    for index, code in enumerate(values):
        if operator == "In" and code == 0:
            errors.append(invalid(f"{here}[{index}]", code, "must not be 0 for the In operator"))
        if code in seen:
            errors.append(duplicate(f"{here}[{index}]", code))
        seen.add(code)
    if values != sorted(values):
        errors.append(invalid(here, values, "must be ordered"))
    return errors


def _validate_pod_conditions(patterns: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(patterns) > POD_CONDITIONS_MAX:
        errors.append(too_many(path, len(patterns), POD_CONDITIONS_MAX))
    for index, pattern in enumerate(patterns):
        errors += validate_label_name(pattern.get("type", ""), f"{path}[{index}].type")
        errors += _validate_job_policy_choice(pattern.get("status", ""), _STATUSES, f"{path}[{index}].status")
    return errors


def _validate_job_policy_choice(value: str, choices: Sequence[str], path: str) -> list[FieldError]:
    if not value:
        return [required(path, f"valid values: [{' '.join(quoted(choice) for choice in choices)}]")]
    return [] if value in choices else [not_supported(path, value, choices)]


# --- success and replacement ------------------------------------------------------------------------------------


def validate_success_policy(spec: Document, path: str) -> list[FieldError]:
    rules, here = spec["successPolicy"].get("rules") or (), f"{path}.rules"
    errors: list[FieldError] = []
    if not rules:
        errors.append(required(here, "at least one rules must be specified when the successPolicy is specified"))
    if len(rules) > SUCCESS_RULES_MAX:
        errors.append(too_many(here, len(rules), SUCCESS_RULES_MAX))
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        errors += _validate_success_rule(rule, completions, f"{here}[{index}]")
    return errors


def _validate_success_rule(rule: Document, completions: int, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        if len(indexes) > SUCCEEDED_INDEXES_BYTES_MAX:
            errors.append(too_long(here, SUCCEEDED_INDEXES_BYTES_MAX))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            errors.append(invalid(here, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        here = f"{path}.succeededCount"
        errors += struct_rules("batch", "SuccessPolicyRule").validate(rule, path)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(here, count, detail))
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
            errors.append(invalid(here, count, detail))
    return errors


def validate_replacement_policy(spec: Document, path: str) -> list[FieldError]:
    """With a failure policy, pods are replaced only after they have failed."""
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    choices = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    return [] if policy in choices else [not_supported(path, policy, choices)]
