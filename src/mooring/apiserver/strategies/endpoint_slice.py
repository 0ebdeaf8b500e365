"""Endpoint slices.

1. `deprecatedTopology` cannot be written any more; what is there stays until the endpoints change.
2. Everything but the metadata counts as a change of what is wanted, and so do the labels.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.small_kinds import default_endpoint_slice
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.addresses import ip_warnings
from mooring.apiserver.validation.endpoint_slice import FQDN, endpoint_slice_faults, endpoint_slice_update_faults
from mooring.apiserver.validation.fields import Fault

_HOSTNAME = "kubernetes.io/hostname"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(Strategy):
    def default(self, obj: Document) -> None:
        default_endpoint_slice(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        super().prepare_for_create(obj, call)
        _drop_topology(obj, ())

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        super().prepare_for_update(obj, old, call)
        if (obj.get("endpoints") or []) != (old.get("endpoints") or []):
            known = [
                (endpoint.get("deprecatedTopology") or {}).get(_HOSTNAME, "") for endpoint in old.get("endpoints") or ()
            ]
            _drop_topology(obj, [name for name in known if name])

    def count_generation(self, obj: Document, old: Document) -> None:
        metadata, old_metadata = obj["metadata"], old["metadata"]
        is_same = all(
            (obj.get(field) or None) == (old.get(field) or None) for field in ("addressType", "endpoints", "ports")
        )
        if not is_same or (metadata.get("labels") or {}) != (old_metadata.get("labels") or {}):
            metadata["generation"] = old_metadata.get("generation", 0) + 1

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return endpoint_slice_faults(obj, None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new slice: that its metadata may change so is left to the registry."""
        faults = self.meta_faults(obj)
        return faults + endpoint_slice_update_faults(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        warnings = []
        if obj.get("addressType") == FQDN:
            warnings.append("spec.addressType: FQDN endpoints are deprecated")
        return warnings + _address_warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return _address_warnings(obj)


def _drop_topology(obj: Document, known_nodes: list[str] | tuple[str, ...]) -> None:
    for endpoint in obj.get("endpoints") or ():
        node = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOSTNAME)
        if node in known_nodes and "nodeName" not in endpoint:
            endpoint["nodeName"] = node


def _address_warnings(obj: Document) -> list[str]:
    if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
        return []
    return [
        text
        for index, endpoint in enumerate(obj.get("endpoints") or ())
        for number, address in enumerate(endpoint.get("addresses") or ())
        for text in ip_warnings(address, f"endpoints[{index}].addresses[{number}]")
    ]
