"""The allocator's outcome for each node, cached until devices change.

Input: the requests of a pod's claims, and rows. Output: per row an outcome and a score; for one row, the devices.

Pods of one template have the same requests. Rows with the same code (see `dra_manager`) have the same outcome. So for
a known set of requests only the row of the previous pod is evaluated, and for a new one a row of each code.

1. A row is evaluated on demand. Rows that other filters reject cost nothing.
2. Errors name pools and devices, so they are cached for no other row, and evaluated again each time.
3. After a timeout no other row is evaluated for this pod, because the decision ends in an error.
4. The cache holds at most `CACHE_BYTES_MAX`. The least recently used requests are evicted.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from mooring.api.views.devices import ResourceClaimSpec
from mooring.kit.clock import Clock
from mooring.scheduler.cache.arrays import Int64s, Rows, grown
from mooring.scheduler.devices.allocator import Allocation, AllocationTimeout, Allocator, Deadline
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.devices.requests import AllocationRequest, DeviceAllocationError

CACHE_BYTES_MAX = 32 << 20
CACHE_ENTRIES_MIN = 8
"""Minimum number of cached requests in a cluster of any size."""
ROW_BYTES = 8 + 8
FEW_ROWS = 32
"""Up to this many rows are looked up one by one; more are grouped by code first."""

UNKNOWN = -1
FITS = 0
CANNOT = 1
INVALID_POOLS = 2
TIMED_OUT = 3
STOPPED = 4
FAILED = 5

_encode = msgspec.msgpack.Encoder().encode


class AllocationOutcomes:
    """The outcomes of all rows for the same requests."""

    def __init__(self, request: AllocationRequest, manager: DRAManager, clock: Clock | None, timeout_s: float) -> None:
        self.request = request
        self.errors: dict[int, DeviceAllocationError] = {}
        """The errors of rows whose outcome is FAILED."""
        self._manager = manager
        self._clock = clock
        self._timeout_s = timeout_s
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        """By code and by the number of the shared pools' state: outcome and score."""
        self._outcomes: Int64s = np.zeros(0, dtype=np.int64)
        self._scores: Int64s = np.zeros(0, dtype=np.int64)
        self._position = -1
        self._generation = -1
        self._group_uses: list[int] = []
        self._failed_rows: set[int] = set()
        """Rows with an error or a timeout."""
        self._has_timed_out = False

    @property
    def has_errors(self) -> bool:
        """Whether a row has an error or a timeout."""
        return bool(self._failed_rows)

    def sync(self, height: int) -> None:
        """Drops the outcomes of rows that changed since the last call."""
        manager = self._manager
        changed = manager.changes.since(self._position) if self._position >= 0 else None
        if changed is None or self._generation != manager.generation or len(self._outcomes) < height:
            if self._generation != manager.generation:
                self._known.clear()
            self._outcomes, self._scores = grown(self._outcomes, height), grown(self._scores, height)
            self._outcomes[:] = UNKNOWN
        else:
            self._outcomes[changed] = UNKNOWN
            if self._group_uses != manager.group_uses:
                known = self._group_uses
                moved = [g for g, use in enumerate(manager.group_uses) if g >= len(known) or known[g] != use]
                self._outcomes[:height][np.isin(manager.groups[:height], moved)] = UNKNOWN
            if self._failed_rows:
                self._outcomes[list(self._failed_rows)] = UNKNOWN
        self._failed_rows.clear()
        self._has_timed_out = False
        self.errors.clear()
        self._position, self._generation = manager.changes.position, manager.generation
        self._group_uses = list(manager.group_uses)

    def at(self, rows: Int64s) -> Int64s:
        """Per row: FITS, CANNOT, … Unknown rows are evaluated."""
        found = self._outcomes.take(rows)
        unknown = found == UNKNOWN
        if unknown.any():
            places = unknown.nonzero()[0]
            self._evaluate_rows(rows[places])
            found[places] = self._outcomes[rows[places]]
        return found

    def scores(self, rows: Rows) -> Int64s:
        """Per row that fits: higher for earlier alternatives."""
        return self._scores[rows]

    def find(self, row: int) -> Allocation | None:
        """The devices on one row. Raises `DeviceAllocationError` and `AllocationTimeout`."""
        inventory = self._manager.inventory
        if inventory.error is not None:
            raise DeviceAllocationError(inventory.error)
        deadline = Deadline(self._clock, self._timeout_s)
        return Allocator(inventory.pools(row), self._manager.allocated, self.request, deadline).run()

    def _evaluate_rows(self, rows: Int64s) -> None:
        manager = self._manager
        uses = np.array(manager.group_uses, dtype=np.int64)[manager.groups[rows]]
        codes = manager.codes[rows]
        if len(rows) <= FEW_ROWS:
            for row, code, use in zip(rows.tolist(), codes.tolist(), uses.tolist(), strict=True):
                self._outcomes[row], self._scores[row] = self._outcome(row, code, use)
            return
        for alike in manager.group_alike(rows):
            first = int(alike[0])
            outcome, score = self._outcome(int(rows[first]), int(codes[first]), int(uses[first]))
            self._outcomes[rows[alike]], self._scores[rows[alike]] = outcome, score
            if outcome >= TIMED_OUT:
                for index in alike[1:].tolist():
                    row = int(rows[index])
                    self._outcomes[row], self._scores[row] = self._outcome(row, int(codes[index]), int(uses[index]))

    def _outcome(self, row: int, code: int, use: int) -> tuple[int, int]:
        known = self._known.get((code, use))
        if known is not None:
            return known
        outcome = self._evaluate(row)
        if outcome[0] < TIMED_OUT:
            self._known[code, use] = outcome
        else:
            self._failed_rows.add(row)
        return outcome

    def _evaluate(self, row: int) -> tuple[int, int]:
        if self._has_timed_out:
            return STOPPED, 0
        try:
            found = self.find(row)
        except AllocationTimeout:
            self._has_timed_out = True
            return TIMED_OUT, 0
        except DeviceAllocationError as error:
            self.errors[row] = error
            return FAILED, 0
        if found is not None:
            return FITS, found.score(self.request)
        pools = self._manager.inventory.pools(row)
        return INVALID_POOLS if any(pool.is_invalid for pool in pools) else CANNOT, 0


class AllocationCache:
    """The outcomes for the requests of recent pods."""

    def __init__(self, manager: DRAManager, clock: Clock | None, timeout_s: float) -> None:
        self._manager = manager
        self._clock = clock
        self._timeout_s = timeout_s
        self._entries: dict[bytes, AllocationOutcomes] = {}
        self._classes_version = -1

    def outcomes_for(self, specs: Sequence[ResourceClaimSpec], height: int) -> AllocationOutcomes:
        """The outcomes for claims with these specifications, current for rows below `height`."""
        classes = self._manager.classes
        if self._classes_version != classes.version:
            self._entries.clear()
            self._classes_version = classes.version
        key = _encode(specs)
        outcomes = self._entries.pop(key, None)  # and inserted again as the most recently used
        if outcomes is None:
            outcomes = AllocationOutcomes(
                AllocationRequest(specs, classes), self._manager, self._clock, self._timeout_s
            )
            while len(self._entries) >= max(CACHE_ENTRIES_MIN, CACHE_BYTES_MAX // (ROW_BYTES * max(1, height))):
                del self._entries[next(iter(self._entries))]
        self._entries[key] = outcomes
        outcomes.sync(height)
        return outcomes
