"""Totals: how many devices of a class a node sees, and how many of them are in use.

Comes in   a class that stands behind an extended resource
Goes out   for each row both numbers, to the plugins that score by how full nodes are

 1. As in kube-scheduler v1.36, every slice counts here, also of an old generation or an incomplete pool; a slice that
    selects nodes in no way at all counts for all of them; and what several claims may share counts as one device.
 2. An expression that fails makes both numbers 0 where the device is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mooring.api.errors import NodeSelectorError
from mooring.api.nodeselector import compile_strict
from mooring.api.views.devices import DeviceClass
from mooring.api.views.selectors import NodeSelector
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.inventory import Inventory
from mooring.scheduler.devices.pools import PooledDevice, PooledSlice
from mooring.scheduler.devices.requests import SearchError
from mooring.scheduler.devices.selection import counts_for
from mooring.scheduler.devices.usage import Usage


class Totals(NamedTuple):
    """Per row."""

    devices: Int64s
    in_use: Int64s


def totals_of(device_class: DeviceClass, columns: Columns, inventory: Inventory, usage: Usage) -> Totals:
    devices = np.zeros(columns.height, dtype=np.int64)
    in_use = np.zeros(columns.height, dtype=np.int64)
    failed = np.zeros(columns.height, dtype=np.bool_)
    for each in inventory.slices():
        for device, rows in _seen(each, columns, failed):
            try:
                is_one = counts_for(device_class, device.kind)
            except SearchError:
                failed[rows] = True
                continue
            if is_one:
                devices[rows] += 1
                if usage.is_used(device.id):
                    in_use[rows] += 1
    return Totals(np.where(failed, 0, devices), np.where(failed, 0, in_use))


def _seen(each: PooledSlice, columns: Columns, failed: Bools) -> Iterator[tuple[PooledDevice, Int64s | Bools]]:
    """The devices of a slice, each with the rows that see it."""
    spec = each.view.spec
    if not each.selects_per_device:
        everywhere = bool(spec.all_nodes) or not (spec.node_name or spec.node_selector is not None)
        rows = _rows(columns, spec.node_name, everywhere, spec.node_selector, failed)
        yield from ((device, rows) for device in each.devices)
        return
    for device in each.devices:
        view = device.view
        yield device, _rows(columns, view.node_name, bool(view.all_nodes), view.node_selector, failed)


def _rows(
    columns: Columns, node_name: str | None, everywhere: bool, selector: NodeSelector | None, failed: Bools
) -> Int64s | Bools:
    if everywhere:
        return np.ones(columns.height, dtype=np.bool_)
    if node_name:
        return columns.rows_named((node_name,))
    if selector is not None:
        try:
            return columns.node_selection.any_term(compile_strict(selector), slice(0, columns.height))
        except NodeSelectorError:
            failed[:] = True
    return np.zeros(0, dtype=np.int64)
