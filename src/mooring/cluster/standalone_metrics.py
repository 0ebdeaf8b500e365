"""Metrics of standalone controllers and nodes, read at the scrape.

The metrics of work queues have client-go's names. Those of nodes are our own: one process has thousands of kubelets,
and kubelet's metrics are those of one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.controllers.manager import ControllerManager
from mooring.kubelet.kubelets import Kubelets

_QUEUE_METRICS: Mapping[str, tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str]] = {
    "depth": (GaugeMetricFamily, "workqueue_depth", "Keys that wait for a worker."),
    "adds": (CounterMetricFamily, "workqueue_adds", "Keys that were added."),
    "retries": (CounterMetricFamily, "workqueue_retries", "Keys that were added again after a failure."),
    "unfinished_work_s": (
        GaugeMetricFamily,
        "workqueue_unfinished_work_seconds",
        "How long the keys in work have been worked on, together.",
    ),
    "longest_running_s": (
        GaugeMetricFamily,
        "workqueue_longest_running_processor_seconds",
        "How long the oldest key in work has been worked on.",
    ),
}
"""By the name of the statistic."""


class QueueMetrics(Collector):
    """The work queues of the controllers."""

    def __init__(self, manager: ControllerManager) -> None:
        self._manager = manager

    def collect(self) -> Iterator[Metric]:
        by_queue = self._manager.statistics()
        for statistic, (family, name, text) in _QUEUE_METRICS.items():
            metric = family(name, text, labels=("name",))
            for queue, statistics in by_queue.items():
                metric.add_metric((queue,), statistics[statistic])
            yield metric


class NodeMetrics(Collector):
    """The nodes of this process, their pods and their writes."""

    def __init__(self, kubelets: Kubelets) -> None:
        self._kubelets = kubelets

    def collect(self) -> Iterator[Metric]:
        found = self._kubelets.statistics()
        for name, text in (
            ("nodes", "Nodes of this process."),
            ("nodes_silent", "Nodes that send no heartbeats."),
            ("pods", "Pods on the nodes of this process."),
        ):
            value = found[name]
            assert isinstance(value, int), f"{name} is {value!r}"
            yield GaugeMetricFamily(f"mooring_kubelet_{name}", text, value)
        writes = CounterMetricFamily(
            "mooring_kubelet_writes", "Writes to the API server, by what is written.", labels=("kind", "result")
        )
        for kind, statistics in found.items():
            if isinstance(statistics, dict):
                for result in ("sent", "failed"):
                    writes.add_metric((kind.replace(" ", "_"), result), statistics[result])
        yield writes
