"""Metrics: names, labels, buckets, and the counters and histograms behind them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from mooring.api.views.pod import Pod
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.histogram import HistogramValue, exponential_buckets
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.config import load_configuration
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.node_plugins import FilterPlugin, NodeInfo, ScorePlugin
from mooring.scheduler.framework.plugin import SKIP, Filter, PreFilter, Proceed, Score, Skip
from mooring.scheduler.framework.profile import filter_use, score_use
from mooring.scheduler.framework.status import Status
from mooring.scheduler.reporting.metrics import (
    FastCollector,
    Metrics,
    PluginTiming,
    ReadMetrics,
)
from tests.builders import node, pod
from tests.scheduler.harness import engine_of
from tests.scheduler.queue.builders import profile
from tests.scheduler.world import with_plugins


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

    gauges, registry = ReadMetrics(), CollectorRegistry()
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
    expected = list(zip(("0.1", "1", "10", "+Inf"), map(float, cumulated), strict=True))
    assert distribution.buckets() == expected
    assert distribution.buckets() == expected, "a scrape changes nothing"
    assert distribution.total == sum(sizes)


def test_the_scrape_reads_as_one_of_the_librarys_own() -> None:
    collector, theirs = FastCollector(), CollectorRegistry()
    our_counter = collector.counter("pods_total", "Pods.", "result", "profile")
    their_counter = Counter("pods_total", "Pods.", ("result", "profile"), registry=theirs)
    bounds = (0.1, 1.5, 10.5)  # the library writes whole numbers as Python does, and Kubernetes as Go does
    our_histogram = collector.histogram("took_seconds", "Duration.", bounds, "result")
    their_histogram = Histogram("took_seconds", "Duration.", ("result",), buckets=bounds, registry=theirs)
    for result, name in (("scheduled", "a"), ("error", 'of "quotes"'), ("scheduled", "a")):
        our_counter.labels(result, name).inc()
        their_counter.labels(result, name).inc()
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
        'plain_seconds_bucket{le="1"} 0.0',
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


RECORD = engine_of().record(pod("web"))
ROWS = np.array([0, 1], dtype=np.int64)
Answer = Proceed[None] | Skip | Status


class Slow(PreFilter[None], Filter[None], Score[None]):
    """Takes a second for each question, and two for a score."""

    name = "Slow"

    def __init__(self, clock: VirtualClock, answers: Sequence[Answer | Exception] = ()) -> None:
        self._clock = clock
        self._answers = list(answers)

    def pre_filter(self, pod: PodInfo) -> Answer:
        self._pass(1)
        answer = self._answers.pop(0) if self._answers else Proceed(None)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def filter(self, state: None, rows: Rows) -> Int64s:
        self._pass(1)
        return np.zeros(2, dtype=np.int64)

    def pre_score(self, pod: PodInfo, feasible: Rows) -> None:
        return None

    def score(self, state: None, rows: Rows) -> Int64s:
        self._pass(2)
        return np.full(2, 7, dtype=np.int64)

    def _pass(self, seconds: float) -> None:
        self._clock.advance_to(self._clock.now_s() + seconds)


class Timed:
    """One slow plugin, its stopwatch, and what the metrics say."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.registry = CollectorRegistry()
        clock = VirtualClock()
        self.plugin = Slow(clock, answers)
        mine = dataclasses.replace(
            profile(self.plugin, scheduler_name="mine"),
            pre_filters=(self.plugin,),
            filters=(filter_use(self.plugin, 0),),
            scores=(score_use(self.plugin, 1),),
        )
        self.timing = PluginTiming(mine, Metrics(self.registry), clock)

    def reported(self, name: str, suffix: str = "_sum") -> dict[tuple[str, ...], float]:
        return samples_of_plugins(self.registry, f"{name}{suffix}")


def samples_of_plugins(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric that are not zero, by the values of their labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"scheduler_{name}" and sample.value
    }


def test_a_plugin_is_reported_once_for_each_point_with_all_the_time_it_took() -> None:
    timed = Timed()
    with timed.timing.sampling():
        timed.plugin.pre_filter(RECORD)
        for _ in range(3):
            timed.plugin.filter(None, ROWS)
        timed.plugin.score(None, ROWS)
    durations = {("Slow", "PreFilter", "Success"): 1, ("Slow", "Filter", "Success"): 3, ("Slow", "Score", "Success"): 2}
    assert timed.reported("plugin_execution_duration_seconds") == durations
    assert set(timed.reported("plugin_execution_duration_seconds", "_count").values()) == {1}
    assert timed.reported("framework_extension_point_duration_seconds") == {
        ("PreFilter", "Success", "mine"): 1,
        ("Filter", "Success", "mine"): 3,
        ("Score", "Success", "mine"): 2,
    }
    evaluated = {("Slow", point, "mine"): 1 for point in ("PreFilter", "Filter", "Score")}
    assert timed.reported("plugin_evaluation_total", "") == evaluated


