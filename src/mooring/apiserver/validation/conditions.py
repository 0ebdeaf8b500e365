"""What is wrong with conditions of the common kind (those of budgets and of many custom kinds)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.faults import Fault, duplicate, invalid, not_supported, required, too_long
from mooring.apiserver.validation.selectors import label_name_faults
from mooring.apiserver.validation.syntax import matching_rule

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
