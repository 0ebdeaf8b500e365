"""The result cache: the results of plugins for each row, by pod signature, up to date with the change log.

A decision needs the result of every plugin for every node. Most results depend on the node, or on the node and its
pods, and on nothing of the pod but its signature. This module caches those results per row, and calls the plugins again
only for the rows that changed since. It is the only cache of plugin results.

| scope of the plugin | its result is computed again |
|---|---|
| `NODE` | when the node changes |
| `NODE_PODS` | when the node or its pods change |
| `TOPOLOGY` | as `NODE_PODS` for a pod whose domains are single nodes (`Proceed.is_node_local`), else as `CLUSTER` |
| `CLUSTER` | for every pod, by the cycle: it is not cached |

Invariants:

1. After `ResultCache.results_for`, every cached result equals what the plugin would return now.
2. Nominated pods count as pods of their row: a row rejects the pod if it does so with the nominated pods of at least
   the pod's priority, or without them. The reason with them is reported first. Scores ignore nominated pods.
3. The cache takes at most `CACHE_BYTES_MAX`; beyond that it drops the signatures that were unused for longest.
4. A change of a plugin's epoch, or of the state of a topology filter, drops everything that was cached with it.
5. `ReuseCounts` counts every pod, and every signature that is dropped: one addition for a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, SortedRows, UInt8s, length_of
from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.pods import PodInfo, PodSignature
from mooring.scheduler.cycle.decision import NodeScores
from mooring.scheduler.framework.plugin import SKIP, Plugin, PreFilter, Proceed, Scope, Skip
from mooring.scheduler.framework.post_filter import Cache, RowCache
from mooring.scheduler.framework.profile import FilterUse, Profile, ScoreUse
from mooring.scheduler.framework.status import Diagnosis, Status

FITS = 255
"""`first` of a row that no filter rejects; the numbers of filters are smaller."""
REJECTED = int(np.iinfo(np.int64).min) // 2
CACHE_BYTES_MAX = 64 << 20
SIGNATURES_MIN = 8
"""The cache holds this many signatures, however large the cluster is."""
ROW_SCORES_MAX = 64
"""Rows of a signature whose scores by plugin are kept: the best nodes are mostly the same for the next pod."""
SINGLE_ROWS_MAX = 16
"""Up to this many changed rows are computed one by one in plain Python, which is faster than numpy there (ADR 7)."""
ROWS_PER_SINGLE_ROW = 2_000
"""In a cluster of more rows than this times `SINGLE_ROWS_MAX`, one more changed row for each of these: computing with
numpy drops the stored best rows, and finding them again reads all rows."""

FilterState: TypeAlias = tuple[FilterUse, Any]
ScoreState: TypeAlias = tuple[ScoreUse, Any]
PreFilterResult: TypeAlias = "Proceed[Any] | Skip | Status"

_NO_ROWS: Int64s = np.zeros(0, dtype=np.int64)

EXPIRED: Final = "expired"
"""An object changed that a plugin read: its epoch, or the state of a topology filter, is another."""
POD_FAILED: Final = "pod_failed"
"""A plugin raised while it updated the results."""
POD_INCOMPATIBLE: Final = "pod_incompatible"
"""The cache was full, a pod had another signature, and these results were unused for longest."""


class ReuseCounts:
    """How often the results of an equal pod were reused, in kube-scheduler's words for its opportunistic batching."""

    __slots__ = ("dropped", "pods", "unknown")

    def __init__(self) -> None:
        self.pods = 0
        self.unknown = 0
        """Pods for whose signature nothing was cached, or nothing that was still true."""
        self.dropped: Counter[str] = Counter()
        """Signatures that were dropped, by reason."""

    @property
    def reused(self) -> int:
        return self.pods - self.unknown


class RowArrays:
    """The arrays of one signature, one place per row. They are reused when a signature is dropped."""

    BYTES_PER_ROW = 4 * 8 + 3

    def __init__(self, capacity: int) -> None:
        self.node_first: UInt8s = np.full(capacity, FITS, dtype=np.uint8)
        """The first filter that rejects the row, among those that read the node alone, and its reason bits."""
        self.node_bits: Int64s = np.zeros(capacity, dtype=np.int64)
        self.node_scores: Int64s = np.zeros(capacity, dtype=np.int64)
        self.first: UInt8s = np.full(capacity, FITS, dtype=np.uint8)
        """The first filter that rejects the row, among all that are cached, and its reason bits."""
        self.bits: Int64s = np.zeros(capacity, dtype=np.int64)
        self.fits: Bools = np.zeros(capacity, dtype=np.bool_)
        self.scores: Int64s = np.zeros(capacity, dtype=np.int64)
        """The weighted sum of the scores that need no normalizing."""

    def __len__(self) -> int:
        return len(self.fits)


