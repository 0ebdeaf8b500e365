"""Shares of resources as bytes, and waiting times."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from mooring.client.interface import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.histogram import HistogramValue
from mooring.scheduler.config import load_configuration
from mooring.scheduler.console.data import (
    OTHER,
    SAMPLE_S,
    SAMPLES_MAX,
    WINDOW_S,
    ConsoleData,
    OverviewHistory,
    histogram_quantile,
)
from mooring.scheduler.console.nodes import NodeColumns, shares
from mooring.scheduler.scheduler import Scheduler
from tests.builders import node, pod


@pytest.mark.parametrize(
    ("used", "allocatable", "percent"),
    [
        (0, 100, 0),
        (50, 100, 50),
        (999, 1000, 99),
        (100, 100, 100),
        (150, 100, 150),
        (1000, 100, 255),
        (0, 0, 0),
        (1, 0, 255),
        (1 << 50, 1 << 51, 50),
    ],
)
def test_a_share_is_a_percentage_that_fits_into_a_byte(used: int, allocatable: int, percent: int) -> None:
    assert shares(np.array([used]), np.array([allocatable])).tolist() == [percent]


def test_an_update_of_many_nodes_has_a_few_bytes_for_each() -> None:
    count = 5_000
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=VirtualClock(), entropy=Entropy(1))
    for number in range(count):
        scheduler.engine.put(node(f"node-{number}", cpu=4))
    data = ConsoleData(scheduler, VirtualClock())
    table = data.nodes()
    assert table.encoded("").count(b'"node-') == count
    update = table.encoded(table.facts)
    assert b"node-1" not in update
    assert len(update) <= 4 * count + 500, "a byte for each share, and for the flags"


def test_the_version_of_a_table_changes_with_its_shares() -> None:
    clock = VirtualClock()
    scheduler = Scheduler(UnavailableClient(), load_configuration(None), clock=clock, entropy=Entropy(1))
    scheduler.engine.put(node("n1", cpu=4))
    columns = NodeColumns(scheduler, clock)
    before, same = columns.table(""), columns.table("")
    scheduler.engine.put(pod("web", cpu=1, on="n1"))
    after = columns.table("")
    assert before.version == same.version != after.version
    assert (before.facts, after.columns["cpu"]) == (after.facts, bytes([25]))


@pytest.mark.parametrize(
    ("share", "counts", "quantile"),
    [
        (0.5, [0, 0, 0], None),
        (0.5, [4, 0, 0], 0.5),
        (0.5, [0, 4, 0], 1.5),
        (0.99, [0, 100, 0], 1.99),
        (0.5, [2, 2, 0], 1.0),
        (0.99, [1, 0, 9], 2.0),
    ],
)
def test_a_quantile_is_interpolated_within_its_bucket(share: float, counts: list[int], quantile: float | None) -> None:
    found = histogram_quantile(share, (1.0, 2.0), counts)
    assert found is None if quantile is None else found == pytest.approx(quantile)


def test_samples_have_rates_and_the_waits_of_the_last_minute() -> None:
    history, waits = OverviewHistory(), HistogramValue((1.0, 2.0))
    first = history.measure(0.0, 100.0, 0, [], Counter(), [])
    assert (first["boundPerSecond"], first["boundWaits"], first["pendingWaits"]) == (None, [None, None], [None, None])
    for _ in range(10):
        waits.observe(0.5)
    reasons = Counter({f"reason {number}": number for number in range(1, 10)})
    second = history.measure(2.0, 102.0, 10, [waits], reasons, [1.0, 3.0])
    assert (second["boundPerSecond"], second["boundWaits"]) == (5.0, [0.5, 0.99])
    assert second["pendingWaits"] == [2.0, pytest.approx(2.98)]
    assert second["reasons"] == {f"reason {number}": number for number in range(9, 2, -1)} | {OTHER: 3}
    later = history.measure(3.0 + WINDOW_S, 200.0, 10, [waits], Counter(), [])
    assert later["boundWaits"] == [None, None], "pods bound before the window do not count"


def test_samples_are_kept_at_intervals_and_for_an_hour() -> None:
    history = OverviewHistory()
    for now_s in range(4_000):
        history.measure(float(now_s), float(now_s), 3 * now_s, [], Counter(), [])
    times = [each["time"] for each in history.samples()]
    assert (len(times), times[-1]) == (SAMPLES_MAX, 3_995.0)
    assert {after - before for before, after in pairwise(times)} == {SAMPLE_S}  # type: ignore[operator]
    assert history.latest["boundPerSecond"] == 3.0, "since the sample before, not since the measurement before"
