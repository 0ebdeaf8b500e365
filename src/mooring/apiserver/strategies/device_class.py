"""Device classes.

1. A generated name is judged when it is complete, its prefix never.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.device_class import device_class_faults
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.values import means_the_same


class DeviceClassStrategy(Strategy):
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
