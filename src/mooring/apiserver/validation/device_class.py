"""What is wrong with a device class.

Comes in   a class, and what it was
Goes out   faults
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.resource_names import is_extended_resource
from mooring.apiserver.validation.device_names import each_faults
from mooring.apiserver.validation.device_selectors import CONFIGS_COUNT_MAX, configuration_faults, selectors_faults
from mooring.apiserver.validation.fields import Fault, invalid


def device_class_faults(spec: Document, old: Document | None, path: str) -> list[Fault]:
    faults = selectors_faults(spec.get("selectors") or (), f"{path}.selectors")
    configs = spec.get("config") or ()
    is_stored = old is not None and (old.get("config") or ()) == configs
    faults += each_faults(
        configs,
        CONFIGS_COUNT_MAX,
        lambda config, here: configuration_faults(config, here, is_stored),
        f"{path}.config",
    )
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        faults.append(invalid(f"{path}.extendedResourceName", name, "must be a valid extended resource name"))
    return faults
