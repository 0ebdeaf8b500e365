"""DeviceClass (resource.k8s.io/v1)."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.api.resources import is_extended_resource
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.devices import CONFIGS_COUNT_MAX, validate_configuration, validate_each, validate_selectors
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import NAME_AND_AGE
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.apiserver.validation.names import long_name_errors


def validate_device_class(spec: Document, old: Document | None, path: str) -> list[FieldError]:
    errors = validate_selectors(spec.get("selectors") or (), f"{path}.selectors")
    configs = spec.get("config") or ()
    is_stored = old is not None and (old.get("config") or ()) == configs
    errors += validate_each(
        configs,
        CONFIGS_COUNT_MAX,
        lambda config, here: validate_configuration(config, here, is_stored),
        f"{path}.config",
    )
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        errors.append(invalid(f"{path}.extendedResourceName", name, "must be a valid extended resource name"))
    return errors


class DeviceClassStrategy(Strategy):
    counts_changes_of_meaning = True
    is_costly = True
    table = NAME_AND_AGE

    def name_errors(self, name: str, is_prefix: bool) -> Sequence[str]:
        return long_name_errors(name, is_prefix)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_device_class(obj["spec"], None, "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta(obj)
        errors += self.validate_meta_update(obj, old)
        return errors + validate_device_class(obj["spec"], old["spec"], "spec")


STRATEGY = DeviceClassStrategy
