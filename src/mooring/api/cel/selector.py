"""Compile and evaluate device selectors.

Input: the expressions of device classes and requests; devices as drivers publish them. Output:
`compile_device_selector(expression).matches(device)`, or an exception with the text of Kubernetes.

    device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

 1. Compiled expressions are cached. Expressions that do not compile are not.
 2. A `CelDevice` is built once for each device. An attribute without a valid value fails the evaluation of every
    expression, even of one that does not use it.
 3. An attribute without a domain has the domain of its driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.api.caches import SizedCache
from mooring.api.cel.checker import check, validate
from mooring.api.cel.compiler import Program, compile_tree
from mooring.api.cel.costs import needs_meter
from mooring.api.cel.environment import DEVICE_ENVIRONMENT
from mooring.api.cel.errors import (
    NOWHERE,
    CelSource,
    CostExceeded,
    DeviceSelectorError,
    EvaluationFailure,
    ProgramFailure,
    SelectorEvaluationError,
)
from mooring.api.cel.estimates import worst_cost
from mooring.api.cel.parser import NESTED_TOO_DEEPLY, parse
from mooring.api.cel.syntax import SyntaxNode
from mooring.api.cel.types import ANY, BOOL
from mooring.api.cel.values import DomainMap, Optional, Value, VersionError, parse_version, type_name
from mooring.api.quantity import parse_quantity
from mooring.api.views.devices import DeviceAttribute
from mooring.api.views.meta import RawQuantity

CACHED_CHARACTERS_MAX = 250_000
"""Total length of the expressions in the cache. A compiled expression takes up to 300 bytes for each character."""


class CelDevice:
    """A device as the variable of expressions."""

    __slots__ = ("error", "fields")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, RawQuantity],
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        self.error = ""
        by_domain, amounts = DomainMap(), DomainMap()
        for qualified, attribute in attributes.items():
            domain, name = _domain_and_name(qualified, driver)
            try:
                by_domain.setdefault(domain, {})[name] = _attribute_value(attribute)
            except _UnreadableAttribute as error:
                self.error = self.error or f"attribute {qualified}: {error}"
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
class CompiledSelector:
    """A compiled expression."""

    expression: str
    program: Program

    def matches(self, device: CelDevice) -> bool:
        """Whether the selector matches the device. Raises `SelectorEvaluationError` if there is no result."""
        if device.error:
            raise SelectorEvaluationError(device.error)
        try:
            result = self.program.evaluate(device.fields)
        except (EvaluationFailure, CostExceeded) as failure:
            raise SelectorEvaluationError(str(failure)) from None
        if result is True or result is False:
            return result
        return _not_a_bool(result)


def compile_device_selector(expression: str) -> CompiledSelector:
    """The compiled selector. Raises `DeviceSelectorError`."""
    known = _selectors.get(expression)
    return known if known is not None else _selectors.add(expression, _compiled(expression), len(expression))


_selectors: SizedCache[CompiledSelector] = SizedCache(CACHED_CHARACTERS_MAX)


def worst_selector_cost(expression: str) -> int:
    """The maximum cost of an expression that compiles, on any device."""
    known = _costs.get(expression)
    if known is not None:
        return known
    source = CelSource(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert not source.errors, f"the caller compiles the expression first: {expression}"
    return _costs.add(expression, worst_cost(tree), len(expression))


_costs: SizedCache[int] = SizedCache(CACHED_CHARACTERS_MAX)


def _compiled(expression: str) -> CompiledSelector:
    source = CelSource(expression)
    try:
        return _checked_and_compiled(expression, source, parse(source))
    except RecursionError:
        source.errors.clear()
        source.report(NOWHERE, NESTED_TOO_DEEPLY)
        raise DeviceSelectorError(f"compilation failed: {source.error_report()}") from None


def _checked_and_compiled(expression: str, source: CelSource, tree: SyntaxNode) -> CompiledSelector:
    if not source.errors:
        check(tree, source, DEVICE_ENVIRONMENT)
    if not source.errors:
        validate(tree, source, DEVICE_ENVIRONMENT)
    if source.errors:
        raise DeviceSelectorError(f"compilation failed: {source.error_report()}")
    if tree.type not in (BOOL, ANY):
        raise DeviceSelectorError(f"must evaluate to bool or the unknown type, not {tree.type.declared}")
    try:
        program = compile_tree(tree, DEVICE_ENVIRONMENT, needs_meter(tree, len(expression)))
    except ProgramFailure as failure:
        raise DeviceSelectorError(f"program instantiation failed: {failure}") from None
    return CompiledSelector(expression, program)


# --- devices ----------------------------------------------------------------------------------------------------


class _UnreadableAttribute(Exception):
    """The attribute has no valid value."""


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


# --- results that are not bools ---------------------------------------------------------------------------------

_CONVERSION_ERRORS = {
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
    reason = "optional.none() dereference" if isinstance(held, Optional) else _CONVERSION_ERRORS[type_name(held)]
    raise SelectorEvaluationError(f"CEL result of type {type_name(result)} could not be converted to bool: {reason}")
