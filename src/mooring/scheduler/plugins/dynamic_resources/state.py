"""What DynamicResources knows of one pod in one cycle: its claims, and what the rows say to them.

Comes in   the claims of a pod, the answers of the search
Goes out   for each row a bit set and a score; for the chosen row, what is to be allocated there

A pod's extended resources are devices on nodes that do not offer them otherwise. So rows differ in which of them the
claim for the pod's extended resources asks for (`ClaimsToAllocate`): in most clusters there is one part for all.

 1. What is wrong with the search goes before what is wrong with claims that have devices already, as in
    kube-scheduler v1.36; and only where nothing is wrong with the search, claims count as unavailable.
 2. Of errors that name different things, as many are told apart as a filter can. Rows come in the order of their
    names, so that the first, which is the one that is told, is always right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mooring.api.nodeselector import NodeMatcher
from mooring.api.views.devices import AllocationResult, ResourceClaim, ResourceClaimSpec
from mooring.api.views.pod import ContainerExtendedResourceRequest, Pod
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
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.devices.extended_resources import CLAIM_NAME, claim_for
from mooring.scheduler.framework.status import REASONS_MAX, Code, Reason
from mooring.scheduler.plugins.dynamic_resources.claims import alternatives_score, claim_uid

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
    """What is to be allocated on some rows, claim by claim."""

    outcomes: AllocationOutcomes
    specs: tuple[ResourceClaimSpec, ...]
    names: tuple[str, ...]
    """What texts call the claims."""
    keys: tuple[str, ...]
    uids: tuple[str, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    """Which container gets the devices of which request, for extended resources."""
    has_extended: bool


class PodAllocations(NamedTuple):
    """What was decided for a pod on its node, as the API server is to be told."""

    state: DynamicResourcesState
    node_name: str
    allocations: tuple[AllocationResult, ...]
    part: ClaimsToAllocate | None


class DynamicResourcesState:
    """One pod's claims in one cycle."""

    def __init__(
        self,
        pod: PodInfo,
        view: Pod,
        claims: tuple[ResourceClaim, ...],
        backed: Mapping[str, int],
        leftover: ResourceClaim | None,
        columns: Columns,
        manager: DRAManager,
        book: AllocationCache,
    ) -> None:
        self.pod = pod
        self.view = view
        self.claims = claims
        self.backed = backed
        """Extended resources that the pod requests, of which devices stand behind one at least."""
        self.leftover = leftover
        """The claim for them that an earlier attempt has left."""
        self.revision = manager.allocated.revision
        self.reach: dict[int, NodeMatcher] = {}
        """Where the devices of claims that have some can be reached."""
        self.unready: list[int] = []
        """Claims whose devices will not become ready any more."""
        self.unavailable: set[int] = set()
        """Claims with devices that are in the way on some row."""
        self._columns = columns
        self._manager = manager
        self._cache = book
        self._waiting = tuple(claim for claim in claims if claim.status.allocation is None)
        self._allocated_score = sum(alternatives_score(claim) for claim in claims)
        self._resources = sorted(backed)
        self._parts: dict[int, ClaimsToAllocate | None] = {}
        self._errors: list[str] = []

    @property
    def allocates(self) -> bool:
        """Whether anything is to be allocated."""
        return bool(self._waiting) or (bool(self.backed) and self.leftover is None)

    @property
    def scores_differ(self) -> bool:
        return self.allocates and (
            bool(self._allocated_score)
            or any(part is not None and part.outcomes.wanted.scores_alternatives for part in self._parts.values())
        )

    def reasons(self) -> tuple[Reason, ...]:
        return (*REASONS, *(Reason(text, Code.ERROR) for text in self._errors)) if self._errors else REASONS

    def refusals(self, rows: Int64s) -> Int64s:
        """Per row: why the devices there do not do."""
        if self.leftover is not None:
            return np.full(len(rows), _LEFT_OVER, dtype=np.int64)
        if not self.allocates:
            return self._unavailable_at(rows)
        if not self._resources and not self.reach and not self.unready:
            part = self._part(0)
            assert part is not None, f"{self.pod} has claims, and nothing to allocate"
            return self._refusals_of(part, rows)
        bits = np.zeros(len(rows), dtype=np.int64)
        for demand, at in self._by_demand(rows, bits):
            part = self._part(demand)
            if part is None:
                continue
            bits[at] = self._refusals_of(part, rows[at])
            free = at[bits[at] == 0]
            if len(free):
                bits[free] = self._unavailable_at(rows[free])
        return bits

    def scores(self, rows: Int64s) -> Int64s:
        """Per row: how early the alternatives are that the claims get there."""
        assert self.allocates, "only what is allocated now is scored"
        scores = np.zeros(len(rows), dtype=np.int64)
        for demand, at in self._by_demand(rows, np.zeros(len(rows), dtype=np.int64)):
            part = self._part(demand)
            if part is not None:
                scores[at] = part.outcomes.scores(rows[at]) + self._allocated_score
        return scores

    def parts_of(self, rows: Int64s) -> list[tuple[ClaimsToAllocate, Int64s]]:
        """What is to be allocated, each part with the places of its rows. Rows without a part are left out."""
        if not self.allocates:
            return []
        demands = self._by_demand(rows, np.zeros(len(rows), dtype=np.int64))
        return [(part, places) for demand, places in demands if (part := self._part(demand)) is not None]

    def part_at(self, row: int) -> ClaimsToAllocate | None:
        """What is to be allocated on a row; None: nothing."""
        parts = self.parts_of(np.array([row], dtype=np.int64))
        return parts[0][0] if parts else None

    def out_of_reach(self, row: int) -> list[int]:
        """The claims whose devices are of no use on a row."""
        rows = np.array([row], dtype=np.int64)
        beyond = [i for i, reach in self.reach.items() if not self._columns.node_selection.any_term(reach, rows)[0]]
        return sorted({*beyond, *self.unready} & set(range(len(self.claims))))

    # Extended resources

    def _by_demand(self, rows: Int64s, bits: Int64s) -> list[tuple[int, Int64s]]:
        """The places of rows, sorted by which extended resources must be devices there, as a bit set."""
        everywhere = np.arange(len(rows))
        if not self._resources:
            return [(0, everywhere)]
        demands = np.zeros(len(rows), dtype=np.int64)
        for place, name in enumerate(self._resources):
            offers = self._columns.resources.allocatable[self._columns.resources.slot(name), rows]
            if self._manager.class_resolver.get(name) is not None:
                demands |= np.where(offers == 0, 1 << place, 0)
            else:
                for index in np.flatnonzero(offers == 0).tolist():
                    node = self._columns.nodes[int(rows[index])]
                    if node is None or name not in node.status.allocatable:
                        bits[index] = _DOES_NOT_FIT
        found = everywhere[bits == 0]
        return [(int(demand), found[demands[found] == demand]) for demand in np.unique(demands[found])]

    def _part(self, demand: int) -> ClaimsToAllocate | None:
        """What is to be allocated on rows with such a demand; None: nothing at all."""
        if demand not in self._parts:
            self._parts[demand] = self._new_part(demand) if demand or self.claims else None
        return self._parts[demand]

    def _new_part(self, demand: int) -> ClaimsToAllocate:
        specs = [claim.spec for claim in self._waiting]
        keys = [claim.key for claim in self._waiting]
        uids = [claim_uid(claim) for claim in self._waiting]
        mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
        has_extended = bool(self.backed) and self.leftover is None
        if has_extended:
            wanted = [name for place, name in enumerate(self._resources) if demand >> place & 1]
            spec, mappings = claim_for(self.view, wanted, self._manager.class_resolver)
            specs.append(spec)
            keys.append(f"{self.pod.namespace}/{CLAIM_NAME}")
            uids.append(f"{self.pod.uid} {CLAIM_NAME}")
        outcomes = self._cache.outcomes_for(specs, self._columns.height)
        return ClaimsToAllocate(outcomes, tuple(specs), tuple(keys), tuple(keys), tuple(uids), mappings, has_extended)

    # Rows

    def _refusals_of(self, part: ClaimsToAllocate, rows: Int64s) -> Int64s:
        outcomes = part.outcomes.at(rows)
        bits = _BIT_TABLE[outcomes]
        if part.outcomes.has_trouble:
            troubled = np.flatnonzero((outcomes == FAILED) | (outcomes == TIMED_OUT))
            names = self._columns.node_names
            for index in sorted(troubled.tolist(), key=lambda index: names[rows[index]]):
                row = int(rows[index])
                if outcomes[index] == FAILED:
                    text = part.outcomes.errors[row].text(part.names)
                else:
                    text = f"node {names[row]}: timed out trying to allocate devices"
                bits[index] = self._error_bit(text)
        return bits

    def _unavailable_at(self, rows: Int64s) -> Int64s:
        """Per row: whether the devices that claims have already are out of reach."""
        refused = np.zeros(len(rows), dtype=np.bool_)
        for index, matcher in self.reach.items():
            beyond = ~self._columns.node_selection.any_term(matcher, rows)
            if beyond.any():
                self.unavailable.add(index)
                refused |= beyond
        if self.unready:
            self.unavailable.update(self.unready)
            refused[:] = True
        return np.where(refused, _NOT_AVAILABLE, 0)

    def _error_bit(self, text: str) -> int:
        if text not in self._errors and len(self._errors) < _ERRORS_MAX:
            self._errors.append(text)
        place = self._errors.index(text) if text in self._errors else _ERRORS_MAX - 1
        return 1 << (len(REASONS) + place)
