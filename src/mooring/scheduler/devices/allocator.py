"""The search: the first way to satisfy all requests of a pod with the devices that one node sees.

Comes in   the pools of a row in order, what is in use, what is wanted
Goes out   the devices for each request (`Allocation`), None if there is no way, or a `AllocationError`

Claims, requests and devices are tried in order, and the first complete solution is the answer: which devices a pod gets
is the same as in kube-scheduler v1.36, and so is what fails on the way.

 1. Devices for one request are taken in ascending order: other orders would be the same set again.
 2. Selectors are evaluated when the search comes to a device, never before: an expression that fails on a device
    which nobody needed fails nobody.
 3. A search that takes too long is given up (`deadline`).
 4. Steps run on a stack of their own: a pod may want more devices than Python nests calls.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from enum import Enum
from typing import NamedTuple

from mooring.api.quantity import Quantity
from mooring.kit.clock import Clock
from mooring.scheduler.devices.claims import NOTHING, AllocatedState, counters_left
from mooring.scheduler.devices.pools import DeviceId, DeviceKind, PooledDevice, PoolView, consumption, fits
from mooring.scheduler.devices.requests import (
    ALTERNATIVES_MAX,
    DEVICES_PER_CLAIM_MAX,
    AllocationError,
    AllocationRequest,
    Constraint,
    Request,
    RequestedClaim,
    constraint_of,
    is_selected,
)

STEPS_MAX = 2_000_000
"""About as many as kube-scheduler's ten seconds are for Python: where no clock runs, this is what ends a search."""


class AllocationTimeout(Exception):
    """The search took too long: nobody knows whether there is a solution."""


class Deadline:
    """When a search must end."""

    __slots__ = ("_clock", "_end_s")

    def __init__(self, clock: Clock | None, timeout_s: float) -> None:
        self._clock = clock if timeout_s > 0 else None
        self._end_s = clock.now_s() + timeout_s if clock is not None else 0.0

    def check(self, step: int) -> None:
        if step > STEPS_MAX or (self._clock is not None and self._clock.now_s() > self._end_s):
            raise AllocationTimeout


STEPS_PER_LOOK = 256
"""So many steps from one look at the clock to the next."""


class DeviceResult(NamedTuple):
    """A device for a request, and what the request consumes of it if others may have a share, too."""

    request: Request
    device: PooledDevice
    share: dict[str, Quantity] | None


class Allocation(NamedTuple):
    """A solution: for each claim the devices in order, and for each of its requests which alternative was taken."""

    claims: tuple[tuple[DeviceResult, ...], ...]
    alternatives: tuple[tuple[int, ...], ...]

    def score(self, wanted: AllocationRequest) -> int:
        """More for alternatives that come earlier."""
        return sum(
            ALTERNATIVES_MAX - number
            for claim, numbers in zip(wanted.claims, self.alternatives, strict=True)
            for is_prioritised, number in zip(claim.is_prioritised, numbers, strict=True)
            if is_prioritised
        )


class _End(Enum):
    """How a branch of the search ended."""

    FOUND = 1
    NOTHING = 2
    TOO_MANY = 3
    """A claim would have more devices than it may: alternatives that need fewer may do."""


_Branch = Generator["_Branch", _End, _End]


class _Spot(NamedTuple):
    """A device in a pool that gives devices away."""

    device: PooledDevice
    pool: PoolView
    is_reached: bool


