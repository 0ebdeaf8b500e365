"""The live runner, its cluster, its observer and its check: a broken scheduler is reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TypeAlias

import msgspec
import pytest

from bench.live import run_live
from bench.live_check import check
from bench.live_cluster import (
    LiveCluster,
    PodToCreate,
    StoreObserver,
    creatable,
    expected,
    live_cluster,
    pods_to_create,
)
from bench.scenario import Scenario
from bench.workload import Size, read_workload
from mooring.api.kinds import EVENT, POD
from mooring.client.interface import Deletion, PatchForm
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.cycle.decision import Decision
from mooring.scheduler.cycle.schedule_pod import SchedulingCycle
from mooring.store.memory import MemoryStore
from tests.waiting import LIMIT_S

SMALL = Size(nodes=30, placed=60, pods=40, warm_up=5)


def test_a_run() -> None:
    result = run_live(read_workload("loop-plain"), SMALL)
    assert result.problems == ()
    assert (result.nodes, result.placed, result.waiting, result.pods) == (30, 60, 0, 40)
    assert result.mean_us * result.pods_per_second == pytest.approx(1e6)
    assert 0 < result.p50_ms <= result.p99_ms <= result.seconds * 1_000
    assert result.resident_before_bytes <= result.resident_peak_bytes
    assert result.slowdown is None


@pytest.mark.parametrize(
    "name", ["loop-plain-beside-gated", "loop-plain-beside-unschedulable", "loop-plain-beside-lonely"]
)
def test_beside_waiting_pods_it_is_measured_without_them_too(name: str) -> None:
    size = msgspec.structs.replace(SMALL, waiting=20)
    result = run_live(read_workload(name), size, rounds=1)
    assert result.problems == ()
    assert result.waiting == 20
    assert result.slowdown is not None
    assert result.cpu_slowdown is not None
    assert min(result.slowdown, result.cpu_slowdown) > 0


@pytest.mark.parametrize(
    ("allowed_bytes", "count"),
    [pytest.param(150_000_000, 0, id="within"), pytest.param(-(1 << 30), 1, id="above")],
)
def test_pods_that_take_too_much_memory_are_reported(allowed_bytes: int, count: int) -> None:
    workload = msgspec.structs.replace(read_workload("loop-plain"), growth_bytes_max=allowed_bytes)
    found = run_live(workload, SMALL).problems
    assert len(found) == count
    assert all("allowed are" in problem for problem in found)


def everything_to_one_node(cycle: SchedulingCycle, pod: PodInfo, *, in_full: bool = False) -> Decision:
    return Decision(pod, node_name="node-0", feasible_count=30)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("loop-plain", "1 nodes hold more than they have according to the store", id="room"),
        pytest.param("loop-spread-hard", "is skewed over topology", id="spreading"),
        pytest.param("loop-anti-affinity", "hold more than 1", id="anti-affinity"),
    ],
)
def test_a_scheduler_that_ignores_a_rule_is_reported(monkeypatch: pytest.MonkeyPatch, name: str, problem: str) -> None:
    monkeypatch.setattr(SchedulingCycle, "decide_admitted", everything_to_one_node)
    found = run_live(read_workload(name), SMALL).problems
    assert any(problem in text for text in found), found


def test_a_scheduler_that_is_stuck_is_reported() -> None:
    workload = read_workload("loop-plain-beside-unschedulable")
    hopeless = msgspec.structs.replace(workload.waiting[0], outcome="placed")
    stuck = msgspec.structs.replace(workload, measured=(hopeless,), waiting=())
    found = run_live(stuck, msgspec.structs.replace(SMALL, pods=3, warm_up=1), seconds_max=0.2).problems
    assert "3 pods were not decided after 0 s" in found
    assert any("4 pods have no node, such as /registry/pods/" in text for text in found), found


# --- The live cluster: what was there before is seen by the scheduler, and what comes is bound -----------------------


SIZE = Size(nodes=6, placed=12, waiting=5, pods=10)


def pod_items(workload: str, count: int) -> list[PodToCreate]:
    return pods_to_create(islice(Scenario(read_workload(workload), SIZE).measured(), count))


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
        assert await cluster.decide(pod_items("loop-plain", 10), seconds_max=LIMIT_S) == 0
        assert await cluster.wait_until_quiet(seconds_max=LIMIT_S)
        assert len(cluster.scheduler.engine.columns.pods) == 22

    in_a_cluster(story)


def test_a_pod_that_cannot_be_placed_is_given_up_after_a_time() -> None:
    async def story(cluster: LiveCluster) -> None:
        (pod,) = pods_to_create(islice(Scenario(read_workload("loop-plain-beside-unschedulable"), SIZE).waiting(), 1))
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
def test_expected_outcomes_of_pods(workload: str, placed: int, refused: int) -> None:
    keys = expected(pod_items(workload, 17))
    assert tuple(map(len, keys)) == (placed, refused)
    assert all(key.startswith("/registry/pods/") for key in (*keys[0], *keys[1]))


# --- The observer of the store --------------------------------------------------------------------------------------


PENDING = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{},"status":{}}'
BOUND = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1"},"status":{}}'
RUNNING = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}'
REFUSED = b'{"kind":"Pod","metadata":{"name":"a"},"spec":{},"status":{"conditions":[{"reason":"Unschedulable"}]}}'
KEY = "/registry/pods/shop/a"


def watched(story: Callable[[MemoryStore, StoreObserver, VirtualClock], Awaitable[None]]) -> None:
    """Plays a story on virtual time, with an observer."""
    clock = VirtualClock()

    async def play() -> None:
        store = MemoryStore()
        observer = StoreObserver(store)
        async with TaskGroup("test") as group:
            group.start_background(observer.run(), name="observer")
            await observer.watches.wait()
            await story(store, observer, clock)

    run(play(), clock)


@pytest.mark.parametrize(
    ("values", "expected", "left"),
    [
        pytest.param([PENDING, BOUND], "placed", 0, id="a node makes a pod placed"),
        pytest.param([PENDING], "placed", 1, id="being created does not"),
        pytest.param([PENDING, REFUSED], "refused", 0, id="its status makes a pod refused"),
        pytest.param([PENDING, REFUSED], "placed", 1, id="a refused pod is not placed"),
        pytest.param([PENDING, REFUSED, BOUND], "placed", 0, id="refused first and placed then is placed"),
        pytest.param([PENDING, BOUND], "refused", 1, id="a placed pod is not refused"),
    ],
)
def test_when_a_pod_is_decided(values: list[bytes], expected: str, left: int) -> None:
    async def story(store: MemoryStore, observer: StoreObserver, clock: VirtualClock) -> None:
        observer.expect([KEY] if expected == "placed" else [], [KEY] if expected == "refused" else [])
        for value in values:
            await store.put(KEY, value)
        assert await observer.wait_until_decided(10.0) == left

    watched(story)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        pytest.param([PENDING, BOUND, RUNNING], 1, id="what happens to a bound pod is no second binding"),
        pytest.param([PENDING, BOUND, PENDING, BOUND], 2, id="a node that is taken away and given again is"),
        pytest.param([RUNNING], 0, id="a pod that came with its node was not bound here"),
    ],
)
def test_bindings_are_counted(values: list[bytes], count: int) -> None:
    async def story(store: MemoryStore, observer: StoreObserver, clock: VirtualClock) -> None:
        for value in values:
            await store.put(KEY, value)
        await clock.wait(1.0)
        assert observer.bindings.get(KEY, 0) == count
        assert (KEY in observer.bound_ns) == (count > 0)

    watched(story)


def test_without_expected_pods_there_is_no_wait() -> None:
    async def story(store: MemoryStore, observer: StoreObserver, clock: VirtualClock) -> None:
        observer.expect([], [])
        assert await observer.wait_until_decided(10.0) == 0
        assert clock.now_s() == 0.0

    watched(story)


def test_what_was_given_up_is_expected_no_more() -> None:
    async def story(store: MemoryStore, observer: StoreObserver, clock: VirtualClock) -> None:
        observer.expect([KEY], [])
        assert await observer.wait_until_decided(10.0) == 1
        assert await observer.wait_until_decided(10.0) == 0

    watched(story)


Fault: TypeAlias = Callable[[LiveCluster, list[PodToCreate]], Awaitable[None]]

CHECKED_SIZE = Size(nodes=6, placed=6, waiting=4, pods=5)
WORKLOAD = read_workload("loop-plain-beside-unschedulable")


def problems_after(fault: Fault) -> list[str]:
    """What is found after a fault is injected into a correct run of five placed and four rejected pods."""

    async def play() -> list[str]:
        scenario = Scenario(WORKLOAD, CHECKED_SIZE)
        pods = [
            *pods_to_create(islice(scenario.measured(), CHECKED_SIZE.pods)),
            *pods_to_create(islice(scenario.waiting(), CHECKED_SIZE.waiting)),
        ]
        async with live_cluster() as cluster, TaskGroup("test") as group:
            for item in scenario.nodes():
                await cluster.put(item)
            for pod in islice(scenario.placed(), CHECKED_SIZE.placed_count):
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
def test_errors_are_reported(fault: Fault, problem: str) -> None:
    found = problems_after(fault)
    assert any(problem in text for text in found), found
