"""Find the nodes that can take a pod: PreFilter, Filter and sampling (`percentageOfNodesToScore`).

Takes a pod, its profile, the columns and the cached results of its signature; returns a `PodAttempt` with the feasible
rows, or with the reason why there are none. The results of row-local filters are cached; cluster-scoped filters run on
the rows that are left.

1. PreFilters run in the profile's order; the first that rejects the pod as unresolvable ends the attempt.
2. A pod that is nominated to a node is tried there first, and only there if it fits.
3. On a node with nominated pods of at least the pod's priority, the pod must fit with them and without them.

kube-scheduler samples nodes because filtering a node takes time. Here all rows are filtered at once, and the sample is
taken from the results: the same nodes in the same order.

4. A search ends before the first node that would be one too many. Nodes after it count as not searched: they have no
   status. It also ends at a node whose filter failed.
5. The next search starts where this one ended. (The threads of kube-scheduler may search a little further. With
   `parallelism: 1` it ends at the same node.)
6. If no plugin and no extender scores, and no extender filters, the first node that fits is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.node_order import NodeOrder
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import EXCLUDED, DryRun, PodAttempt
from mooring.scheduler.cycle.result_cache import FITS, SignatureResults
from mooring.scheduler.framework.plugin import SKIP, PreFilter, Proceed
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Status


def run_pre_filter_phase(profile: Profile, columns: Columns, results: SignatureResults, pod: PodInfo) -> PodAttempt:
    """Run PreFilter for a new attempt."""
    attempt = PodAttempt(pod, profile, columns, results)
    run_pre_filters(attempt)
    if pod.nominated_node or attempt.node_names is not None or columns.nominations.node_of(pod) is not None:
        attempt.is_unrestricted = False
    return attempt


def find_feasible_nodes(attempt: PodAttempt, sampling: Sampling | None) -> None:
    """Run Filter, unless a PreFilter has ended the attempt."""
    if attempt.pre_filter_status is not None:
        return
    if not attempt.is_unrestricted:
        _ignore_own_nomination(attempt)
        if _fits_on_nominated_node(attempt):
            return
    search_nodes(attempt, sampling)


def search_nodes(attempt: PodAttempt, sampling: Sampling | None) -> None:
    """Filter all nodes, or with sampling until enough are feasible."""
    left = fits = attempt.results.fits
    if not attempt.is_unrestricted:
        _exclude_unnamed_nodes(attempt)
        left = attempt.first == FITS
    if attempt.cluster_filters:
        left = run_cluster_filters(attempt, left)
    attempt.rejects_as_cached = left is fits
    count = attempt.results.fits_count if left is fits else int(np.count_nonzero(left))
    # The rows that are left are among those that fit, so that as many are the same.
    attempt.fits_as_cached = count == attempt.results.fits_count
    attempt.set_fits(left, count)
    if sampling is not None:
        _take_sample(attempt, left, sampling)


def _take_sample(attempt: PodAttempt, left: Bools, sampling: Sampling) -> None:
    columns, among = attempt.columns, None
    if attempt.node_names is not None:
        among = np.zeros(columns.height, dtype=np.bool_)
        among[columns.rows_named(attempt.node_names)] = True
    rows = sampling.order.rows_in_order(among)
    failed = attempt.is_rejected_with(Code.ERROR) if attempt.may_have_failed else None
    taken = sample(rows, left, failed, sampling.nodes_to_find(len(rows)))
    unprocessed, again = taken.unprocessed, 0
    nominated_row = columns.row_of.get(attempt.pod.nominated_node) if attempt.pod.nominated_node else None
    if nominated_row is not None:
        # The nominated node was tried before the search, and counts once, also if the search reaches it.
        if columns.node_names[nominated_row] in attempt.extender_statuses:
            again = 1
        elif attempt.code_at(nominated_row) in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE):
            again = int(nominated_row not in rows[: taken.processed])
            unprocessed = unprocessed[unprocessed != nominated_row]
    sampling.order.advance(taken.processed + again)
    attempt.found = taken.found
    if len(taken.found) < attempt.feasible_count:
        attempt.set_feasible(np.sort(taken.found))
        attempt.fits_as_cached = False
    if len(unprocessed):
        attempt.mark_unprocessed(unprocessed)


def filter_all_nodes(attempt: PodAttempt) -> None:
    """Filter the nodes that were not tried because the pod fits on its nominated node. For decisions in full."""
    _exclude_unnamed_nodes(attempt)
    run_cluster_filters(attempt, attempt.first == FITS)


def run_pre_filters(attempt: PodAttempt) -> None:
    """Run the PreFilters in order. Results of row-local plugins are cached."""
    results, pod, profile = attempt.results, attempt.pod, attempt.profile
    states = results.states
    for use in profile.filters_without_pre_filter:
        result = use.plugin.pre_filter(pod)
        if isinstance(result, Proceed):
            _set_state(attempt, use.plugin.name, result.state)
    deferred: Status | None = None
    naming: list[str] = []
    for plugin in _pre_filters_for(attempt):
        name = plugin.name
        result = states.pre_filter_results.get(name) or results.topology_results.get(name) or plugin.pre_filter(pod)
        if result is SKIP:
            continue
        if isinstance(result, Status):
            status = result.with_plugin(name)
            if result.code is Code.UNSCHEDULABLE:
                deferred = status  # preemption may help, so the other plugins' states are still needed
                continue
            attempt.pre_filter_status = status if result.code is Code.UNRESOLVABLE else _as_error(status)
            return
        assert isinstance(result, Proceed), f"PreFilter of {name} returned {result!r}"
        if name not in states.filters:
            _set_state(attempt, name, result.state)
        if result.node_names is not None:
            naming.append(name)
            known = attempt.node_names
            attempt.node_names = result.node_names if known is None else known & result.node_names
            if not attempt.node_names:
                attempt.naming_plugins = tuple(naming)
                attempt.pre_filter_status = _no_common_node(naming)
                return
    attempt.naming_plugins = tuple(naming)
    attempt.pre_filter_status = deferred
    if attempt.states is not states.filters:
        called = attempt.states.keys() - states.filters.keys()
        attempt.cluster_filters = [use for use in profile.cluster_filters if use.plugin.name in called]


def _pre_filters_for(attempt: PodAttempt) -> tuple[PreFilter[Any], ...]:
    """The PreFilters to run: all of them only if a cached result rejects the pod or names nodes."""
    profile = attempt.profile
    if attempt.results.states.has_node_names_or_status:
        return profile.pre_filters
    return profile.cluster_pre_filters if attempt.pod.volumes else profile.cluster_pre_filters_without_volumes


def _set_state(attempt: PodAttempt, name: str, state: object) -> None:
    if attempt.states is attempt.results.states.filters:
        attempt.states = dict(attempt.states)
    attempt.states[name] = state


def run_cluster_filters(attempt: PodAttempt, fits: Bools) -> Bools:
    """Run the cluster-scoped filters on the rows that fit so far. Returns the rows that still fit.

    As in kube-scheduler, the first filter that rejects a row is reported: a filter also runs on the rows that
    only a later, cached filter rejects.
    """
    last_cached = attempt.results.states.last_filter_number
    filtered: Bools | None = None
    for use in attempt.cluster_filters:
        candidates = fits if use.number > last_cached else fits | attempt.is_rejected_after(use.number)
        filtered = candidates if filtered is None else filtered
        rows: Rows = slice(0, len(fits)) if candidates.all() else candidates.nonzero()[0]
        reason_bits = use.plugin.filter(attempt.states[use.plugin.name], rows)
        if np.count_nonzero(reason_bits):
            attempt.add_result(use, rows, reason_bits)
            if isinstance(rows, slice):
                fits = fits & (reason_bits == 0)
            else:
                fits = fits.copy()
                fits[rows[reason_bits != 0]] = False
    if filtered is not None and len(attempt.columns.nominations):
        fits = _filter_with_nominated_pods(attempt, fits, filtered)
    return fits


def _exclude_unnamed_nodes(attempt: PodAttempt) -> None:
    if attempt.node_names is None:
        return
    is_named = np.zeros(len(attempt.first), dtype=np.bool_)
    is_named[attempt.columns.rows_named(attempt.node_names)] = True
    nominated = attempt.columns.row_of.get(attempt.pod.nominated_node)
    if nominated is not None:
        is_named[nominated] = True  # it was tried already, and its own status is reported
    attempt.first[~is_named] = EXCLUDED
    attempt.bits[~is_named] = 0


def _ignore_own_nomination(attempt: PodAttempt) -> None:
    """Cached results count all nominated pods, the pod itself included: compute its nominated node without it."""
    columns, pod = attempt.columns, attempt.pod
    node_name = columns.nominations.node_of(pod)
    row = columns.row_of.get(node_name) if node_name is not None else None
    if row is None:
        return
    local = [use for use in attempt.profile.filters if use.is_row_local]
    with DryRun(attempt, np.array([row], dtype=np.int64), local) as dry_run:
        first, bits = dry_run.rejections_with_nominated_pods(np.zeros(1, dtype=np.int64))
    attempt.first[row], attempt.bits[row] = first[0], bits[0]


def _fits_on_nominated_node(attempt: PodAttempt) -> bool:
    row = attempt.columns.row_of.get(attempt.pod.nominated_node)
    if row is None or attempt.first[row] != FITS:
        return False
    only_there = np.zeros(attempt.columns.height, dtype=np.bool_)
    only_there[row] = True
    if not run_cluster_filters(attempt, only_there)[row]:
        return False
    attempt.set_feasible(np.array([row], dtype=np.int64))
    return True


def _filter_with_nominated_pods(attempt: PodAttempt, fits: Bools, filtered: Bools) -> Bools:
    """Run all filters again on rows with nominated pods, with those pods on the row."""
    columns, pod = attempt.columns, attempt.pod
    rows = [
        row
        for row in columns.rows_named(columns.nominations.nodes()).tolist()
        if filtered[row]
        and attempt.first[row] != EXCLUDED
        and columns.nominations.that_outrank(pod, columns.node_names[row])
    ]
    if not rows:
        return fits
    at_rows = np.array(rows, dtype=np.int64)
    with DryRun(attempt, at_rows, attempt.profile.filters) as dry_run:
        first, bits = dry_run.rejections_with_nominated_pods(np.arange(len(at_rows)))
    attempt.first[at_rows], attempt.bits[at_rows] = first, bits
    fits = fits.copy()
    fits[at_rows] = first == FITS
    return fits


def _no_common_node(naming: list[str]) -> Status:
    if len(naming) == 1:
        return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin {naming[0]}",))
    names = " ".join(sorted(naming))
    return Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{names}] simultaneously",))


def _as_error(status: Status) -> Status:
    text = f'running PreFilter plugin "{status.plugin}": {status.message}'
    return Status(Code.ERROR, (text,), status.plugin)


FEASIBLE_MIN = 100
"""The minimum number of feasible nodes that a search looks for."""
PERCENTAGE_MIN = 5
"""The lowest percentage that is derived from the size of the cluster."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one profile searches nodes."""

    order: NodeOrder
    percentage: int | None
    """None: all nodes."""
    is_one_enough: bool = False

    def nodes_to_find(self, node_count: int) -> int:
        """The number of feasible nodes that are enough."""
        if self.percentage is None:
            return node_count
        return 1 if self.is_one_enough else num_feasible_nodes_to_find(self.percentage, node_count)


