"""Metrics: buckets as Go's library makes them, and gauges that are read only when somebody asks."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from mooring.scheduler.reporting.metrics import Gauges, Metrics, exponential_buckets


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
        metrics.came_in("active", "PodAdd")
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
