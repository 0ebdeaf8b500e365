"""What is wrong with tolerations.

Comes in   `tolerations` of a pod, new and old
Goes out   faults
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.label_syntax import label_value_faults
from mooring.api.quantity import INT64_MAX, INT64_MIN
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, not_supported
from mooring.apiserver.validation.pod_options import PodOptions
from mooring.apiserver.validation.selectors import label_name_faults

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Lt", "Gt")


def tolerations_faults(tolerations: Sequence[Document], path: str, options: PodOptions) -> list[Fault]:
    faults: list[Fault] = []
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator, effect = (toleration.get(field, "") for field in ("key", "operator", "effect"))
        if key:
            faults += label_name_faults(key, f"{here}.key")
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            faults.append(invalid(f"{here}.operator", operator, detail))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            faults.append(invalid(f"{here}.effect", effect, detail))
        faults += _value_faults(operator, toleration.get("value", ""), here, options)
        if effect and effect not in _EFFECTS:
            faults.append(not_supported(f"{here}.effect", effect, _EFFECTS))
    return faults


def added_tolerations_faults(
    tolerations: Sequence[Document], old: Sequence[Document], path: str, options: PodOptions
) -> list[Fault]:
    """What a pod tolerated it goes on tolerating; only for how long may change."""
    if tolerations != old:
        known = [_without_seconds(toleration) for toleration in tolerations]
        if any(_without_seconds(toleration) not in known for toleration in old):
            return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return tolerations_faults(tolerations, path, options)


def _without_seconds(toleration: Document) -> Document:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _value_faults(operator: str, value: str, path: str, options: PodOptions) -> list[Fault]:
    match operator:
        case "Equal" | "":
            texts = label_value_faults(value)
            return [invalid(f"{path}.operator", value, ";".join(texts))] if texts else []
        case "Exists":
            detail = "value must be empty when `operator` is 'Exists'"
            return [invalid(f"{path}.operator", value, detail)] if value else []
        case "Lt" | "Gt":
            if options.tolerates_comparing_tolerations:
                return _number_faults(value, f"{path}.value")
            return [not_supported(f"{path}.operator", operator, (*_OPERATORS, *_COMPARISONS))]
        case _:
            return [not_supported(f"{path}.operator", operator, _OPERATORS)]


def _number_faults(value: str, path: str) -> list[Fault]:
    digits = value.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit()
    if is_number and INT64_MIN <= int(value) <= INT64_MAX:
        return []
    detail = "value out of range" if is_number else "invalid syntax"
    return [invalid(path, value, f'strconv.ParseInt: parsing "{value}": {detail}')]
