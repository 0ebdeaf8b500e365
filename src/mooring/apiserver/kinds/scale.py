"""The Scale subresource (autoscaling/v1).

1. A write of a Scale changes `spec.replicas` of the object, and uses the resourceVersion as a precondition.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import REPLICATION_CONTROLLER, Kind
from mooring.apiserver.apply.update import SCALE_VERSION
from mooring.apiserver.tables import AGE, NAME, Cell, KindTable, age, bare_selector_text, integer
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.validation.metadata import name_is_dns_subdomain, validate_object_meta
from mooring.apiserver.validation.schema_rules import struct_rules

_SHARED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def validate_scale(scale: Document) -> list[FieldError]:
    errors = validate_object_meta(scale["metadata"], True, name_is_dns_subdomain, "metadata")
    return errors + struct_rules("autoscaling", "ScaleSpec").validate(scale.get("spec") or {}, "spec")


def _scale_cells(obj: Document, now_s: float) -> list[Cell]:
    spec, status = (obj.get(part) or {} for part in ("spec", "status"))
    return [obj["metadata"]["name"], spec.get("replicas", 0), status.get("replicas", 0), age(obj, now_s)]


SCALE_TABLE = KindTable(
    (
        {**NAME, "format": ""},
        integer("Desired", "How many are wanted."),
        integer("Available", "How many there are."),
        AGE,
    ),
    _scale_cells,
)
"""The table of Scales of all kinds."""


def scale_of(kind: Kind, obj: Document) -> Document:
    """The scale of an object."""
    spec = obj["spec"]
    actual = (obj.get("status") or {}).get("replicas", 0)
    return scale_document(obj, spec.get("replicas", 0), actual, _selector_text(kind, spec))


def scale_document(obj: Document, replicas: int, actual_replicas: int, selector: str) -> Document:
    """The Scale of an object with these replicas."""
    metadata = obj["metadata"]
    status: Document = {"replicas": actual_replicas}
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {name: metadata[name] for name in _SHARED if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scaled(obj: Document, scale: Document) -> Document:
    """A copy of the object with the replicas and the resourceVersion of a Scale."""
    metadata = dict(obj["metadata"])
    revision = scale["metadata"].get("resourceVersion")
    if revision:
        metadata["resourceVersion"] = revision
    else:
        metadata.pop("resourceVersion", None)
    return {
        **obj,
        "metadata": metadata,
        "spec": {**obj["spec"], "replicas": (scale.get("spec") or {}).get("replicas", 0)},
    }


def _selector_text(kind: Kind, spec: Document) -> str:
    """The selector as clients may send it in a query: by key, plain labels before expressions about the same key."""
    selector = spec.get("selector") or {}
    if kind is REPLICATION_CONTROLLER:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return bare_selector_text(selector)
