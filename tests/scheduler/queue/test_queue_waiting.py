"""Waiting until somebody is ready: on virtual time, without a busy loop, and cancellable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.loop import DeadlockError, VirtualLoop, run
from mooring.kit.tasks import TaskGroup
from mooring.scheduler.framework.events import Action, Subject, Wake
from mooring.scheduler.queue.moves import Room
from tests.scheduler.queue.builders import NODE_ADD, Lobby, gate, refuser


def wait_for_pod(
    prepare: Callable[[Lobby], object], meanwhile: Callable[[Lobby], Awaitable[object]] | None = None
) -> tuple[str | None, float, int]:
    """(who is popped, after how many seconds, in how many events of the loop)."""
    lobby = Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD)), gate("Gate"))

    async def scheduler() -> tuple[str | None, float, int]:
        prepare(lobby)
        async with TaskGroup("test") as group:
            if meanwhile is not None:
                group.start(_finish(meanwhile(lobby)), name="meanwhile")
            await lobby.queue.wait_until_ready()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return lobby.pop(), lobby.clock.now_s(), loop.statistics()["events"]

    return run(scheduler(), lobby.clock)


async def _finish(work: Awaitable[object]) -> None:
    await work


def failed(lobby: Lobby) -> None:
    lobby.add("p")
    lobby.pop()
    lobby.fail("p")


def asleep(lobby: Lobby) -> None:
    lobby.sleep("p")


def nothing(lobby: Lobby) -> None:
    pass


async def add_after_3_s(lobby: Lobby) -> None:
    await lobby.clock.wait(3)
    lobby.add("q")


async def wake_after_1_s(lobby: Lobby) -> None:
    await lobby.clock.wait(1)
    lobby.wake(NODE_ADD)


async def a_failure_after_half_a_second(lobby: Lobby) -> None:
    await lobby.clock.wait(0.5)
    lobby.add("early")
    lobby.pop()
    lobby.fail("early")


def failed_and_asleep(lobby: Lobby) -> None:
    lobby.sleep("p")
    lobby.wake(NODE_ADD)
    lobby.pop()
    lobby.refuse("p")
    lobby.add("failed")
    lobby.pop()
    lobby.fail("failed")


async def a_gated_pod_after_1_s(lobby: Lobby) -> None:
    await lobby.clock.wait(1)
    lobby.gate.is_shut = True
    lobby.add("gated")
    lobby.gate.is_shut = False


@pytest.mark.parametrize(
    ("prepare", "meanwhile", "who", "after_s"),
    [
        pytest.param(lambda lobby: lobby.add("p"), None, "p", 0, id="somebody is ready already"),
        pytest.param(failed, None, "p", 2, id="the end of a backoff"),
        pytest.param(asleep, None, "p", 300, id="the end of a sleep"),
        pytest.param(nothing, add_after_3_s, "q", 3, id="somebody comes"),
        pytest.param(asleep, wake_after_1_s, "p", 1, id="somebody is woken, and popped early"),
        pytest.param(failed_and_asleep, wake_after_1_s, "p", 1, id="the same, although an alarm rings before its own"),
        pytest.param(nothing, a_gated_pod_after_1_s, "gated", 301, id="the end of a sleep that began while waiting"),
        pytest.param(asleep, a_failure_after_half_a_second, "early", 2, id="an alarm that is set while waiting"),
    ],
)
def test_waiting_ends_exactly_when_somebody_is_ready(
    prepare: Callable[[Lobby], None], meanwhile: Callable[[Lobby], Awaitable[None]] | None, who: str, after_s: float
) -> None:
    popped, now_s, events = wait_for_pod(prepare, meanwhile)
    assert (popped, now_s) == (who, after_s)
    assert events < 30, "it does not spin"


def test_waiting_for_nothing_is_a_deadlock_on_virtual_time_and_not_a_spin() -> None:
    with pytest.raises(DeadlockError):
        wait_for_pod(nothing)


def test_a_cancelled_wait_leaves_no_alarm_and_can_be_taken_up_again() -> None:
    lobby = Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD)))

    async def scheduler() -> None:
        failed(lobby)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(1):
                await lobby.queue.wait_until_ready()
        assert loop.statistics()["alarms"] == 0
        assert lobby.room("p") is Room.ERROR_BACKOFF
        await lobby.queue.wait_until_ready()
        assert lobby.clock.now_s() == 2

    run(scheduler(), lobby.clock)


def test_several_may_wait() -> None:
    lobby = Lobby(refuser("Fit", Wake(Subject.NODE, Action.ADD)))
    ended_s: list[float] = []

    async def wait() -> None:
        await lobby.queue.wait_until_ready()
        ended_s.append(lobby.clock.now_s())

    async def both() -> None:
        async with TaskGroup("test") as group:
            group.start(wait(), name="one")
            group.start(wait(), name="two")
            group.start(add_after_3_s(lobby), name="add")

    run(both(), lobby.clock)
    assert ended_s == [3, 3]
