"""Metrics of the components of a cluster, and of their requests."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry, generate_latest

from mooring.client.http.requests import NO_ANSWER, RequestStatistics
from mooring.client.workqueue import WorkQueue
from mooring.cluster.component_metrics import (
    FEATURES_OFF,
    FEATURES_ON,
    ClientRequestMetrics,
    WorkQueueMetrics,
    add_kubernetes_gauges,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from tests.docs.pages import page


def scraped(registry: CollectorRegistry) -> list[str]:
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_the_build_and_the_features() -> None:
    registry = CollectorRegistry()
    add_kubernetes_gauges(registry)
    lines = scraped(registry)
    (build,) = [line for line in lines if line.startswith("kubernetes_build_info{")]
    assert 'major="1",minor="36"' in build
    assert 'git_version="v1.36.4+mooring.' in build
    assert 'kubernetes_feature_enabled{name="SchedulerQueueingHints",stage=""} 1.0' in lines
    assert 'kubernetes_feature_enabled{name="SchedulerAsyncPreemption",stage="BETA"} 1.0' in lines
    assert 'kubernetes_feature_enabled{name="GangScheduling",stage="ALPHA"} 0.0' in lines


def test_the_features_are_those_of_the_documentation() -> None:
    rows = [row.cells for row in page("docs/parity.md").rows if row.section == "Feature gates"]
    documented = {name: cells[2] == "done" for cells in rows for name in re.findall(r"`(\w+)`", cells[0])}
    assert documented == dict.fromkeys(FEATURES_ON, True) | dict.fromkeys(FEATURES_OFF, False)


def test_work_queues_under_the_names_of_client_go() -> None:
    clock = VirtualClock()

    async def story() -> list[str]:
        queue: WorkQueue[str] = WorkQueue("boats of the test", clock, Entropy(1))
        other: WorkQueue[str] = WorkQueue("boats of the test", clock, Entropy(1))
        registry = CollectorRegistry()
        registry.register(WorkQueueMetrics())
        queue.add("a")
        queue.add("b")
        other.add("c")
        await clock.wait(2)
        assert queue.get_nowait() == "a"
        await clock.wait(3)
        queue.done("a")
        queue.add_rate_limited("a")
        assert queue.get_nowait() == "b"
        await clock.wait(4)
        lines = scraped(registry)
        other.shut_down()
        assert 'workqueue_depth{name="boats of the test"} 1.0' in scraped(registry)  # "a", again
        return lines

    lines = run(story(), clock)
    name = 'name="boats of the test"'
    for expected in (
        f"workqueue_adds_total{{{name}}} 4.0",
        f"workqueue_retries_total{{{name}}} 1.0",
        f"workqueue_depth{{{name}}} 2.0",
        f"workqueue_unfinished_work_seconds{{{name}}} 4.0",
        f"workqueue_longest_running_processor_seconds{{{name}}} 4.0",
        f"workqueue_queue_duration_seconds_count{{{name}}} 2.0",
        f"workqueue_queue_duration_seconds_sum{{{name}}} 7.0",
        f'workqueue_work_duration_seconds_bucket{{le="1",{name}}} 0.0',
        f'workqueue_work_duration_seconds_bucket{{le="10",{name}}} 1.0',
    ):
        assert expected in lines, (expected, [line for line in lines if name in line])


# --- What was asked of the API server, as a scrape shows it


def request_metrics(*parts: RequestStatistics) -> list[str]:
    """The lines that say something; of buckets those that are not empty and not full."""
    registry, metrics = CollectorRegistry(), ClientRequestMetrics()
    for asked in parts:
        metrics.add("https://api.example.com:6443/behind", asked)
    registry.register(metrics)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_the_clients_of_a_process_are_counted_together() -> None:
    pods, events = RequestStatistics(), RequestStatistics()
    pods.answered("POST", 201, 0.004)
    pods.answered("POST", 201, 0.3)
    pods.answered("GET", NO_ANSWER, 61.0)
    pods.outcomes["GET", 200] += 1  # a watch
    events.answered("POST", 201, 0.004)
    lines = request_metrics(pods, events)
    host = 'host="api.example.com:6443"'
    assert f'rest_client_requests_total{{code="201",{host},method="POST"}} 3.0' in lines
    assert f'rest_client_requests_total{{code="<error>",{host},method="GET"}} 1.0' in lines
    assert f'rest_client_requests_total{{code="200",{host},method="GET"}} 1.0' in lines
    post = f'rest_client_request_duration_seconds_bucket{{{host},le="%s",verb="POST"}} %s'
    assert [post % (bound, count) in lines for bound, count in (("0.005", 2.0), ("0.25", 2.0), ("0.5", 3.0))] == [
        True
    ] * 3
    assert f'rest_client_request_duration_seconds_count{{{host},verb="POST"}} 3.0' in lines
    assert f'rest_client_request_duration_seconds_sum{{{host},verb="POST"}} 0.308' in lines
    longest = [line for line in lines if 'le="60"' in line and 'verb="GET"' in line]
    assert longest == [f'rest_client_request_duration_seconds_bucket{{{host},le="60",verb="GET"}} 0.0']


def test_turns_are_distinguished_from_answers() -> None:
    asked = RequestStatistics()
    asked.turns["POST"].observe(0.0)
    asked.turns["POST"].observe(1.5)
    lines = [line for line in request_metrics(asked) if "_bucket" not in line and "_created" not in line]
    assert lines == [
        'rest_client_rate_limiter_duration_seconds_count{host="api.example.com:6443",verb="POST"} 2.0',
        'rest_client_rate_limiter_duration_seconds_sum{host="api.example.com:6443",verb="POST"} 1.5',
    ]


def test_sizes_of_bodies() -> None:
    asked = RequestStatistics()
    asked.transferred("POST", 300, 5_000)
    asked.transferred("POST", 0, 20_000_000)
    lines = request_metrics(asked)
    sent = 'rest_client_request_size_bytes_bucket{host="api.example.com:6443",le="%s",verb="POST"} %s'
    assert [sent % (bound, count) in lines for bound, count in ((64, 1.0), (256, 1.0), (512, 2.0))] == [True] * 3
    assert 'rest_client_response_size_bytes_sum{host="api.example.com:6443",verb="POST"} 2.0005e+07' in lines
    received = 'rest_client_response_size_bytes_bucket{host="api.example.com:6443",le="%s",verb="POST"} %s'
    assert [received % (bound, count) in lines for bound, count in (("1.6777216e+07", 1.0), ("+Inf", 2.0))] == [
        True
    ] * 2


def test_before_anything_was_asked() -> None:
    assert request_metrics(RequestStatistics()) == []
