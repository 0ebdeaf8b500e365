"""Endpoints: the addresses behind a service, as they were written down before there were slices."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.endpoints import default_endpoints
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.addresses import ip_warnings
from mooring.apiserver.validation.endpoints import subsets_faults
from mooring.apiserver.validation.fields import Fault

MANAGED_BY_LABEL = "endpoints.kubernetes.io/managed-by"
CONTROLLER_NAME = "endpoint-controller"


class EndpointsStrategy(Strategy):
    """Writing Endpoints."""

    allows_create_on_update = True

    def default(self, obj: Document) -> None:
        default_endpoints(obj)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return subsets_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = self.meta_update_faults(obj, old)
        faults += self.meta_faults(obj)
        # What is as it was is not judged again: an older server may have let it pass.
        if (obj.get("subsets") or []) != (old.get("subsets") or []):
            faults += subsets_faults(obj)
        return faults

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _warnings(obj)


def _warnings(endpoints: Document) -> list[str]:
    if (endpoints["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL) == CONTROLLER_NAME:
        return []
    return [
        text
        for index, subset in enumerate(endpoints.get("subsets") or ())
        for field in ("addresses", "notReadyAddresses")
        for position, address in enumerate(subset.get(field) or ())
        for text in ip_warnings(address["ip"], f"subsets[{index}].{field}[{position}].ip")
    ]
