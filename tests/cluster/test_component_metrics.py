"""The metrics that every component has."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry, generate_latest

from mooring.client.workqueue import WorkQueue
from mooring.cluster.component_metrics import FEATURES_OFF, FEATURES_ON, WorkQueueMetrics, add_kubernetes_gauges
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
