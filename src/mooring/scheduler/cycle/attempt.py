"""One attempt to schedule a pod: which plugins ran, what each node answered, which nodes are feasible.

Written by PreFilter and Filter; read by scoring, PostFilter plugins and the diagnosis.

1. `first[row]` is the number of the filter that rejected the row; `FITS` if none did; `LEFT_OUT` if the row is dead
   or excluded by a PreFilter's node names; `UNSEEN` if the search ended before it; `BY_EXTENDER` if only an extender
   rejected it. `bits[row]` holds the reasons of that filter. Both are computed on demand: a pod that fits needs
   neither.
2. An attempt describes the columns at the time it was made. Read it before they change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, ReasonBits, Rows, UInt8s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.result_cache import FITS, SignatureResults
from mooring.scheduler.framework.profile import FilterUse, Profile
from mooring.scheduler.framework.status import Code, Reason, Status, code_of, status_of

LEFT_OUT = 254
"""`first` of rows that no filter was asked about."""
UNSEEN = 253
"""`first` of rows that the search did not reach: they have no status."""
BY_EXTENDER = 252
"""`first` of rows that fit all filters and that an extender rejected."""


class Attempt:
    """The results of PreFilter and Filter for one pod."""

    __slots__ = (
        "_answers",
        "_bits",
        "_feasible",
        "_first",
        "asked",
        "columns",
        "extender_statuses",
        "feasible_count",
        "fits",
        "fits_as_cached",
        "found",
        "is_unrestricted",
        "naming_plugins",
        "node_names",
        "other_plugins",
        "pod",
        "pre_filter_status",
        "profile",
        "rejects_as_cached",
        "results",
        "states",
        "unseen",
    )

    def __init__(self, pod: PodInfo, profile: Profile, columns: Columns, results: SignatureResults) -> None:
        self.pod = pod
        self.profile = profile
        self.columns = columns
        self.results = results
        self.states: dict[str, Any] = results.states.filters
        """The filter state of each plugin that applies, by name."""
        self.asked: list[FilterUse] = []
        """The filters among them whose answers are not cached, and that were called for this pod."""
        self.pre_filter_status: Status | None = None
        """Set if a PreFilter ended the attempt."""
        self.node_names: frozenset[str] | None = None
        """The only nodes that PreFilters allow; None: all."""
        self.naming_plugins: tuple[str, ...] = ()
        self.fits: Bools | None = None
        """Per row: whether it fits every filter; None if only `feasible` is known."""
        self.feasible_count = 0
        self._feasible: Rows | None = None
        self.rejects_as_cached = False
        """Whether all rejections are those of the cached filters."""
        self.fits_as_cached = False
        """Whether the feasible rows are those that fit the cached filters."""
        self.is_unrestricted = True
        """Whether the pod is nominated to no node, and no PreFilter named nodes."""
        self.found: Int64s | None = None
        """The feasible rows in the order of the search, if nodes are sampled."""
        self.unseen: Int64s | None = None
        """Rows that the search did not reach, if there are any."""
        self.extender_statuses: dict[str, Status] = {}
        """What extenders said against nodes, by name: they may name whomever they like."""
        self.other_plugins: tuple[str, ...] = ()
        """Who took nodes away without being a plugin."""
        self._first: UInt8s | None = None
        self._bits: Int64s | None = None
        self._answers: list[tuple[FilterUse, Rows, ReasonBits]] = []

    @property
    def feasible(self) -> Rows:
        """The rows that can take the pod, ascending."""
        if self._feasible is None:
            if self.fits is None:
                return slice(0, 0)
            is_everywhere = self.feasible_count == len(self.fits)
            self._feasible = slice(0, len(self.fits)) if is_everywhere else self.fits.nonzero()[0]
        return self._feasible

    def is_rejected_after(self, number: int) -> Bools:
        """Per row: whether a cached filter rejects it and all of them come after this one in the profile's order."""
        first = self._first if self._first is not None else self.results.arrays.first[: self.columns.height]
        return (first > number) & (first < BY_EXTENDER)

    def set_fits(self, fits: Bools, count: int) -> None:
        """Set the rows that fit."""
        self.fits, self.feasible_count, self._feasible = fits, count, None

    def set_feasible(self, rows: Int64s) -> None:
        """Set the feasible rows, ascending."""
        self.fits, self.feasible_count, self._feasible = None, len(rows), rows

    @property
    def first(self) -> UInt8s:
        self._put_together()
        assert self._first is not None
        return self._first

    @property
    def bits(self) -> Int64s:
        self._put_together()
        assert self._bits is not None
        return self._bits

    def answered(self, use: FilterUse, rows: Rows, answer: ReasonBits) -> None:
        """Store the answer of a filter until `first` or `bits` is read."""
        self._answers.append((use, rows, answer))

    def _put_together(self) -> None:
        if self._first is not None and self._bits is not None and not self._answers:
            return
        height = self.columns.height
        if self._first is None or self._bits is None:
            arrays = self.results.arrays
            self._first, self._bits = arrays.first[:height].copy(), arrays.bits[:height].copy()
            if self.columns.node_count != height:
                self._first[~self.columns.alive[:height]] = LEFT_OUT
        for use, rows, answer in self._answers:
            first, bits = self._first[rows], self._bits[rows]
            earlier = (answer != 0) & (first > use.number) & (first != LEFT_OUT)
            self._first[rows] = np.where(earlier, np.uint8(use.number), first)
            self._bits[rows] = np.where(earlier, answer, bits)
        self._answers = []
        if self.unseen is not None:
            self._first[self.unseen] = UNSEEN

    def mark_unseen(self, rows: Int64s) -> None:
        """The search ended before these rows."""
        self.unseen = rows
        self.rejects_as_cached = False
        if self._first is not None:
            self._first[rows] = UNSEEN

    def narrow(self, found: Int64s, statuses: dict[str, Status]) -> None:
        """Extenders left these rows. Rows that they dropped without a status count as not reached."""
        first, rejected = self.first, self.columns.rows_named(statuses)
        first[first == FITS] = UNSEEN
        # An extender may reject a node that a plugin rejected first. The extender's status is reported.
        overruled = sorted(
            self.profile.filters[n].plugin.name for n in set(first[rejected].tolist()) if n < BY_EXTENDER
        )
        self.other_plugins += tuple(overruled)
        first[rejected] = BY_EXTENDER
        first[found] = FITS
        self.extender_statuses = statuses
        self.found = found
        self.set_feasible(np.sort(found))
        self.rejects_as_cached = self.fits_as_cached = False

    def was_pre_filtered(self, plugin: str) -> bool:
        """Whether the plugin's PreFilter ran before another one ended the attempt."""
        names = [each.name for each in self.profile.pre_filters]
        status = self.pre_filter_status
        if status is not None and status.plugin and status.code is not Code.UNSCHEDULABLE:
            names = names[: names.index(status.plugin)]
        return plugin in names

    @property
    def may_have_failed(self) -> bool:
        """Whether a filter that was called may report an error."""
        return any(
            use.can_fail and any(reason.code is Code.ERROR for reason in self.reasons_of(use)) for use in self.asked
        )

    def reasons_of(self, use: FilterUse) -> tuple[Reason, ...]:
        return tuple(use.plugin.reasons(self.states[use.plugin.name]))

    def status_at(self, row: int) -> Status | None:
        """Why a row is rejected; None if it fits."""
        number = int(self.first[row])
        if number == FITS:
            return None
        if number == LEFT_OUT:
            return self.left_out()
        if number == BY_EXTENDER:
            return self.extender_statuses[self.columns.node_names[row]]
        use = self.profile.filters[number]
        return status_of(use.plugin.name, int(self.bits[row]), self.reasons_of(use))

    def left_out(self) -> Status:
        """What is said of nodes that were not even asked."""
        names = " ".join(sorted(self.naming_plugins))
        return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{names}]",))

    def rejections(self) -> list[tuple[FilterUse, Int64s, Int64s]]:
        """The filters that rejected rows, each with those rows and their reason bits."""
        counts = np.bincount(self.first, minlength=FITS + 1)
        found = []
        for use in self.profile.filters:
            if counts[use.number]:
                rows = np.flatnonzero(self.first == use.number)
                found.append((use, rows, self.bits[rows]))
        return found

    def is_rejected_with(self, code: Code) -> Bools:
        """Per row: whether a filter or an extender rejected it with this code."""
        is_rejected = np.zeros(len(self.first), dtype=np.bool_)
        for use, rows, bits in self.rejections():
            reasons = self.reasons_of(use)
            severer = sum(1 << n for n, r in enumerate(reasons) if r.code.severity > code.severity)
            alike = sum(1 << n for n, r in enumerate(reasons) if r.code is code)
            if alike:
                is_rejected[rows] = (bits & alike != 0) & (bits & severer == 0) if severer else bits & alike != 0
        if self.extender_statuses:
            is_rejected[self.columns.rows_named(n for n, r in self.extender_statuses.items() if r.code is code)] = True
        return is_rejected

    @property
    def left_out_count(self) -> int:
        """How many nodes were not even asked, or the search did not get to."""
        if self.node_names is None:
            return 0
        height = self.columns.height
        is_left_out = (self.first == LEFT_OUT) | (self.first == UNSEEN)
        return int(np.count_nonzero(is_left_out & self.columns.alive[:height]))

    def code_at(self, row: int) -> Code:
        """The code of a row's status."""
        number = int(self.first[row])
        if number == FITS:
            return Code.SUCCESS
        if number in (LEFT_OUT, UNSEEN):
            return Code.UNRESOLVABLE
        if number == BY_EXTENDER:
            return self.extender_statuses[self.columns.node_names[row]].code
        return code_of(int(self.bits[row]), self.reasons_of(self.profile.filters[number]))
