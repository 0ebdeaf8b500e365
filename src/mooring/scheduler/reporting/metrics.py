"""Metrics under kube-scheduler's names, so that its dashboards and alerts work.

Counters and histograms are written while pods are scheduled; gauges are read at the scrape. prometheus-client exposes
both. Its own counters and histograms take a lock and search their buckets one by one: 1 µs for an observation, 2 µs
with labels. The classes here need a tenth of a microsecond: everything runs in one thread, and a pod has no 10 µs to
spare for metrics.

1. A child (a metric with its label values) is looked up once and stored: `labels()` costs more than counting.
2. Histogram buckets are cumulated at the scrape (`mooring.kit.histogram`).
3. `goroutines` counts running bindings, the counterpart of what it counts in kube-scheduler.

`PluginTiming` measures plugins in a sample of the cycles. In a sampled cycle the plugins' methods are wrapped by
timers. All other cycles call the methods directly and pay nothing. Cached results take no time and are not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.kit.clock import Clock
from mooring.kit.histogram import HistogramValue, exponential_buckets
from mooring.scheduler.framework.events import ClusterEvent
from mooring.scheduler.framework.plugin import Plugin, Skip
from mooring.scheduler.framework.profile import Profile
from mooring.scheduler.framework.status import Status


class CounterValue:
    """The value of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount


Value = TypeVar("Value", CounterValue, HistogramValue)


class Family(Generic[Value]):
    """A metric with its children by label values."""

    def __init__(self, name: str, text: str, labels: Sequence[str], new_value: Callable[[], Value]) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._new_value: Callable[[], Value] = new_value
        self._children: dict[tuple[str, ...], Value] = {}
        if not self._labels:
            self.labels()

    def labels(self, *values: str) -> Value:
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._new_value()
        return child


