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
"""The number of rows that nobody was asked about."""
UNSEEN = 253
"""The number of rows that the search did not get to: nothing is said about them."""
BY_EXTENDER = 252
"""The number of rows that all filters let through and an extender refused."""


class Attempt:
    """Everything that filtering found out about one pod."""

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
        "is_ordinary",
        "naming_plugins",
        "node_names",
        "other_plugins",
        "pod",
        "pre_filter_status",
        "profile",
        "results",
        "says_as_cached",
        "states",
        "unseen",
    )

    def __init__(self, pod: PodInfo, profile: Profile, columns: Columns, results: SignatureResults) -> None:
        self.pod = pod
        self.profile = profile
        self.columns = columns
        self.results = results
        self.states: dict[str, Any] = results.states.filters
        """The filter state of each plugin that has a say, by name."""
        self.asked: list[FilterUse] = []
        """The filters among them that read the cluster, and so were asked for this pod."""
        self.pre_filter_status: Status | None = None
        """Set if a PreFilter ended the attempt."""
        self.node_names: frozenset[str] | None = None
        """The only nodes that PreFilters left in question; None: all."""
        self.naming_plugins: tuple[str, ...] = ()
        self.fits: Bools | None = None
        """Per row: whether every filter lets it through; None where only `feasible` is known."""
        self.feasible_count = 0
        self._feasible: Rows | None = None
        self.says_as_cached = False
        """Whether only the row-local filters had anything to say: then what is kept is the whole answer."""
        self.fits_as_cached = False
        """Whether the feasible rows are just those that the row-local filters let through."""
        self.is_ordinary = True
        """Whether the pod is promised no node, and no PreFilter named any."""
        self.found: Int64s | None = None
        """The feasible rows in the order in which they were found, where that order is of interest."""
        self.unseen: Int64s | None = None
        """Rows that the search did not get to, if it did not get to all."""
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
        """Filters let these rows through."""
        self.fits, self.feasible_count, self._feasible = fits, count, None

    def set_feasible(self, rows: Int64s) -> None:
        """Only these rows, ascending, are left."""
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
        """A filter's answer, remembered until somebody asks for `first` or `bits`."""
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
        """The search ended before it got to these rows."""
        self.unseen = rows
        self.says_as_cached = False
        if self._first is not None:
            self._first[rows] = UNSEEN

    def narrow(self, found: Int64s, statuses: dict[str, Status]) -> None:
        """Extenders had their say: these rows are left. Of those that they dropped without a word nothing is known."""
        first, told = self.first, self.columns.rows_named(statuses)
        first[first == FITS] = UNSEEN
        # An extender may speak of a node that it was not asked about. Its words count, but a plugin refused first.
        overruled = sorted(self.profile.filters[n].plugin.name for n in set(first[told].tolist()) if n < BY_EXTENDER)
        self.other_plugins += tuple(overruled)
        first[told] = BY_EXTENDER
        first[found] = FITS
        self.extender_statuses = statuses
        self.found = found
        self.set_feasible(np.sort(found))
        self.says_as_cached = self.fits_as_cached = False

    def was_pre_filtered(self, plugin: str) -> bool:
        """Whether the plugin's PreFilter was asked, before another one ended the attempt for good."""
        names = [each.name for each in self.profile.pre_filters]
        status = self.pre_filter_status
        if status is not None and status.plugin and status.code is not Code.UNSCHEDULABLE:
            names = names[: names.index(status.plugin)]
        return plugin in names

    @property
    def may_have_failed(self) -> bool:
        """Whether a filter that was asked is one of those that can fail."""
        return any(
            use.can_fail and any(reason.code is Code.ERROR for reason in self.reasons_of(use)) for use in self.asked
        )

    def reasons_of(self, use: FilterUse) -> tuple[Reason, ...]:
        return tuple(use.plugin.reasons(self.states[use.plugin.name]))

    def status_at(self, row: int) -> Status | None:
        """Why a row refuses, or None if it fits."""
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

    def refusing(self) -> list[tuple[FilterUse, Int64s, Int64s]]:
        """The filters that refused some rows, with those rows and what was said of them."""
        counts = np.bincount(self.first, minlength=FITS + 1)
        found = []
        for use in self.profile.filters:
            if counts[use.number]:
                rows = np.flatnonzero(self.first == use.number)
                found.append((use, rows, self.bits[rows]))
        return found

    def is_refused_with(self, code: Code) -> Bools:
        """Per row: whether it was refused, by a filter that was asked, with this code."""
        refused = np.zeros(len(self.first), dtype=np.bool_)
        for use, rows, bits in self.refusing():
            reasons = self.reasons_of(use)
            severer = sum(1 << n for n, r in enumerate(reasons) if r.code.severity > code.severity)
            alike = sum(1 << n for n, r in enumerate(reasons) if r.code is code)
            if alike:
                refused[rows] = (bits & alike != 0) & (bits & severer == 0) if severer else bits & alike != 0
        if self.extender_statuses:
            refused[self.columns.rows_named(n for n, r in self.extender_statuses.items() if r.code is code)] = True
        return refused

    @property
    def left_out_count(self) -> int:
        """How many nodes were not even asked, or the search did not get to."""
        if self.node_names is None:
            return 0
        height = self.columns.height
        is_left_out = (self.first == LEFT_OUT) | (self.first == UNSEEN)
        return int(np.count_nonzero(is_left_out & self.columns.alive[:height]))

    def code_at(self, row: int) -> Code:
        """The code of a row's refusal."""
        number = int(self.first[row])
        if number == FITS:
            return Code.SUCCESS
        if number in (LEFT_OUT, UNSEEN):
            return Code.UNRESOLVABLE
        if number == BY_EXTENDER:
            return self.extender_statuses[self.columns.node_names[row]].code
        return code_of(int(self.bits[row]), self.reasons_of(self.profile.filters[number]))
