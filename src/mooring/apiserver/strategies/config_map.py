"""ConfigMaps: texts and bytes by key, which can be frozen once and for all."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.config_map import config_map_faults, immutable_data_faults
from mooring.apiserver.validation.fields import Fault


class ConfigMapStrategy(Strategy):
    """Writing a ConfigMap."""

    shares_parts = True

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return config_map_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_update_faults(obj, old)
        faults += immutable_data_faults(obj, old, "data", "binaryData")
        return faults + self.validate(obj, call)
