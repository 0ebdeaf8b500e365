"""From client-side to server-side apply: the annotation that kubectl leaves behind.

Comes in   objects that were applied by clients, whose configuration stands in an annotation
Goes out   which conflicts are none, because the client applied the field himself; and the annotation, kept up to date

 1. This is for the manager `kubectl` only. Whoever chooses another name opts out.
"""

from __future__ import annotations

import json
from typing import Any

from mooring.api.document import Document
from mooring.apiserver.apply.checking import misfits
from mooring.apiserver.apply.field_set import FieldSet, difference
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.typed import claimed_fields, compare
from mooring.apiserver.validation.fields import go_json

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
ANNOTATIONS_BYTES_MAX = 256 * 1024


def applied_by_client(shape: Shape, api_version: str, live: Document) -> FieldSet | None:
    """The fields that the client applied and nobody changed since; None if it left no configuration."""
    text = _annotation(live)
    if not text:
        return None
    try:
        last = json.loads(text)
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return None
    if misfits(shape.root, last) or misfits(shape.root, live):
        return None
    fields = claimed_fields(shape.root, last)
    for changed in compare(shape.root, last, live, is_strict=shape.may_change):
        fields = difference(fields, changed)
    return fields


def renew_annotation(document: Document, applied: Document) -> None:
    """Let the annotation say what was applied now, if there is one."""
    if not _annotation(document):
        return
    annotations = {**document["metadata"]["annotations"], ANNOTATION: _encoded(applied)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > ANNOTATIONS_BYTES_MAX:
        del annotations[ANNOTATION]
    document["metadata"] = {**document["metadata"], "annotations": annotations}


def _annotation(document: Document) -> str:
    text: str = (document["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    return text


def _encoded(applied: Document) -> str:
    metadata: Document = applied.get("metadata") or {}
    if ANNOTATION in (metadata.get("annotations") or {}):
        annotations = {name: value for name, value in metadata["annotations"].items() if name != ANNOTATION}
        applied = {**applied, "metadata": {**metadata, "annotations": annotations}}
    return go_json(_sorted(applied)) + "\n"


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
