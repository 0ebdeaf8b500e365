"""Resources behind which a device class stands, for the plugins that count resources.

Comes in   names of resources
Goes out   whether devices stand behind one; how many a row has and how many are in use, as if it were any resource

A node that offers none of a resource itself may have devices for it. Then it is no matter of NodeResourcesFit whether
enough are free, and scores count the devices.

 1. What scores read here changes with every allocation anywhere, so they are kept only until the next one (`epoch`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mooring.api.resource_names import is_device_backed_resource
from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.cache.arrays import Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.ledger import DeviceLedger
from mooring.scheduler.plugins.allocation import Level


class DeviceLevels:
    """Devices as a resource."""

    def __init__(self, columns: Columns, scored: Iterable[str]) -> None:
        self._columns = columns
        self._ledger = columns.shared(DeviceLedger)
        self._slices = columns.objects.of(ResourceSlice)
        self._scored = tuple(name for name in scored if is_device_backed_resource(name))

    def epoch(self) -> object:
        """Changes with what filters and scores read of devices."""
        by_resource = self._ledger.by_resource
        if not self._scored or not any(self.stand_behind(name) for name in self._scored):
            return by_resource.revision
        return by_resource.revision, self._ledger.usage.revision, self._slices.version

    def stand_behind(self, name: str) -> bool:
        return self._ledger.by_resource.get(name) is not None

    def backed_slots(self) -> frozenset[int]:
        """The slots of scored resources that devices stand behind."""
        return frozenset(self._columns.resources.slot(name) for name in self._scored if self.stand_behind(name))

    def level(self, slot: int, added: int, rows: Rows, weight: int) -> Level:
        """One resource on many rows: devices where a row offers none of it otherwise."""
        resources = self._columns.resources
        offered, used = resources.allocatable[slot, rows], resources.used[slot, rows]
        device_class = self._ledger.by_resource.get(resources.names[slot])
        assert device_class is not None, f"no device stands behind {resources.names[slot]}"
        totals = self._ledger.totals(device_class)
        are_devices = (offered == 0) & (totals.devices[rows] > 0)
        offered = np.where(are_devices, totals.devices[rows], offered)
        used = np.where(are_devices, totals.in_use[rows], used)
        return Level(used, added, offered, weight, 0, int(offered.max(initial=0)))
