"""Anti-affinity told row by row: where each node is a domain of its own, nobody's neighbours live elsewhere.

Comes in   what keeps a pod away from others, counted live; rows
Goes out   the verdict of InterPodAffinity on each row, from what is on that row alone

"Never two of us on one node" is what nearly all anti-affinity says. Then a pod that comes changes the answer for its
own row and for no other, and answers can be kept with the shape like those about cpu.

 1. It is asked only while every topology that is spoken of has one node in each domain, and only about pods that do
    not have to be near anybody: whether such a pod is the first of its kind is no matter of one row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mooring.scheduler.cache.arrays import Int64s, Rows, length_of
from mooring.scheduler.cache.labels import ABSENT, LabelColumn
from mooring.scheduler.cache.selectors import Counter
from mooring.scheduler.cache.terms import CarriedTerm
from mooring.scheduler.framework.plugin import Filter, Reads

# One verdict a row: of several the largest is told, so that verdicts are combined by taking the maximum.
DISLIKED = 1
OWN_DISLIKE = 2


class Dislikes(NamedTuple):
    """Whom the pod does not want to be with, and who does not want to be with it."""

    own: tuple[tuple[Counter, LabelColumn], ...]
    carried: tuple[CarriedTerm, ...]


class DislikesByRow(Filter[Dislikes]):
    """The twin of InterPodAffinity for such pods."""

    name = "InterPodAffinity"
    filter_reads = Reads.USAGE

    def filter(self, state: Dislikes, rows: Rows) -> Int64s:
        bits = np.zeros(length_of(rows), dtype=np.int64)
        for term in state.carried:
            is_disliked = term.domain_counts().take(term.column.codes[rows]) > 0
            bits = np.maximum(bits, is_disliked * DISLIKED)
        for counter, column in state.own:
            is_disliking = (counter.rows[rows] > 0) & (column.codes[rows] != ABSENT)
            bits = np.maximum(bits, is_disliking * OWN_DISLIKE)
        return bits

    def filter_row(self, state: Dislikes, row: int) -> int:
        for counter, column in state.own:
            if counter.rows.item(row) > 0 and column.codes.item(row) != ABSENT:
                return OWN_DISLIKE
        for term in state.carried:
            if term.count_at(term.column.codes.item(row)) > 0:
                return DISLIKED
        return 0
