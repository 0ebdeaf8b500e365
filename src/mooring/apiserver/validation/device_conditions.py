"""What is wrong with the conditions for which binding waits: those that must come true, and those that end the wait.

1. One sort makes no sense without the other, and none may be of both.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.validation.device_names import each_faults
from mooring.apiserver.validation.fields import Fault, duplicate, invalid
from mooring.apiserver.validation.selectors import label_name_faults

CONDITIONS_COUNT_MAX = 4

_BINDING, _FAILURE = "bindingConditions", "bindingFailureConditions"


def binding_conditions_faults(holder: Document, path: str) -> list[Fault]:
    """`holder` is a device, or a result of an allocation."""
    awaited, failures = holder.get(_BINDING) or [], holder.get(_FAILURE) or []
    if not awaited and not failures:
        return []
    faults = each_faults(awaited, CONDITIONS_COUNT_MAX, label_name_faults, f"{path}.{_BINDING}")
    faults += each_faults(failures, CONDITIONS_COUNT_MAX, label_name_faults, f"{path}.{_FAILURE}")
    for index, name in enumerate(awaited):
        if name in awaited[:index]:
            faults.append(duplicate(f"{path}.{_BINDING}[{index}]", name))
    for index, name in enumerate(failures):
        here = f"{path}.{_FAILURE}[{index}]"
        if name in failures[:index]:
            faults.append(duplicate(here, name))
        if name in awaited:
            faults.append(invalid(here, name, f"{_FAILURE} must not overlap with {_BINDING}"))
    for field, other, names in ((_BINDING, _FAILURE, awaited), (_FAILURE, _BINDING, failures)):
        if not names:
            faults.append(invalid(f"{path}.{field}", None, f"{field} are required to use {other}"))
    return faults
