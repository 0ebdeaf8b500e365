"""Columns with nodes and devices, in one line."""

from __future__ import annotations

from mooring.api.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.scheduler.cache.columns import Columns
from tests.builders import node


def columns_of(*views: ResourceSlice | DeviceClass | ResourceClaim, zones: str = "aab") -> Columns:
    """Nodes n1, n2, … in these zones, and objects."""
    columns = Columns()
    for number, zone in enumerate(zones, start=1):
        columns.put_node(node(f"n{number}", zone=zone))
    for view in views:
        columns.objects.of(type(view)).put(view)
    return columns
