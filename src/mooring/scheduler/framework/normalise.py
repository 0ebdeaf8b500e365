"""Normalising scores: bringing what a plugin counted to the scale from 0 to 100."""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.arrays import Int64s
from mooring.scheduler.framework.plugin import SCORE_MAX


def scaled_to_best(scores: Int64s, *, reverse: bool) -> Int64s:
    """Per node: score * 100 // best; reversed, 100 minus that. All zero: 0, reversed 100."""
    best = int(scores.max(initial=0))
    if best == 0:
        return np.full(len(scores), SCORE_MAX, dtype=np.int64) if reverse else scores
    share = scores * SCORE_MAX // best
    return SCORE_MAX - share if reverse else share
