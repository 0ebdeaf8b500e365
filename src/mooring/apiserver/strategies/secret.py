"""Secrets: bytes by key, of a type that never changes."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.secret import default_secret
from mooring.apiserver.strategies.secret_warnings import key_pair_warnings
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.config_map import immutable_data_faults
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.metadata import immutable_faults
from mooring.apiserver.validation.secret import TLS, secret_faults


class SecretStrategy(Strategy):
    """Writing a secret."""

    def default(self, obj: Document) -> None:
        default_secret(obj)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return secret_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_update_faults(obj, old)
        faults += immutable_faults(obj.get("type", ""), old.get("type", ""), "type")
        faults += immutable_data_faults(obj, old, "data")
        return faults + self.validate(obj, call)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return key_pair_warnings(obj.get("data") or {}) if obj.get("type") == TLS else []

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return self.warnings_on_create(obj, call)

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        return {"type": obj.get("type", "")}
