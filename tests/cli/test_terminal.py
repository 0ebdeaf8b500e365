from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cli.terminal import (
    PATIENCE_S,
    ProgressBar,
    Terminal,
    listed_names,
    shortened_names,
    wrapped,
)
from mooring.kit.clock import VirtualClock


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        pytest.param(["n1", "n2"], 4, ["n1", "n2"], id="all fit"),
        pytest.param(["ip-1.aws.example", "ip-2.aws.example"], 8, ["ip-1…", "ip-2…"], id="a common end"),
        pytest.param(["a-long-name-1.x", "a-long-name-2.x"], 8, ["…1…", "…2…"], id="a common beginning too"),
        pytest.param(["alpha-centauri", "beta-orionis"], 7, ["alpha-centauri", "beta-orionis"], id="nothing in common"),
        pytest.param(["one-long-name"], 7, ["one-long-name"], id="a single name"),
    ],
)
def test_names_lose_what_they_have_in_common(names: list[str], width: int, shown: list[str]) -> None:
    assert shortened_names(names, width) == shown


@given(st.lists(st.text("ab.-", min_size=1, max_size=12), min_size=1, max_size=5, unique=True), st.integers(1, 14))
def test_shortened_names_stay_distinct(names: list[str], width: int) -> None:
    shown = shortened_names(names, width)
    assert len(set(shown)) == len(names)
    for name, shortened in zip(names, shown):
        assert shortened.strip("…") in name


@pytest.mark.parametrize(
    ("names", "width", "text"),
    [
        pytest.param(["a", "b", "c"], 7, "a, b, c", id="all fit"),
        pytest.param(["a1", "b1", "c1", "d1", "e1"], 14, "a1, … 4 more", id="some fit"),
        pytest.param(["a1", "b1", "c1", "d1"], 14, "a1, b1, c1, d1", id="the last one decides"),
        pytest.param(["a-very-long-name"], 8, "a-very-long-name", id="one that is too long"),
        pytest.param(["a-very-long-name", "b"], 16, "a-very-long-name, … 1 more", id="the first is too long"),
        pytest.param([], 8, "", id="none"),
    ],
)
def test_names_are_listed_as_far_as_there_is_room(names: list[str], width: int, text: str) -> None:
    assert listed_names(names, width) == text


@given(st.lists(st.text("abc,.", min_size=1, max_size=9), min_size=1), st.integers(30, 60))
def test_wrapped_lines_put_together_are_the_text(words: list[str], width: int) -> None:
    text = " ".join(words)
    lines = wrapped(text, width, indent=2, hanging=6)
    assert " ".join(line.strip() for line in lines) == text
    assert all(len(line) <= width for line in lines)


def test_only_coloured_paper_is_painted() -> None:
    assert Terminal(80).paint("x", colour="red", bold=True) == "x"
    assert Terminal(80, coloured=True).paint("x", colour="red") == "\x1b[31mx\x1b[0m"


class FakeTerminal(io.StringIO):
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
def test_a_bar_is_drawn_only_on_a_terminal_after_a_delay(
    is_terminal: bool, elapsed_s: float, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = FakeTerminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    clock = VirtualClock()
    with ProgressBar("reading", 100, clock) as meter:
        meter.advance(10)
        clock.advance_to(elapsed_s)
        meter.advance(40)
        meter.advance(500)  # more than was announced is not more than everything
    assert ("reading" in screen.getvalue()) is drawn


def test_the_total_may_grow_while_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    clock = VirtualClock()
    with ProgressBar("reading", 0, clock) as meter:
        meter.expect(100)
        clock.advance_to(PATIENCE_S + 1)
        meter.advance(50)
        meter.expect(100)
        meter.advance(50)
    assert "50%" in screen.getvalue()


def test_nothing_to_do_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", screen)
    clock = VirtualClock()
    with ProgressBar("deciding", 0, clock) as meter:
        clock.advance_to(9)
        meter.advance(1)
    assert screen.getvalue() == ""
