"""One attempt to schedule a pod: which plugins ran, the status of each node, which nodes are feasible.

Written by PreFilter and Filter; read by scoring, PostFilter plugins and `diagnose`.

1. `first[row]` is the number of the filter that rejected the row; `FITS` if none did; `EXCLUDED` if the row has no node
   or is excluded by a PreFilter's node names; `UNPROCESSED` if the search ended before it; `BY_EXTENDER` if only an
   extender rejected it. `bits[row]` holds the reasons of that filter. Both are computed on demand: a pod that fits
   needs neither.
2. An attempt describes the columns at the time it was made. Read it before they change.

`DryRun` filters some rows with pods added or removed, each row as if only it had changed. kube-scheduler's preemption
tries one node at a time; here all candidate rows change in one transaction and are filtered together. The result is
the same:

3. A filter that reads its row alone sees the changes of that row.
4. A filter that counts beyond the row (`Adjustable`) uses its counts from before the transaction, plus what the
   row's own changes add to them. For a pod whose domains are single nodes such a filter reads its row alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, ReasonBits, Rows, UInt8s
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.result_cache import FITS, FilterState, SignatureResults, first_rejection
from mooring.scheduler.framework.plugin import Adjustable, Scope
from mooring.scheduler.framework.post_filter import Cache
from mooring.scheduler.framework.profile import FilterUse, Profile
from mooring.scheduler.framework.status import Code, Diagnosis, Reason, RejectionCount, Status, code_of, status_of

EXCLUDED = 254
"""`first` of rows that were not filtered."""
UNPROCESSED = 253
"""`first` of rows that the search did not reach: they have no status."""
BY_EXTENDER = 252
"""`first` of rows that fit all filters and that an extender rejected."""


class PodAttempt:
    """The results of PreFilter and Filter for one pod. Implements `FailedAttempt`."""

    def __init__(self, pod: PodInfo, profile: Profile, columns: Columns, results: SignatureResults) -> None:
        self.pod = pod
        self.profile = profile
        self.columns = columns
        self.results = results
        self.states: dict[str, Any] = results.states.filters
        """The filter state of each plugin that applies, by name."""
        self.cluster_filters: list[FilterUse] = []
        """The filters among them whose results are not cached, and that were called for this pod."""
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
        self.unprocessed: Int64s | None = None
        """Rows that the search did not reach, if there are any."""
        self.extender_statuses: dict[str, Status] = {}
        """The statuses of nodes that extenders rejected, by name. An extender may name any node."""
        self.other_plugins: tuple[str, ...] = ()
        """Further names for `unschedulable_plugins`: extenders, and the plugins whose statuses they replaced."""
        self._first: UInt8s | None = None
        self._bits: Int64s | None = None
        self._cluster_results: list[tuple[FilterUse, Rows, ReasonBits]] = []

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

    def add_result(self, use: FilterUse, rows: Rows, reason_bits: ReasonBits) -> None:
        """Store the result of a filter until `first` or `bits` is read."""
        self._cluster_results.append((use, rows, reason_bits))

    def _put_together(self) -> None:
        if self._first is not None and self._bits is not None and not self._cluster_results:
            return
        height = self.columns.height
        if self._first is None or self._bits is None:
            arrays = self.results.arrays
            self._first, self._bits = arrays.first[:height].copy(), arrays.bits[:height].copy()
            if self.columns.node_count != height:
                self._first[~self.columns.alive[:height]] = EXCLUDED
        for use, rows, reason_bits in self._cluster_results:
            first, bits = self._first[rows], self._bits[rows]
            earlier = (reason_bits != 0) & (first > use.number) & (first != EXCLUDED)
            self._first[rows] = np.where(earlier, np.uint8(use.number), first)
            self._bits[rows] = np.where(earlier, reason_bits, bits)
        self._cluster_results = []
        if self.unprocessed is not None:
            self._first[self.unprocessed] = UNPROCESSED

    def mark_unprocessed(self, rows: Int64s) -> None:
        """The search ended before these rows."""
        self.unprocessed = rows
        self.rejects_as_cached = False
        if self._first is not None:
            self._first[rows] = UNPROCESSED

    def narrow(self, found: Int64s, statuses: dict[str, Status]) -> None:
        """Extenders left these rows. Rows that they dropped without a status count as not reached."""
        first, rejected = self.first, self.columns.rows_named(statuses)
        first[first == FITS] = UNPROCESSED
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
        names = [pre_filter.name for pre_filter in self.profile.pre_filters]
        status = self.pre_filter_status
        if status is not None and status.plugin and status.code is not Code.UNSCHEDULABLE:
            names = names[: names.index(status.plugin)]
        return plugin in names

    @property
    def may_have_failed(self) -> bool:
        """Whether a filter that was called may report an error."""
        return any(
            use.can_fail and any(reason.code is Code.ERROR for reason in self.reasons_of(use))
            for use in self.cluster_filters
        )

    def reasons_of(self, use: FilterUse) -> tuple[Reason, ...]:
        return tuple(use.plugin.reasons(self.states[use.plugin.name]))

    def status_at(self, row: int) -> Status | None:
        """Why a row is rejected; None if it fits."""
        number = int(self.first[row])
        if number == FITS:
            return None
        if number == EXCLUDED:
            return self.exclusion_status()
        if number == BY_EXTENDER:
            return self.extender_statuses[self.columns.node_names[row]]
        use = self.profile.filters[number]
        return status_of(use.plugin.name, int(self.bits[row]), self.reasons_of(use))

    def exclusion_status(self) -> Status:
        """The status of nodes that PreFilter plugins excluded."""
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

    def rejected_nodes(self) -> tuple[RejectionCount, ...]:
        """How many nodes each plugin rejected first."""
        counts: list[int] = np.bincount(self.first, minlength=FITS + 1).tolist()
        found = [
            RejectionCount(use.plugin.name, "", counts[use.number])
            for use in self.profile.filters
            if counts[use.number]
        ]
        if counts[BY_EXTENDER]:
            found.append(RejectionCount("Extender", "", counts[BY_EXTENDER]))
        if self.naming_plugins and self.excluded_count:
            found.append(RejectionCount(",".join(sorted(self.naming_plugins)), "", self.excluded_count))
        return tuple(found)

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
    def excluded_count(self) -> int:
        """Number of nodes that PreFilter plugins excluded, or that the search did not reach."""
        if self.node_names is None:
            return 0
        height = self.columns.height
        is_excluded = (self.first == EXCLUDED) | (self.first == UNPROCESSED)
        return int(np.count_nonzero(is_excluded & self.columns.alive[:height]))

    def code_at(self, row: int) -> Code:
        """The code of a row's status."""
        number = int(self.first[row])
        if number == FITS:
            return Code.SUCCESS
        if number in (EXCLUDED, UNPROCESSED):
            return Code.UNRESOLVABLE
        if number == BY_EXTENDER:
            return self.extender_statuses[self.columns.node_names[row]].code
        return code_of(int(self.bits[row]), self.reasons_of(self.profile.filters[number]))

    def dry_run(self, rows: Int64s) -> DryRun:
        """A dry run of all filters on these rows, for PostFilter plugins."""
        return DryRun(self, rows, self.profile.filters)

    def row_cache(self, kind: type[Cache]) -> Cache:
        """A PostFilter plugin's cache for the signature; an empty one if the results of this attempt are not cached."""
        if not self.rejects_as_cached or self.cluster_filters or self.columns.nominations.node_of(self.pod) is not None:
            return kind()
        return self.results.row_cache(kind)


