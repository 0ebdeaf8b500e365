"""What was asked of the API server, as a scrape shows it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from mooring.client.http.requests import NO_ANSWER, Asked
from mooring.cluster.component_metrics import ClientRequestMetrics


def scraped(*parts: Asked) -> list[str]:
    """The lines that say something; of buckets those that are not empty and not full."""
    registry, metrics = CollectorRegistry(), ClientRequestMetrics()
    for asked in parts:
        metrics.add("https://api.example.com:6443/behind", asked)
    registry.register(metrics)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_the_clients_of_a_process_are_counted_together() -> None:
    pods, events = Asked(), Asked()
    pods.answered("POST", 201, 0.004)
    pods.answered("POST", 201, 0.3)
    pods.answered("GET", NO_ANSWER, 61.0)
    pods.outcomes["GET", 200] += 1  # a watch
    events.answered("POST", 201, 0.004)
    lines = scraped(pods, events)
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


def test_turns_are_told_apart_from_answers() -> None:
    asked = Asked()
    asked.turns["POST"].observe(0.0)
    asked.turns["POST"].observe(1.5)
    lines = [line for line in scraped(asked) if "_bucket" not in line and "_created" not in line]
    assert lines == [
        'rest_client_rate_limiter_duration_seconds_count{host="api.example.com:6443",verb="POST"} 2.0',
        'rest_client_rate_limiter_duration_seconds_sum{host="api.example.com:6443",verb="POST"} 1.5',
    ]


def test_sizes_of_bodies() -> None:
    asked = Asked()
    asked.transferred("POST", 300, 5_000)
    asked.transferred("POST", 0, 20_000_000)
    lines = scraped(asked)
    sent = 'rest_client_request_size_bytes_bucket{host="api.example.com:6443",le="%s",verb="POST"} %s'
    assert [sent % (bound, count) in lines for bound, count in ((64, 1.0), (256, 1.0), (512, 2.0))] == [True] * 3
    assert 'rest_client_response_size_bytes_sum{host="api.example.com:6443",verb="POST"} 2.0005e+07' in lines
    received = 'rest_client_response_size_bytes_bucket{host="api.example.com:6443",le="%s",verb="POST"} %s'
    assert [received % (bound, count) in lines for bound, count in (("1.6777216e+07", 1.0), ("+Inf", 2.0))] == [
        True
    ] * 2


def test_before_anything_was_asked() -> None:
    assert scraped(Asked()) == []
