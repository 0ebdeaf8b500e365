"""Resource quotas: what a namespace may use, and in the status what it does use."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.api.quantity import quantity_nano
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.pod_containers import round_amounts
from mooring.apiserver.strategy import StatusStrategy, Strategy
from mooring.apiserver.validation.fields import Fault, required
from mooring.apiserver.validation.resource_quota import (
    quota_spec_faults,
    quota_status_faults,
    scopes_update_faults,
)

_LIMITED = ("cpu", "memory", "storage", "ephemeral-storage")


class ResourceQuotaStrategy(Strategy):
    """Writing a quota. Its scopes never change."""

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": ResourceQuotaStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        for part, field in (("spec", "hard"), ("status", "hard"), ("status", "used")):
            amounts = obj[part].get(field)
            if amounts:
                round_amounts(amounts)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return quota_spec_faults(obj["spec"], "spec") + quota_status_faults(obj["status"])

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return quota_spec_faults(obj["spec"], "spec") + scopes_update_faults(obj["spec"], old["spec"])

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        hard = obj["spec"].get("hard") or {}
        return [text for resource in _LIMITED for text in _order_warnings(hard, resource)]


class ResourceQuotaStatusStrategy(StatusStrategy):
    """Writing what is used."""

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = [] if obj["metadata"].get("resourceVersion") else [required("resourceVersion")]
        return faults + quota_status_faults(obj["status"])


def _order_warnings(hard: Document, resource: str) -> list[str]:
    """Requests that may be more than the limits."""
    request, limit = f"requests.{resource}", f"limits.{resource}"
    if request not in hard and resource in ("cpu", "memory"):
        request = resource
    if request not in hard or limit not in hard or quantity_nano(hard[request]) <= quantity_nano(hard[limit]):
        return []
    return [f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"]
