"""A clean stop: nothing new is begun, what was begun ends, what was said is written; and it does not take for ever."""

from __future__ import annotations

import asyncio

import pytest

from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.scheduler import STOP_S_MAX
from tests.builders import node, pod
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.scheduler.world import open_world


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
            (task,) = [each for each in asyncio.all_tasks() if each.get_name() == "world/scheduler-1"]
            asked_s = clock.now_s()
            task.cancel()
            await asyncio.wait([task])
            assert clock.now_s() - asked_s == pytest.approx(stopped_after_s, abs=0.1)
            assert (await world.node_of("web") == "n1") is is_bound
            assert len(await world.events("Scheduled")) == int(is_bound)
            assert (scheduler.bindings.running == {}) is is_bound

    run(main(), clock)
