"""What row-local plugins said of one shape, kept, so that the next pod of the shape costs only the rows that changed.

Comes in   a shape's pod, for the plugins' states; answers, from the `keeper`, which brings them up to date
Goes out   for each row the first refusing row-local filter and its bits, and the sum of row-local scores

 1. `ranked` is the score sum where the pod fits and `REFUSED` where it does not: its maximum is the decision, when
    no plugin that reads the cluster has a say.
 2. Where all that a filter of the cluster says is row-local, too, as things are, its answers may be among them
    (`twins`); then the same shape is kept twice.
 3. What those among the plugins that judge by level said of a level is remembered (`of_level`): of 5,000 nodes hardly
    a dozen levels are seen.
 4. `best` holds the rows with the highest rank, or is None when nobody knows them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from mooring.scheduler.cache.arrays import Bools, Int64s, UInt8s
from mooring.scheduler.cache.pods import PodRecord
from mooring.scheduler.cache.resources import Level
from mooring.scheduler.framework.plugin import SKIP, Axis, Proceed, Reads, RowTwin, Skip
from mooring.scheduler.framework.profile import FilterUse, Profile, ScoreUse
from mooring.scheduler.framework.status import Rejection

if TYPE_CHECKING:
    from mooring.scheduler.cycle.bands import Bands
    from mooring.scheduler.cycle.diagnosis import Diagnosis

FITS = 255
"""The number of the first refusing filter of a row that nobody refuses; real numbers are smaller."""
REFUSED = int(np.iinfo(np.int64).min) // 2
ROW_BYTES = 1 + 8 + 1 + 8 + 1 + 8 + 8 + 8 + 8

_NO_ROWS: Int64s = np.zeros(0, dtype=np.int64)
_ARRAYS = ("first", "bits", "facts_first", "facts_bits", "fits", "facts_scores", "scores", "normalised", "ranked")


Twins: TypeAlias = Mapping[str, RowTwin]
NO_TWINS: Twins = {}


class Forgetful(Protocol):
    """Something that was found out about rows, and is void when they change."""

    def forget(self, rows: Int64s | None) -> None: ...


class Kept:
    """The answers of row-local plugins for one shape."""

    __slots__ = (
        "bands",
        "bands_asked",
        "bands_wanted",
        "best",
        "best_rank",
        "bits",
        "counted_for",
        "diagnosis",
        "epochs",
        "fact_position",
        "facts_bits",
        "facts_filters",
        "facts_first",
        "facts_scores",
        "filter_states",
        "first",
        "fits",
        "fits_count",
        "fits_version",
        "has_normalised",
        "is_unremarkable",
        "level_filters",
        "level_scores",
        "normalised",
        "normalised_for",
        "of_level",
        "other_filters",
        "other_scores",
        "pre_filter_answers",
        "ranked",
        "raw_scores",
        "row_filters",
        "row_scores",
        "score_failure",
        "score_states",
        "scores",
        "shape",
        "twins",
        "usage_position",
        "varying_scores",
        "victims",
    )

    def __init__(self, profile: Profile, pod: PodRecord, epochs: tuple[object, ...], twins: Twins = NO_TWINS) -> None:
        self.shape = pod.shape
        """Whose pod asked last: the same answers may serve a family of shapes."""
        self.epochs = epochs
        """Those of the plugins when they were asked what they need to know of the pod."""
        self.twins = twins
        """Filters that read the cluster, and whose answers are kept all the same, by name."""
        self.filter_states: dict[str, Any] = {}
        """The state of each row-local filter that has a say, by plugin name."""
        self.pre_filter_answers: dict[str, Rejection | Proceed[Any] | Skip] = {}
        """What the PreFilter of each row-local plugin answered."""
        self.facts_filters: list[tuple[FilterUse, Any]] = []
        """Those of the row-local filters that have a say and read facts only."""
        self.row_filters: list[tuple[FilterUse, Any]] = []
        """Those that read usage: who is asked again when a pod came or went."""
        self.score_states: list[tuple[ScoreUse, Any]] = []
        self.row_scores: list[tuple[ScoreUse, Any]] = []
        """Those of them that read usage."""
        self.of_level: dict[Level, tuple[int, int, int]] = {}
        """For each level that was seen the first refusing filter, its bits and the score of those who judge by it."""
        self.raw_scores: list[tuple[ScoreUse, Any, Int64s]] = []
        """Scores that are normalised over the feasible rows, as they were before that."""
        self.varying_scores: list[tuple[ScoreUse, Any, Int64s]] = []
        """Those of them that are not the same on all rows: the others decide nothing."""
        self.score_failure: Rejection | None = None
        self.fact_position = -1
        self.usage_position = -1
        self.fits_version = 0
        self.normalised_for = -1
        self.has_normalised = False
        """Whether any row has a normalised score but 0."""
        self.fits_count = 0
        self.counted_for = -1
        self.best: list[int] | None = None
        """The rows with the highest rank, ascending, while only few rows change; None: look for them again."""
        self.best_rank = REFUSED
        self.bands: Bands | None = None
        """The rows by what plugins of the cluster can tell of them, while only few rows change."""
        self.bands_wanted: tuple[Axis, ...] = ()
        self.bands_asked = 0
        """The axes by which bands were wanted last, and how often since only few rows change."""
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
        self.level_filters = [(use, state) for use, state in self.row_filters if use.plugin.filters_by_level(state)]
        self.other_filters = [asked for asked in self.row_filters if asked not in self.level_filters]
        self.level_scores = [(use, state) for use, state in self.row_scores if use.plugin.scores_by_level(state)]
        self.other_scores = [asked for asked in self.row_scores if asked not in self.level_scores]
        self.first: UInt8s = _NO_ROWS.astype(np.uint8)

    def take_arrays_of(self, dropped: Kept) -> None:
        """Takes over the memory of answers that nobody needs any more: all that counts in it is written anew."""
        for name in _ARRAYS:
            setattr(self, name, getattr(dropped, name))
        self.fits[:] = False
        self.normalised[:] = 0
        self.has_normalised = False
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
        self.has_normalised = False
        self.ranked: Int64s = np.full(capacity, REFUSED, dtype=np.int64)
        self.raw_scores = [(use, state, np.zeros(capacity, dtype=np.int64)) for use, state, _ in self.raw_scores]

    def forget_best(self) -> None:
        """Many rows have changed: nobody knows the best any more."""
        self.best = self.bands = None
        self.bands_asked = 0

    def flip(self, row: int, fits: bool) -> None:
        """One row fits now that did not, or the other way round."""
        self.fits[row] = fits
        if self.counted_for == self.fits_version:
            self.fits_count += 1 if fits else -1
            self.counted_for += 1
        self.fits_version += 1

    def move_among_best(self, row: int, rank: int) -> None:
        """Keeps the list of best rows right when one row's rank has changed."""
        best = self.best
        if best is None:
            return
        place = bisect_left(best, row)
        if place < len(best) and best[place] == row:
            if rank != self.best_rank:
                del best[place]
        elif rank == self.best_rank:
            best.insert(place, row)
        if rank > self.best_rank:
            self.best, self.best_rank = [row], rank
        elif not best:
            self.best = None

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
        for use in profile.filters:
            name = use.plugin.name
            if name in self.twins:
                twin = self.twins[name]
                self.row_filters.append((replace(use, plugin=twin.plugin), twin.state))
            elif name in self.filter_states:
                of_its_sort = self.row_filters if use.plugin.filter_reads is Reads.USAGE else self.facts_filters
                of_its_sort.append((use, self.filter_states[name]))

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
        self.row_scores = [(use, state) for use, state in self.score_states if use.plugin.score_reads is Reads.USAGE]
