"""Timers, and writes in the order of their time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.timers import Timers
from mooring.kubelet.write_queue import ERROR_RETRY_S, WriteQueue, one_by_one


def test_alarms_ring_in_the_order_of_their_times_and_then_of_their_setting() -> None:
    clock = VirtualClock()
    rung: list[tuple[float, str]] = []

    async def main() -> None:
        timers = Timers(clock)
        for key, delay_s in (("late", 3.0), ("early", 1.0), ("moved", 1.0), ("also early", 1.0), ("never", 2.0)):
            timers.set(key, delay_s, lambda key=key: rung.append((clock.now_s(), key)))  # type: ignore[misc]
        timers.set("moved", 2.5, lambda: rung.append((clock.now_s(), "moved")))
        timers.cancel("never")
        assert len(timers) == 4
        await clock.wait(10)

    run(main(), clock)
    assert rung == [(1.0, "early"), (1.0, "also early"), (2.5, "moved"), (3.0, "late")]


def test_an_alarm_may_set_others_and_itself() -> None:
    clock = VirtualClock()
    rung: list[float] = []

    async def main() -> None:
        timers = Timers(clock)

        def ring() -> None:
            rung.append(clock.now_s())
            if len(rung) < 4:
                timers.set("clock", 1.0, ring)

        timers.set("clock", 0.0, ring)
        await clock.wait(10)

    run(main(), clock)
    assert rung == [0.0, 1.0, 2.0, 3.0]


def test_a_failing_action_is_logged_and_does_not_affect_other_timers(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    rung: list[str] = []

    def fail() -> None:
        raise RuntimeError("broken spring")

    async def main() -> None:
        timers = Timers(clock)
        timers.set("broken", 1.0, fail)
        timers.set("sound", 1.0, lambda: rung.append("sound"))
        await clock.wait(2)

    with caplog.at_level(logging.ERROR):
        run(main(), clock)
    assert rung == ["sound"]
    assert "the timer action of 'broken' failed" in caplog.text


def test_closed_alarms_ring_no_more() -> None:
    clock = VirtualClock()
    rung: list[str] = []

    async def main() -> None:
        timers = Timers(clock)
        timers.set("any", 1.0, lambda: rung.append("any"))
        timers.close()
        await clock.wait(2)

    run(main(), clock)
    assert rung == []


# --- The write queue writes each changed key once, with a limit, until it succeeds


Send = Callable[[str], Awaitable[float | None]]
Use = Callable[[WriteQueue[str]], Awaitable[None]]


def is_empty(queue: WriteQueue[str]) -> bool:
    numbers = queue.statistics()
    return not numbers["waiting"] and not numbers["in_flight"]


async def until(condition: Callable[[], bool], clock: VirtualClock) -> None:
    while not condition():
        await clock.wait(0.25)


def sent(clock: VirtualClock, send: Send, use: Use, in_flight_max: int = 2) -> None:
    async def main() -> None:
        queue: WriteQueue[str] = WriteQueue(
            "letters", one_by_one(send), clock, Timers(clock), in_flight_max=in_flight_max
        )
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
        await until(lambda: is_empty(queue), clock)
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
        await until(lambda: is_empty(queue), clock)

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
        await until(lambda: is_empty(queue), clock)

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


# --- Keys that wait together are sent together


def sent_together(
    clock: VirtualClock,
    send: Callable[[Sequence[str]], Awaitable[Sequence[float | None]]],
    use: Use,
    *,
    in_flight_max: int = 8,
    keys_max: int = 4,
) -> None:
    async def main() -> None:
        queue: WriteQueue[str] = WriteQueue(
            "letters", send, clock, Timers(clock), in_flight_max=in_flight_max, keys_max=keys_max
        )
        async with TaskGroup("post") as group:
            queue.start(group)
            await use(queue)

    run(main(), clock)


@pytest.mark.parametrize(
    ("in_flight_max", "batches", "ended_s"),
    [
        pytest.param(100, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], 1.0, id="at most four keys at once"),
        pytest.param(6, [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9]], 2.0, id="at most six keys in flight"),
        pytest.param(2, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]], 5.0, id="at most two keys in flight"),
    ],
)
def test_waiting_keys_are_sent_together(in_flight_max: int, batches: list[list[int]], ended_s: float) -> None:
    clock = VirtualClock()
    letters: list[list[int]] = []

    async def send(keys: Sequence[str]) -> list[None]:
        letters.append([int(key) for key in keys])
        await clock.wait(1)
        return [None] * len(keys)

    async def use(queue: WriteQueue[str]) -> None:
        for number in range(10):
            queue.add(str(number))
        await until(lambda: is_empty(queue), clock)
        assert queue.statistics() == {"waiting": 0, "in_flight": 0, "put": 10, "sent": 10, "failed": 0}

    sent_together(clock, send, use, in_flight_max=in_flight_max)
    assert letters == batches
    assert clock.now_s() == ended_s


def test_each_key_that_was_sent_together_is_retried_by_itself() -> None:
    clock = VirtualClock()
    letters: list[tuple[float, list[str]]] = []

    async def send(keys: Sequence[str]) -> list[float | None]:
        letters.append((clock.now_s(), list(keys)))
        await clock.wait(1)
        return [2.0 if key == "b" and len(letters) == 1 else None for key in keys]

    async def use(queue: WriteQueue[str]) -> None:
        for key in ("a", "b", "c"):
            queue.add(key)
        await clock.wait(0.5)
        queue.add("c")
        await clock.wait(100)
        assert queue.statistics() == {"waiting": 0, "in_flight": 0, "put": 5, "sent": 5, "failed": 1}

    sent_together(clock, send, use)
    assert letters == [(0.0, ["a", "b", "c"]), (1.0, ["c"]), (3.0, ["b"])]


def test_a_key_with_an_unexpected_error_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    letters: list[tuple[float, list[str]]] = []

    async def send(keys: Sequence[str]) -> list[None]:
        letters.append((clock.now_s(), list(keys)))
        if "b" in keys and clock.now_s() < 1:
            raise RuntimeError("torn paper")
        return [None] * len(keys)

    async def use(queue: WriteQueue[str]) -> None:
        for key in ("a", "b", "c"):
            queue.add(key)
        await clock.wait(100)

    with caplog.at_level(logging.ERROR):
        sent_together(clock, send, use)
    assert letters == [
        (0.0, ["a", "b", "c"]),
        (0.0, ["a"]),
        (0.0, ["b"]),
        (0.0, ["c"]),
        (ERROR_RETRY_S, ["b"]),
    ]
    assert [record.message for record in caplog.records] == ["letters: writing b failed"]


@pytest.mark.parametrize("keys_max", [1, 2, 3, 16])
@pytest.mark.parametrize("in_flight_max", [1, 2, 5])
def test_no_key_is_left_behind(keys_max: int, in_flight_max: int) -> None:
    clock, letters = VirtualClock(), list[str]()

    async def send(keys: Sequence[str]) -> list[None]:
        assert len(keys) <= min(keys_max, in_flight_max)
        letters.extend(keys)
        await clock.wait(0.3 * len(letters) % 0.7)
        return [None] * len(keys)

    async def use(queue: WriteQueue[str]) -> None:
        for number in range(100):
            queue.add(str(number))
            if number % 7 == 0:
                await clock.wait(0.1)
        await until(lambda: is_empty(queue), clock)

    sent_together(clock, send, use, in_flight_max=in_flight_max, keys_max=keys_max)
    assert letters == [str(number) for number in range(100)]
