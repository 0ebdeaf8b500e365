"""The ResourceClaims of a pod, and their state on each node during one scheduling cycle.

`claims_of` returns the claims of a pod in order, or raises why the pod must wait. `DynamicResourcesState` has per row a
bit set of reasons and a score, and for the selected row the claims to allocate.

1. A claim from a template must be owned by the pod. A claim with the same name may be left over from a deleted pod.
2. A claim from a template may be omitted: then its status has no name.

An extended resource is satisfied by devices on nodes that do not report it as allocatable. So rows differ in the
requests of the claim for extended resources (`ClaimsToAllocate`). In most clusters they are the same for all rows.

3. The allocator's reasons take precedence over those of allocated claims, as in kube-scheduler v1.36. Allocated claims
   are checked only where the allocator succeeds.
4. A filter can report a limited number of different errors. Rows are evaluated in the order of node names, so that the
   first error, which is the one in the message, is always exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mooring.api.nodeselector import NodeMatcher
from mooring.api.views.devices import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimSpec,
)
from mooring.api.views.meta import controller_of, find_condition
from mooring.api.views.pod import ContainerExtendedResourceRequest, Pod, PodResourceClaim
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.devices.allocation_cache import (
    CANNOT,
    FAILED,
    FITS,
    INVALID_POOLS,
    STOPPED,
    TIMED_OUT,
    AllocationCache,
    AllocationOutcomes,
)
from mooring.scheduler.devices.claims import CLAIM_NAME, EXTENDED_RESOURCE_ANNOTATION, ClaimTracker, claim_for
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.devices.requests import ALTERNATIVES_MAX
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason


class ClaimsMissingError(Exception):
    """A claim of the pod is missing, is being deleted, or belongs to another pod."""


class DeviceBindingError(Exception):
    """A device has a binding failure condition."""


def claims_of(view: Pod, pod_uid: str, tracker: ClaimTracker) -> tuple[ResourceClaim, ...]:
    """The claims of a pod, in the order of its specification. Raises `ClaimsMissingError`."""
    found: list[ResourceClaim] = []
    namespace, name = view.metadata.namespace, view.metadata.name
    for use in view.spec.resource_claims:
        claim_name = _name_of(view, use)
        if claim_name is None:
            continue
        key = f"{namespace}/{claim_name}"
        claim = tracker.get(key)
        if claim is None:
            raise ClaimsMissingError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimsMissingError(f'resourceclaim "{claim_name}" is being deleted')
        if use.resource_claim_name is None:
            controller = controller_of(claim.metadata)
            if controller is None or controller.uid != pod_uid:
                raise ClaimsMissingError(
                    f"ResourceClaim {key} was not created for Pod {namespace}/{name} (Pod is not owner)"
                )
        found.append(claim)
    return tuple(found)


def _name_of(view: Pod, use: PodResourceClaim) -> str | None:
    if use.resource_claim_name is not None:
        return use.resource_claim_name
    if use.resource_claim_template_name is None:
        raise ClaimsMissingError(
            f'pod "{view.key}", spec.resourceClaim "{use.name}": none of the supported fields are set'
        )
    for status in view.status.resource_claim_statuses:
        if status.name == use.name:
            return status.resource_claim_name
    raise ClaimsMissingError(f'pod "{view.key}": ResourceClaim not created yet')


def claim_uid(claim: ResourceClaim) -> str:
    return claim.metadata.uid or claim.key


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for)


def is_only_for(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether no other pod has reserved the claim."""
    consumers = claim.status.reserved_for
    return not consumers or (len(consumers) == 1 and consumers[0].uid == pod_uid)


def alternatives_score(claim: ResourceClaim) -> int:
    """The score of an allocated claim, the same on every node: higher for earlier alternatives."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    got = {result.request for result in allocation.devices.results if result.request.count("/") == 1}
    return sum(
        ALTERNATIVES_MAX - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in got
    )


# Binding conditions


def needs_binding(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def is_ready(claim: ResourceClaim) -> bool:
    """Whether the binding conditions of all devices are true. Raises `DeviceBindingError` on a failure condition."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        for name in result.binding_failure_conditions:
            failed = find_condition(status.conditions, name)
            if failed is not None and failed.status == "True":
                raise DeviceBindingError(
                    f"device binding failed: claim={claim.metadata.name}, reason={failed.reason}, "
                    f'message="{failed.message}"'
                )
        for name in result.binding_conditions:
            condition = find_condition(status.conditions, name)
            if condition is None or condition.status != "True":
                return False
    return True


