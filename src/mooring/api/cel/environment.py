"""The functions, types and variables that an expression can name.

Output: `FUNCTIONS`, all functions of kube-apiserver v1.36; `DEVICE_ENVIRONMENT`, the environment of device selectors.

 1. All functions of that version are declared, independent of feature gates, so that a stored expression keeps its
    meaning.
 2. An attribute of a device has the type `any`: its type is known at run time only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.api.cel import conversions, kubernetes, lists, operators, strings, types
from mooring.api.cel.conversions import RUNTIME_TYPES
from mooring.api.cel.functions import Function, functions_of
from mooring.api.cel.types import CelType


@dataclass(frozen=True, slots=True)
class Environment:
    """What an expression may name."""

    functions: Mapping[str, Function]
    variables: Mapping[str, CelType]
    type_names: Mapping[str, CelType]
    fields: Mapping[str, Mapping[str, CelType]]
    """The fields of each struct type."""


FUNCTIONS = functions_of(
    [
        *operators.ROWS,
        *conversions.ROWS,
        *conversions.TIME_ROWS,
        *strings.ROWS,
        *lists.ROWS,
        *kubernetes.ROWS,
        *kubernetes.NETWORK_ROWS,
    ],
    {
        **operators.BINDINGS,
        **conversions.BINDINGS,
        **strings.BINDINGS,
        **lists.BINDINGS,
    },
)

_BY_DOMAIN_AND_NAME = {
    "attributes": types.map_of(types.STRING, types.map_of(types.STRING, types.ANY)),
    "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
}

DEVICE_ENVIRONMENT = Environment(
    functions=FUNCTIONS,
    variables={"device": types.DEVICE},
    type_names=RUNTIME_TYPES,
    fields={
        types.DEVICE.name: {
            "driver": types.STRING,
            "allowMultipleAllocations": types.BOOL,
            **_BY_DOMAIN_AND_NAME,
        }
    },
)