class Allocator:
    """One search on one row."""

    def __init__(
        self, pools: Sequence[PoolView], allocated: AllocatedState, wanted: AllocationRequest, deadline: Deadline
    ) -> None:
        self._pools = pools
        self._allocated = allocated
        self._wanted = wanted
        self._deadline = deadline
        self._steps = 0
        self._spots = [
            _Spot(device, pool, is_reached)
            for pool in pools
            for device, is_reached in zip(pool.devices, pool.reached, strict=True)
        ]
        self._all: dict[Request, list[_Spot]] = {}
        self._left: dict[Request, list[int]] = {}
        self._constraints: list[list[Constraint]] = []
        self._holders: dict[DeviceId, list[int]] = {}
        """Devices that this search has taken, and for which claims."""
        self._shares: dict[DeviceId, dict[str, int]] = {}
        self._share_counts: dict[DeviceId, int] = {}
        self._counters_left: dict[PoolView, dict[tuple[str, str], int]] = {}
        self._taken: list[list[DeviceResult]] = [[] for _ in wanted.claims]
        self._undo: list[tuple[_Spot, bool]] = []
        """For all devices that were taken, in order: where they are, and whether their counters were counted."""
        self._alternatives = [[0] * len(claim.requests) for claim in wanted.claims]

    def run(self) -> Allocation | None:
        """The first solution. Raises `AllocationError` and `AllocationTimeout`."""
        for index, claim in enumerate(self._wanted.claims):
            self._check_claim(index, claim)
        end = self._take_first() if self._is_simple() else self._walk()
        if end is not _End.FOUND:
            return None
        return Allocation(tuple(map(tuple, self._taken)), tuple(map(tuple, self._alternatives)))

    # Before the search

    def _check_claim(self, index: int, claim: RequestedClaim) -> None:
        """Looks for what is wrong with a claim, and for how many devices it wants."""
        least = 0
        for alternatives in claim.requests:
            least += min(self._check_request(request) for request in alternatives)
        if least > DEVICES_PER_CLAIM_MAX:
            text = f": number of requested devices {least} exceeds the claim limit of {DEVICES_PER_CLAIM_MAX}"
            raise AllocationError(text, index)
        if claim.fault is not None:
            raise AllocationError(claim.fault, index)
        self._constraints.append([constraint_of(each) for each in claim.constraints])

    def _check_request(self, request: Request) -> int:
        if request.fault is not None:
            raise AllocationError(request.fault, request.claim)
        if not request.is_all:
            return request.count
        spots: list[_Spot] = []
        for pool in self._pools:
            for flag, state in ((pool.is_incomplete, "being updated"), (pool.is_invalid, "invalid")):
                if flag:
                    driver, name = pool.id
                    pool_text = f"resource pool {driver}/{name} is currently {state}"
                    raise AllocationError(
                        f", request {request.name}: asks for all devices, but {pool_text}", request.claim
                    )
            for device, is_reached in zip(pool.devices, pool.reached, strict=True):
                spot = _Spot(device, pool, is_reached)
                if is_selected(request, device.kind) and is_reached and self._has_room(request, device):
                    spots.append(spot)
        self._all[request] = spots
        return len(spots)

    # One request for some devices, and nothing that ties them together

    def _is_simple(self) -> bool:
        return self._wanted.is_plain and not any(pool.counter_sets for pool in self._pools)

    def _take_first(self) -> _End:
        """As the whole search: if taking the first devices that do is not enough, no other choice is."""
        request = self._wanted.claims[0].requests[0][0]
        wanted, taken = request.count, self._taken[0]
        for spot in self._spots:
            if len(taken) >= wanted:
                break
            if self._may_take(request, spot):
                self._take(request, spot, is_demanded=False)
        return _End.FOUND if len(taken) >= wanted else _End.NOTHING

    # The search

    def _walk(self) -> _End:
        stack: list[_Branch] = [self._from_claim(0)]
        end: _End | None = None
        while stack:
            try:
                branch = stack[-1].send(end) if end is not None else next(stack[-1])
            except StopIteration as stop:
                stack.pop()
                end = stop.value
            else:
                stack.append(branch)
                end = None
        assert end is not None, "a search ends"
        return end

    def _from_claim(self, claim: int) -> _Branch:
        if claim == len(self._wanted.claims):
            return _End.FOUND
        return (yield self._from_request(claim, 0))

    def _from_request(self, claim: int, place: int) -> _Branch:
        wanted = self._wanted.claims[claim]
        if place == len(wanted.requests):
            end = yield self._from_claim(claim + 1)
            # An earlier claim may leave other devices for alternatives that need fewer of them.
            return _End.NOTHING if end is _End.TOO_MANY else end
        if not wanted.is_prioritised[place]:
            return (yield self._from_device(claim, place, wanted.requests[place][0], 0, 0))
        all_too_many = True
        for number, alternative in enumerate(wanted.requests[place]):
            end = yield self._from_device(claim, place, alternative, 0, 0)
            if end is _End.FOUND:
                self._alternatives[claim][place] = number
                return end
            all_too_many = all_too_many and end is _End.TOO_MANY
        return _End.TOO_MANY if all_too_many else _End.NOTHING

    def _from_device(self, claim: int, place: int, request: Request, count: int, start: int) -> _Branch:
        """With `count` devices taken for a request: the others, from the spot `start` on, and what comes after."""
        self._steps += 1
        if self._steps % STEPS_PER_LOOK == 0:
            self._deadline.check(self._steps)
        wanted = len(self._all[request]) if request.is_all else request.count
        if request.is_all and not wanted:
            return _End.NOTHING
        if count >= wanted:
            return (yield self._from_request(claim, place + 1))
        if len(self._taken[claim]) + wanted - count > DEVICES_PER_CLAIM_MAX:
            return _End.TOO_MANY
        if request.is_all:
            if not self._take(request, self._all[request][count], is_demanded=True):
                return _End.NOTHING
            end = yield self._from_device(claim, place, request, count + 1, 0)
            if end is not _End.FOUND:
                self._give_back(claim)
            return end
        if self._are_too_few(request, start, wanted - count):
            return _End.NOTHING
        for index in range(start, len(self._spots)):
            spot = self._spots[index]
            if not self._may_take(request, spot) or not self._take(request, spot, is_demanded=False):
                continue
            end = yield self._from_device(claim, place, request, count + 1, index + 1)
            if end is _End.FOUND:
                return end
            self._give_back(claim)
            if end is _End.TOO_MANY:
                return end
        return _End.NOTHING

    def _are_too_few(self, request: Request, start: int, needed: int) -> bool:
        """Whether not even taking all that is left would do: then trying all combinations of it is in vain."""
        left = self._left.get(request)
        if left is None:
            left = self._left[request] = self._count_left(request)
        return bool(left) and left[start] < needed

    def _count_left(self, request: Request) -> list[int]:
        """For each spot, how many devices from there on might do; empty if a selector fails, which must be told."""
        left = [0] * (len(self._spots) + 1)
        for index in range(len(self._spots) - 1, -1, -1):
            device, _, is_reached = self._spots[index]
            try:
                might_do = is_reached and is_selected(request, device.kind) and request.tolerates(device.kind)
            except AllocationError:
                return []
            is_free = request.admin_access or not self._allocated.is_allocated(device.id)
            left[index] = left[index + 1] + (1 if might_do and is_free else 0)
        return left

    # One device

    def _may_take(self, request: Request, spot: _Spot) -> bool:
        """What can be said of a device before it is tried, cheapest first."""
        device = spot.device
        if request.admin_access:
            if request.claim in self._holders.get(device.id, ()):
                return False
        elif self._allocated.is_allocated(device.id) or device.id in self._holders:
            return False
        return is_selected(request, device.kind) and spot.is_reached and self._has_room(request, device)

    def _take(self, request: Request, spot: _Spot, *, is_demanded: bool) -> bool:
        """Takes a device, unless something speaks against it."""
        device, kind = spot.device, spot.device.kind
        is_held = device.id in self._holders
        if request.admin_access:
            if not kind.allows_multiple and request.claim in self._holders.get(device.id, ()):
                return False
        elif is_held or self._allocated.is_allocated(device.id):
            return False
        counts = bool(kind.counters) and not (kind.allows_multiple and self._has_shares(device.id))
        if counts and not self._has_counters(spot):
            return False
        if kind.has_taints and not request.tolerates(kind):
            return False
        if not self._joins(request, device, is_demanded):
            return False
        share = None
        if not self._has_room(request, device):
            self._part(request)
            return False
        if kind.allows_multiple:
            share = _portions(request, kind)
            assert share is not None, f"{device.id} has room for a request that it cannot serve"
            self._share(device.id, share, 1)
        else:
            self._holders.setdefault(device.id, []).append(request.claim)
        if counts:
            self._count(spot, 1)
        self._taken[request.claim].append(DeviceResult(request, device, share))
        self._undo.append((spot, counts))
        return True

    def _give_back(self, claim: int) -> None:
        """Gives the device back that was taken last."""
        request, device, share = self._taken[claim].pop()
        spot, counted = self._undo.pop()
        if share is not None:
            self._share(device.id, share, -1)
        else:
            holders = self._holders[device.id]
            holders.remove(request.claim)
            if not holders:
                del self._holders[device.id]
        if counted:
            self._count(spot, -1)
        self._part(request)

    def _joins(self, request: Request, device: PooledDevice, is_demanded: bool) -> bool:
        constraints = self._constraints[request.claim]
        for number, constraint in enumerate(constraints):
            if constraint.add(request, device.kind):
                continue
            for earlier in reversed(constraints[:number]):
                earlier.remove(request)
            if is_demanded:
                what = f"cannot add device {'/'.join(device.id)} because a claim constraint would not be satisfied"
                raise AllocationError(f", request {request.name}: {what}", request.claim)
            return False
        return True

    def _part(self, request: Request) -> None:
        for constraint in reversed(self._constraints[request.claim]):
            constraint.remove(request)

    # Shares of a device

    def _has_room(self, request: Request, device: PooledDevice) -> bool:
        capacities = device.kind.capacities
        if not capacities and not request.capacity:
            return True
        consumed = _portions(request, device.kind)
        if consumed is None:
            return False
        return fits(
            capacities,
            consumed,
            self._allocated.consumed.get(device.id, NOTHING),
            self._shares.get(device.id, NOTHING),
        )

    def _has_shares(self, device: DeviceId) -> bool:
        return device in self._allocated.consumed or device in self._shares

    def _share(self, device: DeviceId, share: dict[str, Quantity], sign: int) -> None:
        amounts = self._shares.setdefault(device, {})
        count = self._share_counts[device] = self._share_counts.get(device, 0) + sign
        for name, amount in share.items():
            amounts[name] = amounts.get(name, 0) + sign * amount.amount_nano
        if not count:
            del self._shares[device], self._share_counts[device]

    # Counters that devices of a pool consume together

    def _has_counters(self, spot: _Spot) -> bool:
        left = self._counters_left.get(spot.pool)
        if left is None:
            left = self._counters_left[spot.pool] = counters_left(spot.pool, self._allocated)
        wanted: dict[tuple[str, str], int] = {}
        for counter_set, name, amount_nano in spot.device.kind.counters:
            wanted[counter_set, name] = wanted.get((counter_set, name), 0) + amount_nano
        # Also counters that the device does not want: one that is overdrawn stops the whole pool.
        return all(amount_nano >= wanted.get(counter, 0) for counter, amount_nano in left.items())

    def _count(self, spot: _Spot, sign: int) -> None:
        left = self._counters_left[spot.pool]
        for counter_set, name, amount_nano in spot.device.kind.counters:
            left[counter_set, name] -= sign * amount_nano


def _portions(request: Request, kind: DeviceKind) -> dict[str, Quantity] | None:
    portions = kind.portions
    if request.portion_key not in portions:
        portions[request.portion_key] = consumption(kind.capacities, request.capacity)
    return portions[request.portion_key]
