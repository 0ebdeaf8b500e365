"""The check of a live run: each thing that can be wrong in the store, or between it and the scheduler, is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TypeAlias

import pytest

from bench.live_check import check
from bench.live_cluster import LiveCluster, PodToCreate, live_cluster, pods_to_create
from bench.scenario import Scenario
from bench.workload import Size, read_workload
from mooring.api.kinds import EVENT, POD
from mooring.client.interface import Deletion, PatchForm
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from tests.waiting import LIMIT_S

Fault: TypeAlias = Callable[[LiveCluster, list[PodToCreate]], Awaitable[None]]

SIZE = Size(nodes=6, placed=6, waiting=4, pods=5)
WORKLOAD = read_workload("loop-plain-beside-unschedulable")


def problems_after(fault: Fault) -> list[str]:
    """What is found after a fault is injected into a correct run of five placed and four rejected pods."""

    async def play() -> list[str]:
        scenario = Scenario(WORKLOAD, SIZE)
        pods = [
            *pods_to_create(islice(scenario.measured(), SIZE.pods)),
            *pods_to_create(islice(scenario.waiting(), SIZE.waiting)),
        ]
        async with live_cluster() as cluster, TaskGroup("test") as group:
            for item in scenario.nodes():
                await cluster.put(item)
            for pod in islice(scenario.placed(), SIZE.placed_count):
                await cluster.place(pod)
            await cluster.start(group)
            assert await cluster.decide(pods, LIMIT_S) == 0
            assert await cluster.wait_until_quiet(LIMIT_S)
            await fault(cluster, pods)
            return await check(cluster, pods, ())

    return run_real(play())


async def nothing(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    """All is well."""


async def lose_a_pod(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    await cluster.client.delete(POD, "shop", name_of(pods[0]), Deletion(grace_s=0))
    await cluster.clock.wait(0.02)


async def lose_the_events(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    folder = EVENT.key_prefix
    for record in (await cluster.store.list(folder)).records:
        await cluster.store.delete(record.key)


async def lose_the_conditions(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    for pod in pods:
        nothing_said = {"status": {"conditions": None}}
        await cluster.client.patch(POD, "shop", name_of(pod), nothing_said, form=PatchForm.MERGE, subresource="status")
    await cluster.clock.wait(0.02)


async def bind_twice(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    cluster.observer.bindings[pods[0].key] += 1


async def expect_otherwise(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    pods[0] = pods[0]._replace(outcome="refused")


async def forget_a_placed_pod(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    columns = cluster.scheduler.engine.columns
    columns.displace(next(iter(columns.pods.values())))


async def lose_a_waiting_pod(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    cluster.scheduler.queue.delete(next(iter(cluster.scheduler.queue.entries())).pod.uid)


async def leave_a_stranger(cluster: LiveCluster, pods: list[PodToCreate]) -> None:
    pods.pop()


def name_of(pod: PodToCreate) -> str:
    return pod.key.rsplit("/", 1)[1]


def test_a_good_run_has_no_problems() -> None:
    assert problems_after(nothing) == []


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        pytest.param(lose_a_pod, "1 pods are gone, such as /registry/pods/shop/", id="a pod is gone"),
        pytest.param(lose_the_events, "5 pods have a node and no event Scheduled", id="no event of a binding"),
        pytest.param(lose_the_events, "4 pods were refused and have no event FailedScheduling", id="nor of a refusal"),
        pytest.param(lose_the_conditions, "5 pods have a node and no condition", id="no condition of a binding"),
        pytest.param(lose_the_conditions, "4 pods were refused and have no condition", id="nor of a refusal, either"),
        pytest.param(bind_twice, "1 pods were bound 2 times", id="bound twice"),
        pytest.param(expect_otherwise, "1 pods have a node and should be refused", id="placed against all odds"),
        pytest.param(forget_a_placed_pod, "columns differ from the store on 1 nodes", id="wrong columns"),
        pytest.param(forget_a_placed_pod, "counts 10 placed pods, not 11", id="a pod that the columns forgot"),
        pytest.param(lose_a_waiting_pod, "1 pods wait in another section of the queue", id="lost by the queue"),
        pytest.param(leave_a_stranger, "1 pods are left in the queue", id="left in the queue"),
    ],
)
def test_what_is_wrong_is_told(fault: Fault, problem: str) -> None:
    found = problems_after(fault)
    assert any(problem in text for text in found), found