class PluginStates:
    """What the row-local plugins prepared for one signature: their PreFilter and PreScore results."""

    def __init__(self, profile: Profile, pod: PodInfo, topology_filters: Sequence[FilterState]) -> None:
        self.filters: dict[str, Any] = {}
        """The state of each row-local filter that applies, by plugin name."""
        self.pre_filter_results: dict[str, PreFilterResult] = {}
        self.node_filters: list[FilterState] = []
        """Filters that read the node alone."""
        self.pod_filters: list[FilterState] = []
        """Filters that read the pods of the node, too."""
        self.node_scores: list[ScoreState] = []
        self.pod_scores: list[ScoreState] = []
        self.normalized_scores: list[ScoreState] = []
        """Scores of nodes alone that are normalized over the feasible rows."""
        self.topology_filters = topology_filters
        """Filters of scope TOPOLOGY whose results for this signature are node-local."""
        self.pre_score_status: Status | None = None
        self._run_pre_filters(profile, pod)
        for use, state in topology_filters:
            self.filters[use.plugin.name] = state
            self.pod_filters.append((use, state))
        self.last_filter_number = max((use.number for use, _ in (*self.node_filters, *self.pod_filters)), default=-1)
        self._run_pre_scores(profile, pod)
        self.has_node_names_or_status = not all(
            result is SKIP or (isinstance(result, Proceed) and result.node_names is None)
            for result in self.pre_filter_results.values()
        )

    @property
    def scores(self) -> Iterator[ScoreState]:
        yield from self.node_scores
        yield from self.pod_scores
        yield from self.normalized_scores

    def _run_pre_filters(self, profile: Profile, pod: PodInfo) -> None:
        for use in profile.filters:
            if not use.is_row_local:
                continue
            name = use.plugin.name
            result = use.plugin.pre_filter(pod)
            if isinstance(use.plugin, PreFilter):
                self.pre_filter_results[name] = result
            if not isinstance(result, Proceed):
                continue
            self.filters[name] = result.state
            reads_pods = use.plugin.filter_scope is Scope.NODE_PODS
            (self.pod_filters if reads_pods else self.node_filters).append((use, result.state))

    def _run_pre_scores(self, profile: Profile, pod: PodInfo) -> None:
        for use in profile.scores:
            if not use.is_row_local:
                continue
            state = use.plugin.pre_score(pod, slice(0, 0))
            if state is SKIP:
                continue
            if isinstance(state, Status):
                self.pre_score_status = self.pre_score_status or state.with_plugin(use.plugin.name)
            elif use.plugin.normalizes:
                self.normalized_scores.append((use, state))
            elif use.plugin.score_scope is Scope.NODE_PODS:
                self.pod_scores.append((use, state))
            else:
                self.node_scores.append((use, state))


class EqualScores(NamedTuple):
    """The normalized scores that do not vary between nodes."""

    plugins: tuple[str, ...]
    """The plugins of `SignatureResults.row_scores`; the last ones are those of `values`."""
    values: tuple[int, ...]


