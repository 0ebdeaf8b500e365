"""Pods in a running scheduler, as users see them: bound, rejected, queued again, gated, deleted."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import generate_latest

from mooring.api.kinds import NODE
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.queue.queued_pod import QueueState
from mooring.scheduler.scheduler import STOP_S_MAX
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.world import World, open_world, play, played

INSUFFICIENT = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: "
    "1 Preemption is not helpful for scheduling."
)


@played()
async def test_a_pod_is_bound_and_users_are_reported(world: World) -> None:
    await world.create(node("n1", cpu=4), pod("web", cpu=1))
    await world.settle()
    assert await world.node_of("web") == "n1"
    assert await world.condition("web") == ("True", "", "")
    assert await world.events() == [("web", "Scheduled", "Successfully assigned default/web to n1")]
    assert len(world.scheduler.assumed_pods) == 0


@played()
async def test_a_pod_that_fits_nowhere_waits_until_a_node_comes(world: World) -> None:
    await world.create(node("small", cpu=1), pod("web", cpu=2))
    await world.settle()
    assert await world.node_of("web") == ""
    assert await world.condition("web") == ("False", "Unschedulable", INSUFFICIENT)
    assert await world.events() == [("web", "FailedScheduling", INSUFFICIENT)]
    uid = (await world.pod("web")).metadata.uid
    where = world.scheduler.queue.status(uid)
    assert where is not None
    assert (where.state, where.unschedulable_plugins) == (QueueState.UNSCHEDULABLE, ("NodeResourcesFit",))
    await world.create(node("large", cpu=4))
    await world.settle()
    assert await world.node_of("web") == "large"
    assert await world.condition("web") == ("True", "", "")


@played()
async def test_without_nodes_pods_wait_and_are_tried_when_the_first_comes(world: World) -> None:
    await world.create(pod("web", cpu=1))
    await world.settle()
    assert await world.condition("web") == ("False", "Unschedulable", "no nodes available to schedule pods")
    await world.create(node("n1", cpu=4))
    await world.settle(15)
    assert await world.node_of("web") == "n1"


@played()
async def test_a_node_that_does_not_help_queues_no_pod(world: World) -> None:
    await world.create(node("small", cpu=1), pod("web", cpu=2))
    await world.settle()
    await world.create(node("smaller", cpu=1))
    await world.settle()
    uid = (await world.pod("web")).metadata.uid
    where = world.scheduler.queue.status(uid)
    assert where is not None
    assert (where.state, where.attempts) == (QueueState.UNSCHEDULABLE, 1)


@played()
async def test_resources_that_a_deleted_pod_leaves_is_used(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("first", cpu=1))
    await world.settle()
    await world.create(pod("second", cpu=1))
    await world.settle()
    assert await world.node_of("second") == ""
    await world.delete("first")
    await world.settle()
    assert await world.node_of("second") == "n1"


@played()
async def test_a_gated_pod_is_left_alone_until_its_gates_are_gone(world: World) -> None:
    await world.create(node("n1", cpu=4), pod("web", cpu=1, gates=["quota"]))
    await world.settle(1000)
    by_api_server = ("False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
    assert await world.condition("web") == by_api_server
    assert await world.events() == []
    assert world.scheduler.queue.statistics().gated == 1
    await world.patch("web", {"spec": {"schedulingGates": []}})
    await world.settle()
    assert await world.node_of("web") == "n1"


@played()
async def test_pods_of_other_schedulers_and_finished_pods_are_ignored(world: World) -> None:
    await world.create(
        node("n1", cpu=1), pod("theirs", cpu=1, scheduler="other"), pod("over", cpu=1, on="n1", phase="Succeeded")
    )
    await world.settle()
    assert await world.node_of("theirs") == ""
    await world.create(pod("ours", cpu=1))
    await world.settle()
    assert await world.node_of("ours") == "n1"
    assert len(world.scheduler.queue) == 0


@played()
async def test_a_pod_that_finishes_leaves_its_resources_to_others(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("job", cpu=1))
    await world.settle()
    await world.create(pod("next", cpu=1))
    await world.settle()
    await world.patch("job", {"status": {"phase": "Succeeded"}}, subresource="status")
    await world.settle()
    assert await world.node_of("next") == "n1"


@played()
async def test_what_other_schedulers_place_counts(world: World) -> None:
    await world.create(node("n1", cpu=2), pod("theirs", cpu=2, on="n1"))
    await world.settle()
    await world.create(pod("ours", cpu=1))
    await world.settle()
    assert await world.node_of("ours") == ""


@played()
async def test_a_pod_that_another_scheduler_binds_leaves_the_queue(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("big", cpu=2))
    await world.settle()
    uid = (await world.pod("big")).metadata.uid
    await world.client.bind("default", "big", uid, "n1")
    await world.settle()
    assert len(world.scheduler.queue) == 0
    assert world.scheduler.engine.columns.pods[uid].node_name == "n1"


@played()
async def test_a_pod_deleted_while_it_waits_is_forgotten(world: World) -> None:
    await world.create(node("n1", cpu=1), pod("big", cpu=2))
    await world.settle()
    await world.delete("big")
    await world.settle()
    assert len(world.scheduler.queue) == 0
    assert world.scheduler.pods.pending == {}


@played()
async def test_a_pod_that_is_being_deleted_is_not_tried(world: World) -> None:
    await world.create(pod("web", cpu=1, gates=["hold"]))
    await world.patch("web", {"metadata": {"finalizers": ["example.com/hold"]}})
    await world.delete("web")
    await world.patch("web", {"spec": {"schedulingGates": []}})
    await world.create(node("n1", cpu=4))
    await world.settle()
    assert await world.node_of("web") == ""
    assert await world.events() == [("web", "FailedScheduling", "skip schedule deleting pod: default/web")]


@played()
async def test_a_node_that_is_removed_takes_no_more_pods(world: World) -> None:
    await world.create(node("n1", cpu=4))
    await world.settle()
    await world.delete("n1", kind=NODE)
    await world.create(node("n2", cpu=4), pod("web", cpu=1))
    await world.settle()
    assert await world.node_of("web") == "n2"


@played()
async def test_more_important_pods_go_first(world: World) -> None:
    await world.create(pod("low", cpu=1, priority=1, gates=["x"]), pod("high", cpu=1, priority=100, gates=["x"]))
    await world.settle()
    for name in ("low", "high"):
        await world.patch(name, {"spec": {"schedulingGates": []}})
    await world.create(node("n1", cpu=1))
    await world.settle(20)
    assert await world.node_of("high") == "n1"
    assert await world.node_of("low") == ""


@pytest.mark.parametrize(
    "line",
    [
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0',
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
        'scheduler_pending_pods{queue="unschedulable"} 1.0',
        'scheduler_pending_pods{queue="gated"} 1.0',
        'scheduler_pending_pods{queue="active"} 0.0',
        'scheduler_cache_size{type="nodes"} 1.0',
        'scheduler_cache_size{type="pods"} 1.0',
        'scheduler_cache_size{type="assumed_pods"} 0.0',
        'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0',
        'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2.0',
        "scheduler_pod_scheduling_attempts_count 1.0",
        'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0',
        "scheduler_preemption_attempts_total 1.0",
        "scheduler_scheduling_algorithm_duration_seconds_count 2.0",
        'scheduler_goroutines{operation="binding"} 0.0',
        'scheduler_batch_attempts_total{profile="default-scheduler",result="no_hint"} 2.0',
        'scheduler_batch_attempts_total{profile="default-scheduler",result="hint_used"} 0.0',
    ],
)
def test_metrics_have_the_names_of_kube_scheduler(line: str) -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1), pod("big", cpu=2), pod("gated", gates=["x"]))
        await world.settle()
        assert line in generate_latest(world.scheduler.metrics.registry).decode().splitlines()

    play(story)


# --- stopping --------------------------------------------------------------------------------------------------------
# A clean stop: nothing new is begun, what was begun ends, what was said is written; and it does not take for ever


@pytest.mark.parametrize(
    ("delay_s", "stopped_after_s", "is_bound"),
    [
        pytest.param(2.0, 2.0, True, id="a binding under way is waited for"),
        pytest.param(60.0, STOP_S_MAX, False, id="but not for ever"),
    ],
)
def test_a_stop_while_a_pod_is_being_bound(delay_s: float, stopped_after_s: float, is_bound: bool) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            slow: Client = FaultyClient(world.client, clock, Script(Fault("bind", Outcome.DONE, delay_s=delay_s)))
            scheduler = world.start_scheduler(client=slow)
            await world.settle()
            await world.create(node("n1", cpu=1), pod("web", cpu=1))
            await world.settle(0.01)
            (task,) = [running for running in asyncio.all_tasks() if running.get_name() == "world/scheduler-1"]
            asked_s = clock.now_s()
            task.cancel()
            await asyncio.wait([task])
            assert clock.now_s() - asked_s == pytest.approx(stopped_after_s, abs=0.1)
            assert (await world.node_of("web") == "n1") is is_bound
            assert len(await world.events("Scheduled")) == int(is_bound)
            assert (scheduler.bindings.running == {}) is is_bound

    run(main(), clock)
