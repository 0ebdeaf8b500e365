"""The allocator: the first allocation on one node that satisfies all requests of a pod.

Input: the pools of a node in order, the allocated devices, the requests. Output: the devices for each request
(`Allocation`), None if the requests cannot be satisfied, or a `DeviceAllocationError`.

The allocator tries claims, requests and devices in order and returns the first complete solution. So a pod gets the
same devices as from kube-scheduler v1.36, and the same errors occur.

1. Devices for one request are tried in ascending order. Another order would be the same set again.
2. A selector is evaluated when the allocator comes to a device. An expression that fails on a device that no request
   needs has no effect.
3. An allocation that takes too long ends in `AllocationTimeout`. Where the clock does not advance (simulations,
   `mooring explain`), the number of steps ends it.
4. Steps run on an explicit stack, because a pod may request more devices than Python nests calls.

`allocation_of` returns an allocation as it is written to the claim's status: the devices, the configuration for their
drivers, and the nodes where the claim can be used.

5. Configuration of classes comes first, once for each class with the names of its requests; then the configuration of
   the claim for the allocated requests.
6. A claim with a device of one node can be used on that node only. Node selectors of several devices are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mooring.api.nodeselector import NAME_FIELD
from mooring.api.quantity import Quantity
from mooring.api.views.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClassConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaimSpec,
)
from mooring.api.views.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.kit.clock import Clock
from mooring.scheduler.devices.claims import NOTHING, AllocatedState, counters_left
from mooring.scheduler.devices.pools import DeviceId, DeviceKind, PooledDevice, PoolView, consumption, fits
from mooring.scheduler.devices.requests import (
    ALTERNATIVES_MAX,
    DEVICES_PER_CLAIM_MAX,
    AllocationRequest,
    AttributeConstraint,
    DeviceAllocationError,
    RequestAlternative,
    RequestedClaim,
    constraint_of,
    is_selected,
)

STEPS_MAX = 2_000_000
"""Maximum number of steps: about as many as Python runs in kube-scheduler's ten seconds."""
FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


class AllocationTimeout(Exception):
    """The allocation took too long. Whether there is a solution is unknown."""


class Deadline:
    """When an allocation must end."""

    def __init__(self, clock: Clock | None, timeout_s: float) -> None:
        self._clock = clock if timeout_s > 0 else None
        self._end_s = clock.now_s() + timeout_s if clock is not None else 0.0

    def check(self, step: int) -> None:
        if step > STEPS_MAX or (self._clock is not None and self._clock.now_s() > self._end_s):
            raise AllocationTimeout


STEPS_PER_CHECK = 256
"""Number of steps between two checks of the deadline."""


class DeviceResult(NamedTuple):
    """A device for a request, and the capacity that the request consumes of a shared device."""

    request: RequestAlternative
    device: PooledDevice
    share: dict[str, Quantity] | None


class Allocation(NamedTuple):
    """A solution: for each claim its devices in order, and for each of its requests the chosen alternative."""

    claims: tuple[tuple[DeviceResult, ...], ...]
    alternatives: tuple[tuple[int, ...], ...]

    def score(self, request: AllocationRequest) -> int:
        """Higher for alternatives that come earlier."""
        return sum(
            ALTERNATIVES_MAX - number
            for claim, numbers in zip(request.claims, self.alternatives, strict=True)
            for is_prioritised, number in zip(claim.is_prioritised, numbers, strict=True)
            if is_prioritised
        )


class _End(Enum):
    """How a branch of the search ended."""

    FOUND = 1
    NOTHING = 2
    TOO_MANY = 3
    """A claim would exceed the maximum number of devices. Alternatives that need fewer may fit."""


_Branch = Generator["_Branch", _End, _End]


class _Candidate(NamedTuple):
    """A device that may be allocated, with its pool."""

    device: PooledDevice
    pool: PoolView
    is_matching: bool


