"""The keeper: holds what row-local plugins said of the shapes that were seen lately, and brings it up to date.

Comes in   shapes, and the change logs of the columns
Goes out   `Kept`: every number in it is what the plugins would answer now

 1. After `Keeper.kept`, rows that changed were asked again. Rows whose pods changed are asked only of plugins that
    read usage; few rows are asked one by one.
 2. Nominated pods are part of a row: a row refuses if it refuses with the pods of at least the shape's priority that
    are nominated to it, or without them (the former is told first). Scores do not see them.
 3. Our own row-local plugins read neither labels nor owners: where nobody else has a say, what is kept serves a whole
    family of shapes. A thousand Deployments of one template are one family. What preemption found out depends on
    labels, so a shape that has victims keeps its answers to itself, and so do shapes with twins.
 4. What is kept takes at most `KEPT_BYTES_MAX`; beyond that the shapes unused for longest are dropped. What was said of
    levels is counted apart: after `LEVELS_MAX` of them all are forgotten, and cost one question each to learn again.
 5. Answers are kept from the second pod of a family on: the first is judged at first sight (see `first_sight`), and of
    it only what the plugins have prepared is remembered. Where users' plugins have a say, from the first.
 6. When a plugin's epoch changes, what it has prepared of a pod is as void as its answers: all begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, Rows, UInt8s, length_of
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodRecord, Shape
from mooring.scheduler.cache.whatif import WhatIf
from mooring.scheduler.cycle.bands import Bands
from mooring.scheduler.cycle.kept import FITS, NO_TWINS, REFUSED, ROW_BYTES, Kept, Twins
from mooring.scheduler.framework.plugin import SCORE_MAX, Axis, Banded, Filter, InvalidScoreError, Plugin, Reads
from mooring.scheduler.framework.profile import FilterUse, Profile, ScoreUse

KEPT_BYTES_MAX = 64 << 20
KEPT_MIN = 8
"""So many shapes are kept however large the cluster."""
NEWCOMERS_MAX = 1024
"""Of so many families that only one pod has come of it is remembered that it came."""
PODS_BEFORE_BANDS = 3
"""Forming bands costs as much as deciding for a few pods without them."""
NO_BANDS_FOR = 1000
"""Where there were too many bands, so many pods are decided without asking again."""
FEW_ROWS = 16
"""Up to so many rows are asked one by one, in plain Python: below that numpy's overhead is larger than its gain."""

LEVELS_MAX = 1 << 14
"""Of so many levels, of all shapes together, is remembered what a shape was told there: some 600 bytes each."""

OUR_PLUGINS = "mooring.scheduler.plugins."

_NO_ROWS: Int64s = np.zeros(0, dtype=np.int64)


