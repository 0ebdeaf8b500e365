"""Histograms: observations counted by bucket, without locks.

Everything that is measured runs in one thread, and an observation must not cost more than a tenth of a microsecond
(docs/adr/0012). Buckets are cumulated when they are read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import inf


class HistogramValue:
    """The observations of a histogram by bucket."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, other: HistogramValue) -> None:
        """Include the observations of another histogram with the same bounds."""
        self.counts = [mine + others for mine, others in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def buckets(self) -> list[tuple[str, float]]:
        """The cumulative counts by upper bound, as Prometheus' Go library writes it."""
        seen, found = 0, []
        for bound, count in zip((*self.bounds, inf), self.counts, strict=True):
            seen += count
            found.append((bound_text(bound), float(seen)))
        return found


def bound_text(bound: float) -> str:
    """A bound as Go writes it: `1`, `0.25`, `1.048576e+06`. A query that names a bucket depends on it."""
    if bound == inf:
        return "+Inf"
    digits, _, exponent = f"{bound:e}".partition("e")
    if -5 < int(exponent) < 6:
        return repr(bound).removesuffix(".0")
    shortest = repr(float(f"{bound / 10 ** int(exponent):.16g}")).removesuffix(".0")
    for candidate in (digits.rstrip("0").removesuffix("."), shortest):
        text = f"{candidate}e{int(exponent):+03d}"
        if float(text) == bound:
            return text
    return repr(bound)


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """The buckets of Prometheus' Go library."""
    buckets = [start]
    while len(buckets) < count:
        buckets.append(buckets[-1] * factor)
    return tuple(buckets)
