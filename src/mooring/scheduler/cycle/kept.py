"""What row-local plugins said of a shape, kept, so that the next pod of the shape costs only the rows that changed.

Comes in   shapes, and the change logs of the columns
Goes out   `Kept`: for each row the first refusing row-local filter and its bits, and the sum of row-local scores

 1. After `Keeper.kept`, every kept number is what the plugins would answer now: rows that changed were asked again.
    Rows whose pods changed are asked only of plugins that read usage; few rows are asked one by one.
 2. Nominated pods are part of a row: a row refuses if it refuses with the pods of at least the shape's priority that
    are nominated to it, or without them (the former is told first). Scores do not see them.
 3. `ranked` is the score sum where the pod fits and `REFUSED` where it does not: its maximum is the decision, when
    no plugin that reads the cluster has a say.
 4. What is kept takes at most `KEPT_BYTES_MAX`; beyond that the shapes unused for longest are dropped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, UInt8s, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord, Shape
from mooring.scheduler.cache.whatif import WhatIf
from mooring.scheduler.framework.plugin import SCORE_MAX, SKIP, InvalidScoreError, Plugin, Proceed, Reads, Skip
from mooring.scheduler.framework.profile import FilterUse, Profile, ScoreUse
from mooring.scheduler.framework.status import Rejection

if TYPE_CHECKING:
    from mooring.scheduler.cycle.diagnosis import Diagnosis

FITS = 255
"""The number of the first refusing filter of a row that nobody refuses; real numbers are smaller."""
REFUSED = int(np.iinfo(np.int64).min) // 2
KEPT_BYTES_MAX = 64 << 20
KEPT_MIN = 8
"""So many shapes are kept however large the cluster."""
ROW_BYTES = 1 + 8 + 1 + 8 + 1 + 8 + 8 + 8 + 8
FEW_ROWS = 16
"""Up to so many rows are asked one by one, in plain Python: below that numpy's overhead is larger than its gain."""


_NO_ROWS: Int64s = np.zeros(0, dtype=np.int64)
_ARRAYS = ("first", "bits", "facts_first", "facts_bits", "fits", "facts_scores", "scores", "normalised", "ranked")


class Forgetful(Protocol):
    """Something that was found out about rows, and is void when they change."""

    def forget(self, rows: Int64s | None) -> None: ...


