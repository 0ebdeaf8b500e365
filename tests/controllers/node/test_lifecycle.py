"""Nodes that stop sending heartbeats, on virtual time."""

from __future__ import annotations

import pytest

from mooring.api.kinds import NODE, POD
from mooring.controllers.settings import ControllerSettings
from tests.controllers.cluster_builders import beat, heartbeat, node_document, pod_document, renew, report, taints_of
from tests.controllers.world import Story, World, play

CONTROLLERS = ["node-lifecycle-controller"]
SETTINGS = ControllerSettings(
    node_monitor_period_s=0.5,
    node_monitor_grace_period_s=5.25,
    node_startup_grace_period_s=7.25,
    node_eviction_rate=10.0,
)
UNREACHABLE = ["node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"]
NOT_READY = ["node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"]


def run_story(story: Story, settings: ControllerSettings = SETTINGS) -> None:
    play(story, controllers=CONTROLLERS, settings=settings)


def test_a_silent_node_is_unreachable_and_its_pods_are_not_ready() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("n2"), pod_document("p1", "n1"), pod_document("p2", "n2"))
        await beat(world, "n1", "n2", for_s=3)
        await beat(world, "n2", for_s=8)
        assert await taints_of(world, "n1") == UNREACHABLE
        assert await taints_of(world, "n2") == []
        assert (await world.conditions("n1", NODE))["Ready"] == ("Unknown", "NodeStatusUnknown")
        assert [(await world.conditions(name, POD))["Ready"][0] for name in ("p1", "p2")] == ["False", "True"]
        assert sorted(await world.events()) == [
            ("n1", "NodeNotReady", "Node n1 status is now: NodeNotReady"),
            ("n1", "RegisteredNode", "Node n1 event: Registered Node n1 in Controller"),
            ("n2", "RegisteredNode", "Node n2 event: Registered Node n2 in Controller"),
            ("p1", "NodeNotReady", "Node is not ready"),
        ]
        await beat(world, "n1", "n2", for_s=2)
        assert await taints_of(world, "n1") == []

    run_story(story)


def test_a_node_that_only_renews_its_lease_is_well_until_a_grace_period_after_the_last_time() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("n2"))
        await heartbeat(world, "n1")
        for _ in range(20):
            await beat(world, "n2", for_s=1)
            await renew(world, "n1")
        assert await taints_of(world, "n1") == []
        await beat(world, "n2", for_s=5)
        assert await taints_of(world, "n1") == []
        await beat(world, "n2", for_s=2)
        assert await taints_of(world, "n1") == UNREACHABLE

    run_story(story)


def test_a_node_that_falls_silent_after_a_heartbeat_is_counted_from_the_pass_after_it() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("n2"))
        await beat(world, "n1", "n2", for_s=3)
        await report(world, "n1")
        await beat(world, "n2", for_s=5)
        assert await taints_of(world, "n1") == []
        await beat(world, "n2", for_s=3)
        assert await taints_of(world, "n1") == UNREACHABLE

    run_story(story)


def test_a_node_that_never_reports_gets_conditions_after_the_start_up_period() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("mute"))
        await beat(world, "n1", for_s=6)
        assert await world.conditions("mute", NODE) == {}
        await beat(world, "n1", for_s=4)
        assert set((await world.conditions("mute", NODE)).values()) == {("Unknown", "NodeStatusNeverUpdated")}
        assert await taints_of(world, "mute") == UNREACHABLE

    run_story(story)


@pytest.mark.parametrize(
    ("first", "then", "taints"),
    [
        pytest.param("False", "False", NOT_READY, id="not ready"),
        pytest.param("Unknown", "False", NOT_READY, id="unreachable, then not ready"),
        pytest.param("False", "Unknown", UNREACHABLE, id="not ready, then unreachable"),
        pytest.param("False", "True", [], id="not ready, then ready"),
    ],
)
def test_taints_follow_what_the_node_says(first: str, then: str, taints: list[str]) -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("n2"))
        for ready in ("True", first, then):
            for _ in range(3):
                await heartbeat(world, "n1", ready)
                await heartbeat(world, "n2")
                await world.settle(1)
        assert await taints_of(world, "n1") == taints

    run_story(story)


def test_without_any_heartbeat_no_pod_is_evicted() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("n2"))
        await beat(world, "n1", "n2", for_s=2)
        await beat(world, "n2", for_s=8)
        assert await taints_of(world, "n1") == UNREACHABLE
        await world.settle(10)
        assert await taints_of(world, "n1") == UNREACHABLE[1:]
        await beat(world, "n2", for_s=3)
        assert await taints_of(world, "n1") == UNREACHABLE

    run_story(story)


def test_two_hundred_nodes_lost_at_once_are_tainted_at_the_rate() -> None:
    lost, well = [f"lost{number}" for number in range(200)], [f"well{number}" for number in range(300)]

    async def story(world: World) -> None:
        await world.create(*[node_document(name) for name in lost + well])
        await beat(world, *lost, *well, for_s=1)
        for _ in range(8):
            await beat(world, *well, for_s=1)
        tainted = [node for node in await world.list(NODE) if _has_no_execute(node)]
        assert 10 <= len(tainted) <= 40
        assert {(await world.conditions(name, NODE))["Ready"][0] for name in lost} == {"Unknown"}

    run_story(story)


def _has_no_execute(node: dict[str, object]) -> bool:
    spec = node["spec"]
    assert isinstance(spec, dict)
    return any(taint["effect"] == "NoExecute" for taint in spec.get("taints") or ())


def test_a_deleted_node_is_reported_and_forgotten() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"))
        await beat(world, "n1", for_s=2)
        await world.delete(NODE, "n1")
        await world.settle(2)
        assert ("n1", "RemovingNode", "Node n1 event: Removing Node n1 from Controller") in await world.events()

    run_story(story)


def test_a_pod_that_comes_to_a_silent_node_is_marked_too() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"), node_document("n2"))
        await beat(world, "n1", "n2", for_s=1)
        await beat(world, "n2", for_s=8)
        await world.create(pod_document("late", "n1"))
        await world.settle(1)
        assert (await world.conditions("late", POD))["Ready"][0] == "False"

    run_story(story)


def test_conditions_cordons_and_labels_are_mirrored() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1", labels={"kubernetes.io/os": "linux"}, unschedulable=True))
        await heartbeat(world, "n1", MemoryPressure="True")
        await world.settle(1)
        wanted = ["node.kubernetes.io/memory-pressure:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]
        assert await taints_of(world, "n1") == wanted
        assert (await world.get(NODE, "n1"))["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"

    run_story(story)
