"""DeviceClass (resource.k8s.io/v1).

1. The prefix of a generated name is not validated, only the complete name.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.resource_names import is_extended_resource
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.devices import CONFIGS_COUNT_MAX, configuration_faults, each_faults, selectors_faults
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables.columns import NAME_AND_AGE
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.values import means_the_same

DEVICE_CLASS_TABLE = NAME_AND_AGE


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


class DeviceClassStrategy(Strategy):
    table = DEVICE_CLASS_TABLE

    def name_faults(self, name: str, is_prefix: bool) -> Sequence[str]:
        return () if is_prefix else super().name_faults(name, is_prefix)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return device_class_faults(obj["spec"], None, "spec")

    def count_generation(self, obj: Document, old: Document) -> None:
        if not means_the_same(obj["spec"], old["spec"], "resource", "DeviceClassSpec"):
            super().count_generation(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj)
        faults += self.meta_update_faults(obj, old)
        return faults + device_class_faults(obj["spec"], old["spec"], "spec")


STRATEGY = DeviceClassStrategy