class Allocator:
    """One allocation on one row."""

    def __init__(
        self, pools: Sequence[PoolView], allocated: AllocatedState, request: AllocationRequest, deadline: Deadline
    ) -> None:
        self._pools = pools
        self._allocated = allocated
        self._request = request
        self._deadline = deadline
        self._steps = 0
        self._candidates = [
            _Candidate(device, pool, is_matching)
            for pool in pools
            for device, is_matching in zip(pool.devices, pool.matching, strict=True)
        ]
        self._all: dict[RequestAlternative, list[_Candidate]] = {}
        self._left: dict[RequestAlternative, list[int]] = {}
        self._constraints: list[list[AttributeConstraint]] = []
        self._holders: dict[DeviceId, list[int]] = {}
        """Devices that are allocated so far, with the indexes of their claims."""
        self._shares: dict[DeviceId, dict[str, int]] = {}
        self._share_counts: dict[DeviceId, int] = {}
        self._counters_left: dict[PoolView, dict[tuple[str, str], int]] = {}
        self._taken: list[list[DeviceResult]] = [[] for _ in request.claims]
        self._undo: list[tuple[_Candidate, bool]] = []
        """The allocated candidates in order, and whether their counters are counted."""
        self._alternatives = [[0] * len(claim.requests) for claim in request.claims]

    def run(self) -> Allocation | None:
        """The first solution. Raises `DeviceAllocationError` and `AllocationTimeout`."""
        for index, claim in enumerate(self._request.claims):
            self._check_claim(index, claim)
        end = self._walk()
        if end is not _End.FOUND:
            return None
        return Allocation(tuple(map(tuple, self._taken)), tuple(map(tuple, self._alternatives)))

    # Checks

    def _check_claim(self, index: int, claim: RequestedClaim) -> None:
        """Raises the error of a claim, if it has one, or if it requests too many devices."""
        least = 0
        for alternatives in claim.requests:
            least += min(self._check_request(request) for request in alternatives)
        if least > DEVICES_PER_CLAIM_MAX:
            text = f": number of requested devices {least} exceeds the claim limit of {DEVICES_PER_CLAIM_MAX}"
            raise DeviceAllocationError(text, index)
        if claim.error is not None:
            raise DeviceAllocationError(claim.error, index)
        self._constraints.append([constraint_of(constraint) for constraint in claim.constraints])

    def _check_request(self, request: RequestAlternative) -> int:
        if request.error is not None:
            raise DeviceAllocationError(request.error, request.claim)
        if not request.is_all:
            return request.count
        candidates: list[_Candidate] = []
        for pool in self._pools:
            for flag, state in ((pool.is_incomplete, "being updated"), (pool.is_invalid, "invalid")):
                if flag:
                    driver, name = pool.id
                    pool_text = f"resource pool {driver}/{name} is currently {state}"
                    raise DeviceAllocationError(
                        f", request {request.name}: asks for all devices, but {pool_text}", request.claim
                    )
            for device, is_matching in zip(pool.devices, pool.matching, strict=True):
                candidate = _Candidate(device, pool, is_matching)
                if is_selected(request, device.kind) and is_matching and self._has_capacity(request, device):
                    candidates.append(candidate)
        self._all[request] = candidates
        return len(candidates)

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
        assert end is not None, "the search has no result"
        return end

    def _from_claim(self, claim: int) -> _Branch:
        if claim == len(self._request.claims):
            return _End.FOUND
        return (yield self._from_request(claim, 0))

    def _from_request(self, claim: int, place: int) -> _Branch:
        requested = self._request.claims[claim]
        if place == len(requested.requests):
            end = yield self._from_claim(claim + 1)
            # With other devices for an earlier claim, alternatives that need fewer may fit.
            return _End.NOTHING if end is _End.TOO_MANY else end
        if not requested.is_prioritised[place]:
            return (yield self._from_device(claim, place, requested.requests[place][0], 0, 0))
        all_too_many = True
        for number, alternative in enumerate(requested.requests[place]):
            end = yield self._from_device(claim, place, alternative, 0, 0)
            if end is _End.FOUND:
                self._alternatives[claim][place] = number
                return end
            all_too_many = all_too_many and end is _End.TOO_MANY
        return _End.TOO_MANY if all_too_many else _End.NOTHING

    def _from_device(self, claim: int, place: int, request: RequestAlternative, count: int, start: int) -> _Branch:
        """Allocates a request's devices after the first `count`, from candidate `start` on, then later requests."""
        self._steps += 1
        if self._steps % STEPS_PER_CHECK == 0:
            self._deadline.check(self._steps)
        needed = len(self._all[request]) if request.is_all else request.count
        if request.is_all and not needed:
            return _End.NOTHING
        if count >= needed:
            return (yield self._from_request(claim, place + 1))
        if len(self._taken[claim]) + needed - count > DEVICES_PER_CLAIM_MAX:
            return _End.TOO_MANY
        if request.is_all:
            if not self._take(request, self._all[request][count], is_required=True):
                return _End.NOTHING
            end = yield self._from_device(claim, place, request, count + 1, 0)
            if end is not _End.FOUND:
                self._release(claim)
            return end
        if self._are_too_few(request, start, needed - count):
            return _End.NOTHING
        for index in range(start, len(self._candidates)):
            candidate = self._candidates[index]
            if not self._may_take(request, candidate) or not self._take(request, candidate, is_required=False):
                continue
            end = yield self._from_device(claim, place, request, count + 1, index + 1)
            if end is _End.FOUND:
                return end
            self._release(claim)
            if end is _End.TOO_MANY:
                return end
        return _End.NOTHING

    def _are_too_few(self, request: RequestAlternative, start: int, needed: int) -> bool:
        """Whether fewer devices are left than needed, so that no combination can satisfy the request."""
        left = self._left.get(request)
        if left is None:
            left = self._left[request] = self._count_left(request)
        return bool(left) and left[start] < needed

    def _count_left(self, request: RequestAlternative) -> list[int]:
        """For each candidate, how many from there on may match; empty if a selector fails, which the search reports.

        Shares of this search do not count: they may be released.
        """
        left = [0] * (len(self._candidates) + 1)
        for index in range(len(self._candidates) - 1, -1, -1):
            device, _, is_matching = self._candidates[index]
            try:
                might_do = is_matching and is_selected(request, device.kind) and request.tolerates(device.kind)
            except DeviceAllocationError:
                return []
            is_free = request.admin_access or not self._allocated.is_allocated(device.id)
            is_free = is_free and self._fits(request, device, NOTHING)
            left[index] = left[index + 1] + (1 if might_do and is_free else 0)
        return left

    # One device

    def _may_take(self, request: RequestAlternative, candidate: _Candidate) -> bool:
        """Whether a device may match, cheapest check first."""
        device = candidate.device
        if request.admin_access:
            if request.claim in self._holders.get(device.id, ()):
                return False
        elif self._allocated.is_allocated(device.id) or device.id in self._holders:
            return False
        return is_selected(request, device.kind) and candidate.is_matching and self._has_capacity(request, device)

    def _take(self, request: RequestAlternative, candidate: _Candidate, *, is_required: bool) -> bool:
        """Allocates a device, if all checks pass."""
        device, kind = candidate.device, candidate.device.kind
        is_held = device.id in self._holders
        if request.admin_access:
            if not kind.allows_multiple and request.claim in self._holders.get(device.id, ()):
                return False
        elif is_held or self._allocated.is_allocated(device.id):
            return False
        counts = bool(kind.counters) and not (kind.allows_multiple and self._has_shares(device.id))
        if counts and not self._has_counters(candidate):
            return False
        if kind.has_taints and not request.tolerates(kind):
            return False
        if not self._add_to_constraints(request, device, is_required):
            return False
        share = None
        if not self._has_capacity(request, device):
            self._remove_from_constraints(request)
            return False
        if kind.allows_multiple:
            share = _portions(request, kind)
            assert share is not None, f"{device.id} fits a request that it cannot serve"
            self._share(device.id, share, 1)
        else:
            self._holders.setdefault(device.id, []).append(request.claim)
        if counts:
            self._count(candidate, 1)
        self._taken[request.claim].append(DeviceResult(request, device, share))
        self._undo.append((candidate, counts))
        return True

    def _release(self, claim: int) -> None:
        """Releases the device that was allocated last."""
        request, device, share = self._taken[claim].pop()
        candidate, counted = self._undo.pop()
        if share is not None:
            self._share(device.id, share, -1)
        else:
            holders = self._holders[device.id]
            holders.remove(request.claim)
            if not holders:
                del self._holders[device.id]
        if counted:
            self._count(candidate, -1)
        self._remove_from_constraints(request)

    def _add_to_constraints(self, request: RequestAlternative, device: PooledDevice, is_required: bool) -> bool:
        constraints = self._constraints[request.claim]
        for number, constraint in enumerate(constraints):
            if constraint.add(request, device.kind):
                continue
            for earlier in reversed(constraints[:number]):
                earlier.remove(request)
            if is_required:
                what = f"cannot add device {'/'.join(device.id)} because a claim constraint would not be satisfied"
                raise DeviceAllocationError(f", request {request.name}: {what}", request.claim)
            return False
        return True

    def _remove_from_constraints(self, request: RequestAlternative) -> None:
        for constraint in reversed(self._constraints[request.claim]):
            constraint.remove(request)

    # Shares of a device

    def _has_capacity(self, request: RequestAlternative, device: PooledDevice) -> bool:
        return self._fits(request, device, self._shares.get(device.id, NOTHING))

    def _fits(self, request: RequestAlternative, device: PooledDevice, shares: Mapping[str, int]) -> bool:
        """Whether a device has the capacity of a request, besides what is allocated and these shares."""
        capacities = device.kind.capacities
        if not capacities and not request.capacity:
            return True
        consumed = _portions(request, device.kind)
        if consumed is None:
            return False
        return fits(capacities, consumed, self._allocated.consumed.get(device.id, NOTHING), shares)

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

    def _has_counters(self, candidate: _Candidate) -> bool:
        left = self._counters_left.get(candidate.pool)
        if left is None:
            left = self._counters_left[candidate.pool] = counters_left(candidate.pool, self._allocated)
        consumed: dict[tuple[str, str], int] = {}
        for counter_set, name, amount_nano in candidate.device.kind.counters:
            consumed[counter_set, name] = consumed.get((counter_set, name), 0) + amount_nano
        # Counters that the device does not consume are checked too: an overdrawn counter blocks the whole pool.
        return all(amount_nano >= consumed.get(counter, 0) for counter, amount_nano in left.items())

    def _count(self, candidate: _Candidate, sign: int) -> None:
        left = self._counters_left[candidate.pool]
        for counter_set, name, amount_nano in candidate.device.kind.counters:
            left[counter_set, name] -= sign * amount_nano


