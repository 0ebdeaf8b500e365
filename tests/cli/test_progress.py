from __future__ import annotations

import io
import sys

import pytest

from mooring.cli.progress import PATIENCE_S, Meter
from mooring.kit.clock import VirtualClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("is_terminal", "elapsed_s", "drawn"),
    [
        pytest.param(True, PATIENCE_S + 1, True, id="slow work on a terminal"),
        pytest.param(True, PATIENCE_S / 2, False, id="quick work on a terminal"),
        pytest.param(False, PATIENCE_S + 1, False, id="slow work into a file"),
    ],
)
def test_a_bar_is_drawn_only_where_somebody_waits(
    is_terminal: bool, elapsed_s: float, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    clock = VirtualClock()
    with Meter("reading", 100, clock) as meter:
        meter.advance(10)
        clock.advance_to(elapsed_s)
        meter.advance(40)
        meter.advance(500)  # more than was announced is not more than everything
    assert ("reading" in screen.getvalue()) is drawn


def test_the_total_may_grow_while_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    clock = VirtualClock()
    with Meter("reading", 0, clock) as meter:
        meter.expect(100)
        clock.advance_to(PATIENCE_S + 1)
        meter.advance(50)
        meter.expect(100)
        meter.advance(50)
    assert "50%" in screen.getvalue()


def test_nothing_to_do_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    clock = VirtualClock()
    with Meter("deciding", 0, clock) as meter:
        clock.advance_to(9)
        meter.advance(1)
    assert screen.getvalue() == ""