class Kept:
    """The answers of row-local plugins for one shape."""

    __slots__ = (
        "best",
        "best_rank",
        "bits",
        "diagnosis",
        "epochs",
        "fact_position",
        "facts_bits",
        "facts_first",
        "facts_scores",
        "filter_states",
        "first",
        "fits",
        "fits_version",
        "is_unremarkable",
        "normalised",
        "normalised_for",
        "pre_filter_answers",
        "ranked",
        "raw_scores",
        "score_failure",
        "score_states",
        "scores",
        "usage_position",
        "varying_scores",
        "victims",
    )

    def __init__(self, profile: Profile, pod: PodRecord) -> None:
        self.filter_states: dict[str, Any] = {}
        """The state of each row-local filter that has a say, by plugin name."""
        self.pre_filter_answers: dict[str, Rejection | Proceed[Any] | Skip] = {}
        """What the PreFilter of each row-local plugin answered."""
        self.score_states: list[tuple[ScoreUse, Any]] = []
        self.raw_scores: list[tuple[ScoreUse, Any, Int64s]] = []
        """Scores that are normalised over the feasible rows, as they were before that."""
        self.varying_scores: list[tuple[ScoreUse, Any, Int64s]] = []
        """Those of them that are not the same on all rows: the others decide nothing."""
        self.score_failure: Rejection | None = None
        self.fact_position = -1
        self.usage_position = -1
        self.fits_version = 0
        self.normalised_for = -1
        self.epochs: tuple[object, ...] = ()
        self.best: list[int] | None = None
        """The rows with the highest rank, ascending, while only few rows change; None: look for them again."""
        self.best_rank = REFUSED
        self.diagnosis: Diagnosis | None = None
        """What is said when no row fits, while nothing changes."""
        self.victims: Forgetful | None = None
        """What preemption found out about the rows (see `victims`)."""
        self._ask_filters(profile, pod)
        self.is_unremarkable = all(
            answer is SKIP or (isinstance(answer, Proceed) and answer.node_names is None)
            for answer in self.pre_filter_answers.values()
        )
        """No row-local PreFilter rejects the pod or names its nodes."""
        self._ask_scores(profile, pod)
        self.first: UInt8s = _NO_ROWS.astype(np.uint8)

    def take_arrays_of(self, dropped: Kept) -> None:
        """Takes over the memory of answers that nobody needs any more: all that counts in it is written anew."""
        for name in _ARRAYS:
            setattr(self, name, getattr(dropped, name))
        self.fits[:] = False
        self.normalised[:] = 0
        self.ranked[:] = REFUSED
        self.raw_scores = [(use, state, np.zeros(len(self.fits), dtype=np.int64)) for use, state, _ in self.raw_scores]

    def allocate(self, capacity: int) -> None:
        self.first = np.full(capacity, FITS, dtype=np.uint8)
        self.bits: Int64s = np.zeros(capacity, dtype=np.int64)
        self.facts_first: UInt8s = np.full(capacity, FITS, dtype=np.uint8)
        self.facts_bits: Int64s = np.zeros(capacity, dtype=np.int64)
        self.fits: Bools = np.zeros(capacity, dtype=np.bool_)
        self.facts_scores: Int64s = np.zeros(capacity, dtype=np.int64)
        self.scores: Int64s = np.zeros(capacity, dtype=np.int64)
        self.normalised: Int64s = np.zeros(capacity, dtype=np.int64)
        self.ranked: Int64s = np.full(capacity, REFUSED, dtype=np.int64)
        self.raw_scores = [(use, state, np.zeros(capacity, dtype=np.int64)) for use, state, _ in self.raw_scores]

    def _ask_filters(self, profile: Profile, pod: PodRecord) -> None:
        for use in profile.filters:
            if not use.is_row_local:
                continue
            name = use.plugin.name
            if use.pre_filter is None:
                state = use.plugin.prepare(pod)
                if state is not SKIP:
                    self.filter_states[name] = state
                continue
            answer = self.pre_filter_answers[name] = use.pre_filter.pre_filter(pod)
            if isinstance(answer, Proceed):
                self.filter_states[name] = answer.state

    def _ask_scores(self, profile: Profile, pod: PodRecord) -> None:
        for use in profile.scores:
            if not use.is_row_local:
                continue
            state = use.pre_score.pre_score(pod, slice(0, 0)) if use.pre_score else use.plugin.prepare_score(pod)
            if state is SKIP:
                continue
            if isinstance(state, Rejection):
                self.score_failure = self.score_failure or replace(state, plugin=use.plugin.name)
            elif use.plugin.normalises:
                self.raw_scores.append((use, state, _NO_ROWS))
            else:
                self.score_states.append((use, state))