def diagnose(attempt: PodAttempt) -> Diagnosis:
    """The diagnosis of an attempt; cached with the signature if only cached filter results rejected nodes."""
    if attempt.pre_filter_status is not None:
        return _of_pre_filter(attempt, attempt.pre_filter_status)
    if not attempt.rejects_as_cached:
        return _of_nodes(attempt)
    return attempt.results.diagnosis(lambda: _of_nodes(attempt))


def _of_pre_filter(attempt: PodAttempt, status: Status) -> Diagnosis:
    unschedulable_plugins = {*attempt.naming_plugins, status.plugin} - {""}
    rejections = (RejectionCount(status.plugin, status.message, attempt.columns.node_count),)
    return Diagnosis({}, frozenset(unschedulable_plugins), pre_filter_message=status.message, rejections=rejections)


def _of_nodes(attempt: PodAttempt) -> Diagnosis:
    counts: dict[str, int] = {}
    rejections: list[RejectionCount] = []
    unschedulable_plugins, pending_plugins = {*attempt.naming_plugins, *attempt.other_plugins}, set()
    for use, _, bits in attempt.rejections():
        unschedulable_plugins.add(use.plugin.name)
        only_pending = 0
        for index, reason in enumerate(attempt.reasons_of(use)):
            only_pending |= (reason.code is Code.PENDING) << index
            if reason.message is not None:
                count = int(np.count_nonzero(bits & (1 << index)))
                if count:
                    counts[reason.message] = counts.get(reason.message, 0) + count
                    rejections.append(RejectionCount(use.plugin.name, reason.message, count))
        if only_pending and bool((bits & ~only_pending == 0).any()):
            pending_plugins.add(use.plugin.name)
    by_extenders: Counter[str] = Counter()
    for status in attempt.extender_statuses.values():
        for message in status.reasons:
            counts[message] = counts.get(message, 0) + 1
            by_extenders[message] += 1
    rejections += [RejectionCount("Extender", message, count) for message, count in by_extenders.items()]
    if attempt.excluded_count:
        for message in attempt.exclusion_status().reasons:
            counts[message] = counts.get(message, 0) + attempt.excluded_count
            rejections.append(RejectionCount(",".join(sorted(attempt.naming_plugins)), message, attempt.excluded_count))
    return Diagnosis(counts, frozenset(unschedulable_plugins), frozenset(pending_plugins), rejections=tuple(rejections))


