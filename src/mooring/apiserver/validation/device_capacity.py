"""What is wrong with the capacity of a device that many can share: how much each of them may take.

Comes in   a capacity with its policy
Goes out   faults

 1. A policy names the amounts that can be taken one by one, or as a range, never both.
 2. What somebody gets who says nothing must be one of these amounts, and none is more than there is.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.quantity import parse_quantity, quantity_nano, quantity_value
from mooring.apiserver.validation.device_names import set_faults
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, required

AMOUNTS_COUNT_MAX = 10


def shared_capacity_faults(capacity: Document, path: str) -> list[Fault]:
    """The capacity of a device that allows multiple allocations."""
    policy = capacity.get("requestPolicy")
    return [] if policy is None else _policy_faults(policy, capacity.get("value", "0"), f"{path}.requestPolicy")


def whole_capacity_faults(capacity: Document, path: str) -> list[Fault]:
    """The capacity of any other device: it is taken as a whole, and needs no policy."""
    if "requestPolicy" not in capacity:
        return []
    return [forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")]


def _policy_faults(policy: Document, total: str, path: str) -> list[Fault]:
    amounts, span, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if amounts and span is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(path, detail)]
    if amounts:
        if default is None:
            return [required(f"{path}.default", "required when validValues is defined")]
        return _amounts_faults(amounts, default, total, f"{path}.validValues")
    if span is not None:
        if default is None:
            return [required(f"{path}.default", "required when validRange is defined")]
        return _range_faults(span, default, total, f"{path}.validRange")
    return []


def _amounts_faults(amounts: Sequence[str], default: str, total: str, path: str) -> list[Fault]:
    faults = [
        invalid(f"{path}[{index}]", amounts[index], "values must be sorted in ascending order")
        for index in range(1, len(amounts))
        if _is_more(amounts[index - 1], amounts[index])
    ]

    def too_large(amount: str, here: str) -> list[Fault]:
        return (
            [invalid(here, amount, f"option is larger than capacity value: {total}")] if _is_more(amount, total) else []
        )

    faults += set_faults(
        amounts,
        AMOUNTS_COUNT_MAX,
        too_large,
        path,
        key=quantity_value,
        shown=lambda amount: str(quantity_value(amount)),
    )
    # A list that is too long is not read, and so the default is not found in it.
    is_found = len(amounts) <= AMOUNTS_COUNT_MAX and any(_is_same(amount, default) for amount in amounts)
    if not is_found:
        faults.append(invalid(path, default, "default value is not valid according to the requestPolicy"))
    return faults


def _range_faults(span: Document, default: str, total: str, path: str) -> list[Fault]:
    low, high, step = span.get("min"), span.get("max"), span.get("step")
    if low is None:
        return [required(f"{path}.min", "required when validRange is defined")]
    faults = []
    if _is_more(low, total):
        faults.append(invalid(f"{path}.min", low, f"min is larger than capacity value: {total}"))
    if _is_more(low, default):
        faults.append(invalid(f"{path}.min", default, f"default is less than min: {low}"))
    if high is not None:
        if _is_more(low, high):
            faults.append(invalid(f"{path}.max", low, f"min is larger than max: {high}"))
        if _is_more(high, total):
            faults.append(invalid(f"{path}.max", high, f"max is larger than capacity value: {total}"))
        if _is_more(default, high):
            faults.append(invalid(f"{path}.max", default, f"default is more than max: {high}"))
    if step is not None:
        faults += _step_faults(step, low, high, default, total, f"{path}.step")
    return faults


def _step_faults(step: str, low: str, high: str | None, default: str, total: str, path: str) -> list[Fault]:
    faults = []
    first = parse_quantity(low) + parse_quantity(step)
    if first > parse_quantity(total):
        faults.append(invalid(path, step, f"one step {first} is larger than capacity value: {total}"))
    for amount in (default, high):
        # kube-apiserver divides by a step of zero and falls over; we let it pass.
        if amount is None or not quantity_value(step):
            continue
        if (quantity_value(amount) - quantity_value(low)) % quantity_value(step):
            faults.append(invalid(path, amount, f"value is not a multiple of a given step ({step}) from ({low})"))
    return faults


def _is_more(one: str, other: str) -> bool:
    return quantity_nano(one) > quantity_nano(other)


def _is_same(one: str, other: str) -> bool:
    return quantity_nano(one) == quantity_nano(other)
