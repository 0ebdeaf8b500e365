"""What is wrong with a runtime class.

Comes in   a runtime class, and what it was
Goes out   faults

 1. The overhead is judged like the limits of a container, and its faults say `limits` for that reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, required
from mooring.apiserver.validation.metadata import IMMUTABLE, labels_faults
from mooring.apiserver.validation.names import dns_label_faults
from mooring.apiserver.validation.pod_options import STRICT
from mooring.apiserver.validation.pod_tolerations import tolerations_faults
from mooring.apiserver.validation.resources import resource_requirements_faults
from mooring.apiserver.validation.values import internal_value


def runtime_class_faults(obj: Document) -> list[Fault]:
    handler = obj.get("handler", "")
    if handler:
        faults = [invalid("handler", handler, text) for text in dns_label_faults(handler)]
    else:
        faults = [required("handler")]
    if (overhead := obj.get("overhead")) is not None:
        limits = overhead.get("podFixed")
        faults += resource_requirements_faults({"limits": limits} if limits else {}, "overhead")
    if (scheduling := obj.get("scheduling")) is not None:
        faults += labels_faults(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        faults += _tolerations_faults(scheduling.get("tolerations") or (), "scheduling.tolerations")
    return faults


def runtime_class_update_faults(obj: Document, old: Document) -> list[Fault]:
    if obj.get("handler") == old.get("handler"):
        return []
    return [invalid("handler", obj.get("handler", ""), IMMUTABLE)]


def _tolerations_faults(tolerations: Sequence[Document], path: str) -> list[Fault]:
    faults = tolerations_faults(tolerations, path, STRICT)
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key in seen:
            faults.append(duplicate(f"{path}[{index}]", internal_value(toleration, "Toleration")))
        seen.add(key)
    return faults
