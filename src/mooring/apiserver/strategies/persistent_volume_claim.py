"""Claims: somebody wants a volume, and perhaps something in it from the beginning.

1. What shall be in the volume is said in two fields, of which the newer can say more. Whoever fills one of them gets
   the other filled too. In the older one nothing is accepted but a claim or a snapshot, and silently.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.api.field_errors import quoted
from mooring.api.quantity import quantity_milli
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.persistent_volume_claim import default_claim
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.persistent_volume_claim import (
    STORAGE_CLASS_ANNOTATION,
    claim_spec_faults,
    claim_status_faults,
    claim_update_faults,
    tolerance_for,
)

_KNOWN_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


class PersistentVolumeClaimStrategy(Strategy):
    """Writing a claim."""

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": PersistentVolumeClaimStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_claim(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"phase": "Pending"}
        settle_data_sources(obj["spec"], {})

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return claim_spec_faults(obj["spec"], "spec")

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        settle_data_sources(obj["spec"], old["spec"])

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        old_spec = dict(old["spec"])
        _mirror_data_sources(old_spec)
        old = {**old, "spec": old_spec}
        faults = self.meta_update_faults(obj, old)
        faults += self.meta_faults(obj)
        faults += claim_spec_faults(obj["spec"], "spec", tolerance_for(old))
        return faults + claim_update_faults(obj, old)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        warnings = []
        if STORAGE_CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {}):
            path = f"metadata.annotations[{STORAGE_CLASS_ANNOTATION}]"
            warnings.append(f'{path}: deprecated since v1.8; use "storageClassName" attribute instead')
        return warnings + claim_spec_warnings(obj["spec"], "spec")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return self.warnings_on_create(obj, call)


class PersistentVolumeClaimStatusStrategy(StatusStrategy):
    """Writing how far a claim has come."""

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return claim_status_faults(obj)


def claim_spec_warnings(spec: Document, path: str) -> list[str]:
    """Also for the templates of claims in other kinds."""
    warnings = []
    for field in ("requests", "limits"):
        size = ((spec.get("resources") or {}).get(field) or {}).get("storage")
        if size is not None and quantity_milli(size) % 1000:
            here = f"{path}.resources.{field}[storage]"
            warnings.append(f"{here}: fractional byte value {quoted(size)} is invalid, must be an integer")
    return warnings


def settle_data_sources(spec: Document, old_spec: Document) -> None:
    """Drop what cannot be a source, then make the two fields agree."""
    drop_disabled_claim_fields(spec, old_spec)
    has_old = "dataSource" in old_spec or "dataSourceRef" in old_spec
    if not has_old and "dataSourceRef" not in spec and "dataSource" in spec:
        source = spec["dataSource"]
        if (source.get("apiGroup") or "", source.get("kind", "")) not in _KNOWN_SOURCES:
            del spec["dataSource"]
    _mirror_data_sources(spec)


def drop_disabled_claim_fields(spec: Document, old_spec: Document) -> None:
    """A source in another namespace is a feature that is off: without a word, it is no source. Also for the templates
    of claims in other kinds."""
    if (spec.get("dataSourceRef") or {}).get("namespace") and "dataSourceRef" not in old_spec:
        del spec["dataSourceRef"]


def _mirror_data_sources(spec: Document) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _reference(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _reference(reference)


def _reference(source: Document) -> Document:
    return {"apiGroup": source.get("apiGroup"), "kind": source.get("kind", ""), "name": source.get("name", "")}
