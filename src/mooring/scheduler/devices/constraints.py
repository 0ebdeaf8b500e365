"""Constraints: what must be the same, or must differ, between the devices of a claim.

Comes in   devices, as the search takes them and gives them back
Goes out   whether a device may join those that were taken so far

 1. A device that lacks the attribute joins nothing.
 2. A constraint that names requests looks at the devices of those only; an alternative counts by its request's name or
    by its own.
 3. `DistinctAttribute` remembers one value for each request, the last, and forgets it whenever a device of the request
    is given back. kube-scheduler v1.36 does just that: of three devices for one request, the first and the third may be
    alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mooring.api.views.devices import DeviceAttribute, DeviceConstraint
from mooring.scheduler.devices.pools import DeviceKind
from mooring.scheduler.devices.requests import Request

AttributeValue = tuple[str, object]
"""The type of a value, and the value."""


class Constraint(ABC):
    """A constraint at work in one search."""

    __slots__ = ("_attribute", "_count", "_requests")

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self._attribute = attribute
        self._requests = frozenset(requests)
        self._count = 0

    def add(self, request: Request, kind: DeviceKind) -> bool:
        """Lets a device join, or says no."""
        if not self._concerns(request):
            return True
        attribute = kind.attribute(self._attribute)
        if attribute is None or not self._joins(request, attribute_value(attribute)):
            return False
        self._count += 1
        return True

    def remove(self, request: Request) -> None:
        """Takes the last device of a request back."""
        if self._concerns(request):
            self._count -= 1
            self._leaves(request)

    def _concerns(self, request: Request) -> bool:
        requests = self._requests
        return not requests or request.base_name in requests or request.full_name in requests

    @abstractmethod
    def _joins(self, request: Request, value: AttributeValue | None) -> bool: ...

    def _leaves(self, request: Request) -> None:  # noqa: B027 - most constraints remember nothing more
        """By default, nothing more than a device less."""


class MatchAttribute(Constraint):
    """All devices have the same value."""

    __slots__ = ("_value",)

    def _joins(self, request: Request, value: AttributeValue | None) -> bool:
        if self._count == 0:
            self._value = value
            return True
        return value is not None and value == self._value


class DistinctAttribute(Constraint):
    """No two devices have the same value, as far as it is remembered."""

    __slots__ = ("_values",)

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, AttributeValue | None] = {}

    def _joins(self, request: Request, value: AttributeValue | None) -> bool:
        others = self._values.values()
        if self._count and others and (value is None or value in others):
            return False
        self._values[request.base_name] = value
        return True

    def _leaves(self, request: Request) -> None:
        self._values.pop(request.base_name, None)


def constraint_of(constraint: DeviceConstraint) -> Constraint:
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.match_attribute, constraint.requests)
    assert constraint.distinct_attribute is not None, "a constraint without an attribute is a fault of its claim"
    return DistinctAttribute(constraint.distinct_attribute, constraint.requests)


def attribute_value(attribute: DeviceAttribute) -> AttributeValue | None:
    """The value with its type; None for a type that nobody here knows, which is like nothing else."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version is not None:
        return "version", attribute.version
    return None
