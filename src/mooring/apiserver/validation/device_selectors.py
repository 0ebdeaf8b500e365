"""What is wrong with the expressions that select devices, and with the parameters that drivers read.

Comes in   `selectors` and `config` of device classes, claims and allocations
Goes out   faults

 1. Expressions that do not compile are told in the words of the compiler. One that is too long is not compiled, and one
    that could cost too much is refused, whatever it would cost in truth.
 2. What was stored stays: parameters may be larger than they may be today.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mooring.api.document import Document
from mooring.apiserver.validation.device_names import driver_faults, each_faults
from mooring.apiserver.validation.fields import Fault, forbidden, internal, invalid, required, too_long

SELECTORS_COUNT_MAX = 32
CONFIGS_COUNT_MAX = 32
EXPRESSION_BYTES_MAX = 10 * 1024
PARAMETERS_BYTES_MAX = 10 * 1024

_INTERNAL = "program instantiation failed: "


def selectors_faults(selectors: Sequence[Document], path: str) -> list[Fault]:
    return each_faults(selectors, SELECTORS_COUNT_MAX, _selector_faults, path)


def configuration_faults(config: Document, path: str, is_stored: bool = False) -> list[Fault]:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    faults = driver_faults(opaque.get("driver", ""), f"{path}.opaque.driver")
    bytes_max = None if is_stored else PARAMETERS_BYTES_MAX
    return faults + json_object_faults(opaque.get("parameters"), f"{path}.opaque.parameters", bytes_max)


def json_object_faults(value: object, path: str, bytes_max: int | None) -> list[Fault]:
    """What is wrong with JSON that only somebody else understands."""
    if value is None:
        return [required(path)]
    if bytes_max is not None and len(msgspec.json.encode(value)) > bytes_max:
        return [too_long(path, bytes_max)]
    return [] if isinstance(value, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def _selector_faults(selector: Document, path: str) -> list[Fault]:
    # Imported when somebody asks for devices: a server is ready earlier.
    from mooring.api.cel import COST_MAX, DeviceSelectorError, compile_device_selector, worst_selector_cost

    cel = selector.get("cel")
    if cel is None:
        return [required(f"{path}.cel")]
    expression, here = cel.get("expression", ""), f"{path}.cel.expression"
    if len(expression.encode()) > EXPRESSION_BYTES_MAX:
        return [too_long(here, EXPRESSION_BYTES_MAX)]
    try:
        compile_device_selector(expression)
    except DeviceSelectorError as error:
        words = str(error)
        return [internal(here, words) if words.startswith(_INTERNAL) else invalid(here, expression, words)]
    return [forbidden(here, "too complex, exceeds cost limit")] if worst_selector_cost(expression) > COST_MAX else []