class SignatureResults:
    """The cached results for one signature. Only this class writes them."""

    def __init__(self, columns: Columns, states: PluginStates, pod: PodInfo, epochs: tuple[object, ...]) -> None:
        self.states = states
        self.signature = pod.signature
        """The signature of the last pod: signatures that differ in labels alone may share results."""
        self.epochs = epochs
        self.topology_results: Mapping[str, PreFilterResult] = {}
        """The PreFilter results of the topology filters for the last pod, by plugin name."""
        self.arrays = RowArrays(0)
        self._columns = columns
        self._diagnosis: Diagnosis | None = None
        """The diagnosis if no row fits. Dropped when a row changes."""
        self._row_cache: RowCache | None = None
        """What preemption found on each row."""
        self._node_position = -1
        self._pods_position = -1
        self._raw_scores: list[Int64s] = []
        """The scores of `states.normalized_scores` before normalizing."""
        self._summands: list[Int64s] = []
        """The weighted scores of each plugin of `states.node_scores` and `states.pod_scores` but the last one, whose
        scores follow from the sum."""
        self._varying: list[int] = []
        """Which of them differ between nodes. The others decide nothing."""
        self._normalized: Int64s | None = None
        """Per row: the weighted sum of the varying scores, normalized over the rows that fit; None: not computed."""
        self._normalized_parts: list[tuple[str, Int64s]] = []
        """Its summands, by plugin."""
        self._row_scores: dict[int, NodeScores] = {}
        """What `row_scores` returned for rows that have not changed since."""
        self._equal_scores: EqualScores | None = None
        """None: not computed since a node changed."""
        self._best: SortedRows | None = None
        """The rows with the highest total, while single rows change; None: unknown."""
        self._best_total = REJECTED
        self._fits_count: int | None = None
        """How many rows fit, while single rows change; None: not counted."""

    # Reading

    @property
    def fits(self) -> Bools:
        return self.arrays.fits[: self._columns.height]

    @property
    def fits_count(self) -> int:
        if self._fits_count is None:
            self._fits_count = int(np.count_nonzero(self.fits))
        return self._fits_count

    @property
    def has_varying_scores(self) -> bool:
        """Whether a total depends on which rows are feasible."""
        return bool(self._varying)

    def totals(self) -> Int64s:
        """Per row that fits: the total of the cached scores, normalized over the rows that fit."""
        scores = self.arrays.scores[: self._columns.height]
        return scores + self._normalize() if self._varying else scores

    def best_rows(self) -> SortedRows:
        """The rows that fit and have the highest total, ascending."""
        if self._best is None:
            totals = np.where(self.fits, self.totals(), REJECTED)
            self._best_total = int(totals.max())
            is_best: Bools = totals == self._best_total
            self._best = SortedRows(is_best.nonzero()[0].tolist())
        return self._best

    def total_over(self, rows: Rows, parts: list[tuple[str, Int64s]]) -> Int64s:
        """For each of these rows: the total of the cached scores, normalized over these rows.

        The normalized scores of each plugin are added to `parts`.
        """
        total = self.arrays.scores[rows]
        for index in self._varying:
            use, state = self.states.normalized_scores[index]
            scores = use.weight * use.plugin.normalize(state, self._raw_scores[index][rows], rows)
            parts.append((use.plugin.name, scores))
            total = total + scores
        return total

    @property
    def normalized_parts(self) -> Sequence[tuple[str, Int64s]]:
        """Per plugin and row: the varying scores, as `totals` contains them."""
        return self._normalized_parts if self._varying else ()

    def row_scores(self, row: int) -> NodeScores:
        """The weighted scores of a row by plugin, except for those that vary with the feasible rows."""
        found = self._row_scores.get(row)
        if found is None:
            if len(self._row_scores) >= ROW_SCORES_MAX:
                self._row_scores.clear()
            found = self._row_scores[row] = self._compute_row_scores(row)
        return found

    def _compute_row_scores(self, row: int) -> NodeScores:
        if self._equal_scores is None:
            self._equal_scores = self._compute_equal_scores(row)
        plugins, equal_values = self._equal_scores
        values = [scores.item(row) for scores in self._summands]
        if len(plugins) > len(equal_values):
            values.append(self.arrays.scores.item(row) - sum(values))
        values += equal_values
        return NodeScores(self._columns.node_names[row], plugins, tuple(values))

    def _compute_equal_scores(self, row: int) -> EqualScores:
        """The normalized scores that are equal on all rows, and therefore if they are normalized over one row."""
        alone = np.array((row,), dtype=np.int64)
        states = self.states
        plugins = [use.plugin.name for use, _ in (*states.node_scores, *states.pod_scores)]
        values: list[int] = []
        for index, (use, state) in enumerate(states.normalized_scores):
            if index not in self._varying:
                plugins.append(use.plugin.name)
                values.append(use.weight * use.plugin.normalize(state, self._raw_scores[index][alone], alone).item(0))
        return EqualScores(tuple(plugins), tuple(values))

    @property
    def has_row_cache(self) -> bool:
        return self._row_cache is not None

    def diagnosis(self, diagnose: Callable[[], Diagnosis]) -> Diagnosis:
        """The diagnosis of an attempt that found no row; computed once until a row changes."""
        if self._diagnosis is None:
            self._diagnosis = diagnose()
        return self._diagnosis

    def row_cache(self, kind: type[Cache]) -> Cache:
        """What a PostFilter plugin found on each row. The rows that change are dropped from it."""
        known = self._row_cache
        if not isinstance(known, kind):
            known = self._row_cache = kind()
        return known

    # Updating

    def update(self, pod: PodInfo, spare: list[RowArrays]) -> None:
        """Bring the results up to date. `spare` holds arrays of dropped signatures."""
        columns = self._columns
        assert not columns.in_transaction, "results inside of a transaction must not be cached"
        nodes, pods = columns.fact_changes, columns.usage_changes
        if self._node_position == nodes.position and self._pods_position == pods.position:
            return
        self._diagnosis = None
        is_large_enough = len(self.arrays) >= columns.height
        few = None
        if is_large_enough and self._node_position == nodes.position:
            most = max(SINGLE_ROWS_MAX, columns.height // ROWS_PER_SINGLE_ROW)
            few = pods.few_since(self._pods_position, most)
        if few is not None:
            self._update_single_rows(pod, few)
        else:
            changed_nodes = nodes.since(self._node_position) if self._node_position >= 0 else None
            changed_pods = pods.since(self._pods_position) if self._pods_position >= 0 else None
            if is_large_enough and changed_nodes is not None and changed_pods is not None:
                self._update_some(pod, changed_nodes, changed_pods)
            else:
                self._update_all(pod, spare)
        self._node_position, self._pods_position = nodes.position, pods.position

    def _update_all(self, pod: PodInfo, spare: list[RowArrays]) -> None:
        columns = self._columns
        while spare and len(spare[-1]) != columns.capacity:
            spare.pop()
        if len(self.arrays) != columns.capacity:
            self.arrays = spare.pop() if spare else RowArrays(columns.capacity)
        self.arrays.fits[:] = False
        self._raw_scores = [np.zeros(columns.capacity, dtype=np.int64) for _ in self.states.normalized_scores]
        added = len(self.states.node_scores) + len(self.states.pod_scores)
        self._summands = [np.zeros(columns.capacity, dtype=np.int64) for _ in range(added - 1)]
        self._compute(pod, columns.live_rows, columns.live_rows)
        if self._row_cache is not None:
            self._row_cache.forget(None)

    def _update_some(self, pod: PodInfo, changed_nodes: Int64s, changed_pods: Int64s) -> None:
        arrays, alive = self.arrays, self._columns.alive
        changed = np.union1d(changed_nodes, changed_pods)
        arrays.fits[changed[~alive[changed]]] = False
        self._compute(pod, changed_nodes[alive[changed_nodes]], changed[alive[changed]])
        if self._row_cache is not None:
            self._row_cache.forget(changed)

    def _compute(self, pod: PodInfo, node_rows: Rows, rows: Rows) -> None:
        """Call the plugins that read nodes alone for `node_rows`, and those that read pods for `rows`."""
        arrays, states = self.arrays, self.states
        self._best = self._normalized = self._fits_count = None
        self._row_scores.clear()
        if length_of(node_rows):
            self._equal_scores = None
            arrays.node_first[node_rows], arrays.node_bits[node_rows] = FITS, 0
            write_rejections(states.node_filters, node_rows, arrays.node_first, arrays.node_bits)
            arrays.node_scores[node_rows] = _weighted_sum(states.node_scores, node_rows, self._summands)
            for (use, state), raw in zip(states.normalized_scores, self._raw_scores, strict=True):
                raw[node_rows] = use.plugin.score(state, node_rows)
            live = self._columns.live_rows
            self._varying = [n for n, raw in enumerate(self._raw_scores) if raw[live].min() != raw[live].max()]
        if not length_of(rows):
            return
        arrays.first[rows], arrays.bits[rows] = arrays.node_first[rows], arrays.node_bits[rows]
        write_rejections(states.pod_filters, rows, arrays.first, arrays.bits)
        arrays.fits[rows] = arrays.first[rows] == FITS
        summands = self._summands[len(states.node_scores) :]
        arrays.scores[rows] = arrays.node_scores[rows] + _weighted_sum(states.pod_scores, rows, summands)
        if len(self._columns.nominations):
            self._add_nominated_pods(pod, rows)

    def _update_single_rows(self, pod: PodInfo, rows: Sequence[int]) -> None:
        """As `_compute` for a few rows whose pods changed."""
        arrays, states = self.arrays, self.states
        for row in rows:
            self._row_scores.pop(row, None)
            number, bits = first_rejection(
                states.pod_filters, row, arrays.node_first.item(row), arrays.node_bits.item(row)
            )
            score = arrays.node_scores.item(row) + self._pod_scores_of_row(row)
            arrays.first[row], arrays.bits[row], arrays.scores[row] = number, bits, score
            fits = number == FITS
            if fits is not arrays.fits.item(row):
                arrays.fits[row] = fits
                if self._fits_count is not None:
                    self._fits_count += 1 if fits else -1
                if self._varying:  # normalized over other rows from now on
                    self._best = self._normalized = None
            if self._best is not None:
                normalized = self._normalized.item(row) if self._normalized is not None else 0
                self._move_among_best(self._best, row, score + normalized if fits else REJECTED)
        if len(self._columns.nominations) or self._row_cache is not None:
            changed = np.array(rows, dtype=np.int64)
            self._add_nominated_pods(pod, changed)
            if self._row_cache is not None:
                self._row_cache.forget(changed)

    def _pod_scores_of_row(self, row: int) -> int:
        """As `_weighted_sum` of the pod scores, for one row."""
        total, summands = 0, self._summands
        for number, (use, state) in enumerate(self.states.pod_scores, start=len(self.states.node_scores)):
            score = use.weight * use.plugin.score_row(state, row)
            total += score
            if number < len(summands):
                summands[number][row] = score
        return total

    def _move_among_best(self, best: SortedRows, row: int, total: int) -> None:
        """Update the best rows after one row's total changed."""
        if total > self._best_total:
            self._best, self._best_total = SortedRows([row]), total
        elif total == self._best_total:
            best.add(row)
        else:
            best.discard(row)
            if not best:
                self._best = None

    def _normalize(self) -> Int64s:
        if self._normalized is None:
            fits = self.fits
            normalized = np.zeros(len(fits), dtype=np.int64)
            feasible: Rows = slice(0, len(fits)) if fits.all() else fits.nonzero()[0]
            self._normalized_parts = []
            for index in self._varying:
                use, state = self.states.normalized_scores[index]
                raw = self._raw_scores[index][feasible]
                scores = np.zeros(len(fits), dtype=np.int64)
                scores[feasible] = use.weight * use.plugin.normalize(state, raw, feasible)
                self._normalized_parts.append((use.plugin.name, scores))
                normalized += scores
            self._normalized = normalized
        return self._normalized

    def _add_nominated_pods(self, pod: PodInfo, rows: Rows) -> None:
        columns = self._columns
        among = None if isinstance(rows, slice) else set(rows.tolist())
        for row in columns.rows_named(columns.nominations.nodes()).tolist():
            if among is None or row in among:
                self._add_nominated_pods_of(pod, row)

    def _add_nominated_pods_of(self, pod: PodInfo, row: int) -> None:
        columns, arrays = self._columns, self.arrays
        nominated = [p for p in columns.nominations.on(columns.node_names[row]) if p.priority >= pod.priority]
        if not nominated:
            return
        with Transaction(columns) as transaction:
            for nominated_pod in nominated:
                transaction.place(nominated_pod, row)
            number, bits = first_rejection(
                self.states.pod_filters, row, arrays.node_first.item(row), arrays.node_bits.item(row)
            )
        if number == FITS:
            return
        self._best = self._normalized = self._fits_count = None
        arrays.first[row], arrays.bits[row] = number, bits
        arrays.fits[row] = False


class ResultCache:
    """The results of the signatures that were seen lately, for the plugins of one profile."""

    def __init__(self, profile: Profile, columns: Columns) -> None:
        self._profile = profile
        self._columns = columns
        self._results: dict[PodSignature | bytes, SignatureResults] = {}
        """In the order of their last use."""
        self._spare: list[RowArrays] = []
        self.counts = ReuseCounts()
        row_local: list[Plugin] = [use.plugin for use in profile.filters if use.is_row_local]
        row_local += [use.plugin for use in profile.scores if use.is_row_local]
        self._shares_results = all(plugin.is_built_in for plugin in row_local)
        """Built-in row-local plugins read neither labels nor owners: signatures with the same spec share results."""
        self._epoch_plugins = [plugin for plugin in profile.plugins.values() if type(plugin).epoch is not Plugin.epoch]

    def results_for(self, pod: PodInfo) -> SignatureResults:
        """The results for the pod's signature, up to date. Raises `PluginError`."""
        topology_results: dict[str, PreFilterResult] = {}
        topology_filters: list[FilterState] = []
        for use in self._profile.topology_filters:
            result = topology_results[use.plugin.name] = use.plugin.pre_filter(pod)
            if isinstance(result, Proceed) and result.is_node_local:
                topology_filters.append((use, result.state))
        key = self._key(pod.signature, bool(topology_filters))
        epochs = tuple([plugin.epoch() for plugin in self._epoch_plugins])
        results = self._results.pop(key, None)
        self.counts.pods += 1
        if results is None or results.epochs != epochs or results.states.topology_filters != topology_filters:
            self.counts.unknown += 1
            if results is not None:
                self._spare.append(results.arrays)
                self.counts.dropped[EXPIRED] += 1
            self._evict_oldest()
            states = PluginStates(self._profile, pod, topology_filters)
            results = SignatureResults(self._columns, states, pod, epochs)
        results.signature, results.topology_results = pod.signature, topology_results
        try:
            results.update(pod, self._spare)
        except BaseException:  # the half-written results are dropped
            self.counts.dropped[POD_FAILED] += 1
            raise
        self._results[key] = results
        return results

    def _key(self, signature: PodSignature, has_topology_filters: bool) -> PodSignature | bytes:
        if not self._shares_results or has_topology_filters:
            return signature
        # What preemption found depends on labels, so a signature with victims does not share its results.
        shared = self._results.get(signature.spec_key)
        is_taken = shared is not None and shared.has_row_cache and shared.signature is not signature
        return signature if is_taken else signature.spec_key

    def _evict_oldest(self) -> None:
        signatures_max = CACHE_BYTES_MAX // max(1, self._columns.capacity * RowArrays.BYTES_PER_ROW)
        while len(self._results) >= max(SIGNATURES_MIN, signatures_max):
            oldest = self._results.pop(next(iter(self._results)))
            self._spare.append(oldest.arrays)
            self.counts.dropped[POD_INCOMPATIBLE] += 1


def write_rejections(filters: Sequence[FilterState], rows: Rows, first: UInt8s, bits: Int64s) -> None:
    """Write to `first` and `bits`, per row, the first filter that rejects it and its reason bits.

    A row that another filter rejects keeps that filter if it has the smaller number.
    """
    for use, state in filters:
        reason_bits = use.plugin.filter(state, rows)
        if not np.count_nonzero(reason_bits):
            continue
        is_first = (reason_bits != 0) & (first[rows] > use.number)
        if isinstance(rows, slice):
            np.putmask(first[rows], is_first, use.number)  # three times as fast as copyto with a mask
            np.putmask(bits[rows], is_first, reason_bits)
        else:
            first[rows[is_first]] = use.number
            bits[rows[is_first]] = reason_bits[is_first]


def first_rejection(filters: Sequence[FilterState], row: int, first: int, bits: int) -> tuple[int, int]:
    """As `write_rejections`, for one row."""
    for use, state in filters:
        if use.number < first and (reason_bits := use.plugin.filter_row(state, row)):
            first, bits = use.number, reason_bits
    return first, bits


def _weighted_sum(scores: Sequence[ScoreState], rows: Rows, summands: Sequence[Int64s] = ()) -> Int64s | int:
    """The sum of the plugins' scores. The first ones are also written to `summands`."""
    total: Int64s | int = 0
    for index, (use, state) in enumerate(scores):
        of_rows = use.plugin.score(state, rows)
        if use.weight != 1:
            of_rows = use.weight * of_rows
        if index < len(summands):
            summands[index][rows] = of_rows
        total = total + of_rows
    return total
