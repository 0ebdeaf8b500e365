"""LimitRange (v1).

1. A missing default limit is the maximum. A missing default request is the default limit, or else the minimum.
2. Each bound is validated by itself first, then against the others, resource by resource, in the order of the lists.
3. An update is validated like a creation.
4. A LimitRange without a name gets a unique one from its uid.
"""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.document import Document
from mooring.api.quantity import MILLI_VALUE_MAX, Quantity, parse_quantity
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.pod.defaults import round_amounts
from mooring.apiserver.kinds.pod.resources import (
    ValidateName,
    allows_overcommit,
    validate_container_resource_name,
    validate_resource_name,
)
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import FieldError, duplicate, forbidden, invalid, required
from mooring.apiserver.validation.names import qualified_name_errors

_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")

POD, CONTAINER, CLAIM = "Pod", "Container", "PersistentVolumeClaim"
STANDARD_TYPES = (POD, CONTAINER, CLAIM)
"""Amounts up to here are compared in thousandths."""


# --- defaults ----------------------------------------------------------------------------------------------------


def _default_container_item(item: Document) -> None:
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


_ONE = parse_quantity("1")


class _Bounds(NamedTuple):
    """The bounds of one item for one resource."""

    least: Quantity | None
    most: Quantity | None
    default: Quantity | None
    default_request: Quantity | None
    ratio_max: Quantity | None


# --- validation --------------------------------------------------------------------------------------------------


def validate_limit_range(limit_range: Document) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(limit_range["spec"].get("limits") or ()):
        path = f"spec.limits[{index}]"
        kind = item.get("type", "")
        errors += _validate_limit_range_type(kind, f"{path}.type")
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        errors += _validate_item(item, kind, path)
    return errors


def _validate_limit_range_type(kind: str, path: str) -> list[FieldError]:
    texts = qualified_name_errors(kind)
    if not texts and "/" not in kind and kind not in STANDARD_TYPES:
        texts = ("must be a standard limit type or fully qualified",)
    return [invalid(path, kind, text) for text in texts]


def _validate_item(item: Document, kind: str, path: str) -> list[FieldError]:
    check_name = validate_container_resource_name if kind in (POD, CONTAINER) else validate_resource_name
    fields = ["max", "min"] if kind == POD else ["max", "min", "default", "defaultRequest"]
    errors = [error for field in fields for error in _validate_limit_range_names(item, field, check_name, path)]
    if kind == POD:
        errors += [
            forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            for field in ("default", "defaultRequest")
            if item.get(field)
        ]
    if kind == CLAIM and "storage" not in (item.get("min") or {}) and "storage" not in (item.get("max") or {}):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", detail))
    fields.append("maxLimitRequestRatio")
    errors += _validate_limit_range_names(item, "maxLimitRequestRatio", check_name, path)
    names = dict.fromkeys(name for field in fields for name in item.get(field) or ())
    for name in names:
        errors += _validate_bounds(_bounds(item, name, fields), name, path)
    return errors


def _validate_limit_range_names(item: Document, field: str, check_name: ValidateName, path: str) -> list[FieldError]:
    return [error for name in item.get(field) or () for error in check_name(name, f"{path}.{field}[{name}]")]


def _bounds(item: Document, name: str, fields: list[str]) -> _Bounds:
    texts = [
        (item.get(field) or {}).get(name) if field in fields else None
        for field in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    ]
    return _Bounds(*(parse_quantity(text) if text is not None else None for text in texts))


def _validate_bounds(bounds: _Bounds, name: str, path: str) -> list[FieldError]:
    least, most, default, request, ratio = bounds
    errors = []

    def check(low: Quantity | None, high: Quantity | None, field: str, shown: Quantity | None, what: str) -> None:
        if low is not None and high is not None and low > high:
            first, second = what.split("|")
            detail = f"{first} value {low} is greater than {second} value {high}"
            errors.append(invalid(f"{path}.{field}[{name}]", str(shown), detail))

    check(least, most, "min", least, "min|max")
    check(least, request, "defaultRequest", request, "min|default request")
    check(request, most, "defaultRequest", request, "default request|max")
    check(request, default, "defaultRequest", request, "default request|default limit")
    check(least, default, "default", least, "min|default")
    check(default, most, "default", most, "default|max")
    errors += _validate_ratio(least, most, ratio, f"{path}.maxLimitRequestRatio[{name}]")
    if not allows_overcommit(name) and default is not None and request is not None and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", str(request), detail))
    return errors


def _validate_ratio(
    least: Quantity | None, most: Quantity | None, ratio: Quantity | None, path: str
) -> list[FieldError]:
    if ratio is None:
        return []
    errors = []
    if ratio < _ONE:
        errors.append(invalid(path, str(ratio), f"ratio {ratio} is less than 1"))
    if least is not None and most is not None:
        ratio_value, ratio_max = _ratios(least, most, ratio)
        if ratio_value > ratio_max:
            detail = f"ratio {ratio} is greater than max/min = {ratio_max:f}"
            errors.append(invalid(path, str(ratio), detail))
    return errors


def _ratios(least: Quantity, most: Quantity, ratio: Quantity) -> tuple[float, float]:
    if all(quantity.value() < MILLI_VALUE_MAX for quantity in (ratio, least, most)):
        return ratio.milli_value() / 1000, _divided(most.milli_value(), least.milli_value())
    return float(ratio.value()), _divided(most.value(), least.value())


def _divided(dividend: int, divisor: int) -> float:
    if divisor:
        return dividend / divisor
    # As Go divides floats.
    return float("nan") if not dividend else float("inf") if dividend > 0 else float("-inf")


# --- strategy ----------------------------------------------------------------------------------------------------


class LimitRangeStrategy(Strategy):
    """Writing a limit range."""

    allows_create_on_update = True

    def default(self, obj: Document) -> None:
        for item in obj["spec"].get("limits") or ():
            if item.get("type") == "Container":
                _default_container_item(item)
            for field in _FIELDS:
                if field in item:
                    round_amounts(item[field])

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        metadata = obj["metadata"]
        if not metadata.get("name"):
            metadata["name"] = _name_from_uid(metadata["uid"])

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_limit_range(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        return self.validate(obj, call)


def _name_from_uid(uid: str) -> str:
    """Another UUID of version 4, derived from the first: its random digits in reverse order."""
    digits = uid.replace("-", "")
    random = (digits[:12] + digits[13:16] + digits[17:])[::-1]
    return f"{random[:8]}-{random[8:12]}-4{random[12:15]}-{digits[16]}{random[15:18]}-{random[18:]}"


STRATEGY = LimitRangeStrategy