class CounterFamily(Family[CounterValue]):
    def inc(self, amount: float = 1.0) -> None:
        """Increment a counter without labels."""
        self._children[()].inc(amount)

    def families(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for values, child in self._children.items():
            family.add_metric(values, child.value)
        yield family


class HistogramFamily(Family[HistogramValue]):
    def observe(self, value: float) -> None:
        """Observe a value in a histogram without labels."""
        self._children[()].observe(value)

    def families(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for values, child in self._children.items():
            family.add_metric(values, child.buckets(), child.total)
        yield family


class FastCollector(Collector):
    """All counters and histograms of one scheduler."""

    def __init__(self) -> None:
        self._families: list[CounterFamily | HistogramFamily] = []

    def counter(self, name: str, text: str, *labels: str) -> CounterFamily:
        family = CounterFamily(name, text, labels, CounterValue)
        self._families.append(family)
        return family

    def histogram(self, name: str, text: str, bounds: Sequence[float], *labels: str) -> HistogramFamily:
        family = HistogramFamily(name, text, labels, partial(HistogramValue, tuple(bounds)))
        self._families.append(family)
        return family

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            yield from family.families()


ATTEMPTS_LABEL_MAX = 15


class Metrics:
    """The counters and histograms of one scheduler, and its registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        cycle_buckets = exponential_buckets(0.001, 2, 15)
        fine_buckets = exponential_buckets(0.00001, 1.5, 20)
        event_buckets = exponential_buckets(0.0001, 2, 12)

        collector = FastCollector()
        registry.register(collector)

        def counter(name: str, text: str, *labels: str) -> CounterFamily:
            return collector.counter(f"scheduler_{name}", text, *labels)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> HistogramFamily:
            return collector.histogram(f"scheduler_{name}", text, buckets, *labels)

        self.attempts = counter("schedule_attempts_total", "Attempts to schedule pods, by result.", "result", "profile")
        self.attempt_duration = histogram(
            "scheduling_attempt_duration_seconds",
            "Duration of an attempt: algorithm and binding.",
            cycle_buckets,
            "result",
            "profile",
        )
        self.algorithm_duration = histogram(
            "scheduling_algorithm_duration_seconds", "Duration of the scheduling algorithm.", cycle_buckets
        )
        self.sli_duration = histogram(
            "pod_scheduling_sli_duration_seconds",
            "From a pod's arrival in the queue until it is bound, over all its attempts.",
            exponential_buckets(0.01, 2, 20),
            "attempts",
        )
        self.pod_attempts = histogram(
            "pod_scheduling_attempts", "Attempts that a pod needed.", exponential_buckets(1, 2, 5)
        )
        self.after_flush = counter("pod_scheduled_after_flush_total", "Pods scheduled after the unschedulable timeout.")
        self.preemption_attempts = counter("preemption_attempts_total", "Attempts to make room by preemption.")
        self.preemption_victims = histogram(
            "preemption_victims", "Victims of one preemption.", exponential_buckets(1, 2, 7)
        )
        self.preemption_duration = histogram(
            "preemption_goroutines_duration_seconds",
            "Duration of evicting the victims of one preemption.",
            exponential_buckets(0.01, 2, 20),
            "result",
        )
        self.preemptions = counter("preemption_goroutines_execution_total", "Preemptions carried out.", "result")
        self.permit_wait = histogram(
            "permit_wait_duration_seconds", "How long pods waited for Permit.", cycle_buckets, "result"
        )
        self.incoming = counter("queue_incoming_pods_total", "Pods that entered a queue.", "queue", "event")
        self.point_duration = histogram(
            "framework_extension_point_duration_seconds",
            "Duration of all plugins of an extension point, in sampled cycles.",
            event_buckets,
            "extension_point",
            "status",
            "profile",
        )
        self.plugin_duration = histogram(
            "plugin_execution_duration_seconds",
            "Duration of one plugin at an extension point, in sampled cycles.",
            fine_buckets,
            "plugin",
            "extension_point",
            "status",
        )
        self.plugin_evaluations = counter(
            "plugin_evaluation_total", "Cycles in which a plugin was asked.", "plugin", "extension_point", "profile"
        )
        self.event_duration = histogram(
            "event_handling_duration_seconds",
            "Duration of handling an event: updating the columns, and moving pods that it may help.",
            event_buckets,
            "event",
        )
        self._event_children: dict[ClusterEvent, HistogramValue] = {}
        self._attempt_children: dict[tuple[str, str], tuple[CounterValue, HistogramValue]] = {}
        self._sli_children: dict[str, HistogramValue] = {}
        self._incoming_children: dict[tuple[str, str], CounterValue] = {}

    def attempted(self, result: str, profile: str, duration_s: float) -> None:
        """An attempt has ended with `scheduled`, `unschedulable` or `error`."""
        children = self._attempt_children.get((result, profile))
        if children is None:
            children = self.attempts.labels(result, profile), self.attempt_duration.labels(result, profile)
            self._attempt_children[(result, profile)] = children
        children[0].inc()
        children[1].observe(duration_s)

    def attempts_ended(self, result: str) -> int:
        """Number of attempts of all profiles that ended with this result."""
        counters = (
            children[0] for (attempt_result, _), children in self._attempt_children.items() if attempt_result == result
        )
        return int(sum(counter.value for counter in counters))

    def scheduled(self, attempts: int, waited_s: float | None, *, was_flushed: bool) -> None:
        """A pod was bound after this number of attempts."""
        self.pod_attempts.observe(attempts)
        if was_flushed:
            self.after_flush.inc()
        if waited_s is not None:
            label = str(attempts) if attempts < ATTEMPTS_LABEL_MAX else f"{ATTEMPTS_LABEL_MAX}+"
            child = self._sli_children.get(label)
            if child is None:
                child = self._sli_children[label] = self.sli_duration.labels(label)
            child.observe(waited_s)

    def waits(self) -> list[HistogramValue]:
        """From the arrival of pods in the queue until they are bound, by number of attempts."""
        return list(self._sli_children.values())

    def event_handled(self, event: ClusterEvent, duration_s: float) -> None:
        child = self._event_children.get(event)
        if child is None:
            child = self._event_children[event] = self.event_duration.labels(event.label)
        child.observe(duration_s)

    def pod_queued(self, queue: str, event: str) -> None:
        child = self._incoming_children.get((queue, event))
        if child is None:
            child = self._incoming_children[(queue, event)] = self.incoming.labels(queue, event)
        child.inc()


Reading = Callable[[], Mapping[tuple[str, ...], float]]
"""Reads a metric: the value for each set of labels."""


class ReadMetrics(Collector):
    """Gauges and counters that are read at the scrape. The name of a counter ends with `_total`."""

    def __init__(self) -> None:
        self._metrics: list[tuple[str, str, tuple[str, ...], Reading]] = []

    def add(self, name: str, text: str, labels: tuple[str, ...], read: Reading) -> None:
        self._metrics.append((f"scheduler_{name}", text, labels, read))

    def collect(self) -> Iterator[Metric]:
        for (*_, read), family in zip(self._metrics, self.describe(), strict=True):
            for values, number in read().items():
                family.add_metric(values, number)
            yield family

    def describe(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        for name, text, labels, _ in self._metrics:
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(name, text, labels=labels)


TIMED = {
    "PreFilter": ("pre_filter",),
    "Filter": ("filter", "filter_row"),
    "PostFilter": ("post_filter",),
    "PreScore": ("pre_score",),
    "Score": ("score", "score_row"),
    "ScoreExtensionNormalize": ("normalize",),
}
"""The timed methods of plugins, by Kubernetes' name of the extension point."""

Method: TypeAlias = Callable[..., Any]


class PluginTiming:
    """Times the plugins of one profile."""

    def __init__(self, profile: Profile, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._profile = profile.scheduler_name
        self._spent_s: dict[tuple[str, str], float] = {}
        self._status: dict[tuple[str, str], str] = {}
        self._wrapped: list[tuple[Plugin, str, Method, Method | None]] = [
            (plugin, method, self._timed(plugin.name, point, getattr(plugin, method)), vars(plugin).get(method))
            for plugin, point in _called_at(profile)
            for method in TIMED[point]
            if hasattr(plugin, method)
        ]

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Time the plugins while the context is active."""
        for plugin, method, timed, _ in self._wrapped:
            vars(plugin)[method] = timed
        try:
            yield
        finally:
            for plugin, method, _, guarded in self._wrapped:
                if guarded is not None:
                    vars(plugin)[method] = guarded
                else:
                    del vars(plugin)[method]
            self._observe()

    def _timed(self, name: str, point: str, method: Method) -> Method:
        key = (name, point)

        def timed(*arguments: Any, **named: Any) -> Any:
            started_s = self._clock.now_s()
            result = method(*arguments, **named)
            self._spent_s[key] = self._spent_s.get(key, 0.0) + self._clock.now_s() - started_s
            self._status[key] = _status_of(result)
            return result

        return timed

    def _observe(self) -> None:
        points_s: dict[str, float] = {}
        for (name, point), spent_s in self._spent_s.items():
            status = self._status[(name, point)]
            self._metrics.plugin_duration.labels(name, point, status).observe(spent_s)
            if point in ("PreFilter", "Filter", "PreScore", "Score"):
                self._metrics.plugin_evaluations.labels(name, point, self._profile).inc()
            points_s[point] = points_s.get(point, 0.0) + spent_s
        for point, spent_s in points_s.items():
            self._metrics.point_duration.labels(point, "Success", self._profile).observe(spent_s)
        self._spent_s.clear()
        self._status.clear()


def _called_at(profile: Profile) -> Iterator[tuple[Plugin, str]]:
    """The plugins that the cycle calls at each point; adapters for users' plugins."""
    yield from ((plugin, "PreFilter") for plugin in profile.pre_filters)
    yield from ((use.plugin, "Filter") for use in profile.filters)
    yield from ((plugin, "PostFilter") for plugin in profile.post_filters)
    yield from ((use.plugin, "PreScore") for use in profile.scores if use.has_pre_score)
    for point in ("Score", "ScoreExtensionNormalize"):
        yield from ((use.plugin, point) for use in profile.scores)


def _status_of(result: object) -> str:
    if isinstance(result, Status):
        return result.code.value
    return "Skip" if isinstance(result, Skip) else "Success"
