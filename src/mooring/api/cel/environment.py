"""The environment of device selectors: every function, type and variable that an expression can name.

Comes in   the libraries
Goes out   `DEVICE_ENVIRONMENT`, built once when the package is imported; `FUNCTIONS`, which other environments share

 1. It is the one in which kube-scheduler v1.36 reads stored expressions: everything of that version is there, whatever
    the feature gates say, so that what an API server once accepted keeps its meaning.
 2. An attribute is of type `any`: whether it is a text or a number shows when the expression runs.
"""

from __future__ import annotations

from mooring.api.cel import (
    conversions,
    library_collections,
    library_kubernetes,
    library_network,
    library_operators,
    library_strings,
    times,
    types,
)
from mooring.api.cel.checker import Environment
from mooring.api.cel.conversions import RUNTIME_TYPES
from mooring.api.cel.functions import functions_of

FUNCTIONS = functions_of(
    [
        *library_operators.ROWS,
        *conversions.ROWS,
        *times.ROWS,
        *library_strings.ROWS,
        *library_collections.ROWS,
        *library_kubernetes.ROWS,
        *library_network.ROWS,
    ],
    {
        **library_operators.BINDINGS,
        **conversions.BINDINGS,
        **library_strings.BINDINGS,
        **library_collections.BINDINGS,
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