def _portions(request: RequestAlternative, kind: DeviceKind) -> dict[str, Quantity] | None:
    portions = kind.portions
    if request.portion_key not in portions:
        portions[request.portion_key] = consumption(kind.capacities, request.capacity)
    return portions[request.portion_key]


def allocation_of(
    spec: ResourceClaimSpec,
    claim: RequestedClaim,
    alternatives: Sequence[int],
    taken: Sequence[DeviceResult],
    node_name: str,
    new_share_id: Callable[[], str],
) -> AllocationResult:
    """The allocation of a claim on a node. Raises `DeviceAllocationError`."""
    chosen = [requests[number] for requests, number in zip(claim.requests, alternatives, strict=True)]
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(_result(result, new_share_id) for result in taken),
            config=(*_class_configuration(chosen), *_claim_configuration(spec.devices, chosen)),
        ),
        node_selector=_node_selector(taken, node_name),
    )


def _result(taken: DeviceResult, new_share_id: Callable[[], str]) -> DeviceRequestAllocationResult:
    request, device, share = taken
    driver, pool, name = device.id
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if request.admin_access else None,
        tolerations=request.tolerations,
        binding_conditions=device.kind.binding_conditions,
        binding_failure_conditions=device.kind.binding_failure_conditions,
        share_id=new_share_id() if share is not None else None,
        consumed_capacity={name: str(amount) for name, amount in (share or {}).items()},
    )


