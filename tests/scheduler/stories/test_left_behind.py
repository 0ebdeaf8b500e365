"""Nothing is left behind: alarms of a stopped scheduler, reservations of a lost race, half an object."""

from __future__ import annotations

from mooring.api.kinds import kind_of_view
from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.cache.pods import PodInfo
from mooring.scheduler.framework.plugin import Reserve
from tests.api_servers import store_object
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Script
from tests.scheduler.stories.actors import running, with_plugins
from tests.scheduler.stories.test_permit import Hold
from tests.scheduler.world import World, check, play

SLICE = kind_of_view(ResourceSlice)
UNREADABLE_SLICE: dict[str, object] = {
    "metadata": {"name": "bad"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "p"},
        "devices": [{"name": "x", "capacity": {"memory": {"value": "lots"}}}],
    },
}


def test_a_scheduler_that_is_stopped_leaves_its_waiting_pods_to_the_next_one() -> None:
    config, registry = with_plugins(Hold)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        async with running(world, config, registry=registry) as first:
            assert len(first.waiting_pods) == 1
        async with running(world, None) as second:
            await world.settle(5)
            assert await world.node_of("web") == "n1"
            await world.settle(120)  # the time-out of the first one comes, and means nothing any more
            assert await world.node_of("web") == "n1"
            assert await world.condition("web") == ("True", "", "")
            check(second)

    play(story, schedulers=0)


def test_who_was_forestalled_lets_go_of_what_was_reserved() -> None:
    held: set[str] = set()

    class Holds(Reserve):
        name = "Holds"

        def reserve(self, pod: PodInfo, row: int) -> None:
            held.add(pod.uid)

        def unreserve(self, pod: PodInfo, node_name: str) -> None:
            held.discard(pod.uid)

    config, registry = with_plugins(Holds)

    async def story(world: World) -> None:
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle(0.5)
        assert len(held) == 1
        await world.client.bind("default", "web", (await world.pod("web")).metadata.uid, "n1")
        await world.settle(30)
        assert held == set()

    play(
        story,
        config=config,
        registry=registry,
        through=lambda client, clock: FaultyClient(client, clock, Script(Fault("bind", delay_s=5))),
    )


def test_a_slice_that_cannot_be_read_comes_and_goes() -> None:
    async def story(world: World) -> None:
        await store_object(world.store, SLICE, "", UNREADABLE_SLICE)
        await world.settle()
        await world.delete("bad", kind=SLICE)
        await world.create(node("n1", cpu=1), pod("web", cpu=1))
        await world.settle()
        assert await world.node_of("web") == "n1"

    play(story)
