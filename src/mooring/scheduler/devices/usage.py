"""Usage: which devices are taken, and how much is consumed of those that several claims share.

Comes in   allocations, as claims come by them and lose them (`claims`)
Goes out   for a device whether it is taken and what is consumed of it; the pools in which something changed

 1. What adding an allocation adds, removing it takes away: everything is a sum over allocations.
 2. Administrative access takes nothing. A share of a device consumes capacity and leaves the rest to others.
"""

from __future__ import annotations

from collections import Counter

from mooring.api.quantity import quantity_nano
from mooring.api.views.devices import AllocationResult
from mooring.scheduler.devices.pools import DeviceId, PoolId, PoolView

NOTHING: dict[str, int] = {}


class Usage:
    """All devices that are in use."""

    def __init__(self) -> None:
        self._taken: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self.consumed: dict[DeviceId, dict[str, int]] = {}
        """Capacities in billionths of devices of which shares were given away."""
        self.revision = 0
        self.changed_pools: set[PoolId] = set()
        """Where something changed since somebody last emptied this."""

    def is_taken(self, device: DeviceId) -> bool:
        """Whether nobody else can have it."""
        return device in self._taken

    def is_used(self, device: DeviceId) -> bool:
        """Whether anybody has it, or a share of it."""
        return device in self._taken or device in self._shares or device in self.consumed

    def add(self, allocation: AllocationResult) -> None:
        self._count(allocation, 1)

    def remove(self, allocation: AllocationResult) -> None:
        self._count(allocation, -1)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        self.revision += 1
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            self.changed_pools.add(device[:2])
            counts = self._taken if result.share_id is None else self._shares
            counts[device] += sign
            if counts[device] <= 0:
                del counts[device]
            if result.share_id is not None and result.consumed_capacity:
                consumed = self.consumed.setdefault(device, {})
                for name, raw in result.consumed_capacity.items():
                    consumed[name] = consumed.get(name, 0) + sign * quantity_nano(raw)
                if sign < 0 and not any(consumed.values()):
                    del self.consumed[device]


def counters_left(pool: PoolView, usage: Usage) -> dict[tuple[str, str], int]:
    """What the devices in use leave of a pool's counters; less than nothing is possible."""
    left = {
        (counter_set, name): amount_nano
        for counter_set, counters in pool.counter_sets.items()
        for name, amount_nano in counters.items()
    }
    for device in (*pool.devices, *pool.others):
        if device.kind.counters and usage.is_used(device.id):
            for counter_set, name, amount_nano in device.kind.counters:
                left[counter_set, name] -= amount_nano
    return left
