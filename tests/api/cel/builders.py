"""Builders for device selectors: devices, and the results and errors of expressions.

a_gpu = device("gpu.example.com", model="a100", numa=1, version=version("1.2.3"), memory=amount("80Gi"))
answer('device.attributes["gpu.example.com"].model == "a100"', a_gpu)
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.api.cel import CelDevice, SelectorEvaluationError, compile_device_selector
from mooring.api.cel.errors import DeviceSelectorError
from mooring.api.views.devices import DeviceAttribute


@dataclass(frozen=True)
class Version:
    text: str


@dataclass(frozen=True)
class Amount:
    text: str


def version(text: str) -> Version:
    return Version(text)


def amount(text: str) -> Amount:
    return Amount(text)


def device(
    driver: str = "gpu.example.com",
    *,
    allow_multiple_allocations: bool | None = None,
    named: dict[str, str | int | bool | Version | Amount] | None = None,
    **facts: str | int | bool | Version | Amount,
) -> CelDevice:
    """Attributes and capacities by name; `named` is for names with a domain."""
    everything = {**facts, **(named or {})}
    return CelDevice(
        driver,
        {name: attribute(fact) for name, fact in everything.items() if not isinstance(fact, Amount)},
        {name: fact.text for name, fact in everything.items() if isinstance(fact, Amount)},
        allow_multiple_allocations,
    )


def attribute(fact: str | int | bool | Version) -> DeviceAttribute:
    if isinstance(fact, bool):
        return DeviceAttribute(bool_value=fact)
    if isinstance(fact, int):
        return DeviceAttribute(int_value=fact)
    return DeviceAttribute(string=fact) if isinstance(fact, str) else DeviceAttribute(version=fact.text)


def answer(expression: str, asked: CelDevice | None = None) -> bool:
    return compile_device_selector(expression).matches(asked or device())


def runtime_error(expression: str, asked: CelDevice | None = None) -> str:
    """The error of evaluating an expression."""
    selector = compile_device_selector(expression)
    try:
        result = selector.matches(asked or device())
    except SelectorEvaluationError as error:
        return str(error)
    raise AssertionError(f"{expression} is {result}")


def compile_error(expression: str) -> str:
    """The error of compiling an expression."""
    try:
        compile_device_selector(expression)
    except DeviceSelectorError as error:
        return str(error)
    raise AssertionError(f"{expression} compiles")


def first_error(expression: str) -> str:
    """The first line of the errors of an expression, without the position."""
    return compile_error(expression).split("\n")[0].split(": ", 3)[3]
