"""Claims of devices.

1. A report on a device that was taken away goes with it.
2. What needs a look-up (may they have access as administrators, may they allocate) is what `access.device_guard` found.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.devices import default_resource_claim
from mooring.apiserver.kinds.volume_attachment import keep_metadata
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault, invalid
from mooring.apiserver.validation.metadata import IMMUTABLE
from mooring.apiserver.validation.resource_claim import claim_spec_faults
from mooring.apiserver.validation.resource_claim_status import allocated_devices, claim_status_faults, device_key
from mooring.apiserver.validation.values import internal_value, means_the_same


class ResourceClaimStrategy(Strategy):
    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": ResourceClaimStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_resource_claim(obj)

    def validate(self, obj: Document, call: Call) -> list[Fault]:
        return call.prior_faults + super().validate(obj, call)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return claim_spec_faults(obj["spec"], "spec")

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_faults(obj)
        faults += self.meta_update_faults(obj, old)
        if not means_the_same(obj["spec"], old["spec"], "resource", "ResourceClaimSpec"):
            faults.append(invalid("spec", internal_value(obj["spec"], "ResourceClaimSpec", "resource"), IMMUTABLE))
        return faults


class ResourceClaimStatusStrategy(StatusStrategy):
    """How the scheduler allocates and reserves, and drivers report."""

    reset_fields = (("metadata",), ("spec",))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        keep_metadata(obj, old)
        drop_reports_on_lost_devices(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return call.prior_faults + super().validate_update(obj, old, call)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return claim_status_faults(obj, old)


def drop_reports_on_lost_devices(obj: Document, old: Document) -> None:
    status = obj.get("status") or {}
    if not status.get("devices"):
        return
    lost = allocated_devices(old.get("status") or {}) - allocated_devices(status)
    kept = [device for device in status["devices"] if device_key(device) not in lost]
    if kept:
        status["devices"] = kept
    else:
        del status["devices"]
