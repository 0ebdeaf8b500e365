"""DynamicResources: pods that ask for devices get them, through resource claims.

Comes in   pods with claims, or with extended resources behind which a device class stands; the devices of the cluster
Goes out   refusals of nodes without the devices, a score for nodes with the preferred ones; for the chosen node, the
           allocation of each claim, first in flight (`reserve`) and then written (`pre_bind`)

 1. A claim has devices already, or gets them with its first pod. Which devices, the search says (`scheduler.devices`).
 2. What a pod was given in `reserve` is taken, and other pods of its claim wait, until that is written or taken back.
 3. Pods that ask for no device cost two looks: at their list of claims, and at whether there are device classes.
 4. A claim whose devices are where the pod cannot go is deallocated, if nobody else uses it: PostFilter says so, and
    the scheduler's loop tells the API server (`follow_up`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from mooring.api.errors import NodeSelectorError
from mooring.api.nodeselector import compile_strict
from mooring.api.views.devices import AllocationResult, ResourceClaim
from mooring.client.promise import Client
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config.types import DynamicResourcesArgs
from mooring.scheduler.devices.answers import AnswerBook
from mooring.scheduler.devices.capacity import consumption, fits
from mooring.scheduler.devices.deadline import SearchTimeout
from mooring.scheduler.devices.ledger import DeviceLedger
from mooring.scheduler.devices.pools import DeviceKind, PooledDevice, PoolView
from mooring.scheduler.devices.requests import Request, SearchError, WantedClaim
from mooring.scheduler.devices.results import allocation_of
from mooring.scheduler.devices.selection import is_selected, matches_class
from mooring.scheduler.devices.usage import Usage
from mooring.scheduler.framework.events import Wake
from mooring.scheduler.framework.failed_attempt import FailedAttempt
from mooring.scheduler.framework.normalize import scaled_to_best
from mooring.scheduler.framework.obstacle import NEVER_FITS_SIZE, Distances, ExplainContext, Obstacle, ObstacleKind
from mooring.scheduler.framework.plugin import (
    EVEN,
    SKIP,
    Even,
    Filter,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    Proceed,
    RecordEvent,
    Reserve,
    Score,
    Skip,
)
from mooring.scheduler.framework.status import Reason, Status
from mooring.scheduler.plugins.dynamic_resources_claims import (
    ClaimsMissingError,
    DeviceBindingError,
    claim_uid,
    claims_of,
    is_only_for,
    is_overdue,
    is_ready,
)
from mooring.scheduler.plugins.dynamic_resources_hints import device_wakes
from mooring.scheduler.plugins.dynamic_resources_state import REASONS, Part, PodDevices, Reserved
from mooring.scheduler.plugins.dynamic_resources_writing import ClaimWriter, Deallocation, Deletion, DeviceWriteError

FREE = "free"
IN_USE = "in use"
_VERDICTS = (FREE, IN_USE, "too small", "of another sort", "tainted")
"""What the texts of obstacles say of a device of the requested class. Only the first that applies counts."""

_CAPACITY = re.compile(
    r'device\.capacity\["[^"]*"\]\.(\w+)\.(?:compareTo\(quantity\("([^"]+)"\)\) (>=|>|==|<=|<) 0'
    r'|isGreaterThan\(quantity\("([^"]+)"\)\))'
)
_ATTRIBUTE = re.compile(r'device\.attributes\["[^"]*"\]\.(\w+)(?: (==|!=|>=|<=|>|<) ("[^"]*"|-?\d+|true|false))?')


class DynamicResources(
    PreEnqueue, PreFilter[PodDevices], Filter[PodDevices], PostFilter, Score[PodDevices], Reserve, PreBind
):
    name = "DynamicResources"
    obstacle_kind = ObstacleKind.DEVICE
    filter_reasons = REASONS
    wants_few_rows = True
    normalizes = True

    def __init__(
        self,
        columns: Columns,
        arguments: DynamicResourcesArgs,
        entropy: Entropy,
        clock: Clock,
        client: Client,
        record_event: RecordEvent,
    ) -> None:
        self._columns = columns
        self._clock = clock
        self._record_event = record_event
        self._share_ids = entropy.fork("shares of devices")
        self._binding_timeout_s = arguments.binding_timeout_s
        self._ledger = columns.shared(DeviceLedger)
        self._claims = self._ledger.claims
        self._book = AnswerBook(self._ledger, clock, arguments.filter_timeout_s)
        self._writer = ClaimWriter(client, clock, self._claims, self._binding_timeout_s)
        self._latest: PodDevices | None = None
        """What the cycle of the pod that is being decided about found out."""
        self._reserved: dict[str, Reserved] = {}

    def wakes(self) -> tuple[Wake, ...]:
        return device_wakes(self._claims)

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
        return has_claims or bool(self._ledger.by_resource)

    def pre_filter(self, pod: PodInfo) -> Proceed[PodDevices] | Skip | Status:
        if not self.is_concerned(pod):
            return SKIP
        state = self._state_of(pod)
        if isinstance(state, PodDevices):
            self._latest = state
            return Proceed(state)
        return state

    def filter(self, state: PodDevices, rows: Rows) -> Int64s:
        return state.refusals(np.arange(self._columns.height)[rows] if isinstance(rows, slice) else rows)

    def reasons(self, state: PodDevices) -> tuple[Reason, ...]:
        return state.reasons()

    def _state_of(self, pod: PodInfo) -> PodDevices | Skip | Status:
        """What there is to know before nodes are looked at."""
        view = pod.view if pod.view is not None else pod.signature.view
        try:
            claims = claims_of(view, pod.uid, self._claims) if pod.view is not None else ()
        except ClaimsMissingError as error:
            return Status.unresolvable(str(error))
        backed = self._backed(pod)
        leftover = self._claims.for_extended_resources(pod.name, pod.uid) if backed else None
        if not claims and not backed:
            return SKIP
        state = PodDevices(pod, view, claims, backed, leftover, self._columns, self._ledger, self._book)
        for index, claim in enumerate((*claims, leftover) if leftover is not None else claims):
            status = self._examine(state, index, claim)
            if status is not None:
                return status
        if state.allocates:
            self._ledger.sync()
        return state

    def _examine(self, state: PodDevices, index: int, claim: ResourceClaim) -> Status | None:
        allocation = claim.status.allocation
        if allocation is not None:
            if allocation.node_selector is not None:
                try:
                    state.reach[index] = compile_strict(allocation.node_selector)
                except NodeSelectorError as error:
                    return Status.error(str(error))
            if self._has_given_up(claim):
                state.unready.append(index)
            return None
        if self._claims.in_flight(claim_uid(claim)) is not None:
            return Status.unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if claim is state.leftover:
            return None
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                named = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                named = [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]
            else:
                return Status.unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
            for request_name, class_name in named:
                if not class_name:
                    return Status.error(f"request {request_name}: unsupported request type")
                if self._ledger.classes.get(class_name) is None:
                    return Status.unresolvable(f"request {request_name}: device class {class_name} does not exist")
        return None

    def _has_given_up(self, claim: ResourceClaim) -> bool:
        """Whether the devices of a claim will not become ready any more."""
        try:
            return not is_ready(claim) and is_overdue(claim, self._clock.wall_s(), self._binding_timeout_s)
        except DeviceBindingError:
            return True

    def _backed(self, pod: PodInfo) -> dict[str, int]:
        by_resource = self._ledger.by_resource
        known = pod.signature.memo.get(DynamicResources)
        if isinstance(known, tuple) and known[0] == by_resource.revision:
            return dict(known[1])
        backed = by_resource.backed(pod.signature.view)
        pod.signature.memo[DynamicResources] = (by_resource.revision, backed)
        return backed

    # Explain

    def explain(self, state: PodDevices, row: int, bits: int, context: ExplainContext) -> Sequence[Obstacle]:
        found = [_out_of_reach(state.claims[index].key) for index in state.out_of_reach(row)]
        part = state.part_at(row)
        if part is not None:
            pools, usage = self._ledger.inventory.pools(row), self._ledger.usage
            for name, claim in zip(part.names, part.answers.wanted.claims, strict=True):
                found += _claim_obstacles(name, claim, pools, usage)
            if not found:
                text = f"the devices for {' and '.join(part.names)} cannot be had together"
                found.append(Obstacle(self.name, ObstacleKind.DEVICE, text))
        return found or super().explain(state, row, bits, context)

    def distances(self, state: PodDevices, rows: Int64s, bits: Int64s, context: ExplainContext) -> Distances:
        """A node is farther by the share of a request that it lacks even if all devices in use were free.

        Nodes that see the same devices are counted once.
        """
        distances = super().distances(state, rows, bits, context)
        rejected = np.flatnonzero(bits)
        for part, places in state.parts_of(rows[rejected]):
            at = rejected[places]
            for alike in self._ledger.alike(rows[at]):
                pools = self._ledger.inventory.pools(int(rows[at[alike[0]]]))
                distances.sizes[at[alike]] += NEVER_FITS_SIZE * _lacking_share(part, pools, self._ledger.usage)
        return distances

    # PostFilter

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        is_own_rejection = attempt.pre_filter_status is not None and attempt.pre_filter_status.plugin == self.name
        if not attempt.was_pre_filtered(self.name) and not is_own_rejection:
            # Another PreFilter ended the cycle first. Kubernetes finds no state of its own then and says just that.
            return PostFilterResult(status=Status.error("not found"))
        state = attempt.states.get(self.name)
        if not isinstance(state, PodDevices):
            return PostFilterResult(status=Status.unschedulable("no new claims to deallocate"))
        for index in sorted(state.unavailable):
            claim = state.claims[index]
            if is_only_for(claim, attempt.pod.uid):
                follow_up = Deallocation(self._writer, claim.key, claim.metadata.resource_version)
                return PostFilterResult(
                    status=Status.unschedulable("deallocation of ResourceClaim completed"), follow_up=follow_up
                )
        if state.leftover is not None:
            return PostFilterResult(
                status=Status.unschedulable("deletion of ResourceClaim completed"),
                follow_up=Deletion(self._writer, state.leftover.key),
            )
        return PostFilterResult(status=Status.unschedulable("still not schedulable"))

    # Score

    def prepare_score(self, pod: PodInfo) -> PodDevices | Even:
        state = self._latest
        return state if state is not None and state.pod is pod and state.scores_differ else EVEN

    def score(self, state: PodDevices, rows: Rows) -> Int64s:
        return state.scores(np.arange(self._columns.height)[rows] if isinstance(rows, slice) else rows)

    def normalize(self, state: PodDevices, scores: Int64s, rows: Rows) -> Int64s:
        return scaled_to_best(scores, reverse=False)

    # Reserve

    def reserve(self, pod: PodInfo, row: int) -> Status | None:
        state = self._fresh_state(pod)
        if state is None or isinstance(state, Status):
            return state
        node_name = self._columns.node_names[row]
        part = state.part_at(row)
        if part is None:
            if state.claims:
                self._reserved[pod.uid] = Reserved(state, node_name, (), None)
            return None
        try:
            found = part.answers.find(row)
            if found is None:
                return Status.error("claim allocation not found for node")
            allocations = tuple(
                allocation_of(spec, wanted, alternatives, taken, node_name, self._share_ids.uuid)
                for spec, wanted, alternatives, taken in zip(
                    part.specs, part.answers.wanted.claims, found.alternatives, found.claims, strict=True
                )
            )
        except SearchTimeout:
            return Status.error(f"node {node_name}: timed out trying to allocate devices")
        except SearchError as error:
            return Status.error(error.text(part.names))
        for uid, allocation in zip(part.uids, allocations, strict=True):
            self._claims.take_off(uid, allocation)
        self._reserved[pod.uid] = Reserved(state, node_name, allocations, part)
        return None

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        reserved = self._reserved.pop(pod.uid, None)
        if reserved is None or reserved.part is None:
            return
        for uid, key in zip(reserved.part.uids, reserved.part.keys, strict=True):
            if self._claims.land(uid) and self._claims.get(key) is not None:
                self._claims.restore(key)

    async def released(self, pod: PodInfo, node_name: str) -> None:
        if pod.view is None or pod.uid in self._reserved:
            return  # it is on its way again, and needs its claims
        try:
            claims = claims_of(pod.view, pod.uid, self._claims)
        except ClaimsMissingError:
            return  # whoever deletes a claim takes its users off it
        await self._writer.release(pod, claims, self._claims.for_extended_resources(pod.name, pod.uid))

    def _fresh_state(self, pod: PodInfo) -> PodDevices | Status | None:
        """What was found out about the pod, if it is still so; looked up again otherwise."""
        state = self._latest
        if state is not None and state.pod is pod and state.revision == self._ledger.usage.revision:
            return state
        if not self.is_concerned(pod):
            return None
        again = self._state_of(pod)
        return None if again is SKIP else again

    def granted(self, pod: PodInfo) -> tuple[tuple[str, AllocationResult], ...]:
        """What a pod was given when it was believed on its node, claim by claim, until that is written."""
        reserved = self._reserved.get(pod.uid)
        if reserved is None or reserved.part is None:
            return ()
        return tuple(zip(reserved.part.names, reserved.allocations, strict=True))

    # PreBind

    def has_work(self, pod: PodInfo, node_name: str) -> bool:
        return pod.uid in self._reserved

    async def pre_bind(self, pod: PodInfo, node_name: str) -> Status | None:
        reserved = self._reserved.get(pod.uid)
        if reserved is None:
            return None
        try:
            await self._writer.write(pod, reserved)
            if self._writer.has_to_wait(reserved):
                note = f"waiting for binding conditions for device on node {node_name}"
                self._record_event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
                await self._writer.wait_ready(reserved)
        except DeviceWriteError as error:
            return Status.error(str(error))
        self._reserved.pop(pod.uid, None)
        return None


# --- obstacles --------------------------------------------------------------------------------------------------


def _out_of_reach(key: str) -> Obstacle:
    text = f"claim {key} has devices that cannot be used from here"
    return Obstacle(DynamicResources.name, ObstacleKind.DEVICE, text, {"claim": key})


def _claim_obstacles(name: str, claim: WantedClaim, pools: Sequence[PoolView], usage: Usage) -> list[Obstacle]:
    """Each request of the claim for which too few devices are free; or else the constraints between requests."""
    found = []
    for alternatives in claim.requests:
        counts = [_count_devices(request, pools, usage) for request in alternatives]
        if all(count[FREE] < _needed(request, count) for request, count in zip(alternatives, counts, strict=True)):
            needs = " or ".join(_request_text(request) for request in alternatives)
            has = " or ".join(_counts_text(count) for count in counts)
            details: dict[str, str | int] = {
                "claim": name,
                "request": alternatives[0].base_name,
                "needs": needs,
                **{verdict.replace(" ", "-"): counts[0][verdict] for verdict in _VERDICTS},
            }
            text = f"needs {needs}: {has}{_pool_problems_text(pools)}"
            found.append(Obstacle(DynamicResources.name, ObstacleKind.DEVICE, text, details))
    if not found and claim.constraints and any(claim.requests):
        attributes = ", ".join(each.match_attribute or each.distinct_attribute or "" for each in claim.constraints)
        if attributes:
            text = f"no free devices for {name} that agree on {attributes}"
            details = {"claim": name, "needs": attributes}
            found.append(Obstacle(DynamicResources.name, ObstacleKind.DEVICE, text, details))
    return found


def _lacking_share(part: Part, pools: Sequence[PoolView], usage: Usage) -> float:
    """The largest share of a request for which there is no device, not even one in use. 0: there are enough."""
    shares = [0.0]
    for claim in part.answers.wanted.claims:
        for alternatives in claim.requests:
            counts = [(request, _count_devices(request, pools, usage)) for request in alternatives]
            needed = [(_needed(request, count), count[FREE] + count[IN_USE]) for request, count in counts]
            shares.append(min((max(wanted - there, 0) / wanted for wanted, there in needed if wanted), default=0.0))
    return max(shares)


def _needed(request: Request, counts: Counter[str]) -> int:
    return max(1, sum(counts.values())) if request.is_all else request.count


def _count_devices(request: Request, pools: Iterable[PoolView], usage: Usage) -> Counter[str]:
    """How many devices of the request's class a node sees, by verdict."""
    counts: Counter[str] = Counter({FREE: 0})
    for pool in pools:
        for device, is_reached in zip(pool.devices, pool.reached, strict=True):
            try:
                is_one = request.device_class is not None and matches_class(request.device_class, device.kind)
                if is_one and is_reached:
                    counts[_verdict(request, device, usage)] += 1
            except SearchError:
                continue  # the decision ended in this error, which is reported instead
    return counts


