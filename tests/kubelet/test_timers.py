"""Timers fire in order and once; a failing action does not affect others."""

from __future__ import annotations

import logging

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.timers import Timers


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


def test_a_failing_action_is_logged_and_costs_nobody_else_his_alarm(caplog: pytest.LogCaptureFixture) -> None:
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