class DryRun:
    """Filters some rows with pods added and removed. Leaving the context rolls back the transaction."""

    def __init__(self, attempt: PodAttempt, rows: Int64s, filters: Sequence[FilterUse]) -> None:
        self._attempt = attempt
        self._rows = rows
        self._transaction = Transaction(attempt.columns)
        # The results of filters that read the node alone are cached.
        self._filters: list[FilterState] = [
            (use, attempt.states[use.plugin.name])
            for use in filters
            if use.plugin.name in attempt.states and use.plugin.filter_scope is not Scope.NODE
        ]
        self._differences: dict[str, Int64s] = {}
        self._snapshots: dict[str, Any] = {}
        self._adjustables: list[tuple[Adjustable[Any], Any]] = []
        for use, state in self._filters:
            plugin = use.plugin
            if isinstance(plugin, Adjustable) and plugin.name not in attempt.results.states.filters:
                snapshot = self._snapshots[plugin.name] = plugin.snapshot(state)
                self._adjustables.append((plugin, snapshot))
                self._differences[plugin.name] = np.zeros((plugin.measures(snapshot), len(rows)), dtype=np.int64)

    def __enter__(self) -> DryRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transaction.rollback()

    def add(self, index: int, pod: PodInfo) -> None:
        """Add a pod to `rows[index]`."""
        self._transaction.place(pod, int(self._rows[index]))
        self._adjust(index, pod, 1)

    def remove(self, index: int, pod: PodInfo) -> None:
        self._transaction.displace(pod)
        self._adjust(index, pod, -1)

    def rejections(self, at: Int64s) -> tuple[UInt8s, Int64s]:
        """Per row: the number of the first filter that rejects it, and its reason bits. `at` indexes the rows."""
        rows, arrays = self._rows[at], self._attempt.results.arrays
        if len(rows) == 1 and not self._adjustables:
            row = int(rows[0])
            number, its_bits = first_rejection(
                self._filters, row, arrays.node_first.item(row), arrays.node_bits.item(row)
            )
            return np.array([number], dtype=np.uint8), np.array([its_bits], dtype=np.int64)
        first, bits = arrays.node_first[rows], arrays.node_bits[rows]
        for use, state in self._filters:
            plugin, left = use.plugin, (first > use.number).nonzero()[0]
            if not len(left):
                continue
            if isinstance(plugin, Adjustable) and plugin.name in self._snapshots:
                difference = self._differences[plugin.name][:, at[left]]
                reason_bits: ReasonBits = plugin.filter_adjusted(self._snapshots[plugin.name], rows[left], difference)
            else:
                reason_bits = plugin.filter(state, rows[left])
            is_rejected = reason_bits != 0
            first[left[is_rejected]] = use.number
            bits[left[is_rejected]] = reason_bits[is_rejected]
        return first, bits

    def rejections_with_nominated_pods(self, at: Int64s) -> tuple[UInt8s, Int64s]:
        """As `rejections`, where each row must take the pod with its nominated pods and without them."""
        added: list[tuple[int, PodInfo]] = []
        columns, pod = self._attempt.columns, self._attempt.pod
        if len(columns.nominations):
            for index in at.tolist():
                for nominated in columns.nominations.that_outrank(pod, columns.node_names[self._rows[index]]):
                    self.add(index, nominated)
                    added.append((index, nominated))
        first, bits = self.rejections(at)
        if not added:
            return first, bits
        for index, nominated in reversed(added):
            self.remove(index, nominated)
        plain_first, plain_bits = self.rejections(at)
        is_rejected = first != FITS
        return np.where(is_rejected, first, plain_first), np.where(is_rejected, bits, plain_bits)

    def is_rejected(self, at: Int64s) -> Bools:
        first, _ = self.rejections_with_nominated_pods(at)
        is_rejected: Bools = first != FITS
        return is_rejected

    def statuses(self, at: Int64s) -> dict[int, Status]:
        first, bits = self.rejections_with_nominated_pods(at)
        attempt, found = self._attempt, {}
        for place in np.flatnonzero(first != FITS).tolist():
            use = attempt.profile.filters[first[place]]
            found[int(at[place])] = status_of(use.plugin.name, int(bits[place]), attempt.reasons_of(use))
        return found

    def _adjust(self, index: int, pod: PodInfo, count: int) -> None:
        row = int(self._rows[index])
        for plugin, state in self._adjustables:
            contribution = plugin.contribution(state, pod, row)
            difference = self._differences[plugin.name]
            for measure, amount in enumerate(contribution):
                if amount:
                    difference[measure, index] += count * amount
