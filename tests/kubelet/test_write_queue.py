"""The write queue writes each changed key once, with a limit, until it succeeds."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.timers import Timers
from mooring.kubelet.write_queue import ERROR_RETRY_S, WriteQueue

Send = Callable[[str], Awaitable[float | None]]
Use = Callable[[WriteQueue[str]], Awaitable[None]]


def sent(clock: VirtualClock, send: Send, use: Use, in_flight_max: int = 2) -> None:
    async def main() -> None:
        queue: WriteQueue[str] = WriteQueue("letters", send, clock, Timers(clock), in_flight_max=in_flight_max)
        async with TaskGroup("post") as group:
            queue.start(group)
            await use(queue)

    run(main(), clock)


def test_a_key_that_waits_is_sent_once_however_often_it_changes() -> None:
    clock, letters = VirtualClock(), list[str]()

    async def send(key: str) -> None:
        letters.append(key)

    async def use(queue: WriteQueue[str]) -> None:
        for key in ("a", "b", "a", "a"):
            queue.add(key)
        await queue.wait_empty()
        assert queue.statistics() == {"waiting": 0, "in_flight": 0, "put": 2, "sent": 2, "failed": 0}

    sent(clock, send, use)
    assert letters == ["a", "b"]


def test_a_key_that_changes_on_its_way_is_sent_again_after_that() -> None:
    clock, letters = VirtualClock(), list[tuple[float, str]]()

    async def send(key: str) -> None:
        letters.append((clock.now_s(), key))
        await clock.wait(1)

    async def use(queue: WriteQueue[str]) -> None:
        queue.add("a")
        await clock.wait(0.5)
        queue.add("a")
        queue.add("a")
        await queue.wait_empty()

    sent(clock, send, use)
    assert letters == [(0.0, "a"), (1.0, "a")]


def test_no_more_are_on_their_way_than_allowed() -> None:
    clock = VirtualClock()
    on_their_way: list[int] = []
    running = 0

    async def send(key: str) -> None:
        nonlocal running
        running += 1
        on_their_way.append(running)
        await clock.wait(1)
        running -= 1

    async def use(queue: WriteQueue[str]) -> None:
        for number in range(10):
            queue.add(str(number))
        await queue.wait_empty()

    sent(clock, send, use, in_flight_max=3)
    assert max(on_their_way) == 3
    assert clock.now_s() == 4.0


def test_what_did_not_work_is_tried_again_after_the_time_that_it_says() -> None:
    clock, tries = VirtualClock(), list[float]()

    async def send(key: str) -> float | None:
        tries.append(clock.now_s())
        return 2.0 if len(tries) < 3 else None

    async def use(queue: WriteQueue[str]) -> None:
        queue.add("a")
        await clock.wait(100)

    sent(clock, send, use)
    assert tries == [0.0, 2.0, 4.0]


def test_an_unexpected_error_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, tries = VirtualClock(), list[float]()

    async def send(key: str) -> None:
        tries.append(clock.now_s())
        if len(tries) == 1:
            raise RuntimeError("torn paper")

    async def use(queue: WriteQueue[str]) -> None:
        queue.add("a")
        await clock.wait(100)

    with caplog.at_level(logging.ERROR):
        sent(clock, send, use)
    assert tries == [0.0, ERROR_RETRY_S]
    assert "letters: writing a failed" in caplog.text