def sampling_for(
    profile: Profile, order: NodeOrder, *, extenders_filter: bool, extenders_score: bool
) -> Sampling | None:
    """How a profile samples; None if it searches all nodes and their order does not matter."""
    is_one_enough = not profile.scores and not extenders_filter and not extenders_score
    percentage = profile.percentage_of_nodes_to_score
    if percentage is not None and percentage >= 100 and not is_one_enough:
        percentage = None
    if percentage is None and not extenders_filter and not extenders_score:
        return None
    return Sampling(order, percentage, is_one_enough)


class Sample(NamedTuple):
    found: Int64s
    """Feasible rows in the order in which they were found."""
    unprocessed: Int64s
    """Rows that were not searched."""
    processed: int


def num_feasible_nodes_to_find(percentage: int, node_count: int) -> int:
    """The number of feasible nodes that are enough; 0 percent: depends on the size of the cluster."""
    if node_count < FEASIBLE_MIN:
        return node_count
    if percentage == 0:
        percentage = max(50 - node_count // 125, PERCENTAGE_MIN)
    return max(node_count * percentage // 100, FEASIBLE_MIN)


def sample(rows: Int64s, fits: Bools, failed: Bools | None, nodes_to_find: int) -> Sample:
    """Search rows in this order until enough of them fit. A `failed` row ends the search."""
    places = fits[rows].nonzero()[0]
    processed = int(places[nodes_to_find]) if len(places) > nodes_to_find else len(rows)
    if failed is not None:
        failures = np.flatnonzero(failed[rows[:processed]])
        if len(failures):
            failure = int(failures[0])
            return Sample(rows[places[places < failure]], rows[failure + 1 :], failure)
    return Sample(rows[places[:nodes_to_find]], rows[processed:], processed)
