"""What every controller is given."""

from __future__ import annotations

import pytest

from mooring.controllers.context import DONE, Controller, ControllerContext, Outcome, split_key
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import NO_CLIENT


class Listener(Controller):
    name = "listener-controller"
    workers = 2

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.synced: list[str] = []

    async def sync(self, key: str) -> Outcome:
        self.synced.append(key)
        return DONE


def context(clock: VirtualClock) -> ControllerContext:
    return ControllerContext(NO_CLIENT, clock, Entropy(2))


def test_a_controller_hears_every_key_and_stops_when_it_is_told_to() -> None:
    clock = VirtualClock()

    async def main() -> None:
        controller = Listener(context(clock))
        async with TaskGroup("test") as group:
            controller.start(group)
            for key in ("a", "b", "a"):
                controller.queue.add(key)
            await clock.wait(1)
            controller.stop()
        assert controller.synced == ["a", "b"]

    run(main(), clock)


def test_all_controllers_share_the_pod_indexes() -> None:
    shared = context(VirtualClock())
    assert shared.pod_groups() is shared.pod_groups()
    assert shared.pod_counts() is shared.pod_counts()


@pytest.mark.parametrize(("key", "parts"), [("ns/web", ("ns", "web")), ("n1", ("", "n1"))])
def test_keys_are_namespace_and_name(key: str, parts: tuple[str, str]) -> None:
    assert split_key(key) == parts