class Keeper:
    """Keeps answers for the shapes that were seen lately, and brings them up to date."""

    def __init__(self, profile: Profile, columns: Columns) -> None:
        self._profile = profile
        self._columns = columns
        self._kept: dict[Shape, Kept] = {}
        local = [use for use in profile.filters if use.is_row_local]
        self._facts_filters = [use for use in local if use.plugin.filter_reads is Reads.FACTS]
        self._usage_filters = [use for use in local if use.plugin.filter_reads is Reads.USAGE]
        self._epoch_plugins = [plugin for plugin in profile.plugins.values() if type(plugin).epoch is not Plugin.epoch]

    def kept(self, pod: PodRecord) -> Kept:
        """What is kept for the pod's shape, up to date."""
        shape = pod.shape
        kept = self._kept.pop(shape, None)  # put back behind all others: it is the one used last
        if kept is None:
            kept = Kept(self._profile, pod)
            self._make_room(kept)
        self._sync(kept, pod)  # if a plugin fails here, what it left half done is not kept
        self._kept[shape] = kept
        return kept

    def forget_all(self) -> None:
        self._kept.clear()

    def best(self, kept: Kept) -> list[int]:
        """The rows with the highest rank, ascending: all that is left to decide, if nobody else has a say."""
        self.refresh_normalised(kept)
        if kept.best is None:
            ranked = kept.ranked[: self._columns.height]
            kept.best_rank = int(ranked.max())
            is_best: Bools = ranked == kept.best_rank
            kept.best = is_best.nonzero()[0].tolist()
        return kept.best

    def refresh_normalised(self, kept: Kept) -> None:
        """Normalised scores of row-local plugins over the rows that fit; they change only when some row flips."""
        if kept.normalised_for == kept.fits_version:
            return
        rows: Rows = slice(0, self._columns.height)
        if not kept.varying_scores and not kept.normalised[rows].any():
            kept.normalised_for = kept.fits_version
            return
        feasible = kept.fits[rows].nonzero()[0]
        total = np.zeros(len(feasible), dtype=np.int64)
        for use, state, raw in kept.varying_scores:
            total += use.weight * use.plugin.normalise(state, raw.take(feasible), feasible)
        kept.best = None
        kept.normalised[rows] = 0
        kept.normalised[feasible] = total
        kept.ranked[rows] = REFUSED
        kept.ranked[feasible] = kept.scores.take(feasible) + total
        kept.normalised_for = kept.fits_version  # last: a plugin that failed above must fail again for the next pod

    def _sync(self, kept: Kept, pod: PodRecord) -> None:
        columns = self._columns
        assert not columns.in_what_if, "what is computed inside of a what-if must not be kept"
        usage, facts = columns.usage_changes, columns.fact_changes
        epochs = tuple([plugin.epoch() for plugin in self._epoch_plugins])
        if kept.usage_position == usage.position and kept.fact_position == facts.position and kept.epochs == epochs:
            return
        kept.diagnosis = None
        fact_rows = facts.since(kept.fact_position) if kept.fact_position != facts.position else _NO_ROWS
        usage_rows = usage.since(kept.usage_position)
        if fact_rows is None or usage_rows is None or kept.epochs != epochs or len(kept.first) < columns.height:
            self._ask_all(kept, pod)
        elif not len(fact_rows) and len(usage_rows) <= FEW_ROWS:
            self._ask_one_by_one(kept, pod, usage_rows)
        else:
            self._ask_some(kept, pod, fact_rows, usage_rows)
        kept.usage_position = usage.position
        kept.fact_position = facts.position
        kept.epochs = epochs

    def _ask_all(self, kept: Kept, pod: PodRecord) -> None:
        if kept.usage_position >= 0 or len(kept.first) < self._columns.height:
            kept.allocate(self._columns.capacity)
        self._answer(kept, pod, self._columns.live_rows, self._columns.live_rows)
        kept.fits_version += 1
        if kept.victims is not None:
            kept.victims.forget(None)

    def _ask_some(self, kept: Kept, pod: PodRecord, fact_rows: Int64s, usage_rows: Int64s) -> None:
        alive = self._columns.alive
        changed = np.union1d(fact_rows, usage_rows)
        did_fit = kept.fits[changed]
        kept.best = None
        dead = changed[~alive[changed]]
        kept.fits[dead] = False
        kept.ranked[dead] = REFUSED
        self._answer(kept, pod, fact_rows[alive[fact_rows]], changed[alive[changed]])
        # A change of facts may change what is normalised, even where the same rows fit.
        if len(fact_rows) or (did_fit != kept.fits[changed]).any():
            kept.fits_version += 1
        if kept.victims is not None:
            kept.victims.forget(changed)

    def _ask_one_by_one(self, kept: Kept, pod: PodRecord, rows: Int64s) -> None:
        """As `_answer` for rows whose pods changed, in plain Python."""
        for row in rows.tolist():
            number, bits = self._refusal_of_row(kept, row)
            score = int(kept.facts_scores[row])
            for scored, state in kept.score_states:
                if scored.plugin.score_reads is Reads.USAGE:
                    of_row = scored.plugin.score_row(state, row)
                    if not 0 <= of_row <= SCORE_MAX:
                        raise InvalidScoreError(scored.plugin.name, of_row)
                    score += scored.weight * of_row
            fits = number == FITS
            if fits != kept.fits[row]:
                kept.fits[row] = fits
                kept.fits_version += 1
            kept.first[row], kept.bits[row], kept.scores[row] = number, bits, score
            rank = score + int(kept.normalised[row]) if fits else REFUSED
            kept.ranked[row] = rank
            _move_among_best(kept, row, rank)
        if len(self._columns.nominations):
            self._overlay_nominations(kept, pod, rows)
        if kept.victims is not None:
            kept.victims.forget(rows)

    def _answer(self, kept: Kept, pod: PodRecord, fact_rows: Rows, rows: Rows) -> None:
        """Asks the plugins about rows: those that read facts about `fact_rows`, the others about `rows`."""
        kept.best = None
        if length_of(fact_rows):
            first, bits = first_refusals(self._facts_filters, kept.filter_states, fact_rows)
            kept.facts_first[fact_rows], kept.facts_bits[fact_rows] = first, bits
            kept.facts_scores[fact_rows] = self._scores(kept, Reads.FACTS, fact_rows)
            for use, state, raw in kept.raw_scores:
                raw[fact_rows] = use.plugin.score(state, fact_rows)
            everywhere = self._columns.live_rows
            kept.varying_scores = [s for s in kept.raw_scores if s[2][everywhere].min() != s[2][everywhere].max()]
        if not length_of(rows):
            return
        first, bits = first_refusals(
            self._usage_filters, kept.filter_states, rows, kept.facts_first[rows].copy(), kept.facts_bits[rows].copy()
        )
        kept.first[rows], kept.bits[rows] = first, bits
        fits = first == FITS
        kept.fits[rows] = fits
        kept.scores[rows] = scores = kept.facts_scores[rows] + self._scores(kept, Reads.USAGE, rows)
        kept.ranked[rows] = np.where(fits, scores + kept.normalised[rows], REFUSED)
        if len(self._columns.nominations):
            self._overlay_nominations(kept, pod, rows)

    def _scores(self, kept: Kept, reads: Reads, rows: Rows) -> Int64s | int:
        total: Int64s | int = 0
        for use, state in kept.score_states:
            if use.plugin.score_reads is reads:
                scores = use.plugin.score(state, rows)
                if not use.is_ours:
                    check_scores(use.plugin.name, scores)
                total = total + (scores if use.weight == 1 else use.weight * scores)
        return total

    def _overlay_nominations(self, kept: Kept, pod: PodRecord, rows: Rows) -> None:
        columns = self._columns
        among = None if isinstance(rows, slice) else set(rows.tolist())
        for row in columns.rows_named(columns.nominations.nodes()).tolist():
            if among is None or row in among:
                self._overlay_row(kept, pod, row)

    def _overlay_row(self, kept: Kept, pod: PodRecord, row: int) -> None:
        columns = self._columns
        yielding_to = [p for p in columns.nominations.on(columns.node_names[row]) if p.priority >= pod.priority]
        if not yielding_to:
            return
        with WhatIf(columns) as experiment:
            for nominated in yielding_to:
                experiment.place(nominated, row)
            number, bits = self._refusal_of_row(kept, row)
        if number != FITS:
            kept.best = None
            if kept.fits[row]:
                kept.fits_version += 1
            kept.first[row], kept.bits[row] = number, bits
            kept.fits[row] = False
            kept.ranked[row] = REFUSED

    def _refusal_of_row(self, kept: Kept, row: int) -> tuple[int, int]:
        """The first filter that refuses a row, and its bits; what reads facts alone is known already."""
        states = kept.filter_states
        number, bits = int(kept.facts_first[row]), int(kept.facts_bits[row])
        for use in self._usage_filters:
            if use.number < number and use.plugin.name in states:
                answer = use.plugin.filter_row(states[use.plugin.name], row)
                if answer:
                    number, bits = use.number, answer
        return number, bits

    def _make_room(self, newcomer: Kept) -> None:
        size_bytes = max(1, self._columns.capacity * ROW_BYTES)
        while len(self._kept) >= max(KEPT_MIN, KEPT_BYTES_MAX // size_bytes):
            dropped = self._kept.pop(next(iter(self._kept)))
            if len(dropped.first) == self._columns.capacity:
                newcomer.take_arrays_of(dropped)


def _move_among_best(kept: Kept, row: int, rank: int) -> None:
    """Keeps the list of best rows right when one row's rank has changed."""
    best = kept.best
    if best is None:
        return
    place = bisect_left(best, row)
    if place < len(best) and best[place] == row:
        if rank != kept.best_rank:
            del best[place]
    elif rank == kept.best_rank:
        best.insert(place, row)
    if rank > kept.best_rank:
        kept.best, kept.best_rank = [row], rank
    elif not best:
        kept.best = None


def check_scores(plugin: str, scores: Int64s) -> None:
    """Raises `InvalidScoreError` if a score lies outside of 0 to 100."""
    lowest, highest = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
    if lowest < 0 or highest > SCORE_MAX:
        raise InvalidScoreError(plugin, lowest if lowest < 0 else highest)


def first_refusals(
    uses: Sequence[FilterUse],
    states: dict[str, Any],
    rows: Rows,
    first: UInt8s | None = None,
    bits: Int64s | None = None,
) -> tuple[UInt8s, Int64s]:
    """Per row: the smallest number of a filter that refuses, and its bits; starting from what others refused."""
    is_fresh = first is None or bits is None
    if first is None or bits is None:
        first = np.full(length_of(rows), FITS, dtype=np.uint8)
        bits = np.zeros(length_of(rows), dtype=np.int64)
    # Backwards, so that of the filters asked here the one that comes first has the last word.
    for use in reversed(uses):
        name = use.plugin.name
        if name not in states:
            continue
        answer = use.plugin.filter(states[name], rows)
        if np.count_nonzero(answer):
            refused = answer != 0
            if not is_fresh:
                refused &= first > use.number
            np.copyto(first, use.number, where=refused)
            np.copyto(bits, answer, where=refused)
    return first, bits
