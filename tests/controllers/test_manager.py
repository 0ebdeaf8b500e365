"""Starting and stopping controllers together."""

from __future__ import annotations

from mooring.api.kinds import POD, REPLICA_SET
from mooring.controllers.manager import ControllerManager
from mooring.controllers.table import CONTROLLERS
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import open_loopback_client
from tests.controllers.builders import replica_set
from tests.controllers.world import open_world


def test_the_table_calls_each_controller_by_its_name() -> None:
    assert all(name.endswith("-controller") for name in CONTROLLERS)


def test_a_manager_that_is_stopped_finishes_and_ends() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            manager = ControllerManager(client, clock, Entropy(2), enabled=["replicaset-controller"])
            async with TaskGroup("test") as group:
                group.start(manager.run(), name="manager")
                await manager.wait_working()
                assert manager.statistics()["replicaset-controller"]["depth"] == 0
                await client.create(REPLICA_SET, "default", replica_set("web", replicas=2))
                await clock.wait(1)
                manager.stop()
            assert len((await client.list(POD)).items) == 2

    run(main(), clock)


def test_another_manager_goes_on_where_the_first_was_killed() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            manager = ControllerManager(world.client, clock, Entropy(2), enabled=["replicaset-controller"])
            task = world.group.start_background(manager.run(), name="first")
            await manager.wait_working()
            await world.create(replica_set("web", replicas=100))
            await clock.wait(0)
            task.cancel()
            await clock.wait(1)
            world.start_manager(["replicaset-controller"])
            await world.settle()
            assert len(await world.pods()) == 100

    run(main(), clock)
