"""Real and virtual clocks, and timestamps."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kit.clock import (
    VIRTUAL_WALL_S,
    Clock,
    SystemClock,
    TimestampError,
    VirtualClock,
    format_rfc3339,
    format_rfc3339_micro,
    parse_rfc3339,
)
from mooring.kit.loop import run

YEAR_2242_S = 2**33


@pytest.mark.parametrize(
    ("text", "wall_s"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0.0, id="the epoch is zero"),
        pytest.param("2026-01-01T00:00:00Z", VIRTUAL_WALL_S, id="virtual time begins with 2026"),
        pytest.param("1969-12-31T23:59:59Z", -1.0, id="time before the epoch is negative"),
        pytest.param("0001-01-01T00:00:00Z", -62_135_596_800.0, id="Go's zero time is the year one"),
        pytest.param("2024-02-29T12:00:00Z", 1_709_208_000.0, id="leap days exist"),
        pytest.param("1970-01-01T00:00:01.5Z", 1.5, id="a fraction of one digit"),
        pytest.param("1970-01-01T00:00:01.250000Z", 1.25, id="a fraction of six digits, as MicroTime has"),
        pytest.param("1970-01-01T00:00:01.000000001Z", 1.000000001, id="a fraction of nine digits"),
        pytest.param("1970-01-01T00:00:01,5Z", 1.5, id="a comma before the fraction, as Go allows"),
        pytest.param("1970-01-01T02:00:00+02:00", 0.0, id="an offset east of Greenwich"),
        pytest.param("1969-12-31T18:30:00-05:30", 0.0, id="an offset west of Greenwich"),
        pytest.param("1969-12-31T23:59:59.5Z", -0.5, id="a fraction counts forward, also before the epoch"),
    ],
)
def test_a_timestamp_is_read(text: str, wall_s: float) -> None:
    assert parse_rfc3339(text) == wall_s


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("2026-01-01", id="a date alone"),
        pytest.param("2026-01-01T00:00:00", id="no zone"),
        pytest.param("2026-01-01t00:00:00z", id="small letters"),
        pytest.param("2026-01-01 00:00:00Z", id="a space for the T"),
        pytest.param("2026-13-01T00:00:00Z", id="a thirteenth month"),
        pytest.param("2025-02-29T00:00:00Z", id="a leap day in a common year"),
        pytest.param("2026-01-01T24:00:00Z", id="hour twenty-four"),
        pytest.param("2026-01-01T00:00:60Z", id="a leap second"),
        pytest.param("2026-01-01T00:00:00.Z", id="a point without digits"),
        pytest.param("2026-01-01T00:00:00+24:00", id="an offset of a day"),
        pytest.param("2026-01-01T00:00:00Z\n", id="a line break behind"),
        pytest.param("٢٠٢٦-01-01T00:00:00Z", id="digits of another script"),
    ],
)
def test_what_is_no_timestamp_is_refused_with_the_text_found(text: str) -> None:
    with pytest.raises(TimestampError) as raised:
        parse_rfc3339(text)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("wall_s", "seconds", "micros"),
    [
        pytest.param(0.0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z", id="the epoch"),
        pytest.param(1.999, "1970-01-01T00:00:01Z", "1970-01-01T00:00:01.999000Z", id="whole seconds cut off"),
        pytest.param(-0.5, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.500000Z", id="before the epoch too"),
        pytest.param(0.9999999, "1970-01-01T00:00:00Z", "1970-01-01T00:00:01.000000Z", id="micros are rounded"),
        pytest.param(
            -62_135_596_800.0, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z", id="years have four digits"
        ),
    ],
)
def test_a_time_is_written(wall_s: float, seconds: str, micros: str) -> None:
    assert format_rfc3339(wall_s) == seconds
    assert format_rfc3339_micro(wall_s) == micros


def test_a_time_after_the_year_9999_cannot_be_written() -> None:
    with pytest.raises(TimestampError, match="outside the years 1 to 9999"):
        format_rfc3339(1e12)


@given(st.integers(0, YEAR_2242_S - 1), st.integers(0, 999_999))
def test_what_was_written_is_read_back_to_the_microsecond(whole_s: int, micros: int) -> None:
    text = f"{format_rfc3339(whole_s)[:-1]}.{micros:06d}Z"
    assert format_rfc3339_micro(parse_rfc3339(text)) == text


def test_a_virtual_clock_moves_only_when_moved_and_both_readings_together() -> None:
    clock = VirtualClock(wall_s=1000.0)
    assert (clock.now_s(), clock.wall_s()) == (0.0, 1000.0)
    clock.advance_to(2.5)
    assert (clock.now_s(), clock.wall_s()) == (2.5, 1002.5)


def test_virtual_time_does_not_go_back() -> None:
    clock = VirtualClock()
    clock.advance_to(2.0)
    with pytest.raises(AssertionError, match=r"cannot go back from 2\.0 s to 1\.0 s"):
        clock.advance_to(1.0)


def test_waiting_on_a_virtual_clock_takes_virtual_time() -> None:
    async def wait_a_day(clock: Clock) -> float:
        await clock.wait(86_400.0)
        return clock.now_s()

    clock = VirtualClock()
    assert run(wait_a_day(clock), clock) == 86_400.0


def test_a_virtual_clock_refuses_to_wait_on_a_loop_that_does_not_drive_it() -> None:
    with pytest.raises(AssertionError, match="only on its own virtual loop"):
        asyncio.run(VirtualClock().wait(1.0))
    with pytest.raises(AssertionError, match="only on its own virtual loop"):
        run(VirtualClock().wait(1.0), VirtualClock())


def test_the_system_clock_tells_the_systems_time() -> None:
    clock: Clock = SystemClock()
    before_s, wall_before_s = time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
    asyncio.run(clock.wait(0.01))
    assert before_s + 0.009 <= clock.now_s() <= time.clock_gettime(time.CLOCK_BOOTTIME), "a suspended machine counts"
    assert wall_before_s - 1.0 <= clock.wall_s() <= time.time() + 1.0