def is_overdue(claim: ResourceClaim, now_wall_s: float, timeout_s: float) -> bool:
    """Whether the binding timeout of a claim's devices has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not needs_binding(claim):
        return False
    return parse_rfc3339(allocation.allocation_timestamp) + timeout_s < now_wall_s


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device):
            return status
    return None


REASONS = (
    Reason("cannot allocate all claims", Code.UNRESOLVABLE),
    Reason("invalid resource pools were encountered", Code.UNRESOLVABLE),
    Reason("asked by caller to stop allocating devices: context canceled", Code.UNRESOLVABLE),
    Reason("resourceclaim not available on the node", Code.UNRESOLVABLE),
    Reason("cannot schedule extended resource claim", Code.UNRESOLVABLE),
    Reason("cannot fit resource", Code.UNRESOLVABLE),
)
_BITS = {FITS: 0, CANNOT: 1, INVALID_POOLS: 2, STOPPED: 4, TIMED_OUT: 0, FAILED: 0}
_BIT_TABLE: Int64s = np.array([_BITS[outcome] for outcome in range(len(_BITS))], dtype=np.int64)
_NOT_AVAILABLE = 8
_LEFT_OVER = 16
_DOES_NOT_FIT = 32
_ERRORS_MAX = REASONS_MAX - len(REASONS)


class ClaimsToAllocate(NamedTuple):
    """The claims to allocate on some rows."""

    outcomes: AllocationOutcomes
    specs: tuple[ResourceClaimSpec, ...]
    names: tuple[str, ...]
    """The names of the claims in messages."""
    keys: tuple[str, ...]
    uids: tuple[str, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    """Which container uses which request, for extended resources."""
    has_extended: bool


class PodAllocations(NamedTuple):
    """The allocations to write for a pod on its selected node."""

    state: DynamicResourcesState
    node_name: str
    allocations: tuple[AllocationResult, ...]
    to_allocate: ClaimsToAllocate | None

    def allocation_for(self, claim: ResourceClaim) -> tuple[str, AllocationResult] | None:
        """The allocation of a claim and the uid under which it is pending; None if the pod does not allocate it."""
        if self.to_allocate is None:
            return None
        found = dict(zip(self.to_allocate.uids, self.allocations, strict=True))
        uid = claim_uid(claim)
        if uid not in found and claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
            uid = self.to_allocate.uids[-1]  # the claim was created after the allocation
        return (uid, found[uid]) if uid in found else None


class DynamicResourcesState:
    """The claims of one pod in one scheduling cycle."""

    def __init__(
        self,
        pod: PodInfo,
        view: Pod,
        claims: tuple[ResourceClaim, ...],
        backed: Mapping[str, int],
        leftover: ResourceClaim | None,
        columns: Columns,
        manager: DRAManager,
        cache: AllocationCache,
    ) -> None:
        self.pod = pod
        self.view = view
        self.claims = claims
        self.backed = backed
        """The pod's requests for extended resources, if a DeviceClass provides at least one of them."""
        self.leftover = leftover
        """The claim for extended resources that an earlier attempt has created."""
        self.revision = manager.allocated.revision
        self.node_selectors: dict[int, NodeMatcher] = {}
        """By claim: the nodes where the devices of an allocated claim are available."""
        self.not_ready: list[int] = []
        """Claims whose binding conditions have failed or timed out."""
        self.unavailable: set[int] = set()
        """Allocated claims that rule out a row."""
        self._columns = columns
        self._manager = manager
        self._cache = cache
        self._waiting = tuple(claim for claim in claims if claim.status.allocation is None)
        self._allocated_score = sum(alternatives_score(claim) for claim in claims)
        self._resources = sorted(backed)
        self._to_allocate_by_demand: dict[int, ClaimsToAllocate | None] = {}
        self._errors: list[str] = []

    @property
    def allocates(self) -> bool:
        """Whether the pod has claims to allocate."""
        return bool(self._waiting) or (bool(self.backed) and self.leftover is None)

    @property
    def scores_differ(self) -> bool:
        return self.allocates and (
            bool(self._allocated_score)
            or any(
                to_allocate is not None and to_allocate.outcomes.request.scores_alternatives
                for to_allocate in self._to_allocate_by_demand.values()
            )
        )

    def reasons(self) -> tuple[Reason, ...]:
        return (*REASONS, *(Reason(text, Code.ERROR) for text in self._errors)) if self._errors else REASONS

    def reasons_bits(self, rows: Int64s) -> Int64s:
        """Per row: the reasons to reject it."""
        if self.leftover is not None:
            return np.full(len(rows), _LEFT_OVER, dtype=np.int64)
        if not self.allocates:
            return self._availability_bits(rows)
        if not self._resources and not self.node_selectors and not self.not_ready:
            to_allocate = self._to_allocate(0)
            assert to_allocate is not None, f"{self.pod} has claims and nothing to allocate"
            return self._allocation_bits(to_allocate, rows)
        bits = np.zeros(len(rows), dtype=np.int64)
        for demand, at in self._by_demand(rows, bits):
            to_allocate = self._to_allocate(demand)
            if to_allocate is None:
                continue
            bits[at] = self._allocation_bits(to_allocate, rows[at])
            free = at[bits[at] == 0]
            if len(free):
                bits[free] = self._availability_bits(rows[free])
        return bits

    def scores(self, rows: Int64s) -> Int64s:
        """Per row: higher for earlier alternatives."""
        assert self.allocates, "there are no claims to allocate"
        scores = np.zeros(len(rows), dtype=np.int64)
        for demand, at in self._by_demand(rows, np.zeros(len(rows), dtype=np.int64)):
            to_allocate = self._to_allocate(demand)
            if to_allocate is not None:
                scores[at] = to_allocate.outcomes.scores(rows[at]) + self._allocated_score
        return scores

    def to_allocate_on(self, rows: Int64s) -> list[tuple[ClaimsToAllocate, Int64s]]:
        """The claims to allocate, with the indexes of their rows. Rows without any are left out."""
        if not self.allocates:
            return []
        demands = self._by_demand(rows, np.zeros(len(rows), dtype=np.int64))
        return [
            (to_allocate, places)
            for demand, places in demands
            if (to_allocate := self._to_allocate(demand)) is not None
        ]

    def to_allocate_at(self, row: int) -> ClaimsToAllocate | None:
        """The claims to allocate on a row; None if there are none."""
        found = self.to_allocate_on(np.array([row], dtype=np.int64))
        return found[0][0] if found else None

    def unavailable_at(self, row: int) -> list[int]:
        """The allocated claims whose devices are not available on a row."""
        rows = np.array([row], dtype=np.int64)
        any_term = self._columns.node_selection.any_term
        elsewhere = [index for index, selector in self.node_selectors.items() if not any_term(selector, rows)[0]]
        return sorted({*elsewhere, *self.not_ready} & set(range(len(self.claims))))

    # Extended resources

    def _by_demand(self, rows: Int64s, bits: Int64s) -> list[tuple[int, Int64s]]:
        """The indexes of rows by the bit set of extended resources that devices must satisfy there."""
        everywhere = np.arange(len(rows))
        if not self._resources:
            return [(0, everywhere)]
        demands = np.zeros(len(rows), dtype=np.int64)
        for place, name in enumerate(self._resources):
            offers = self._columns.resources.allocatable[self._columns.resources.index_of(name), rows]
            if self._manager.class_resolver.get(name) is not None:
                demands |= np.where(offers == 0, 1 << place, 0)
            else:
                for index in np.flatnonzero(offers == 0).tolist():
                    node = self._columns.nodes[int(rows[index])]
                    if node is None or name not in node.status.allocatable:
                        bits[index] = _DOES_NOT_FIT
        found = everywhere[bits == 0]
        return [(int(demand), found[demands[found] == demand]) for demand in np.unique(demands[found])]

    def _to_allocate(self, demand: int) -> ClaimsToAllocate | None:
        """The claims to allocate on rows with this demand; None if there are none."""
        if demand not in self._to_allocate_by_demand:
            self._to_allocate_by_demand[demand] = (
                self._new_claims_to_allocate(demand) if demand or self.claims else None
            )
        return self._to_allocate_by_demand[demand]

    def _new_claims_to_allocate(self, demand: int) -> ClaimsToAllocate:
        specs = [claim.spec for claim in self._waiting]
        keys = [claim.key for claim in self._waiting]
        uids = [claim_uid(claim) for claim in self._waiting]
        mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
        has_extended = bool(self.backed) and self.leftover is None
        if has_extended:
            resources = [name for place, name in enumerate(self._resources) if demand >> place & 1]
            spec, mappings = claim_for(self.view, resources, self._manager.class_resolver)
            specs.append(spec)
            keys.append(f"{self.pod.namespace}/{CLAIM_NAME}")
            uids.append(f"{self.pod.uid} {CLAIM_NAME}")
        outcomes = self._cache.outcomes_for(specs, self._columns.height)
        return ClaimsToAllocate(outcomes, tuple(specs), tuple(keys), tuple(keys), tuple(uids), mappings, has_extended)

    # Rows

    def _allocation_bits(self, to_allocate: ClaimsToAllocate, rows: Int64s) -> Int64s:
        outcomes = to_allocate.outcomes.at(rows)
        bits = _BIT_TABLE[outcomes]
        if to_allocate.outcomes.has_errors:
            with_errors = np.flatnonzero((outcomes == FAILED) | (outcomes == TIMED_OUT))
            names = self._columns.node_names
            for index in sorted(with_errors.tolist(), key=lambda index: names[rows[index]]):
                row = int(rows[index])
                if outcomes[index] == FAILED:
                    text = to_allocate.outcomes.errors[row].text(to_allocate.names)
                else:
                    text = f"node {names[row]}: timed out trying to allocate devices"
                bits[index] = self._error_bit(text)
        return bits

    def _availability_bits(self, rows: Int64s) -> Int64s:
        """Per row: whether the devices of allocated claims are not available."""
        rejected = np.zeros(len(rows), dtype=np.bool_)
        for index, matcher in self.node_selectors.items():
            beyond = ~self._columns.node_selection.any_term(matcher, rows)
            if beyond.any():
                self.unavailable.add(index)
                rejected |= beyond
        if self.not_ready:
            self.unavailable.update(self.not_ready)
            rejected[:] = True
        return np.where(rejected, _NOT_AVAILABLE, 0)

    def _error_bit(self, text: str) -> int:
        if text not in self._errors and len(self._errors) < _ERRORS_MAX:
            self._errors.append(text)
        place = self._errors.index(text) if text in self._errors else _ERRORS_MAX - 1
        return 1 << (len(REASONS) + place)
