"""Metrics of requests, under the names of kube-apiserver.

Input: each request when it is answered, each watch when it begins and ends. Output: `/metrics` in the text
format of Prometheus.

1. A series is created when it is first counted, and found by one lookup afterwards.
2. Only served resources have a series of their own. All other paths and methods share one, so that clients cannot fill
   the memory with names.
3. Open requests, the store and the process are read at a scrape only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.apiserver.http.request import RequestInfo
from mooring.serving.loop_metrics import LoopMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SERIES_LABELS = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_WATCH_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_BUCKETS_S = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_COMPONENT = "apiserver"
_HELP = b"# HELP "
"""Starts the text of each metric."""

Series = tuple[str, ...]


class RequestMetrics:
    """The request metrics of one handler."""

    def __init__(self, is_served: Callable[[str, str, str], bool]) -> None:
        """`is_served`: whether the server has an API version, resource and subresource."""
        self.registry = CollectorRegistry()
        self._is_served = is_served
        self._requests = Counter(
            "apiserver_request_total",
            "Requests, by verb, resource and status code.",
            (*_SERIES_LABELS, "code"),
            registry=self.registry,
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "How long requests took; for watches, how long they lasted.",
            _SERIES_LABELS,
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._watches = Gauge(
            "apiserver_longrunning_requests", "Watches that are open.", _WATCH_LABELS, registry=self.registry
        )
        self._request_children: dict[tuple[Series, int], Counter] = {}
        self._duration_children: dict[Series, Histogram] = {}
        self._watch_children: dict[Series, Gauge] = {}
        ProcessCollector(registry=self.registry)
        self.registry.register(LoopMetrics())

    def answered(self, info: RequestInfo | None, is_dry_run: bool, code: int, duration_s: float) -> None:
        """Count a request. `info` is None if the request was rejected before its path was parsed."""
        series = self._series(info, is_dry_run)
        requests = self._request_children.get((series, code))
        if requests is None:
            requests = self._request_children[series, code] = self._requests.labels(*series, str(code))
        requests.inc()
        durations = self._duration_children.get(series)
        if durations is None:
            durations = self._duration_children[series] = self._durations.labels(*series)
        durations.observe(duration_s)

    def watches_of(self, info: RequestInfo) -> Gauge:
        """The gauge of the open watches of a resource."""
        verb, _, *rest = self._series(info, False)
        series = (verb, *rest)
        found = self._watch_children.get(series)
        if found is None:
            found = self._watch_children[series] = self._watches.labels(*series)
        return found

    def text(self) -> bytes:
        """All metrics in the text format."""
        return generate_latest(self.registry)

    def _series(self, info: RequestInfo | None, is_dry_run: bool) -> Series:
        verb = "OTHER" if info is None else _VERBS.get(info.verb, "OTHER")
        dry_run = "All" if is_dry_run else ""
        if (
            info is None
            or not info.is_resource
            or not self._is_served(info.api_version, info.resource, info.subresource)
        ):
            return (verb, dry_run, "", "", "", "", "", _COMPONENT)
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        place = (info.group, info.version, info.resource, info.subresource)
        return (verb, dry_run, *place, scope, _COMPONENT)


def merged_metrics(first: bytes, second: bytes) -> bytes:
    """Both texts, without metrics of the second that the first has."""
    known = {line.split(b" ", 3)[2] for line in first.splitlines() if line.startswith(_HELP)}
    blocks = second.split(_HELP)[1:]
    return first + b"".join(_HELP + block for block in blocks if block.split(b" ", 1)[0] not in known)


class CurrentRequests(Collector):
    """Gauges that are read at the scrape."""

    def __init__(
        self,
        requests_open: Callable[[], dict[str, int]],
        failures: Callable[[], int],
        store_statistics: Callable[[], dict[str, int]],
    ) -> None:
        self._requests_open = requests_open
        self._failures = failures
        self._store_statistics = store_statistics

    def collect(self) -> Iterator[Metric]:
        name = "apiserver_current_inflight_requests"
        in_flight = GaugeMetricFamily(name, "Requests in progress, watches apart.", labels=("request_kind",))
        for request_kind, count in self._requests_open().items():
            in_flight.add_metric((request_kind,), count)
        yield in_flight
        text = "Requests that failed with an unexpected exception."
        yield CounterMetricFamily("mooring_apiserver_failures_total", text, self._failures())
        yield GaugeMetricFamily("mooring_tasks", "Tasks of the loop.", len(asyncio.all_tasks()))
        for statistic, value in sorted(self._store_statistics().items()):
            yield GaugeMetricFamily(f"mooring_store_{statistic}", "See the statistics of the store.", value)
