"""Device selectors: does a device suit, by an expression that somebody wrote?

Comes in   the expressions of device classes and requests; devices, as drivers publish them
Goes out   `compile_device_selector(expression).matches(device)`; or the error text that users see from Kubernetes

    device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

 1. Compiled expressions are remembered, up to a limit; what does not compile is not, so its text is made each time.
 2. A `CelDevice` is made once for a device and asked many times. An attribute that cannot be read fails every
    expression, even one that does not ask for it, and only when it is evaluated.
 3. An attribute without a domain belongs to the domain of its driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.api.cel.checker import check, validate
from mooring.api.cel.compiler import Program, compile_tree
from mooring.api.cel.costs import needs_meter
from mooring.api.cel.environment import DEVICE_ENVIRONMENT
from mooring.api.cel.errors import (
    NOWHERE,
    CostExceeded,
    DeviceSelectorError,
    EvaluationFailure,
    ProgramFailure,
    SelectorEvaluationError,
    Source,
)
from mooring.api.cel.estimates import worst_cost
from mooring.api.cel.parser import NESTED_TOO_DEEPLY, parse
from mooring.api.cel.syntax import Node
from mooring.api.cel.types import ANY, BOOL
from mooring.api.cel.values import DomainMap, Optional, Value, VersionError, parse_version, type_name
from mooring.api.memory import Memory
from mooring.api.quantity import parse_quantity
from mooring.api.views.base import RawQuantity
from mooring.api.views.devices import DeviceAttribute

EXPRESSIONS_REMEMBERED_MAX = 1_024
"""kube-scheduler keeps 10; a compiled expression takes a few kilobytes."""


class CelDevice:
    """A device, laid out for expressions."""

    __slots__ = ("fault", "fields")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, RawQuantity],
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        self.fault = ""
        by_domain, amounts = DomainMap(), DomainMap()
        for qualified, attribute in attributes.items():
            domain, name = _domain_and_name(qualified, driver)
            try:
                by_domain.setdefault(domain, {})[name] = _attribute_value(attribute)
            except _UnreadableAttribute as error:
                self.fault = self.fault or f"attribute {qualified}: {error}"
        for qualified, amount in capacity.items():
            domain, name = _domain_and_name(qualified, driver)
            amounts.setdefault(domain, {})[name] = parse_quantity(amount)
        self.fields: dict[Value, Value] = {
            "driver": driver,
            "allowMultipleAllocations": bool(allow_multiple_allocations),
            "attributes": by_domain,
            "capacity": amounts,
        }


@dataclass(frozen=True, slots=True)
class DeviceSelector:
    """A compiled expression."""

    expression: str
    program: Program

    def matches(self, device: CelDevice) -> bool:
        """Whether the device suits. Raises `SelectorEvaluationError` if the expression has no answer."""
        if device.fault:
            raise SelectorEvaluationError(device.fault)
        try:
            result = self.program.evaluate(device.fields)
        except (EvaluationFailure, CostExceeded) as failure:
            raise SelectorEvaluationError(str(failure)) from None
        if result is True or result is False:
            return result
        return _not_a_bool(result)


def compile_device_selector(expression: str) -> DeviceSelector:
    """The selector that an expression stands for. Raises `DeviceSelectorError`."""
    known = _selectors.get(expression)
    return known if known is not None else _selectors.keep(expression, _compiled(expression))


_selectors: Memory[str, DeviceSelector] = Memory(EXPRESSIONS_REMEMBERED_MAX)


def worst_selector_cost(expression: str) -> int:
    """What an expression that compiles can cost at most, whatever the device. Only who stores expressions asks."""
    known = _costs.get(expression)
    if known is not None:
        return known
    source = Source(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert not source.faults, f"it was compiled before: {expression}"
    return _costs.keep(expression, worst_cost(tree))


_costs: Memory[str, int] = Memory(EXPRESSIONS_REMEMBERED_MAX)


def _compiled(expression: str) -> DeviceSelector:
    source = Source(expression)
    try:
        return _checked_and_compiled(expression, source, parse(source))
    except RecursionError:
        source.faults[:] = []
        source.report(NOWHERE, NESTED_TOO_DEEPLY)
        raise DeviceSelectorError(f"compilation failed: {source.shown_faults()}") from None


def _checked_and_compiled(expression: str, source: Source, tree: Node) -> DeviceSelector:
    if not source.faults:
        check(tree, source, DEVICE_ENVIRONMENT)
    if not source.faults:
        validate(tree, source, DEVICE_ENVIRONMENT)
    if source.faults:
        raise DeviceSelectorError(f"compilation failed: {source.shown_faults()}")
    if tree.type not in (BOOL, ANY):
        raise DeviceSelectorError(f"must evaluate to bool or the unknown type, not {tree.type.declared}")
    try:
        program = compile_tree(tree, DEVICE_ENVIRONMENT, needs_meter(tree, len(expression)))
    except ProgramFailure as failure:
        raise DeviceSelectorError(f"program instantiation failed: {failure}") from None
    return DeviceSelector(expression, program)


# --- devices ----------------------------------------------------------------------------------------------------


class _UnreadableAttribute(Exception):
    """An attribute has no value, or one that is none."""


def _domain_and_name(qualified: str, driver: str) -> tuple[str, str]:
    domain, slash, name = qualified.partition("/")
    return (domain, name) if slash else (driver, qualified)


def _attribute_value(attribute: DeviceAttribute) -> Value:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string is not None:
        return attribute.string
    if attribute.version is None:
        raise _UnreadableAttribute("unsupported attribute value")
    try:
        return parse_version(attribute.version)
    except VersionError as error:
        raise _UnreadableAttribute(f"parse semantic version: {error}") from None


# --- answers that are none --------------------------------------------------------------------------------------

_NATIVE_FAULTS = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "string": "unsupported native conversion from string to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "type": "type conversion not supported for 'type'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.URL": "type conversion error from 'URL' to 'bool'",
    "kubernetes.NamedFormat": "type conversion error from 'Format' to 'bool'",
    "net.IP": "type conversion error from 'IP' to 'bool'",
    "net.CIDR": "type conversion error from 'CIDR' to 'bool'",
    "google.protobuf.Duration": "type conversion error from 'Duration' to 'bool'",
    "google.protobuf.Timestamp": "type conversion error from 'Timestamp' to 'bool'",
}


def _not_a_bool(result: Value) -> bool:
    held = result
    while isinstance(held, Optional) and held.has_value:
        held = held.held
    if isinstance(held, bool):
        return held
    fault = "optional.none() dereference" if isinstance(held, Optional) else _NATIVE_FAULTS[type_name(held)]
    raise SelectorEvaluationError(f"CEL result of type {type_name(result)} could not be converted to bool: {fault}")
