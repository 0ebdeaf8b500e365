"""Whoever uses a version that its definition calls deprecated is warned."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.discovery.order import versions_in_order


def deprecation_warning(spec: Document, entry: Document) -> str:
    """The definition's own words, or Kubernetes' with the best version to use instead."""
    own = entry.get("deprecationWarning")
    if own is not None:
        return str(own)
    group, kind, name = spec["group"], spec["names"]["kind"], entry["name"]
    text = f"{group}/{name} {kind} is deprecated"
    others = [each["name"] for each in spec["versions"] if each.get("served") and not each.get("deprecated")]
    better, *_ = versions_in_order([*others, name])
    return f"{text}; use {group}/{better} {kind}" if better != name else text
