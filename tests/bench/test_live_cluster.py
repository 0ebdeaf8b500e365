"""The live cluster: what was there before is seen by the scheduler, and what comes is bound."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice

import pytest

from bench.live_cluster import ComingPod, LiveCluster, coming, creatable, expected, live_cluster
from bench.scenario import Scenario
from bench.workload import Size, read_workload
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from tests.waiting import LIMIT_S

SIZE = Size(nodes=6, placed=12, waiting=5, pods=10)


def coming_pods(workload: str, count: int) -> list[ComingPod]:
    return coming(islice(Scenario(read_workload(workload), SIZE).measured(), count))


def in_a_cluster(story: Callable[[LiveCluster], Awaitable[None]]) -> None:
    """Plays a story in a cluster with six nodes and twelve pods, in real time."""

    async def play() -> None:
        scenario = Scenario(read_workload("loop-plain"), SIZE)
        async with live_cluster() as cluster, TaskGroup("test") as group:
            for item in scenario.nodes():
                await cluster.put(item)
            for pod in islice(scenario.placed(), SIZE.placed_count):
                await cluster.place(pod)
            await cluster.start(group)
            await story(cluster)

    run_real(play())


def test_the_scheduler_has_seen_what_was_there_before() -> None:
    async def story(cluster: LiveCluster) -> None:
        columns = cluster.scheduler.engine.columns
        assert (columns.node_count, len(columns.pods)) == (6, 12)

    in_a_cluster(story)


def test_pods_that_come_are_decided_and_then_it_is_quiet() -> None:
    async def story(cluster: LiveCluster) -> None:
        assert await cluster.decide(coming_pods("loop-plain", 10), seconds_max=LIMIT_S) == 0
        assert await cluster.wait_until_quiet(seconds_max=LIMIT_S)
        assert len(cluster.scheduler.engine.columns.pods) == 22

    in_a_cluster(story)


def test_a_pod_that_cannot_be_placed_is_given_up_after_a_time() -> None:
    async def story(cluster: LiveCluster) -> None:
        (pod,) = coming(islice(Scenario(read_workload("loop-plain-beside-unschedulable"), SIZE).waiting(), 1))
        assert await cluster.decide([pod._replace(outcome="placed")], seconds_max=0.1) == 1

    in_a_cluster(story)


def test_pods_come_without_a_resource_version_and_with_everything_else() -> None:
    raw = b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7","labels":{"x":"y"}}}'
    assert creatable(raw) == {"kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}}}


@pytest.mark.parametrize(
    ("workload", "placed", "refused"),
    [
        pytest.param("loop-plain", 17, 0, id="all are placed"),
        pytest.param("loop-mixed", 15, 2, id="two of 17 are refused"),
    ],
)
def test_what_is_expected_of_those_who_come(workload: str, placed: int, refused: int) -> None:
    keys = expected(coming_pods(workload, 17))
    assert tuple(map(len, keys)) == (placed, refused)
    assert all(key.startswith("/registry/pods/") for key in (*keys[0], *keys[1]))