class Keeper:
    """Keeps answers for the shapes that were seen lately, and brings them up to date."""

    def __init__(self, profile: Profile, columns: Columns) -> None:
        self._profile = profile
        self._columns = columns
        self._kept: dict[tuple[Shape | bytes, bool], Kept] = {}
        self._newcomers: dict[tuple[Shape | bytes, bool], Kept] = {}
        """Families of which one pod has come: with states, and without answers."""
        self._levels_learnt = 0
        asked: list[Plugin] = [use.plugin for use in profile.filters if use.is_row_local]
        asked += [use.plugin for use in profile.scores if use.is_row_local]
        self._has_families = all(type(plugin).__module__.startswith(OUR_PLUGINS) for plugin in asked)
        self._twinned = [
            use
            for use in profile.cluster_filters
            if type(use.plugin).row_twin is not Filter.row_twin and use not in profile.prepared_filters
        ]
        self._banded = [plugin for plugin in profile.plugins.values() if isinstance(plugin, Banded)]
        self._epoch_plugins = [plugin for plugin in profile.plugins.values() if type(plugin).epoch is not Plugin.epoch]

    def kept(self, pod: PodRecord) -> Kept:
        """What is kept for the pod's shape, up to date."""
        return self._kept_with(pod, NO_TWINS)

    def newcomer(self, pod: PodRecord) -> Kept | None:
        """What the plugins have prepared for the first pod of its family, without any answers. None: it is not."""
        if not self._has_families or (pod.shape.family, False) in self._kept:
            return None
        key = self._key(pod.shape, NO_TWINS)
        if key in self._kept or key in self._newcomers:
            return None
        if len(self._newcomers) >= NEWCOMERS_MAX:
            del self._newcomers[next(iter(self._newcomers))]
        newcomer = self._newcomers[key] = Kept(self._profile, pod, self._epochs())
        return newcomer

    def kept_with_twins(self, pod: PodRecord) -> Kept | None:
        """The same with filters that read the cluster, as far as their answers can be kept now; None: of none."""
        twins = {use.plugin.name: twin for use in self._twinned if (twin := use.plugin.row_twin(pod)) is not None}
        return self._kept_with(pod, twins) if twins else None

    def _kept_with(self, pod: PodRecord, twins: Twins) -> Kept:
        key, epochs = self._key(pod.shape, twins), self._epochs()
        kept = self._kept.pop(key, None)  # put back behind all others: it is the one used last
        if kept is None or kept.twins != twins or kept.epochs != epochs:
            kept = self._newcomers.pop(key, None) if not twins else None
            if kept is None or kept.epochs != epochs:
                kept = Kept(self._profile, pod, epochs, twins)
            self._make_room(kept)
        kept.shape = pod.shape
        self._sync(kept, pod)  # if a plugin fails here, what it left half done is not kept
        self._kept[key] = kept
        return kept

    def _key(self, shape: Shape, twins: Twins) -> tuple[Shape | bytes, bool]:
        own = (shape, bool(twins))
        if twins or not self._has_families or own in self._kept:
            return own
        shared = self._kept.get((shape.family, False))
        is_taken = shared is not None and shared.victims is not None and shared.shape is not shape
        return own if is_taken else (shape.family, False)

    def _epochs(self) -> tuple[object, ...]:
        return tuple([plugin.epoch() for plugin in self._epoch_plugins])

    def best(self, kept: Kept) -> list[int]:
        """The rows with the highest rank, ascending: all that is left to decide, if nobody else has a say."""
        self.refresh_normalised(kept)
        if kept.best is None:
            ranked = kept.ranked[: self._columns.height]
            kept.best_rank = int(ranked.max())
            is_best: Bools = ranked == kept.best_rank
            kept.best = is_best.nonzero()[0].tolist()
        return kept.best

    def feasible_count(self, kept: Kept) -> int:
        """How many rows the row-local filters let through; counted again only when many rows flip."""
        if kept.counted_for != kept.fits_version:
            kept.fits_count = int(np.count_nonzero(kept.fits[: self._columns.height]))
            kept.counted_for = kept.fits_version
        return kept.fits_count

    def bands(self, kept: Kept, pod: PodRecord) -> Bands | None:
        """The rows by band, if the pod is one of many of its kind, and they are all that is left to decide."""
        if not self._banded or len(self._columns.nominations):
            return None
        axes: tuple[Axis, ...] = ()
        for plugin in self._banded:
            told_apart_by = plugin.axes(pod)
            if told_apart_by is None:
                return None
            axes += told_apart_by
        if not axes or kept.varying_scores:
            return None
        self.refresh_normalised(kept)
        if kept.bands is None or kept.bands.axes != axes:
            self._form_bands(kept, axes)
        return kept.bands

    def _form_bands(self, kept: Kept, axes: tuple[Axis, ...]) -> None:
        kept.bands = None
        kept.bands_asked = kept.bands_asked + 1 if kept.bands_wanted == axes else 1
        kept.bands_wanted = axes
        if kept.bands_asked > PODS_BEFORE_BANDS:
            bands = Bands(axes, kept.ranked[: self._columns.height])
            if bands.are_too_many:
                kept.bands_asked = -NO_BANDS_FOR
            else:
                kept.bands = bands

    def refresh_normalised(self, kept: Kept) -> None:
        """Normalised scores of row-local plugins over the rows that fit; they change only when some row flips."""
        if kept.normalised_for == kept.fits_version:
            return
        rows: Rows = slice(0, self._columns.height)
        if not kept.varying_scores and not kept.has_normalised:
            kept.normalised_for = kept.fits_version
            return
        feasible = kept.fits[rows].nonzero()[0]
        total = np.zeros(len(feasible), dtype=np.int64)
        for use, state, raw in kept.varying_scores:
            total += use.weight * use.plugin.normalise(state, raw.take(feasible), feasible)
        kept.forget_best()
        kept.normalised[rows] = 0
        kept.normalised[feasible] = total
        kept.has_normalised = bool(total.any())
        kept.ranked[rows] = REFUSED
        kept.ranked[feasible] = kept.scores.take(feasible) + total
        kept.normalised_for = kept.fits_version  # last: a plugin that failed above must fail again for the next pod

    def _sync(self, kept: Kept, pod: PodRecord) -> None:
        columns = self._columns
        assert not columns.in_what_if, "what is computed inside of a what-if must not be kept"
        usage, facts = columns.usage_changes, columns.fact_changes
        is_alike = kept.fact_position == facts.position
        if is_alike and kept.usage_position == usage.position:
            return
        kept.diagnosis = None
        is_alike = is_alike and len(kept.first) >= columns.height
        few = usage.few_since(kept.usage_position, FEW_ROWS) if is_alike else None
        if few is not None:
            self._ask_one_by_one(kept, pod, few)
        else:
            self._ask_many(kept, pod)
        kept.usage_position = usage.position
        kept.fact_position = facts.position

    def _ask_many(self, kept: Kept, pod: PodRecord) -> None:
        usage, facts = self._columns.usage_changes, self._columns.fact_changes
        fact_rows = facts.since(kept.fact_position) if kept.fact_position != facts.position else _NO_ROWS
        usage_rows = usage.since(kept.usage_position)
        is_too_small = len(kept.first) < self._columns.height
        if fact_rows is None or usage_rows is None or is_too_small:
            self._ask_all(kept, pod)
        else:
            self._ask_some(kept, pod, fact_rows, usage_rows)

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
        kept.forget_best()
        dead = changed[~alive[changed]]
        kept.fits[dead] = False
        kept.ranked[dead] = REFUSED
        self._answer(kept, pod, fact_rows[alive[fact_rows]], changed[alive[changed]])
        # A change of facts may change what is normalised, even where the same rows fit.
        if len(fact_rows) or (did_fit != kept.fits[changed]).any():
            kept.fits_version += 1
        if kept.victims is not None:
            kept.victims.forget(changed)

    def _ask_one_by_one(self, kept: Kept, pod: PodRecord, rows: Sequence[int]) -> None:
        """As `_answer` for rows whose pods changed, in plain Python."""
        for row in rows:
            number, bits, score = self._answer_of_row(kept, row)
            fits = number == FITS
            if fits is not kept.fits.item(row):
                kept.flip(row, fits)
            kept.first[row], kept.bits[row], kept.scores[row] = number, bits, score
            old_rank, rank = kept.ranked.item(row), score + kept.normalised.item(row) if fits else REFUSED
            kept.ranked[row] = rank
            kept.move_among_best(row, rank)
            if kept.bands is not None and not kept.bands.move(row, old_rank, rank):
                kept.bands, kept.bands_asked = None, -NO_BANDS_FOR
        if len(self._columns.nominations) or kept.victims is not None:
            changed = np.array(rows, dtype=np.int64)
            self._overlay_nominations(kept, pod, changed)
            if kept.victims is not None:
                kept.victims.forget(changed)

    def _answer_of_row(self, kept: Kept, row: int) -> tuple[int, int, int]:
        """The first filter that refuses a row and its bits, and the score: what is known of facts and of the level, and
        what the others say."""
        level = self._columns.resources.level_of(row)
        known = kept.of_level.get(level)
        if known is None:
            self._make_room_for_level(kept)
            known = kept.of_level[level] = (
                *_refusal_of_row(kept.level_filters, row, FITS, 0),
                _score_of_row(kept.level_scores, row),
            )
        number, bits, score = known
        by_facts = kept.facts_first.item(row)
        if by_facts < number:
            number, bits = by_facts, kept.facts_bits.item(row)
        if kept.other_filters:
            number, bits = _refusal_of_row(kept.other_filters, row, number, bits)
        if kept.other_scores:
            score += _score_of_row(kept.other_scores, row)
        return number, bits, score + kept.facts_scores.item(row)

    def _answer(self, kept: Kept, pod: PodRecord, fact_rows: Rows, rows: Rows) -> None:
        """Asks the plugins about rows: those that read facts about `fact_rows`, the others about `rows`."""
        kept.forget_best()
        if length_of(fact_rows):
            first, bits = first_refusals(kept.facts_filters, fact_rows)
            kept.facts_first[fact_rows], kept.facts_bits[fact_rows] = first, bits
            kept.facts_scores[fact_rows] = self._scores(kept, Reads.FACTS, fact_rows)
            for use, state, raw in kept.raw_scores:
                raw[fact_rows] = use.plugin.score(state, fact_rows)
            everywhere = self._columns.live_rows
            kept.varying_scores = [s for s in kept.raw_scores if s[2][everywhere].min() != s[2][everywhere].max()]
        if not length_of(rows):
            return
        first, bits = first_refusals(
            kept.row_filters, rows, kept.facts_first[rows].copy(), kept.facts_bits[rows].copy()
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
            number, bits = _refusal_of_row(kept.row_filters, row, kept.facts_first.item(row), kept.facts_bits.item(row))
        if number != FITS:
            kept.forget_best()
            if kept.fits[row]:
                kept.fits_version += 1
            kept.first[row], kept.bits[row] = number, bits
            kept.fits[row] = False
            kept.ranked[row] = REFUSED

    def _make_room(self, newcomer: Kept) -> None:
        size_bytes = max(1, self._columns.capacity * ROW_BYTES)
        while len(self._kept) >= max(KEPT_MIN, KEPT_BYTES_MAX // size_bytes):
            dropped = self._kept.pop(next(iter(self._kept)))
            if len(dropped.first) == self._columns.capacity:
                newcomer.take_arrays_of(dropped)

    def _make_room_for_level(self, kept: Kept) -> None:
        """Those of shapes that were dropped since count as if they were still there, so that nobody need count them."""
        if self._levels_learnt >= LEVELS_MAX:
            self._levels_learnt = 0
            for each in (kept, *self._kept.values()):
                each.of_level.clear()
        self._levels_learnt += 1


def check_scores(plugin: str, scores: Int64s) -> None:
    """Raises `InvalidScoreError` if a score lies outside of 0 to 100."""
    lowest, highest = (int(scores.min()), int(scores.max())) if len(scores) else (0, 0)
    if lowest < 0 or highest > SCORE_MAX:
        raise InvalidScoreError(plugin, lowest if lowest < 0 else highest)


def _refusal_of_row(asked: Sequence[tuple[FilterUse, Any]], row: int, first: int, bits: int) -> tuple[int, int]:
    """The first filter that refuses a row, and its bits; starting from what others refused."""
    for use, state in asked:
        if use.number < first and (answer := use.plugin.filter_row(state, row)):
            first, bits = use.number, answer
    return first, bits


def _score_of_row(asked: Sequence[tuple[ScoreUse, Any]], row: int) -> int:
    score = 0
    for use, state in asked:
        of_row = use.plugin.score_row(state, row)
        if not 0 <= of_row <= SCORE_MAX:
            raise InvalidScoreError(use.plugin.name, of_row)
        score += use.weight * of_row
    return score


def first_refusals(
    asked: Sequence[tuple[FilterUse, Any]],
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
    for use, state in reversed(asked):
        answer = use.plugin.filter(state, rows)
        if np.count_nonzero(answer):
            refused = answer != 0
            if not is_fresh:
                refused &= first > use.number
            np.copyto(first, use.number, where=refused)
            np.copyto(bits, answer, where=refused)
    return first, bits
