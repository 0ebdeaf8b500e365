"""Classes of volume attributes."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.volume_attributes_class import (
    volume_attributes_class_faults,
    volume_attributes_class_update_faults,
)


class VolumeAttributesClassStrategy(Strategy):
    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return volume_attributes_class_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a change, then as a new class."""
        faults = self.meta_update_faults(obj, old)
        faults += volume_attributes_class_update_faults(obj, old)
        faults += self.meta_faults(obj)
        return faults + volume_attributes_class_faults(obj)
