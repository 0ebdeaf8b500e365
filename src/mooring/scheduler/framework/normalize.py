"""Normalising scores: bringing what a plugin counted to the scale from 0 to 100.

Dividing whole numbers is the most expensive thing that normalising does, and scores take few different values. So the
formula is worked out once for each value, and the nodes look their value up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.framework.plugin import SCORE_MAX


def scaled_to_best(scores: Int64s, *, reverse: bool) -> Int64s:
    """Per node: score * 100 // best; reversed, 100 minus that. All zero: 0, reversed 100."""
    best = int(scores.max(initial=0))
    if best == 0:
        return np.full(len(scores), SCORE_MAX, dtype=np.int64) if reverse else scores

    def share(values: Int64s) -> Int64s:
        part: Int64s = values * SCORE_MAX // best
        return SCORE_MAX - part if reverse else part

    return by_table(scores, share, 0, best)


def by_table(scores: Int64s, formula: Callable[[Int64s], Int64s], lowest: int, highest: int) -> Int64s:
    """`formula` of each score; worked out for every value from lowest to highest if that is less work."""
    if highest - lowest >= len(scores):
        return formula(scores)
    return formula(np.arange(lowest, highest + 1)).take(scores - lowest if lowest else scores)
