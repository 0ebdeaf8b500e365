"""Metrics that every component of Kubernetes has: its build, its features, its work queues, its requests.

1. Names, labels and buckets are those of Kubernetes v1.36, so that its dashboards work.
2. A feature is a gate that kube-scheduler reads (docs/parity.md). There are no gates here: 1 means that the feature is
   there, 0 that it is not. The stage is that of v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Gauge, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.client.http.requests import RequestStatistics
from mooring.client.workqueue import OPEN_QUEUES, WorkQueue
from mooring.kit.build import KUBERNETES_VERSION, build
from mooring.kit.histogram import HistogramValue

GA, BETA, ALPHA = "", "BETA", "ALPHA"
FEATURES_ON: Mapping[str, str] = {
    "DRAAdminAccess": GA,
    "DRAConsumableCapacity": BETA,
    "DRADeviceBindingConditions": BETA,
    "DRADeviceTaints": BETA,
    "DRAExtendedResource": BETA,
    "DRAPartitionableDevices": BETA,
    "DRAPrioritizedList": GA,
    "DRAResourceClaimDeviceStatus": BETA,
    "DRASchedulerFilterTimeout": BETA,
    "DynamicResourceAllocation": GA,
    "InPlacePodLevelResourcesVerticalScaling": BETA,
    "InPlacePodVerticalScaling": GA,
    "MatchLabelKeysInPodTopologySpread": BETA,
    "NodeDeclaredFeatures": BETA,
    "NodeInclusionPolicyInPodTopologySpread": GA,
    "NominatedNodeNameForExpectation": BETA,
    "PodLevelResources": BETA,
    "SchedulerAsyncPreemption": BETA,
    "SchedulerPopFromBackoffQ": BETA,
    "SchedulerQueueingHints": GA,
    "SidecarContainers": GA,
    "VolumeAttributesClass": GA,
}
FEATURES_OFF: Mapping[str, str] = {
    "DRADeviceTaintRules": BETA,
    "DRAListTypeAttributes": ALPHA,
    "DRANodeAllocatableResources": ALPHA,
    "DRAWorkloadResourceClaims": ALPHA,
    "GangScheduling": ALPHA,
    "GenericWorkload": ALPHA,
    "OpportunisticBatching": BETA,
    "SchedulerAsyncAPICalls": BETA,
    "StorageCapacityScoring": ALPHA,
    "TaintTolerationComparisonOperators": ALPHA,
    "TopologyAwareWorkloadScheduling": ALPHA,
    "VolumeLimitScaling": ALPHA,
    "WorkloadAwarePreemption": ALPHA,
}


def component_registry(requests: ClientRequestMetrics) -> CollectorRegistry:
    """The metrics of the process, of its work queues and of its requests."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(requests)
    registry.register(WorkQueueMetrics())
    return registry


def add_leader_gauge(registry: CollectorRegistry, name: str, is_leading: Callable[[], bool]) -> None:
    text = "Whether this process leads: 1, or 0."
    leads = Gauge("leader_election_master_status", text, ("name",), registry=registry)
    leads.labels(name).set_function(lambda: float(is_leading()))


def add_kubernetes_gauges(registry: CollectorRegistry) -> None:
    """What every component of Kubernetes says about itself. What has no meaning here (a Go version) is empty."""
    this = build()
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    facts = {
        "major": major,
        "minor": minor,
        "git_version": f"{KUBERNETES_VERSION}+mooring.{this.version}",
        "git_commit": this.commit,
        "git_tree_state": "",
        "build_date": "",
        "go_version": "",
        "compiler": f"{this.implementation} {this.python}",
        "platform": this.platform,
    }
    info = Gauge("kubernetes_build_info", "The version of Kubernetes, and the build.", tuple(facts), registry=registry)
    info.labels(**facts).set(1)
    features = Gauge(
        "kubernetes_feature_enabled", "Whether a feature is there: 1, or 0.", ("name", "stage"), registry=registry
    )
    for name, stage in FEATURES_ON.items():
        features.labels(name, stage).set(1)
    for name, stage in FEATURES_OFF.items():
        features.labels(name, stage).set(0)