def _class_configuration(chosen: Iterable[RequestAlternative]) -> list[DeviceAllocationConfiguration]:
    users: dict[str, list[str]] = {}
    configured: dict[str, tuple[DeviceClassConfiguration, ...]] = {}
    for request in chosen:
        device_class = request.device_class
        if device_class is not None:
            users.setdefault(device_class.metadata.name, []).append(request.full_name)
            configured[device_class.metadata.name] = device_class.spec.config
    return [
        DeviceAllocationConfiguration(source=FROM_CLASS, requests=tuple(requests), opaque=config.opaque)
        for name, requests in users.items()
        for config in configured[name]
    ]


def _claim_configuration(
    claim: DeviceClaim, chosen: Sequence[RequestAlternative]
) -> list[DeviceAllocationConfiguration]:
    found: list[DeviceAllocationConfiguration] = []
    for config in claim.config:
        meant = [
            request
            for request in chosen
            if request.base_name in config.requests or request.full_name in config.requests
        ]
        own = DeviceAllocationConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        found += [own] * (len(meant) if config.requests else 1)
    return found


def _node_selector(taken: Iterable[DeviceResult], node_name: str) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for result in taken:
        place = result.device.view if result.device.slice.selects_per_device else result.device.slice.view.spec
        if place.node_name is not None or result.device.kind.binds_to_node:
            return only_on(node_name)
        terms = place.node_selector.node_selector_terms if place.node_selector is not None else ()
        if len(terms) > 1:
            raise DeviceAllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def only_on(node_name: str) -> NodeSelector:
    """Selects one node by its name."""
    field = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),))


def _add_new(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in more:
        is_known = any(
            requirement.key == other.key
            and requirement.operator == other.operator
            and set(requirement.values) == set(other.values)
            for other in known
        )
        if not is_known:
            known.append(requirement)
