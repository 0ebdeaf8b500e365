"""What is wrong with the dynamic configuration of a node: a feature that is gone, on nodes that still carry it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, forbidden, invalid, required
from mooring.apiserver.validation.names import config_key_faults, dns_label_faults, dns_subdomain_faults
from mooring.apiserver.validation.values import internal_value

_ONE_REFERENCE = "exactly one reference subfield must be non-nil"
_CHECKS: dict[str, Callable[[str], Sequence[str]]] = {
    "namespace": dns_label_faults,
    "name": dns_subdomain_faults,
    "kubeletConfigKey": config_key_faults,
}


def config_source_faults(source: Document, path: str) -> list[Fault]:
    """A source as it is wanted: without the exact object that was found."""
    reference = source.get("configMap")
    if reference is None:
        return [invalid(path, internal_value(source, "NodeConfigSource"), _ONE_REFERENCE)]
    here = f"{path}.configMap"
    faults = [
        forbidden(f"{here}.{field}", f"{field} must not be set in spec")
        for field in ("uid", "resourceVersion")
        if reference.get(field)
    ]
    return faults + _reference_faults(reference, here)


def config_status_faults(status: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for field in ("assigned", "active", "lastKnownGood"):
        if field in status:
            faults += _found_source_faults(status[field], f"{path}.{field}")
    return faults


def _found_source_faults(source: Document, path: str) -> list[Fault]:
    reference = source.get("configMap")
    if reference is None:
        return [invalid(path, internal_value(source, "NodeConfigSource"), _ONE_REFERENCE)]
    here = f"{path}.configMap"
    faults = [required(f"{here}.{field}") for field in ("uid", "resourceVersion") if not reference.get(field)]
    return faults + _reference_faults(reference, here)


def _reference_faults(reference: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    for field, check in _CHECKS.items():
        value = reference.get(field, "")
        if value:
            faults += [invalid(f"{path}.{field}", value, text) for text in check(value)]
        else:
            faults.append(required(f"{path}.{field}"))
    return faults
