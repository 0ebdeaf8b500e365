"""Permit plugins let pods wait, and allow or reject them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.events import ActionType, ClusterEventWithHint, EventResource
from mooring.scheduler.framework.plugin import Permit, Wait
from mooring.scheduler.framework.status import Code, Status
from mooring.scheduler.framework.waiting_pods import WAIT_S_MAX, WaitingPod, WaitingPods
from mooring.scheduler.queue.queued_pod import QueueState
from mooring.scheduler.scheduler import Limits, Scheduler
from tests.builders import node, pod
from tests.scheduler.harness import without_line
from tests.scheduler.world import World, play, played

NEW_NODE = ClusterEventWithHint(EventResource.NODE, ActionType.ADD)


class Hold(Permit):
    """Everybody waits for a minute, unless somebody lets them go."""

    name = "Hold"

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (NEW_NODE,)

    def permit(self, pod: PodInfo, node_name: str) -> Wait:
        return Wait(60)


class HoldToo(Hold):
    """Impatient."""

    name = "HoldToo"

    def permit(self, pod: PodInfo, node_name: str) -> Wait:
        return Wait(30)


class Gang(Permit):
    """Members wait for each other: the last of five lets all of them go."""

    name = "Gang"
    size = 5

    def __init__(self, waiting_pods: WaitingPods) -> None:
        self._waiting = waiting_pods

    def permit(self, pod: PodInfo, node_name: str) -> Wait | None:
        if not pod.name.startswith("gang"):
            return None
        if len(self._waiting) < self.size - 1:
            return Wait(600)
        for other in self._waiting:
            other.allow(self.name)
        return None


async def waiting(world: World, *names: str) -> None:
    """These pods, and a node for them; all of them are waiting."""
    await world.create(node("n1", cpu=4), *(pod(name, cpu=2) for name in names))
    await world.settle(0.5)
    assert sorted(waiting_pod.pod.name for waiting_pod in world.scheduler.waiting_pods) == sorted(names)


def is_settled(scheduler: Scheduler) -> bool:
    return not (len(scheduler.waiting_pods) or scheduler.bindings.running or len(scheduler.assumed_pods))


@played(plugins=(Gang,), limits=Limits(bindings_max=2))
async def test_a_gang_that_is_larger_than_the_number_of_bindings_assembles_and_is_bound_together(world: World) -> None:
    await world.create(*(node(f"n{n}", cpu=1) for n in range(5)))
    for n in range(4):
        await world.create(pod(f"gang-{n}", cpu=1))
        await world.settle(10)
        assert await world.node_of("gang-0") == ""
    assert len(world.scheduler.waiting_pods) == 4
    assert world.scheduler.binding_pool.running == 0
    await world.create(pod("gang-4", cpu=1))
    await world.settle()
    assert sorted(found.spec.node_name for found in (await world.pods()).values()) == [f"n{n}" for n in range(5)]
    assert is_settled(world.scheduler)


@played(plugins=(Gang,))
async def test_other_pods_are_scheduled_while_pods_wait_for_permit(world: World) -> None:
    await world.create(node("n1", cpu=2), pod("gang-0", cpu=1))
    await world.settle()
    await world.create(pod("passer-by", cpu=1), pod("too-late", cpu=1))
    await world.settle()
    assert await world.node_of("passer-by") == "n1"
    assert await world.node_of("too-late") == "", "the resources of the waiting pod are taken"


@played(plugins=(Hold,))
async def test_while_a_pod_waits_others_can_read_where_it_is_going(world: World) -> None:
    await waiting(world, "web")
    assert (await world.pod("web")).status.nominated_node_name == "n1"
    assert await world.condition("web") is None
    assert await world.events() == []


@played(plugins=(Hold, HoldToo))
async def test_a_pod_goes_when_all_plugins_that_hold_it_have_let_it_go(world: World) -> None:
    await waiting(world, "web")
    (held,) = world.scheduler.waiting_pods
    assert sorted(held.pending_plugins) == ["Hold", "HoldToo"]
    held.allow("Hold")
    await world.settle()
    assert await world.node_of("web") == ""
    held.allow("HoldToo")
    assert not held.reject("Hold", "too late")
    await world.settle()
    assert await world.node_of("web") == "n1"
    assert await world.events() == [("web", "Scheduled", "Successfully assigned default/web to n1")]
    assert is_settled(world.scheduler)


def test_the_most_impatient_plugin_decides_how_long_a_pod_waits() -> None:
    message = "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin HoldToo."

    async def story(world: World) -> None:
        await waiting(world, "web")
        await world.settle(29)
        assert len(world.scheduler.waiting_pods) == 1
        await world.settle(1)
        assert await world.condition("web") == ("False", "Unschedulable", message)
        assert ("web", "FailedScheduling", message) in await world.events()

    play(story, plugins=(Hold, HoldToo))


@played(plugins=(Hold,))
async def test_after_a_time_out_the_resources_is_free_and_the_pod_comes_back(world: World) -> None:
    await waiting(world, "first", "second")
    await world.create(pod("third", cpu=4))
    await world.settle()
    scheduler = world.scheduler
    third = (await world.pod("third")).metadata.uid
    where = scheduler.queue.status(third)
    assert where is not None
    assert where.state is QueueState.UNSCHEDULABLE
    await world.settle(60)
    assert [waiting_pod.pod.name for waiting_pod in scheduler.waiting_pods] == ["third"], (
        "it took the resources of both"
    )
    first = scheduler.queue.status((await world.pod("first")).metadata.uid)
    assert first is not None
    assert (await world.pod("first")).status.nominated_node_name == ""


@played(plugins=(Hold,))
async def test_a_pod_that_was_reported_to_wait_in_vain_is_tried_again(world: World) -> None:
    await waiting(world, "web")
    await world.settle(60)
    where = world.scheduler.queue.status((await world.pod("web")).metadata.uid)
    assert where is not None
    assert (where.state, where.unschedulable_plugins) == (QueueState.UNSCHEDULABLE, ("Hold",))
    await world.create(node("n2", cpu=1))
    await world.settle(5)
    assert len(world.scheduler.waiting_pods) == 1
    for held in world.scheduler.waiting_pods:
        held.allow("Hold")
    await world.settle()
    assert await world.node_of("web") == "n1"


@played(plugins=(Hold,))
async def test_a_pod_that_is_rejected_while_it_waits_sleeps_and_leaves_its_resources(world: World) -> None:
    await waiting(world, "web")
    (held,) = world.scheduler.waiting_pods
    assert held.reject("Hold", "the quota is used up")
    await world.settle()
    message = "0/1 nodes are available: 1 the quota is used up."
    assert await world.condition("web") == ("False", "Unschedulable", message)
    assert world.scheduler.engine.columns.pods == {}
    assert is_settled(world.scheduler)


@pytest.mark.parametrize("grace_s", [0, 30], ids=["at once", "gracefully"])
def test_a_pod_that_is_deleted_while_it_waits_leaves_its_resources_at_once(grace_s: int) -> None:
    async def story(world: World) -> None:
        await waiting(world, "web")
        await world.patch("web", {"metadata": {"finalizers": ["example.com/hold"]}} if grace_s else {})
        await world.delete("web", grace_s=grace_s)
        await world.settle()
        assert world.scheduler.engine.columns.pods == {}
        assert is_settled(world.scheduler)
        if grace_s:
            await world.patch("web", {"metadata": {"finalizers": None}})
            await world.settle(60)
        assert len(world.scheduler.queue) == 0
        assert world.scheduler.pods.pending == {}

    play(story, plugins=(Hold,))


def test_a_pod_that_is_preempted_while_it_waits_goes_back_and_is_not_deleted() -> None:
    class HoldTheLow(Hold):
        """Only the unimportant wait."""

        name = "HoldTheLow"

        def permit(self, pod: PodInfo, node_name: str) -> Wait | None:  # type: ignore[override]
            return Wait(600) if pod.priority < 100 else None

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1))
        await world.settle()
        uid = (await world.pod("low")).metadata.uid
        await world.create(pod("high", cpu=2, priority=100))
        await world.settle(5)
        assert await world.node_of("high") == "n1"
        high = (await world.pod("high")).metadata.uid
        assert await world.events("Preempted") == [
            ("low", "Preempted", f"Preempted by pod {high} on node n1 (in kube-scheduler memory).")
        ]
        low = await world.pod("low")
        assert (low.metadata.uid, low.metadata.deletion_timestamp) == (uid, None)
        assert await world.condition("low", "DisruptionTarget") is None
        assert ("low", "FailedScheduling", "waiting on permit for pod: preempted") in await world.events()
        assert is_settled(world.scheduler)

    play(story, plugins=(HoldTheLow,))


@played(plugins=(Hold,))
async def test_a_waiting_pod_that_another_scheduler_binds_is_not_bound_again(world: World) -> None:
    await waiting(world, "web")
    await world.create(node("n2", cpu=4))
    uid = (await world.pod("web")).metadata.uid
    await world.client.bind("default", "web", uid, "n2")
    await world.settle(120)
    assert await world.node_of("web") == "n2"
    scheduler = world.scheduler
    assert scheduler.engine.columns.pods[uid].node_name == "n2"
    assert is_settled(scheduler)
    assert len(scheduler.queue) == 0
    assert await world.events("Scheduled") == []


@played(plugins=(Hold,))
async def test_another_scheduler_binds_a_waiting_pod_to_the_same_node(world: World) -> None:
    await waiting(world, "web")
    uid = (await world.pod("web")).metadata.uid
    await world.client.bind("default", "web", uid, "n1")
    await world.settle(120)
    scheduler = world.scheduler
    assert scheduler.engine.columns.pods[uid].node_name == "n1"
    assert is_settled(scheduler)
    await world.patch("web", {"metadata": {"labels": {"changed": "yes"}}})
    await world.settle()
    await world.delete("web")
    await world.settle()
    assert scheduler.engine.columns.pods == {}


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        pytest.param(
            Status.unschedulable("not today"),
            "Unschedulable",
            "0/1 nodes are available: 1 not today.",
            id="a rejection",
        ),
        pytest.param(
            Status.error("the quota service is away"),
            "SchedulerError",
            'running Permit plugin "Whim": the quota service is away',
            id="an error",
        ),
        pytest.param(
            ZeroDivisionError("division by zero"),
            "SchedulerError",
            'running Permit plugin "Whim": ZeroDivisionError: division by zero',
            id="an exception",
        ),
        pytest.param(True, "SchedulerError", None, id="something that is no answer"),
        pytest.param(Wait(float("nan")), "SchedulerError", None, id="a wait that is no number"),
        pytest.param(Wait("soon"), "SchedulerError", None, id="a wait of no time"),  # type: ignore[arg-type]
    ],
)
def test_permit_that_does_not_let_a_pod_go(answer: object, reason: str, message: str | None) -> None:
    class Whim(Permit):
        """Says this, once."""

        name = "Whim"
        answers: ClassVar[list[object]] = [answer]

        def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
            return (NEW_NODE,)

        def permit(self, pod: PodInfo, node_name: str) -> Wait | Status | None:
            if not self.answers:
                return None
            said = self.answers.pop()
            if isinstance(said, Exception):
                raise said
            return said  # type: ignore[return-value]

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        reported = await world.condition("web")
        assert reported is not None
        assert reported[:2] == ("False", reason)
        assert "Whim" in reported[2] if message is None else without_line(reported[2]) == message
        assert world.scheduler.engine.columns.pods == {}
        await world.create(pod("other", cpu=1))
        await world.settle(0.5)
        assert await world.node_of("other") == "n1", "the loop goes on, and the resources are free"
        await world.create(node("n2", cpu=1))
        await world.settle(20)
        assert await world.node_of("web") == "n2"

    play(story, plugins=(Whim,))


# ---


GANG, QUOTA = "Gang", "Quota"


def allow_all(waiting: WaitingPod) -> None:
    waiting.allow(GANG)
    waiting.allow(QUOTA)


def allow_one(waiting: WaitingPod) -> None:
    waiting.allow(GANG)


def reject(waiting: WaitingPod) -> None:
    waiting.allow(GANG)
    assert waiting.reject(QUOTA, "too many")
    assert not waiting.reject(GANG, "ignored")


def preempt(waiting: WaitingPod) -> None:
    assert waiting.preempt("DefaultPreemption", "preempted")


@pytest.mark.parametrize(
    ("act", "end_s", "status"),
    [
        pytest.param(allow_all, 0.0, None, id="all plugins allow it: it goes on"),
        pytest.param(
            allow_one,
            90.0,
            Status(Code.UNSCHEDULABLE, ("rejected due to timeout after waiting 1m30s at plugin Quota",), QUOTA),
            id="one does not: it times out there",
        ),
        pytest.param(reject, 0.0, Status(Code.UNSCHEDULABLE, ("too many",), QUOTA), id="one rejects it"),
        pytest.param(
            preempt,
            0.0,
            Status(Code.ERROR, ("waiting on permit for pod: preempted",), "DefaultPreemption"),
            id="a pod of higher priority needs the node",
        ),
    ],
)
def test_how_a_wait_ends(act: Callable[[WaitingPod], None], end_s: float, status: Status | None) -> None:
    clock = VirtualClock()
    ends: list[tuple[float, Status | None]] = []

    async def main() -> None:
        waiting_pods = WaitingPods()
        record = Columns().record(pod("member"))
        waiting = waiting_pods.add(record, "node", {GANG: 60.0, QUOTA: 90.0}, lambda r: ends.append((clock.now_s(), r)))
        assert waiting_pods.get(record.uid) is waiting
        assert [waiting_pod.pod for waiting_pod in waiting_pods] == [record]
        act(waiting)
        await clock.wait(1_000)
        assert len(waiting_pods) == 0

    run(main(), clock)
    assert ends == [(end_s, status)]


def test_no_plugin_keeps_a_pod_for_longer_than_the_limit() -> None:
    clock = VirtualClock()
    ends_s: list[float] = []

    async def main() -> None:
        waiting_pods = WaitingPods()
        waiting_pods.add(Columns().record(pod("member")), "node", {GANG: 1e9}, lambda r: ends_s.append(clock.now_s()))
        await clock.wait(2 * WAIT_S_MAX)

    run(main(), clock)
    assert ends_s == [WAIT_S_MAX]
