"""What the search says of every row, kept: for pods that want the same, only rows that changed are searched again.

Comes in   what is wanted, and the rows in question
Goes out   for each row an outcome and a score; for one row, the devices themselves

Pods of one template want the same. Rows in the same situation (see `manager`) have the same answer. So a new pod of a
known kind costs the row on which the one before it was placed, and a new kind costs one search for each situation.

 1. A row is searched when it is asked about: what other filters refuse costs nothing.
 2. Errors name pools and devices, so they belong to their row and are searched for again each time.
 3. After one search has timed out no other is begun for this pod: the decision ends in an error anyway.
 4. What is kept takes at most `CACHE_BYTES_MAX`; the kinds unused for longest are forgotten.
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
from mooring.scheduler.devices.requests import AllocationError, AllocationRequest

CACHE_BYTES_MAX = 32 << 20
CACHE_ENTRIES_MIN = 8
"""So many kinds are kept however large the cluster."""
ROW_BYTES = 8 + 8
FEW_ROWS = 32
"""Up to so many rows are looked up one by one; more are sorted by situation first."""

UNKNOWN = -1
FITS = 0
CANNOT = 1
INVALID_POOLS = 2
TIMED_OUT = 3
STOPPED = 4
FAILED = 5

_encode = msgspec.msgpack.Encoder().encode


class AllocationOutcomes:
    """The outcomes of all rows for one kind of wants."""

    def __init__(self, wanted: AllocationRequest, manager: DRAManager, clock: Clock | None, timeout_s: float) -> None:
        self.wanted = wanted
        self.errors: dict[int, AllocationError] = {}
        """What went wrong on rows whose outcome is FAILED."""
        self._manager = manager
        self._clock = clock
        self._timeout_s = timeout_s
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        """By code and by the number of what is taken of shared pools: outcome and score."""
        self._outcomes: Int64s = np.zeros(0, dtype=np.int64)
        self._scores: Int64s = np.zeros(0, dtype=np.int64)
        self._position = -1
        self._generation = -1
        self._group_uses: list[int] = []
        self._troubled: set[int] = set()
        """Rows whose search ended in an error, or did not end."""
        self._has_timed_out = False

    @property
    def has_trouble(self) -> bool:
        """Whether the search failed or timed out on some row."""
        return bool(self._troubled)

    def sync(self, height: int) -> None:
        """Forgets what was known of rows that changed since."""
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
            if self._troubled:
                self._outcomes[list(self._troubled)] = UNKNOWN
        self._troubled.clear()
        self._has_timed_out = False
        self.errors.clear()
        self._position, self._generation = manager.changes.position, manager.generation
        self._group_uses = list(manager.group_uses)

    def at(self, rows: Int64s) -> Int64s:
        """Per row: FITS, CANNOT, … Rows that nobody has asked about yet are searched now."""
        found = self._outcomes.take(rows)
        unknown = found == UNKNOWN
        if unknown.any():
            asked = unknown.nonzero()[0]
            self._ask(rows[asked])
            found[asked] = self._outcomes[rows[asked]]
        return found

    def scores(self, rows: Rows) -> Int64s:
        """Per row that fits: more the earlier the alternatives that can be had."""
        return self._scores[rows]

    def find(self, row: int) -> Allocation | None:
        """The devices on one row. Raises `AllocationError` and `AllocationTimeout`."""
        inventory = self._manager.inventory
        if inventory.fault is not None:
            raise AllocationError(inventory.fault)
        deadline = Deadline(self._clock, self._timeout_s)
        return Allocator(inventory.pools(row), self._manager.allocated, self.wanted, deadline).run()

    def _ask(self, rows: Int64s) -> None:
        manager = self._manager
        uses = np.array(manager.group_uses, dtype=np.int64)[manager.groups[rows]]
        codes = manager.codes[rows]
        if len(rows) <= FEW_ROWS:
            for row, code, use in zip(rows.tolist(), codes.tolist(), uses.tolist(), strict=True):
                self._outcomes[row], self._scores[row] = self._outcome(row, code, use)
            return
        for alike in manager.alike(rows):
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
        outcome = self._searched(row)
        if outcome[0] < TIMED_OUT:
            self._known[code, use] = outcome
        else:
            self._troubled.add(row)
        return outcome

    def _searched(self, row: int) -> tuple[int, int]:
        if self._has_timed_out:
            return STOPPED, 0
        try:
            found = self.find(row)
        except AllocationTimeout:
            self._has_timed_out = True
            return TIMED_OUT, 0
        except AllocationError as error:
            self.errors[row] = error
            return FAILED, 0
        if found is not None:
            return FITS, found.score(self.wanted)
        pools = self._manager.inventory.pools(row)
        return INVALID_POOLS if any(pool.is_invalid for pool in pools) else CANNOT, 0


class AllocationCache:
    """The answers for what pods wanted lately."""

    def __init__(self, manager: DRAManager, clock: Clock | None, timeout_s: float) -> None:
        self._manager = manager
        self._clock = clock
        self._timeout_s = timeout_s
        self._entries: dict[bytes, AllocationOutcomes] = {}
        self._classes_version = -1

    def outcomes_for(self, specs: Sequence[ResourceClaimSpec], height: int) -> AllocationOutcomes:
        """The answers for claims that ask for this, up to date for as many rows."""
        classes = self._manager.classes
        if self._classes_version != classes.version:
            self._entries.clear()
            self._classes_version = classes.version
        key = _encode(specs)
        outcomes = self._entries.pop(key, None)  # put back behind all others: it is the one used last
        if outcomes is None:
            outcomes = AllocationOutcomes(
                AllocationRequest(specs, classes), self._manager, self._clock, self._timeout_s
            )
            while len(self._entries) >= max(CACHE_ENTRIES_MIN, CACHE_BYTES_MAX // (ROW_BYTES * max(1, height))):
                del self._entries[next(iter(self._entries))]
        self._entries[key] = outcomes
        outcomes.sync(height)
        return outcomes