class WorkQueueMetrics(Collector):
    """Metrics of all work queues of this process, under client-go's names. Queues of the same name count as one."""

    def collect(self) -> Iterator[Metric]:
        queues: dict[str, list[WorkQueue[Any]]] = {}
        for queue in sorted(OPEN_QUEUES, key=lambda queue: queue.name):
            queues.setdefault(queue.name, []).append(queue)
        numbers = {name: [queue.statistics() for queue in found] for name, found in queues.items()}
        for metric, text, key in _QUEUE_COUNTERS:
            counter = CounterMetricFamily(f"workqueue_{metric}", text, labels=("name",))
            for name, found in numbers.items():
                counter.add_metric((name,), sum(statistics[key] for statistics in found))
            yield counter
        for metric, text, key in _QUEUE_GAUGES:
            gauge = GaugeMetricFamily(f"workqueue_{metric}", text, labels=("name",))
            combined = max if key == "longest_running_s" else sum
            for name, found in numbers.items():
                gauge.add_metric((name,), combined(statistics[key] for statistics in found))
            yield gauge
        yield self._histogram("queue_duration_seconds", "How long keys waited for a worker.", queues, "waits")
        yield self._histogram("work_duration_seconds", "How long workers had a key.", queues, "work")

    def _histogram(self, name: str, text: str, queues: Mapping[str, list[WorkQueue[Any]]], which: str) -> Metric:
        family = HistogramMetricFamily(f"workqueue_{name}", text, labels=("name",))
        for queue_name, found in queues.items():
            total = summed([getattr(queue, which) for queue in found])
            family.add_metric((queue_name,), total.buckets(), total.total)
        return family


_QUEUE_COUNTERS = (("adds", "Keys that were added.", "adds"), ("retries", "Keys that were tried again.", "retries"))
_QUEUE_GAUGES = (
    ("depth", "Keys that are ready.", "depth"),
    ("unfinished_work_seconds", "How long keys in work have been so, added up.", "unfinished_work_s"),
    ("longest_running_processor_seconds", "How long the oldest key in work has been so.", "longest_running_s"),
)


class ClientRequestMetrics(Collector):
    """Request metrics of the clients of an API server, under client-go's names. A watch counts as one request."""

    def __init__(self) -> None:
        self._host = ""
        self._requested: list[RequestStatistics] = []

    def add(self, server: str, requested: RequestStatistics) -> None:
        """Include the requests of another client of the server."""
        self._host = urlsplit(server).netloc
        self._requested.append(requested)

    def collect(self) -> Iterator[Metric]:
        outcomes: Counter[tuple[str, int | str]] = Counter()
        for requested in self._requested:
            outcomes.update(requested.outcomes)
        requests = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server.", labels=("code", "host", "method")
        )
        for (method, code), count in outcomes.items():
            requests.add_metric((str(code), self._host, method), count)
        yield requests
        yield self._histogram(
            "rest_client_request_duration_seconds",
            "How long the API server took to answer.",
            [requested.durations for requested in self._requested],
        )
        yield self._histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests to the API server waited for their turn.",
            [requested.turns for requested in self._requested],
        )
        yield self._histogram(
            "rest_client_request_size_bytes",
            "The bodies of requests to the API server.",
            [requested.sent for requested in self._requested],
        )
        yield self._histogram(
            "rest_client_response_size_bytes",
            "The bodies of answers of the API server.",
            [requested.received for requested in self._requested],
        )

    def _histogram(self, name: str, text: str, parts: Sequence[Mapping[str, HistogramValue]]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=("host", "verb"))
        for verb in dict.fromkeys(verb for part in parts for verb in part):
            total = summed([part[verb] for part in parts if verb in part])
            family.add_metric((self._host, verb), total.buckets(), total.total)
        return family


def summed(parts: Sequence[HistogramValue]) -> HistogramValue:
    """One histogram of several with the same bounds."""
    total = HistogramValue(parts[0].bounds)
    for part in parts:
        total.add(part)
    return total
