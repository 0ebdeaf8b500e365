"""Defaults of limit ranges: bounds of containers imply defaults for containers.

A missing default limit is the maximum; a missing default request is the default limit, or else the minimum.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.defaults.pod_containers import round_amounts

_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def default_limit_range(limit_range: Document) -> None:
    for item in limit_range["spec"].get("limits") or ():
        if item.get("type") == "Container":
            _default_container_item(item)
        for field in _FIELDS:
            if field in item:
                round_amounts(item[field])


def _default_container_item(item: Document) -> None:
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests
