"""Several profiles, several schedulers, and one after the other: what each finds in the API is all that it knows."""

from __future__ import annotations

import asyncio

from mooring.client.interface import Client
from tests.builders import node, pod
from tests.scheduler.config.builders import configuration
from tests.scheduler.stories.actors import running
from tests.scheduler.world import World, check, play


def test_two_profiles_each_with_its_own_plugins() -> None:
    profiles = [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": "packer",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        },
    ]

    async def story(world: World) -> None:
        await world.create(node("busy", cpu=8), node("idle", cpu=8), pod("there", cpu=4, on="busy"))
        await world.settle()
        await world.create(pod("spread", cpu=1), pod("packed", cpu=1, scheduler="packer"))
        await world.settle()
        assert [await world.node_of(name) for name in ("spread", "packed")] == ["idle", "busy"]
        await world.create(pod("lost", cpu=1, scheduler="nobody"))
        await world.settle()
        assert await world.condition("lost") is None

    play(story, config=configuration(profiles=profiles))


def test_two_schedulers_with_names_of_their_own_share_a_cluster() -> None:
    config = configuration(profiles=[{"schedulerName": "second"}])

    async def story(world: World) -> None:
        await world.create(*(node(f"n{n}", cpu=2) for n in range(4)))
        async with running(world, config) as second:
            for n in range(5):
                await world.create(pod(f"a-{n}", cpu=1))
                await world.settle(0.3)
                await world.create(pod(f"b-{n}", cpu=1, scheduler="second"))
                await world.settle(0.3)
            await world.settle(60)
            placed = [found for found in (await world.pods()).values() if found.spec.node_name]
            assert len(placed) == 8
            # Each sees what the other has done. If both decided at the same moment, nobody would keep them from it.
            assert await world.overcommitted() == []
            check(second)

    play(story)


def test_a_new_scheduler_goes_on_with_the_nominations_of_the_last_one() -> None:
    async def story(world: World) -> None:
        async with running(world):
            await world.create(node("n1", cpu=2), pod("low", cpu=2, priority=1, grace_s=30))
            await world.settle()
            await world.create(pod("high", cpu=2, priority=100))
            await world.settle()
            assert (await world.pod("high")).status.nominated_node_name == "n1"
        async with running(world) as second:
            await world.create(pod("thief", cpu=2, priority=50))
            await world.settle()
            await world.delete("low")
            await world.settle(30)
            assert await world.node_of("high") == "n1"
            assert await world.node_of("thief") == ""
            check(second)

    play(story, schedulers=0)


def test_a_new_scheduler_finds_what_the_last_one_had_only_assumed() -> None:
    class Cut:
        """A way to the API that ends with the first scheduler: its bindings never arrive."""

        def __init__(self, inner: Client) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
            await asyncio.Event().wait()

    async def story(world: World) -> None:
        async with running(world, client=Cut(world.client)) as first:  # type: ignore[arg-type]
            await world.create(node("n1", cpu=2), *(pod(f"web-{n}", cpu=1) for n in range(3)))
            await world.settle()
            assert len(first.assumed_pods) == 2
        async with running(world) as second:
            await world.settle()
            placed = [found for found in (await world.pods()).values() if found.spec.node_name]
            assert len(placed) == 2
            assert len(second.assumed_pods) == 0

    play(story, schedulers=0)