def _verdict(request: Request, device: PooledDevice, usage: Usage) -> str:
    kind = device.kind
    if not is_selected(request, kind):
        return "too small" if _fails_by_capacity(request, kind) else "of another sort"
    if usage.is_taken(device.id) and not request.admin_access:
        return IN_USE
    if request.capacity or kind.capacities:
        consumed = consumption(kind.capacities, request.capacity)
        if consumed is None or not fits(kind.capacities, consumed):
            return "too small"
        if not fits(kind.capacities, consumed, usage.consumed.get(device.id, {})):
            return IN_USE
    return FREE if request.tolerates(kind) else "tainted"


def _fails_by_capacity(request: Request, kind: DeviceKind) -> bool:
    """Whether all expressions that do not select the device compare a capacity."""
    failing = [each for each in request.expressions if kind.selected.get(each) is False]
    return bool(failing) and all(_CAPACITY.fullmatch(each.strip()) for each in failing)


def _request_text(request: Request) -> str:
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
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in _VERDICTS if counts[verdict] or verdict == FREE)


def _pool_problems_text(pools: Sequence[PoolView]) -> str:
    problems = [f"pool {pool.id[1]} is being updated" for pool in pools if pool.is_incomplete]
    problems += [f"pool {pool.id[1]} contradicts itself" for pool in pools if pool.is_invalid]
    return f" ({', '.join(problems)})" if problems else ""
