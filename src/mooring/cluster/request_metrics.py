"""What was asked of the API server, under client-go's names: half of every scheduler dashboard.

Comes in   clients, and what each has counted (`client.http.requests.Asked`)
Goes out   `RequestMetrics`, a collector: their sum as prometheus-client's families, made when somebody scrapes

    rest_client_requests_total                   by code, host and method; a watch is one request
    rest_client_request_duration_seconds         by host and verb
    rest_client_rate_limiter_duration_seconds    by host and verb: how long requests waited for their turn
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from urllib.parse import urlsplit

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.client.http.requests import DURATION_BOUNDS_S, Asked, Durations

_BOUNDS = (*(f"{bound:g}" for bound in DURATION_BOUNDS_S), "+Inf")


class RequestMetrics(Collector):
    """Sums up what clients of one server have asked."""

    def __init__(self, server: str) -> None:
        self._host = urlsplit(server).netloc
        self._asked: list[Asked] = []

    def add(self, asked: Asked) -> None:
        """From now on this counts, too."""
        self._asked.append(asked)

    def collect(self) -> Iterator[Metric]:
        outcomes: Counter[tuple[str, int | str]] = Counter()
        for asked in self._asked:
            outcomes.update(asked.outcomes)
        requests = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server.", labels=("code", "host", "method")
        )
        for (method, code), count in outcomes.items():
            requests.add_metric((str(code), self._host, method), count)
        yield requests
        yield self._histogram(
            "rest_client_request_duration_seconds",
            "How long the API server took to answer.",
            [asked.durations for asked in self._asked],
        )
        yield self._histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests to the API server waited for their turn.",
            [asked.turns for asked in self._asked],
        )

    def _histogram(self, name: str, text: str, parts: Sequence[Mapping[str, Durations]]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=("host", "verb"))
        for verb in dict.fromkeys(verb for part in parts for verb in part):
            found = [part[verb] for part in parts if verb in part]
            summed = [sum(counts) for counts in zip(*(each.counts for each in found), strict=True)]
            buckets = list(zip(_BOUNDS, map(float, accumulate(summed)), strict=True))
            family.add_metric((self._host, verb), buckets, sum(each.total_s for each in found))
        return family
