"""Consumable capacity: how much of a device a request takes, and whether that much is left.

Comes in   a device's capacities with their request policies, what a request says, what is consumed already
Goes out   the amounts that the request consumes; whether they fit

 1. A request that says nothing about a capacity consumes the policy's default, or all of it.
 2. What it says is rounded up to what the policy allows: to a step of the range, or to the next valid value.
 3. Every device is checked, also one that is given to one claim only: it must be large enough.
 4. An amount that is the default as it is written is always in order, as in kube-scheduler v1.36: there two quantities
    are the same only if they are written the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mooring.api.quantity import NANO, Format, Quantity, parse_quantity
from mooring.api.views.base import RawQuantity
from mooring.api.views.devices import CapacityRequestPolicy, DeviceCapacity

Amounts = Mapping[str, int]
"""Capacity name -> billionths."""


class Policy(NamedTuple):
    """What may be requested of a capacity."""

    default: Quantity | None
    valid_values: tuple[Quantity, ...]
    has_range: bool
    least: Quantity | None
    most: Quantity | None
    step: Quantity | None


class Capacity(NamedTuple):
    """So much there is, and in these portions it is given away."""

    whole: Quantity
    policy: Policy | None


def read_capacities(published: Mapping[str, DeviceCapacity]) -> dict[str, Capacity]:
    return {
        name: Capacity(parse_quantity(capacity.value), _read_policy(capacity.request_policy))
        for name, capacity in published.items()
    }


def consumption(capacities: Mapping[str, Capacity], requested: Mapping[str, RawQuantity]) -> dict[str, Quantity] | None:
    """What a request consumes of each capacity; None if it breaks a policy or asks for what is not there."""
    if any(name not in capacities for name in requested):
        return None
    consumed: dict[str, Quantity] = {}
    for name, capacity in capacities.items():
        amount = _portion(capacity, requested.get(name))
        if _breaks_policy(amount, capacity.policy):
            return None
        consumed[name] = amount
    return consumed


def fits(capacities: Mapping[str, Capacity], consumed: Mapping[str, Quantity], *others: Amounts) -> bool:
    """Whether there is room for it beside what others consume."""
    for name, amount in consumed.items():
        total_nano = amount.amount_nano
        for other in others:
            total_nano += other.get(name, 0)
        if total_nano > capacities[name].whole.amount_nano:
            return False
    return True


def _portion(capacity: Capacity, requested: RawQuantity | None) -> Quantity:
    policy = capacity.policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.whole
    wanted = parse_quantity(requested)
    if policy is None:
        return wanted
    if policy.has_range and policy.least is not None:
        return _rounded_to_range(wanted, policy.least, policy.step)
    return next((valid for valid in policy.valid_values if wanted <= valid), wanted)


def _rounded_to_range(wanted: Quantity, least: Quantity, step: Quantity | None) -> Quantity:
    if wanted < least:
        return least
    if step is None or not step.value():
        return wanted
    steps = -((least.value() - wanted.value()) // step.value())
    return Quantity((least.value() + step.value() * steps) * NANO, Format.BINARY_SI)


def _breaks_policy(amount: Quantity, policy: Policy | None) -> bool:
    if policy is None or (policy.default is not None and _is_written_alike(amount, policy.default)):
        return False
    if policy.has_range:
        if policy.most is not None and amount > policy.most:
            return True
        if policy.step is None or not policy.step.value() or policy.least is None:
            return False
        return (amount.value() - policy.least.value()) % policy.step.value() != 0
    return bool(policy.valid_values) and all(amount != valid for valid in policy.valid_values)


def _is_written_alike(one: Quantity, other: Quantity) -> bool:
    return one == other and one.format is other.format and one.written == other.written


def _read_policy(policy: CapacityRequestPolicy | None) -> Policy | None:
    if policy is None:
        return None
    valid_range = policy.valid_range
    return Policy(
        default=_optional(policy.default),
        valid_values=tuple(parse_quantity(value) for value in policy.valid_values),
        has_range=valid_range is not None,
        least=_optional(valid_range.min) if valid_range is not None else None,
        most=_optional(valid_range.max) if valid_range is not None else None,
        step=_optional(valid_range.step) if valid_range is not None else None,
    )


def _optional(raw: RawQuantity | None) -> Quantity | None:
    return parse_quantity(raw) if raw is not None else None
