"""Durations are read and written as Go does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("15s", 15.0, id="seconds"),
        pytest.param("1m30s", 90.0, id="several units"),
        pytest.param("1.5h", 5400.0, id="a fraction"),
        pytest.param(".5s", 0.5, id="a fraction without a whole"),
        pytest.param("1.s", 1.0, id="a whole with a dot"),
        pytest.param("0.1s", 0.1, id="a tenth"),
        pytest.param("100ms", 0.1, id="milliseconds"),
        pytest.param("7us", 7e-6, id="microseconds"),
        pytest.param("7µs", 7e-6, id="microseconds with the micro sign"),
        pytest.param("7μs", 7e-6, id="microseconds with the Greek letter"),
        pytest.param("7ns", 7e-9, id="nanoseconds"),
        pytest.param("-1m", -60.0, id="negative"),
        pytest.param("+1m", 60.0, id="with a plus"),
        pytest.param("0", 0.0, id="zero needs no unit"),
        pytest.param("-0", 0.0, id="nor does minus zero"),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("", 'time: invalid duration ""', id="nothing"),
        pytest.param("-", 'time: invalid duration "-"', id="only a sign"),
        pytest.param("15", 'time: missing unit in duration "15"', id="no unit"),
        pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="days"),
        pytest.param("1m 30s", 'time: unknown unit "m " in duration "1m 30s"', id="a blank"),
        pytest.param("soon", 'time: invalid duration "soon"', id="a word"),
        pytest.param(".s", 'time: invalid duration ".s"', id="a dot alone"),
        pytest.param("9999999h", 'time: invalid duration "9999999h"', id="three centuries"),
    ],
)
def test_what_is_no_duration_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0.0, "0s", id="zero"),
        pytest.param(15.0, "15s", id="seconds"),
        pytest.param(600.0, "10m0s", id="minutes"),
        pytest.param(5400.5, "1h30m0.5s", id="everything"),
        pytest.param(0.25, "250ms", id="milliseconds"),
        pytest.param(0.0015, "1.5ms", id="a fraction of them"),
        pytest.param(7e-6, "7µs", id="microseconds"),
        pytest.param(7e-9, "7ns", id="nanoseconds"),
        pytest.param(-1.0, "-1s", id="negative"),
    ],
)
def test_a_duration_is_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(-(10**15), 10**15))
def test_what_is_written_can_be_read(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds / 1e9)) == pytest.approx(nanoseconds / 1e9, rel=1e-12, abs=1e-9)
