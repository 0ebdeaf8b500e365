"""Metrics: names, labels, buckets, and the counters and histograms behind them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from mooring.scheduler.reporting.metrics import FastCollector, Gauges, HistogramValue, Metrics, exponential_buckets


def samples(registry: CollectorRegistry) -> dict[str, float]:
    """All that is not zero, without buckets."""
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.value and not sample.name.endswith("_bucket")
    }


@pytest.mark.parametrize(
    ("start", "factor", "count", "expected"),
    [
        (1, 2, 5, (1, 2, 4, 8, 16)),
        (0.001, 2, 3, (0.001, 0.002, 0.004)),
        (0.00001, 1.5, 3, (0.00001, 0.000015000000000000002, 0.000022500000000000005)),
        (7, 3, 1, (7,)),
    ],
    ids=["whole numbers", "milliseconds", "multiplied one after the other, as in Go", "one"],
)
def test_buckets_grow_by_their_factor(start: float, factor: float, count: int, expected: tuple[float, ...]) -> None:
    assert exponential_buckets(start, factor, count) == expected


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (16, "15+"), (400, "15+")], ids=str)
def test_very_many_attempts_share_a_label(attempts: int, label: str) -> None:
    registry = CollectorRegistry()
    Metrics(registry).scheduled(attempts, 2.0, was_flushed=False)
    assert samples(registry)[f"scheduler_pod_scheduling_sli_duration_seconds_sum {label}"] == 2.0


def test_a_pod_that_was_never_ready_before_has_no_duration() -> None:
    registry = CollectorRegistry()
    Metrics(registry).scheduled(1, None, was_flushed=False)
    assert samples(registry) == {
        "scheduler_pod_scheduling_attempts_count": 1,
        "scheduler_pod_scheduling_attempts_sum": 1,
    }


def test_what_is_counted_twice_is_counted_in_one_place() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    for _ in range(2):
        metrics.attempted("error", "mine", 0.5)
        metrics.pod_queued("active", "PodAdd")
    assert samples(registry) == {
        "scheduler_schedule_attempts_total error mine": 2,
        "scheduler_scheduling_attempt_duration_seconds_count error mine": 2,
        "scheduler_scheduling_attempt_duration_seconds_sum error mine": 1.0,
        "scheduler_queue_incoming_pods_total active PodAdd": 2,
    }


def test_gauges_are_read_at_the_scrape_and_not_before() -> None:
    read: list[int] = []

    def pending() -> dict[tuple[str, ...], float]:
        read.append(len(read))
        return {("active",): float(len(read))}

    gauges, registry = Gauges(), CollectorRegistry()
    gauges.add("pending_pods", "Pods that wait.", ("queue",), pending)
    registry.register(gauges)
    assert read == [], "registering asks for names only"
    assert 'scheduler_pending_pods{queue="active"} 1.0' in generate_latest(registry).decode()
    assert 'scheduler_pending_pods{queue="active"} 2.0' in generate_latest(registry).decode()


BOUNDS = (0.1, 1.0, 10.0)


def exposed(collector: FastCollector) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return lines(registry)


def lines(registry: CollectorRegistry) -> list[str]:
    """As it is scraped, without the times of creation, which ours have not."""
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


@pytest.mark.parametrize(
    ("sizes", "cumulated"),
    [
        pytest.param([], [0, 0, 0, 0], id="nothing"),
        pytest.param([0.05], [1, 1, 1, 1], id="the smallest is in all"),
        pytest.param([0.1], [1, 1, 1, 1], id="a bound belongs to its own bucket"),
        pytest.param([0.100001], [0, 1, 1, 1], id="just above it, to the next"),
        pytest.param([10.0], [0, 0, 1, 1], id="the last bound"),
        pytest.param([11.0], [0, 0, 0, 1], id="beyond all bounds"),
        pytest.param([0.0, 0.5, 0.5, 5.0, 50.0], [1, 3, 4, 5], id="several"),
    ],
)
def test_buckets_are_cumulated_at_the_scrape(sizes: list[float], cumulated: list[int]) -> None:
    distribution = HistogramValue(BOUNDS)
    for size in sizes:
        distribution.observe(size)
    expected = list(zip(("0.1", "1.0", "10.0", "+Inf"), map(float, cumulated), strict=True))
    assert distribution.buckets() == expected
    assert distribution.buckets() == expected, "a scrape changes nothing"
    assert distribution.total == sum(sizes)


def test_the_scrape_reads_as_one_of_the_librarys_own() -> None:
    collector, theirs = FastCollector(), CollectorRegistry()
    our_counter = collector.counter("pods_total", "Pods.", "result", "profile")
    their_counter = Counter("pods_total", "Pods.", ("result", "profile"), registry=theirs)
    our_histogram = collector.histogram("took_seconds", "Duration.", BOUNDS, "result")
    their_histogram = Histogram("took_seconds", "Duration.", ("result",), buckets=BOUNDS, registry=theirs)
    for result, profile in (("scheduled", "a"), ("error", 'of "quotes"'), ("scheduled", "a")):
        our_counter.labels(result, profile).inc()
        their_counter.labels(result, profile).inc()
    our_counter.labels("error", "b").inc(2.5)
    their_counter.labels("error", "b").inc(2.5)
    for result, size in (("scheduled", 0.1), ("scheduled", 3.0), ("error", 100.0)):
        our_histogram.labels(result).observe(size)
        their_histogram.labels(result).observe(size)
    assert exposed(collector) == lines(theirs)


def test_without_labels_it_is_there_before_anything_was_counted_and_with_labels_it_is_not() -> None:
    collector = FastCollector()
    collector.counter("plain_total", "Plain.")
    collector.counter("labelled_total", "Labelled.", "result")
    collector.histogram("plain_seconds", "Plain.", (1.0,))
    collector.histogram("labelled_seconds", "Labelled.", (1.0,), "result")
    samples = [line for line in exposed(collector) if not line.startswith("#")]
    assert samples == [
        "plain_total 0.0",
        'plain_seconds_bucket{le="1.0"} 0.0',
        'plain_seconds_bucket{le="+Inf"} 0.0',
        "plain_seconds_count 0.0",
        "plain_seconds_sum 0.0",
    ]


def test_without_labels_the_family_itself_counts() -> None:
    collector = FastCollector()
    counter = collector.counter("plain_total", "Plain.")
    histogram = collector.histogram("plain_seconds", "Plain.", (1.0,))
    counter.inc()
    counter.inc(2)
    histogram.observe(0.5)
    histogram.observe(4)
    assert (counter.labels().value, histogram.labels().counts, histogram.labels().total) == (3, [1, 1], 4.5)


def test_a_child_is_looked_up_once_and_kept() -> None:
    collector = FastCollector()
    counter, histogram = collector.counter("a_total", "A.", "x"), collector.histogram("b", "B.", BOUNDS, "x")
    assert counter.labels("1") is counter.labels("1")
    assert histogram.labels("1") is histogram.labels("1")
    assert counter.labels("1") is not counter.labels("2")
    assert histogram.labels("1") is not histogram.labels("2")
