"""Filtering: which nodes can take the pod.

Comes in   a pod, its profile, the columns, and what is kept of its signature
Goes out   an `Attempt` with the feasible rows, or with why there are none

Row-local filters are answered from what is kept; the others are asked about the rows that are still in question.

 1. PreFilters run in the profile's order; the first that rejects for good ends the attempt.
 2. A pod that is nominated to a node is tried there first, and only there if it fits.
 3. Where a configuration wants a sample of the nodes, it is taken from the answers for all of them (see `sampling`).
 4. On a node with nominated pods of at least the pod's priority, the pod must fit with them and without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.attempt import LEFT_OUT, Attempt
from mooring.scheduler.cycle.dry_run import DryRun
from mooring.scheduler.cycle.result_cache import FITS, SignatureResults
from mooring.scheduler.cycle.sampling import Sampling, sample
from mooring.scheduler.framework.plugin import SKIP, PreFilter, Proceed, Skip
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Code, Rejection


def begin(profile: Profile, columns: Columns, results: SignatureResults, pod: PodInfo) -> Attempt:
    """Asks the PreFilters."""
    attempt = Attempt(pod, profile, columns, results)
    run_pre_filters(attempt)
    if pod.nominated_node or attempt.node_names is not None or columns.nominations.node_of(pod) is not None:
        attempt.is_ordinary = False
    return attempt


def look(attempt: Attempt, sampling: Sampling | None = None) -> None:
    """Asks the filters, unless a PreFilter has ended the attempt. The attempt's `feasible` rows are ascending."""
    if attempt.rejection is not None:
        return
    if not attempt.is_ordinary:
        _except_own_nomination(attempt)
        if _fits_where_nominated(attempt):
            return
    search(attempt, sampling)


def search(attempt: Attempt, sampling: Sampling | None) -> None:
    """Looks at all nodes that come into question, or at so many that enough of them can take the pod."""
    left = fits = attempt.results.fits
    if not attempt.is_ordinary:
        _leave_out_unnamed(attempt)
        left = attempt.first == FITS
    if attempt.asked:
        left = ask_cluster_filters(attempt, left)
    count = int(np.count_nonzero(left))
    attempt.says_as_cached = left is fits
    # The rows that are left are among those that fit, so that as many are the same.
    attempt.fits_as_cached = left is fits or count == np.count_nonzero(fits)
    attempt.set_fits(left, count)
    if sampling is not None:
        _take_sample(attempt, left, sampling)


def _take_sample(attempt: Attempt, left: Bools, sampling: Sampling) -> None:
    columns, among = attempt.columns, None
    if attempt.node_names is not None:
        among = np.zeros(columns.height, dtype=np.bool_)
        among[columns.rows_named(attempt.node_names)] = True
    in_turn = sampling.order.in_turn(among)
    failed = attempt.is_refused_with(Code.ERROR) if attempt.may_have_failed else None
    taken = sample(in_turn, left, failed, sampling.wanted(len(in_turn)))
    unseen, again = taken.unseen, 0
    promised = columns.row_of.get(attempt.pod.nominated_node) if attempt.pod.nominated_node else None
    if promised is not None:
        # It was looked at before the search, which counts, unless the search gets to it and finds the same again.
        if columns.node_names[promised] in attempt.extender_refusals:
            again = 1
        elif attempt.code_at(promised) in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE):
            again = int(promised not in in_turn[: taken.looked_at])
            unseen = unseen[unseen != promised]
    sampling.order.advance(taken.looked_at + again)
    attempt.found = taken.found
    if len(taken.found) < attempt.feasible_count:
        attempt.set_feasible(np.sort(taken.found))
        attempt.fits_as_cached = False
    if len(unseen):
        attempt.leave_unseen(unseen)


def ask_everywhere(attempt: Attempt) -> None:
    """For a pod that was tried only where it is nominated: what would the other nodes have said?"""
    _leave_out_unnamed(attempt)
    ask_cluster_filters(attempt, attempt.first == FITS)


def run_pre_filters(attempt: Attempt) -> None:
    """Asks the PreFilters in order; what row-local plugins say to this signature is known already."""
    states, pod, profile = attempt.results.states, attempt.pod, attempt.profile
    for use in profile.prepared_filters:
        prepared = use.plugin.prepare(pod) if use.pre_filter is None else _state_of(use.pre_filter.pre_filter(pod))
        if prepared is not SKIP:
            _hand_over(attempt, use.plugin.name, prepared)
    deferred: Rejection | None = None
    naming: list[str] = []
    for plugin in _worth_asking(attempt):
        name = plugin.name
        answer = states.pre_filter_results.get(name)
        if answer is None:
            answer = plugin.pre_filter(pod)
        if answer is SKIP:
            continue
        if isinstance(answer, Rejection):
            rejection = replace(answer, plugin=name)
            if answer.code is Code.UNSCHEDULABLE:
                deferred = rejection  # preemption may help, so the other plugins' states are still needed
                continue
            attempt.rejection = rejection if answer.code is Code.UNRESOLVABLE else _as_error(rejection)
            return
        assert isinstance(answer, Proceed), f"{name} answered PreFilter with {answer!r}"
        if name not in states.pre_filter_results:
            _hand_over(attempt, name, answer.state)
        if answer.node_names is not None:
            naming.append(name)
            known = attempt.node_names
            attempt.node_names = answer.node_names if known is None else known & answer.node_names
            if not attempt.node_names:
                attempt.naming_plugins = tuple(naming)
                attempt.rejection = _nowhere(naming)
                return
    attempt.naming_plugins = tuple(naming)
    attempt.rejection = deferred
    if attempt.states is not states.filters:
        attempt.asked = [use for use in profile.cluster_filters if use.plugin.name in attempt.states]


