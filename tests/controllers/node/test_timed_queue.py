"""The queue of nodes that wait for their taint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.controllers.node.timed_queue import TimedQueue
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run

Play = Callable[[VirtualClock, TimedQueue, list[str]], Awaitable[None]]


def play(story: Play, rate_per_s: float = 1.0) -> list[str]:
    clock, handled = VirtualClock(), list[str]()

    async def main() -> None:
        await story(clock, TimedQueue(clock, rate_per_s), handled)

    run(main(), clock)
    return handled


async def drain(clock: VirtualClock, queue: TimedQueue, handled: list[str], for_s: float) -> None:
    async def attempt(name: str) -> float | None:
        handled.append(f"{name} at {clock.now_s():.1f}")
        return None

    for _ in range(round(for_s * 8)):
        await queue.handle(attempt)
        await clock.wait(0.125)


def test_names_are_handled_one_by_one_at_the_rate() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        for name in ("a", "b", "c"):
            assert queue.add(name)
        await drain(clock, queue, handled, 2.5)
        assert len(queue) == 0

    assert play(story) == ["a at 0.0", "b at 1.0", "c at 2.0"]


def test_a_handled_name_is_not_taken_again_until_it_was_removed() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        queue.add("a")
        await drain(clock, queue, handled, 2)
        assert not queue.add("a")
        assert queue.remove("a")
        assert not queue.remove("a")
        assert queue.add("a")
        await drain(clock, queue, handled, 1)

    assert play(story) == ["a at 0.0", "a at 2.0"]


def test_a_rate_of_zero_keeps_the_names() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        queue.add("a")
        queue.set_rate(0.0)
        await drain(clock, queue, handled, 5)
        assert len(queue) == 1
        queue.set_rate(1.0)
        await drain(clock, queue, handled, 2)

    assert play(story) == ["a at 6.0"]


def test_changing_the_rate_gives_nobody_a_token_more() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        queue.add("a")
        queue.add("b")
        await drain(clock, queue, handled, 0.125)
        queue.set_rate(0.5)
        await drain(clock, queue, handled, 3)

    assert play(story) == ["a at 0.0", "b at 2.1"]


def test_what_fails_is_tried_again_after_a_while() -> None:
    async def story(clock: VirtualClock, queue: TimedQueue, handled: list[str]) -> None:
        async def fail_once(name: str) -> float | None:
            handled.append(f"{name} at {clock.now_s():.1f}")
            return 0.5 if len(handled) == 1 else None

        queue.add("a")
        for _ in range(20):
            await queue.handle(fail_once)
            await clock.wait(0.125)

    assert play(story, rate_per_s=100.0) == ["a at 0.0", "a at 0.5"]
