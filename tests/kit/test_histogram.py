"""Histograms and their bounds."""

from __future__ import annotations

import math

import pytest

from mooring.kit.histogram import HistogramValue, bound_text, exponential_buckets


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (1.0, "1"),
        (1, "1"),
        (0.25, "0.25"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5e-05, "1.5e-05"),
        (16.384, "16.384"),
        (262_144, "262144"),
        (1_000_000, "1e+06"),
        (1_048_576, "1.048576e+06"),
        (16_777_216, "1.6777216e+07"),
        (1e-08, "1e-08"),
        (math.inf, "+Inf"),
    ],
)
def test_bounds_are_written_as_by_go(bound: float, text: str) -> None:
    assert bound_text(bound) == text
    assert float(text) == bound


def test_every_bound_can_be_read_back() -> None:
    for bound in (*exponential_buckets(1e-8, 10, 10), *exponential_buckets(0.00001, 1.5, 20)):
        assert float(bound_text(bound)) == bound


def test_buckets_are_cumulated_and_histograms_added() -> None:
    one, other = HistogramValue((1, 10)), HistogramValue((1, 10))
    for value in (1, 2, 11):
        one.observe(value)
    other.observe(0.5)
    one.add(other)
    assert one.buckets() == [("1", 2.0), ("10", 3.0), ("+Inf", 4.0)]
    assert one.total == 14.5