def test_normalising_is_a_point_but_no_evaluation() -> None:
    timed = Timed()
    with timed.timing.sampling():
        timed.plugin.normalize(None, ROWS, ROWS)
    assert timed.reported("plugin_execution_duration_seconds", "_count") == {
        ("Slow", "ScoreExtensionNormalize", "Success"): 1
    }
    assert timed.reported("plugin_evaluation_total", "") == {}


class SlowPerNode(FilterPlugin, ScorePlugin):
    """Takes a second for each node, and two for a score."""

    name = "SlowPerNode"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def filter(self, pod: Pod, node_info: NodeInfo) -> None:
        self._clock.advance_to(self._clock.now_s() + 1)

    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        self._clock.advance_to(self._clock.now_s() + 2)
        return 0


def test_a_plugin_for_one_node_is_reported_once_for_all_nodes() -> None:
    config, plugins = with_plugins(SlowPerNode)
    clock, registry = VirtualClock(), CollectorRegistry()
    engine = Engine(load_configuration(config), entropy=Entropy(1), registry=plugins, services={"clock": clock})
    for name in ("n1", "n2", "n3"):
        engine.put(node(name))
    timing = PluginTiming(engine.cycles["default-scheduler"].profile, Metrics(registry), clock)
    with timing.sampling():
        engine.decide(engine.record(pod("web")))
    spent_s = samples_of_plugins(registry, "plugin_execution_duration_seconds_sum")
    assert spent_s[("SlowPerNode", "Filter", "Success")] == 3
    assert spent_s[("SlowPerNode", "Score", "Success")] == 6
    calls = samples_of_plugins(registry, "plugin_evaluation_total")
    assert {point: count for (name, point, _), count in calls.items() if name == "SlowPerNode"} == {
        "Filter": 1,
        "Score": 1,
    }


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(Proceed(None), "Success", id="it lets the pod through"),
        pytest.param(SKIP, "Skip", id="the pod is none of its business"),
        pytest.param(Status.unschedulable("no"), "Unschedulable", id="it rejects"),
        pytest.param(Status.unresolvable("no"), "UnschedulableAndUnresolvable", id="it rejects for good"),
        pytest.param(Status.error("oops"), "Error", id="it failed"),
    ],
)
def test_the_status_of_a_timed_plugin_is_recorded_and_its_result_returned(answer: Answer, status: str) -> None:
    timed = Timed(answer)
    with timed.timing.sampling():
        assert timed.plugin.pre_filter(RECORD) is answer
    assert timed.reported("plugin_execution_duration_seconds") == {("Slow", "PreFilter", status): 1}


def time_call(timed: Timed) -> None:
    timed.plugin.pre_filter(RECORD)


def time_failing_call(timed: Timed) -> None:
    with pytest.raises(ValueError, match="oops"):
        timed.plugin.pre_filter(RECORD)


@pytest.mark.parametrize(("answers", "asked"), [((), time_call), ((ValueError("oops"),), time_failing_call)])
def test_after_the_cycle_the_plugin_is_as_it_was(answers: Sequence[Exception], asked: Callable[[Timed], None]) -> None:
    timed = Timed(*answers)
    before = dict(vars(timed.plugin))
    with timed.timing.sampling():
        assert vars(timed.plugin).keys() != before.keys()
        asked(timed)
    assert vars(timed.plugin) == before
    reported = timed.reported("plugin_execution_duration_seconds")
    timed.plugin.pre_filter(RECORD)
    assert timed.reported("plugin_execution_duration_seconds") == reported, "nobody looks any more"


def test_a_cycle_that_breaks_unwraps_too() -> None:
    timed = Timed()
    before = dict(vars(timed.plugin))
    with pytest.raises(KeyError), timed.timing.sampling():
        raise KeyError("the cycle broke")
    assert vars(timed.plugin) == before


def test_each_sample_starts_at_zero() -> None:
    timed = Timed()
    for _ in range(2):
        with timed.timing.sampling():
            timed.plugin.pre_filter(RECORD)
    key = ("Slow", "PreFilter", "Success")
    assert timed.reported("plugin_execution_duration_seconds") == {key: 2}
    assert timed.reported("plugin_execution_duration_seconds", "_count") == {key: 2}
    with timed.timing.sampling():
        pass
    assert timed.reported("plugin_execution_duration_seconds", "_count") == {key: 2}, (
        "who was not asked is not reported"
    )


def test_a_sampled_cycle_decides_as_any_other() -> None:
    views = (node("n1", cpu=1), node("n2", cpu=4, zone="a"), node("n3", cpu=2, taints=["gpu:NoSchedule"]))
    plain, watched = engine_of(*views), engine_of(*views)
    clock = VirtualClock()
    cycle = watched.cycles["default-scheduler"]
    timing = PluginTiming(cycle.profile, Metrics(CollectorRegistry()), clock)
    for view in (pod("a", cpu=1), pod("b", cpu=3), pod("c", cpu=64)):
        expected = plain.decide(plain.record(view), in_full=True)
        with timing.sampling():
            decided = watched.decide(watched.record(view), in_full=True)
        facts = [
            (decision.node_name, decision.message, decision.scores, decision.node_to_status)
            for decision in (expected, decided)
        ]
        assert facts[0] == facts[1]
