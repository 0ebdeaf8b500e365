"""Answers that are good for a while."""

from __future__ import annotations

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.serving.expiring_cache import KEPT_MAX, Remembered


def test_an_answer_is_good_for_its_time_and_no_longer() -> None:
    clock = VirtualClock()

    async def main() -> None:
        remembered: Remembered[str, int | None] = Remembered(clock)
        assert remembered.get("a") == (False, None)
        remembered.keep("a", None, 10.0)
        assert remembered.get("a") == (True, None)
        await clock.wait(10.0)
        assert remembered.get("a") == (False, None)
        remembered.keep("a", 2, 10.0)
        assert remembered.get("a") == (True, 2)

    run(main(), clock)


def test_the_oldest_makes_room() -> None:
    remembered: Remembered[int, int] = Remembered(VirtualClock())
    for number in range(KEPT_MAX + 1):
        remembered.keep(number, number, 1.0)
    assert remembered.get(0) == (False, None)
    assert remembered.get(1) == (True, 1)
