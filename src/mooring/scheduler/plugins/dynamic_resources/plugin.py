"""DynamicResources: allocate devices to the ResourceClaims of a pod.

Input: pods with claims, or with extended resources that a DeviceClass provides; the devices of the cluster. Output:
rejected nodes, a score by alternatives; for the selected node an allocation of each claim, pending after `reserve` and
written by `pre_bind`.

1. A claim is allocated already, or is allocated for its first pod. The allocator selects the devices.
2. After `reserve` the devices count as allocated, and other pods of the claim wait, until the allocation is written or
   `unreserve` removes it.
3. Pods without claims cost two checks: their list of claims, and whether there are DeviceClasses.
4. PostFilter deallocates a claim whose devices are not available to the pod, if no other pod uses it. The scheduler's
   loop runs the write (`follow_up`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from mooring.api.errors import NodeSelectorError
from mooring.api.nodeselector import compile_strict
from mooring.api.views.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from mooring.api.views.meta import ApiObject
from mooring.client.interface import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PerSignature, PodInfo
from mooring.scheduler.config.types import DynamicResourcesArgs
from mooring.scheduler.devices.allocation_cache import AllocationCache
from mooring.scheduler.devices.allocator import AllocationTimeout, allocation_of
from mooring.scheduler.devices.claims import AllocatedState, UnknownClaimError
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.devices.pools import DeviceKind, PooledDevice, PoolView, consumption, fits
from mooring.scheduler.devices.requests import (
    DeviceAllocationError,
    RequestAlternative,
    RequestedClaim,
    is_selected,
    matches_class,
)
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource, QueueingHint, queue_if
from mooring.scheduler.framework.obstacle import NEVER_FITS_SIZE, Distances, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import (
    SKIP,
    AssumesWrites,
    Filter,
    PostFilter,
    PreEnqueue,
    PreFilter,
    Proceed,
    RecordEvent,
    RecordWrite,
    Reserve,
    Score,
    Skip,
    scaled_to_best,
)
from mooring.scheduler.framework.post_filter import FailedAttempt, PostFilterResult
from mooring.scheduler.framework.status import Reason, Status
from mooring.scheduler.plugins.dynamic_resources.binder import (
    ClaimBinder,
    ClaimBindingError,
    ClaimDeletion,
    Deallocation,
)
from mooring.scheduler.plugins.dynamic_resources.state import (
    REASONS,
    ClaimsMissingError,
    ClaimsToAllocate,
    DeviceBindingError,
    DynamicResourcesState,
    PodAllocations,
    claim_uid,
    claims_of,
    is_only_for,
    is_overdue,
    is_ready,
    is_reserved_for,
)

FREE = "free"
IN_USE = "in use"
_STATES = (FREE, IN_USE, "too small", "of another sort", "tainted")
"""State of a device in the explanations; the first that applies."""

_CAPACITY = re.compile(
    r'device\.capacity\["[^"]*"\]\.(\w+)\.(?:compareTo\(quantity\("([^"]+)"\)\) (>=|>|==|<=|<) 0'
    r'|isGreaterThan\(quantity\("([^"]+)"\)\))'
)
_ATTRIBUTE = re.compile(r'device\.attributes\["[^"]*"\]\.(\w+)(?: (==|!=|>=|<=|>|<) ("[^"]*"|-?\d+|true|false))?')


class DynamicResources(
    PreEnqueue,
    PreFilter[DynamicResourcesState],
    Filter[DynamicResourcesState],
    PostFilter,
    Score[DynamicResourcesState],
    Reserve,
    AssumesWrites,
):
    name = "DynamicResources"
    obstacle_kind = ObstacleKind.DEVICE
    filter_reasons = REASONS
    normalizes = True

    def __init__(
        self,
        columns: Columns,
        arguments: DynamicResourcesArgs,
        entropy: Entropy,
        clock: Clock,
        client: Client,
        record_event: RecordEvent,
        record_write: RecordWrite,
    ) -> None:
        self._columns = columns
        self._clock = clock
        self._record_event = record_event
        self._record_write = record_write
        self._share_ids = entropy.fork("shares of devices")
        self._binding_timeout_s = arguments.binding_timeout_s
        self._manager = columns.shared(DRAManager)
        self._claims = self._manager.claims
        resolver = self._manager.class_resolver
        self._backed_resources = PerSignature(
            lambda signature: resolver.device_backed_requests(signature.view), lambda: resolver.revision
        )
        self._cache = AllocationCache(self._manager, clock, arguments.filter_timeout_s)
        self._binder = ClaimBinder(client, clock, self._claims, self._binding_timeout_s)
        self._latest: DynamicResourcesState | None = None
        """The state of the pod in the current scheduling cycle."""
        self._reserved: dict[str, PodAllocations] = {}

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        any_change = ActionType.ADD | ActionType.UPDATE
        node_changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return (
            ClusterEventWithHint(EventResource.NODE, node_changes),
            ClusterEventWithHint(EventResource.RESOURCE_CLAIM, any_change, self._claim_change_helps),
            ClusterEventWithHint(
                EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._has_its_claims
            ),
            ClusterEventWithHint(EventResource.DEVICE_CLASS, any_change),
            ClusterEventWithHint(EventResource.RESOURCE_SLICE, any_change),
        )

    def _claim_change_helps(self, pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim) -> QueueingHint:
        """Whether the change deallocates devices, or is of a claim of the pod."""
        claims = self._claims_or_none(pod)
        if claims is None:
            return QueueingHint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return QueueingHint.QUEUE
        if all(claim_uid(claim) != claim_uid(new) for claim in claims):
            return QueueingHint.SKIP
        return queue_if(old is None or old.status != new.status)

    def _has_its_claims(self, pod: PodInfo, old: PodInfo | None, new: PodInfo) -> QueueingHint:
        return queue_if(new.uid == pod.uid and self._claims_or_none(new) is not None)

    def _claims_or_none(self, pod: PodInfo) -> tuple[ResourceClaim, ...] | None:
        """The claims of a pod; None while one is missing."""
        if pod.view is None:
            return ()
        try:
            return claims_of(pod.view, pod.uid, self._claims)
        except ClaimsMissingError:
            return None

    # PreEnqueue

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if pod.view is None or not pod.view.spec.resource_claims:
            return None
        try:
            claims_of(pod.view, pod.uid, self._claims)
        except ClaimsMissingError as error:
            return Status.unresolvable(str(error))
        return None

    # Filter

    def is_concerned(self, pod: PodInfo) -> bool:
        has_claims = pod.view is not None and bool(pod.view.spec.resource_claims)
        return has_claims or bool(self._manager.class_resolver)

    def pre_filter(self, pod: PodInfo) -> Proceed[DynamicResourcesState] | Skip | Status:
        if not self.is_concerned(pod):
            return SKIP
        state = self._state_of(pod)
        if isinstance(state, DynamicResourcesState):
            self._latest = state
            return Proceed(state)
        return state

    def filter(self, state: DynamicResourcesState, rows: Rows) -> Int64s:
        return state.reasons_bits(np.arange(self._columns.height)[rows] if isinstance(rows, slice) else rows)

    def reasons(self, state: DynamicResourcesState) -> tuple[Reason, ...]:
        return state.reasons()

    def _state_of(self, pod: PodInfo) -> DynamicResourcesState | Skip | Status:
        """The state of a pod before nodes are filtered."""
        view = pod.view if pod.view is not None else pod.signature.view
        try:
            claims = claims_of(view, pod.uid, self._claims) if pod.view is not None else ()
        except ClaimsMissingError as error:
            return Status.unresolvable(str(error))
        backed = dict(self._backed_resources(pod.signature))
        leftover = self._claims.for_extended_resources(pod.name, pod.uid) if backed else None
        if not claims and not backed:
            return SKIP
        state = DynamicResourcesState(pod, view, claims, backed, leftover, self._columns, self._manager, self._cache)
        for index, claim in enumerate((*claims, leftover) if leftover is not None else claims):
            status = self._examine(state, index, claim)
            if status is not None:
                return status
        if state.allocates:
            self._manager.sync()
        return state

    def _examine(self, state: DynamicResourcesState, index: int, claim: ResourceClaim) -> Status | None:
        allocation = claim.status.allocation
        if allocation is not None:
            if allocation.node_selector is not None:
                try:
                    state.node_selectors[index] = compile_strict(allocation.node_selector)
                except NodeSelectorError as error:
                    return Status.error(str(error))
            if self._binding_failed(claim):
                state.not_ready.append(index)
            return None
        if self._claims.pending_allocation(claim_uid(claim)) is not None:
            return Status.unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if claim is state.leftover:
            return None
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                named = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                named = [
                    (f"{request.name}/{subrequest.name}", subrequest.device_class_name)
                    for subrequest in request.first_available
                ]
            else:
                return Status.unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
            for request_name, class_name in named:
                if not class_name:
                    return Status.error(f"request {request_name}: unsupported request type")
                if self._manager.classes.get(class_name) is None:
                    return Status.unresolvable(f"request {request_name}: device class {class_name} does not exist")
        return None

    def _binding_failed(self, claim: ResourceClaim) -> bool:
        """Whether the binding conditions of a claim's devices have failed or timed out."""
        try:
            return not is_ready(claim) and is_overdue(claim, self._clock.wall_s(), self._binding_timeout_s)
        except DeviceBindingError:
            return True

    # Explain

    def explain(self, state: DynamicResourcesState, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        found: list[Obstacle] = []
        for key in (state.claims[index].key for index in state.unavailable_at(row)):
            text = f"claim {key} has devices that cannot be used from here"
            found.append(Obstacle(self.name, ObstacleKind.DEVICE, text, {"claim": key}))
        to_allocate = state.to_allocate_at(row)
        if to_allocate is not None:
            pools, allocated = self._manager.inventory.pools(row), self._manager.allocated
            for name, claim in zip(to_allocate.names, to_allocate.outcomes.request.claims, strict=True):
                found += _claim_obstacles(name, claim, pools, allocated)
            if not found:
                text = f"the devices for {' and '.join(to_allocate.names)} cannot be had together"
                found.append(Obstacle(self.name, ObstacleKind.DEVICE, text))
        return found or super().explain(state, row, bits, context)

    def distances(self, state: DynamicResourcesState, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
        """The size of a node's obstacle grows by the share of a request that it lacks even with all devices free.

        Nodes with the same devices are evaluated once.
        """
        distances = super().distances(state, rows, bits, context)
        rejected = np.flatnonzero(bits)
        for to_allocate, places in state.to_allocate_on(rows[rejected]):
            at = rejected[places]
            for alike in self._manager.group_alike(rows[at]):
                pools = self._manager.inventory.pools(int(rows[at[alike[0]]]))
                share = _lacking_share(to_allocate, pools, self._manager.allocated)
                distances.sizes[at[alike]] += NEVER_FITS_SIZE * share
        return distances

    # PostFilter

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        is_own_rejection = attempt.pre_filter_status is not None and attempt.pre_filter_status.plugin == self.name
        if not attempt.was_pre_filtered(self.name) and not is_own_rejection:
            # Another PreFilter plugin rejected the pod first. kube-scheduler finds no state and reports that.
            return PostFilterResult(status=Status.error("not found"))
        state = attempt.states.get(self.name)
        if not isinstance(state, DynamicResourcesState):
            return PostFilterResult(status=Status.unschedulable("no new claims to deallocate"))
        for index in sorted(state.unavailable):
            claim = state.claims[index]
            if is_only_for(claim, attempt.pod.uid):
                follow_up = Deallocation(self._binder, claim.key, claim.metadata.resource_version)
                return PostFilterResult(
                    status=Status.unschedulable("deallocation of ResourceClaim completed"), follow_up=follow_up
                )
        if state.leftover is not None:
            return PostFilterResult(
                status=Status.unschedulable("deletion of ResourceClaim completed"),
                follow_up=ClaimDeletion(self._binder, state.leftover.key),
            )
        return PostFilterResult(status=Status.unschedulable("still not schedulable"))

    # Score

    def has_score(self, pod: PodInfo) -> bool:
        return self._latest is not None and self._latest.pod is pod and self._latest.scores_differ

    def pre_score(self, pod: PodInfo, feasible: Rows) -> DynamicResourcesState | Skip:
        return self._latest if self._latest is not None and self.has_score(pod) else SKIP

    def score(self, state: DynamicResourcesState, rows: Rows) -> Int64s:
        return state.scores(np.arange(self._columns.height)[rows] if isinstance(rows, slice) else rows)

    def normalize(self, state: DynamicResourcesState, scores: Int64s, rows: Rows) -> Int64s:
        return scaled_to_best(scores, reverse=False)

    # Reserve

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        state = self._fresh_state(pod)
        if state is None or isinstance(state, Status):
            return state
        node_name = self._columns.node_names[row]
        to_allocate = state.to_allocate_at(row)
        if to_allocate is None:
            if state.claims:
                self._reserved[pod.uid] = PodAllocations(state, node_name, (), None)
            return None
        request = to_allocate.outcomes.request
        try:
            found = to_allocate.outcomes.find(row)
            if found is None:
                return Status.error("claim allocation not found for node")
            allocations = tuple(
                allocation_of(spec, claim, alternatives, devices, node_name, self._share_ids.uuid)
                for spec, claim, alternatives, devices in zip(
                    to_allocate.specs, request.claims, found.alternatives, found.claims, strict=True
                )
            )
        except AllocationTimeout:
            return Status.error(f"node {node_name}: timed out trying to allocate devices")
        except DeviceAllocationError as error:
            return Status.error(error.text(to_allocate.names))
        for uid, allocation in zip(to_allocate.uids, allocations, strict=True):
            self._claims.add_pending(uid, allocation)
        self._reserved[pod.uid] = PodAllocations(state, node_name, allocations, to_allocate)
        return None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        reserved = self._reserved.pop(pod.uid, None)
        if reserved is None or reserved.to_allocate is None:
            return
        for uid, key in zip(reserved.to_allocate.uids, reserved.to_allocate.keys, strict=True):
            if self._claims.remove_pending(uid) and self._claims.get(key) is not None:
                self._claims.restore(key)

    async def released(self, pod: PodInfo, node_name: str) -> None:
        if pod.view is None or pod.uid in self._reserved:
            return  # the pod is being scheduled again and needs its claims
        try:
            claims = claims_of(pod.view, pod.uid, self._claims)
        except ClaimsMissingError:
            return  # a claim is deleted, and its reservations with it
        await self._binder.release(pod, claims, self._claims.for_extended_resources(pod.name, pod.uid))

    def _fresh_state(self, pod: PodInfo) -> DynamicResourcesState | Status | None:
        """The state of the current cycle, or a new one if allocations changed."""
        state = self._latest
        if state is not None and state.pod is pod and state.revision == self._manager.allocated.revision:
            return state
        if not self.is_concerned(pod):
            return None
        again = self._state_of(pod)
        return None if again is SKIP else again

    def allocations_of(self, pod: PodInfo) -> tuple[tuple[str, AllocationResult], ...]:
        """The allocations of a reserved pod, by claim, until they are written."""
        reserved = self._reserved.get(pod.uid)
        if reserved is None or reserved.to_allocate is None:
            return ()
        return tuple(zip(reserved.to_allocate.names, reserved.allocations, strict=True))

    def complete(self, pod: PodInfo) -> tuple[ResourceClaim, ...]:
        """The claims of a reserved pod as PreBind would write them. Ends their pending allocations: the caller puts
        the claims into the columns. A claim for extended resources does not exist yet and stays pending."""
        reserved = self._reserved.get(pod.uid)
        to_allocate = reserved.to_allocate if reserved is not None else None
        if reserved is None or (to_allocate is not None and to_allocate.has_extended):
            return ()
        del self._reserved[pod.uid]
        allocations: dict[str, AllocationResult] = {}
        if to_allocate is not None:
            allocations = dict(zip(to_allocate.keys, reserved.allocations, strict=True))
            for uid in to_allocate.uids:
                self._claims.remove_pending(uid)
        consumer = ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
        return tuple(
            replace(
                claim,
                status=replace(
                    claim.status,
                    allocation=allocations.get(claim.key, claim.status.allocation),
                    reserved_for=(*claim.status.reserved_for, consumer),
                ),
            )
            for claim in reserved.state.claims
            if not is_reserved_for(claim, pod.uid)
        )

    # PreBind

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        return pod.uid in self._reserved

    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
        reserved = self._reserved.get(pod.uid)
        if reserved is None:
            return None
        try:
            await self._binder.write(pod, reserved, partial(self._written, pod))
            if self._binder.has_to_wait(reserved):
                note = f"waiting for binding conditions for device on node {node_name}"
                self._record_event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
                await self._binder.wait_ready(reserved)
        except ClaimBindingError as error:
            return Status.error(str(error))
        self._reserved.pop(pod.uid, None)
        return None

    def _written(self, pod: PodInfo, written: ResourceClaim) -> None:
        self._record_write(pod, self.name, written)
        self.assume_written(pod, written)

    def assume_written(self, pod: PodInfo, written: ApiObject) -> str:
        """Assumes a written claim. The allocation is pending no longer."""
        assert isinstance(written, ResourceClaim), f"{written.kind} {written.key} is no claim"
        is_known = True
        try:
            self._claims.assume(written)
        except UnknownClaimError:
            is_known = False  # deleted in the meantime, or created and not delivered
        reserved = self._reserved.get(pod.uid)
        if reserved is None:
            return "no devices"
        found = reserved.allocation_for(written)
        if found is None:
            return ""  # another pod has allocated it
        uid, allocation = found
        self._claims.remove_pending(uid, for_all=is_known)
        chosen = _devices_text(allocation)
        return chosen if chosen != _devices_text(written.status.allocation) else ""


def _devices_text(allocation: AllocationResult | None) -> str:
    results = allocation.devices.results if allocation is not None else ()
    return ", ".join(f"device {result.driver}/{result.pool}/{result.device}" for result in results) or "no devices"


# --- explanations -----------------------------------------------------------------------------------------------


def _claim_obstacles(
    name: str, claim: RequestedClaim, pools: Sequence[PoolView], allocated: AllocatedState
) -> list[Obstacle]:
    """Each request of the claim with too few free devices; otherwise the constraints between requests."""
    found = []
    for alternatives in claim.requests:
        counts = [_count_devices(request, pools, allocated) for request in alternatives]
        pairs = zip(alternatives, counts, strict=True)
        if all(count[FREE] < _devices_needed(request, count) for request, count in pairs):
            needs = " or ".join(_request_text(request) for request in alternatives)
            has = " or ".join(_counts_text(count) for count in counts)
            details: dict[str, str | int] = {
                "claim": name,
                "request": alternatives[0].base_name,
                "needs": needs,
                **{state.replace(" ", "-"): counts[0][state] for state in _STATES},
            }
            text = f"needs {needs}: {has}{_pool_problems_text(pools)}"
            found.append(Obstacle(DynamicResources.name, ObstacleKind.DEVICE, text, details))
    if not found and claim.constraints and any(claim.requests):
        attributes = ", ".join(
            constraint.match_attribute or constraint.distinct_attribute or "" for constraint in claim.constraints
        )
        if attributes:
            text = f"no free devices for {name} that agree on {attributes}"
            details = {"claim": name, "needs": attributes}
            found.append(Obstacle(DynamicResources.name, ObstacleKind.DEVICE, text, details))
    return found


def _lacking_share(to_allocate: ClaimsToAllocate, pools: Sequence[PoolView], allocated: AllocatedState) -> float:
    """The largest share of a request without a device, free or in use; 0 if there are enough."""
    shares = [0.0]
    for claim in to_allocate.outcomes.request.claims:
        for alternatives in claim.requests:
            counts = [(request, _count_devices(request, pools, allocated)) for request in alternatives]
            needed = [(_devices_needed(request, count), count[FREE] + count[IN_USE]) for request, count in counts]
            shares.append(min((max(number - there, 0) / number for number, there in needed if number), default=0.0))
    return max(shares)


def _devices_needed(request: RequestAlternative, counts: Counter[str]) -> int:
    return max(1, sum(counts.values())) if request.is_all else request.count


def _count_devices(request: RequestAlternative, pools: Iterable[PoolView], allocated: AllocatedState) -> Counter[str]:
    """Number of devices of the request's class on a node, by state."""
    counts: Counter[str] = Counter({FREE: 0})
    for pool in pools:
        for device, is_matching in zip(pool.devices, pool.matching, strict=True):
            try:
                is_one = request.device_class is not None and matches_class(request.device_class, device.kind)
                if is_one and is_matching:
                    counts[_state_text(request, device, allocated)] += 1
            except DeviceAllocationError:
                continue  # the decision reports this error
    return counts


def _state_text(request: RequestAlternative, device: PooledDevice, allocated: AllocatedState) -> str:
    kind = device.kind
    if not is_selected(request, kind):
        return "too small" if _fails_by_capacity(request, kind) else "of another sort"
    if allocated.is_allocated(device.id) and not request.admin_access:
        return IN_USE
    if request.capacity or kind.capacities:
        consumed = consumption(kind.capacities, request.capacity)
        if consumed is None or not fits(kind.capacities, consumed):
            return "too small"
        if not fits(kind.capacities, consumed, allocated.consumed.get(device.id, {})):
            return IN_USE
    return FREE if request.tolerates(kind) else "tainted"


def _fails_by_capacity(request: RequestAlternative, kind: DeviceKind) -> bool:
    """Whether all selectors that do not match the device compare a capacity."""
    failing = [expression for expression in request.expressions if kind.selected.get(expression) is False]
    return bool(failing) and all(_CAPACITY.fullmatch(expression.strip()) for expression in failing)


def _request_text(request: RequestAlternative) -> str:
    number = "all" if request.is_all else str(request.count)
    name = request.device_class.metadata.name if request.device_class is not None else "?"
    demands = [expression_text(expression) for expression in request.expressions]
    demands += [f"{amount} {what} left" for what, amount in request.capacity.items()]
    return f"{number} of class {name}" + (f" with {' and '.join(demands)}" if demands else "")


def expression_text(expression: str) -> str:
    """`memory >= 40Gi` for an expression that compares one capacity or attribute; any other expression as it is."""
    comparisons = [_comparison_text(part.strip()) for part in expression.split("&&")]
    return " and ".join(comparisons) if all(comparisons) else expression


def _comparison_text(part: str) -> str:
    capacity = _CAPACITY.fullmatch(part)
    if capacity is not None:
        name, amount, operator, more_than = capacity.groups()
        return f"{name} {operator} {amount}" if amount is not None else f"{name} > {more_than}"
    attribute = _ATTRIBUTE.fullmatch(part)
    if attribute is None:
        return ""
    name, operator, value = attribute.groups()
    return f"{name} {operator} {value.strip(chr(34))}" if operator is not None else name


def _counts_text(counts: Counter[str]) -> str:
    if not any(counts.values()):
        return "the node has none"
    return ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state] or state == FREE)


def _pool_problems_text(pools: Sequence[PoolView]) -> str:
    problems = [f"pool {pool.id[1]} is being updated" for pool in pools if pool.is_incomplete]
    problems += [f"pool {pool.id[1]} contradicts itself" for pool in pools if pool.is_invalid]
    return f" ({', '.join(problems)})" if problems else ""
