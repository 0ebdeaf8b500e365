"""Spans: how large or how dear something is at least and at most, before there is a value.

Comes in   spans, and factors
Goes out   their sums, products and unions

 1. Both ends stop at `MOST`, which stands for "nobody knows": nothing wraps around.
 2. A product with a factor is rounded up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

MOST = 2**64 - 1


class Span(NamedTuple):
    low: int
    high: int

    def plus(self, other: Span) -> Span:
        return Span(min(self.low + other.low, MOST), min(self.high + other.high, MOST))

    def times(self, other: Span) -> Span:
        return Span(min(self.low * other.low, MOST), min(self.high * other.high, MOST))

    def scaled(self, factor: float) -> Span:
        return Span(_scaled(self.low, factor), _scaled(self.high, factor))

    def joined(self, other: Span) -> Span:
        """What holds both."""
        return Span(min(self.low, other.low), max(self.high, other.high))


def exactly(amount: int) -> Span:
    return Span(amount, amount)


NOTHING, ONE = exactly(0), exactly(1)
UNKNOWN = Span(0, MOST)
NEVER = Span(MOST, 0)
"""Joined with any other span it gives that one."""


def _scaled(amount: int, factor: float) -> int:
    product = float(amount) * factor
    return MOST if product >= float(MOST) else math.ceil(product)
