"""A reference implementation of the allocator: every combination in order, without caches and without pruning.

The allocator must find the same devices, and fail in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mooring.scheduler.devices.claims import AllocatedState, counters_left
from mooring.scheduler.devices.pools import PooledDevice, PoolView, consumption, fits
from mooring.scheduler.devices.requests import (
    DEVICES_PER_CLAIM_MAX,
    AllocationRequest,
    DeviceAllocationError,
    RequestAlternative,
    constraint_of,
    is_selected,
)

TOO_MANY = "too many"


class Pick(NamedTuple):
    request: RequestAlternative
    device: PooledDevice
    pool: PoolView


Answer = bool | str
Goal = Callable[[list[Pick]], Answer]


class PlainSearch:
    """Judges a list of picks as a whole, each time anew."""

    def __init__(self, pools: Sequence[PoolView], allocated: AllocatedState, wanted: AllocationRequest) -> None:
        self.allocated = allocated
        self.wanted = wanted
        self.spots = [(device, pool, flag) for pool in pools for device, flag in zip(pool.devices, pool.matching)]
        self.pools = pools
        self.solution: list[Pick] = []

    def run(self) -> list[tuple[str, str]] | None:
        """(request, device) in order, or None."""
        for claim in self.wanted.claims:
            least = sum(min(self.size(alternative) for alternative in requests) for requests in claim.requests)
            if least > DEVICES_PER_CLAIM_MAX:
                raise DeviceAllocationError("too many")
        if self.claim(0, []) is True:
            return [(pick.request.full_name, pick.device.id[2]) for pick in self.solution]
        return None

    def size(self, request: RequestAlternative) -> int:
        return len(self.every(request)) if request.is_all else request.count

    def every(self, request: RequestAlternative) -> list[tuple[PooledDevice, PoolView]]:
        for pool in self.pools:
            if pool.is_incomplete or pool.is_invalid:
                raise DeviceAllocationError("asks for all devices")
        return [
            (device, pool)
            for device, pool, is_matching in self.spots
            if is_selected(request, device.kind) and is_matching and self.has_room(request, device, [])
        ]

    def claim(self, index: int, picks: list[Pick]) -> Answer:
        if index == len(self.wanted.claims):
            self.solution = picks
            return True
        answer = self.request(index, 0, picks)
        return answer

    def request(self, index: int, place: int, picks: list[Pick]) -> Answer:
        claim = self.wanted.claims[index]
        if place == len(claim.requests):
            answer = self.claim(index + 1, picks)
            return False if answer == TOO_MANY else answer
        outcomes = []
        for alternative in claim.requests[place]:
            outcomes.append(self.devices(index, place, alternative, 0, 0, picks))
            if outcomes[-1] is True or not claim.is_prioritised[place]:
                return outcomes[-1]
        return TOO_MANY if all(answer == TOO_MANY for answer in outcomes) else False

    def devices(
        self, index: int, place: int, request: RequestAlternative, count: int, start: int, picks: list[Pick]
    ) -> Answer:
        wanted = self.size(request)
        if request.is_all and wanted == 0:
            return False
        if count >= wanted:
            return self.request(index, place + 1, picks)
        if sum(pick.request.claim == index for pick in picks) + wanted - count > DEVICES_PER_CLAIM_MAX:
            return TOO_MANY
        if request.is_all:
            device, pool = self.every(request)[count]
            if not self.usable(request, device, pool, picks, demanded=True):
                return False
            return self.devices(index, place, request, count + 1, 0, [*picks, Pick(request, device, pool)])
        for number in range(start, len(self.spots)):
            device, pool, is_matching = self.spots[number]
            if self.in_use(request, device, picks):
                continue
            if not is_selected(request, device.kind) or not is_matching:
                continue
            if not self.usable(request, device, pool, picks, demanded=False):
                continue
            more = [*picks, Pick(request, device, pool)]
            answer = self.devices(index, place, request, count + 1, number + 1, more)
            if answer is not False:
                return answer
        return False

    def in_use(self, request: RequestAlternative, device: PooledDevice, picks: list[Pick]) -> bool:
        exclusive = [pick for pick in picks if pick.device is device and not device.kind.allows_multiple]
        if request.admin_access:
            return any(pick.request.claim == request.claim for pick in exclusive)
        return bool(exclusive) or self.allocated.is_allocated(device.id)

    def has_room(self, request: RequestAlternative, device: PooledDevice, picks: list[Pick]) -> bool:
        consumed = consumption(device.kind.capacities, request.capacity)
        others = [
            {name: amount.amount_nano for name, amount in (share or {}).items()}
            for pick in picks
            if pick.device is device and device.kind.allows_multiple
            for share in [consumption(device.kind.capacities, pick.request.capacity)]
        ]
        return consumed is not None and fits(
            device.kind.capacities, consumed, self.allocated.consumed.get(device.id, {}), *others
        )

    def usable(
        self, request: RequestAlternative, device: PooledDevice, pool: PoolView, picks: list[Pick], *, demanded: bool
    ) -> bool:
        if self.in_use(request, device, picks) or not self.has_counters(device, pool, picks):
            return False
        if not request.tolerates(device.kind):
            return False
        constraints = [constraint_of(constraint) for constraint in self.wanted.claims[request.claim].constraints]
        for pick in picks:
            if pick.request.claim == request.claim:
                for constraint in constraints:
                    constraint.add(pick.request, pick.device.kind)
        if not all(constraint.add(request, device.kind) for constraint in constraints):
            if demanded:
                raise DeviceAllocationError("a constraint would not be satisfied")
            return False
        return self.has_room(request, device, picks)

    def has_counters(self, device: PooledDevice, pool: PoolView, picks: list[Pick]) -> bool:
        shares = [pick for pick in picks if pick.device is device]
        if not device.kind.counters or (
            device.kind.allows_multiple and (shares or device.id in self.allocated.consumed)
        ):
            return True
        left = counters_left(pool, self.allocated)
        counted: list[PooledDevice] = []
        for pick in picks:
            is_first = pick.device not in counted and pick.device.id not in self.allocated.consumed
            if pick.pool is pool and (not pick.device.kind.allows_multiple or is_first):
                counted.append(pick.device)
        for counted_device in (*counted, device):
            for counter_set, name, amount_nano in counted_device.kind.counters:
                left[counter_set, name] -= amount_nano
        return all(amount >= 0 for amount in left.values())