def _worth_asking(attempt: Attempt) -> tuple[PreFilter[Any], ...]:
    """Where no row-local plugin rejects or names nodes, only the others; of those, only who reads such pods."""
    profile = attempt.profile
    if attempt.results.states.has_node_names_or_rejection:
        return profile.pre_filters
    return profile.cluster_pre_filters if attempt.pod.volumes else profile.cluster_pre_filters_without_volumes


def _state_of(answer: Proceed[Any] | Skip | Rejection) -> object:
    """The state for a filter whose PreFilter the profile does not want to hear."""
    return answer.state if isinstance(answer, Proceed) else SKIP


def _hand_over(attempt: Attempt, name: str, state: object) -> None:
    if attempt.states is attempt.results.states.filters:
        attempt.states = dict(attempt.states)
    attempt.states[name] = state


def ask_cluster_filters(attempt: Attempt, fits: Bools) -> Bools:
    """Asks the filters that read the cluster about the rows that fit so far. Returns those that still do."""
    rows: Rows = slice(0, len(fits)) if 2 * np.count_nonzero(fits) > len(fits) else fits.nonzero()[0]
    for use in attempt.asked:
        asked = fits.nonzero()[0] if use.plugin.wants_few_rows else rows
        answer = use.plugin.filter(attempt.states[use.plugin.name], asked)
        if np.count_nonzero(answer):
            attempt.answered(use, asked, answer)
            if isinstance(asked, slice):
                fits = fits & (answer == 0)
            else:
                fits = fits.copy()
                fits[asked[answer != 0]] = False
    if attempt.asked and len(attempt.columns.nominations):
        fits = _ask_beside_nominated(attempt, fits, rows)
    return fits


def _leave_out_unnamed(attempt: Attempt) -> None:
    if attempt.node_names is None:
        return
    is_named = np.zeros(len(attempt.first), dtype=np.bool_)
    is_named[attempt.columns.rows_named(attempt.node_names)] = True
    nominated = attempt.columns.row_of.get(attempt.pod.nominated_node)
    if nominated is not None:
        is_named[nominated] = True  # it was tried already, and its own refusal is what is told
    attempt.first[~is_named] = LEFT_OUT
    attempt.bits[~is_named] = 0


def _except_own_nomination(attempt: Attempt) -> None:
    """What is kept counts all nominated pods; this pod does not stand in its own way."""
    columns, pod = attempt.columns, attempt.pod
    node_name = columns.nominations.node_of(pod)
    row = columns.row_of.get(node_name) if node_name is not None else None
    if row is None:
        return
    local = [use for use in attempt.profile.filters if use.is_row_local]
    with DryRun(attempt, np.array([row], dtype=np.int64), local) as experiment:
        first, bits = experiment.refusals_beside_nominated(np.zeros(1, dtype=np.int64))
    attempt.first[row], attempt.bits[row] = first[0], bits[0]


def _fits_where_nominated(attempt: Attempt) -> bool:
    row = attempt.columns.row_of.get(attempt.pod.nominated_node)
    if row is None or attempt.first[row] != FITS:
        return False
    only_there = np.zeros(attempt.columns.height, dtype=np.bool_)
    only_there[row] = True
    if not ask_cluster_filters(attempt, only_there)[row]:
        return False
    attempt.set_feasible(np.array([row], dtype=np.int64))
    return True


def _ask_beside_nominated(attempt: Attempt, fits: Bools, rows: Rows) -> Bools:
    """Asks all filters again about rows with nominated pods, as if those were there already."""
    columns, pod = attempt.columns, attempt.pod
    among = np.zeros(columns.height, dtype=np.bool_)
    among[rows] = True
    yielding = [
        row
        for row in columns.rows_named(columns.nominations.nodes()).tolist()
        if among[row]
        and attempt.first[row] != LEFT_OUT
        and any(
            p.priority >= pod.priority and p.uid != pod.uid for p in columns.nominations.on(columns.node_names[row])
        )
    ]
    if not yielding:
        return fits
    at_rows = np.array(yielding, dtype=np.int64)
    with DryRun(attempt, at_rows, attempt.profile.filters) as experiment:
        first, bits = experiment.refusals_beside_nominated(np.arange(len(at_rows)))
    attempt.first[at_rows], attempt.bits[at_rows] = first, bits
    fits = fits.copy()
    fits[at_rows] = first == FITS
    return fits


def _nowhere(naming: list[str]) -> Rejection:
    if len(naming) == 1:
        return Rejection(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin {naming[0]}",))
    names = " ".join(sorted(naming))
    return Rejection(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{names}] simultaneously",))


def _as_error(rejection: Rejection) -> Rejection:
    text = f'running PreFilter plugin "{rejection.plugin}": {rejection.message}'
    return Rejection(Code.ERROR, (text,), rejection.plugin)
