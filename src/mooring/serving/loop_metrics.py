"""Metrics of the event loop: how long it was blocked.

Input: a `LoopMonitor`. Output: series for a scrape; nothing is computed before.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.kit.loop import Intervals, LoopMonitor, thread_monitor

_WALL = "mooring_event_loop_blocked"
_CPU = "mooring_event_loop_blocked_cpu"


class LoopMetrics(Collector):
    """The blocking intervals of an event loop; by default of the one that runs in this thread."""

    def __init__(self, monitor: LoopMonitor | None = None) -> None:
        self._monitor = monitor if monitor is not None else thread_monitor()

    def collect(self) -> Iterator[Metric]:
        yield from _families(_WALL, self._monitor.wall, "in which the event loop could run nothing else")
        yield from _families(_CPU, self._monitor.cpu, "of CPU time that the event loop used without a pause")


def _families(name: str, intervals: Intervals, which: str) -> Iterator[Metric]:
    histogram = HistogramMetricFamily(f"{name}_seconds", f"Intervals of 10 ms or more {which}.")
    histogram.add_metric((), intervals.buckets(), intervals.total_s)
    yield histogram
    yield GaugeMetricFamily(
        f"{name}_longest_seconds", f"The longest interval since the start {which}.", intervals.longest_s
    )
