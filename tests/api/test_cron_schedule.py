"""Schedules of CronJobs, and durations as Go writes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.cron_schedule import ScheduleError, parse_schedule, zone_error
from mooring.api.durations import format_duration, parse_duration
from mooring.kit.clock import format_rfc3339, parse_rfc3339


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "*/5 * * * *",
        "0-59/15 1,2 ? jan-MAR sun",
        "@daily",
        "@every 1h30m",
        "@every -.5s",
        "TZ=UTC 0 0 * * *",
    ],
)
def test_schedules(text: str) -> None:
    parse_schedule(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("sometimes", "expected exactly 5 fields, found 1: [sometimes]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        (
            "99999999999999999999 * * * *",
            "failed to parse int from 99999999999999999999: "
            'strconv.Atoi: parsing "99999999999999999999": value out of range',
        ),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("@every 5y", 'failed to parse duration @every 5y: time: unknown unit "y" in duration "5y"'),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("TZ=Foo/Bar * * * * *", "provided bad location Foo/Bar: unknown time zone Foo/Bar"),
        ("TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
    ],
)
def test_invalid_schedules(text: str, fault: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text)
    assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("UTC", ""),
        ("Europe/Berlin", ""),
        ("europe/berlin", "unknown time zone europe/berlin"),
        ("Nowhere", "unknown time zone Nowhere"),
        ("Europe", "is a directory"),
    ],
)
def test_time_zones(name: str, fault: str) -> None:
    assert zone_error(name) == fault


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        pytest.param("* * * * *", "2026-03-01T10:00:30Z", "2026-03-01T10:01:00Z", id="the next whole minute"),
        pytest.param("* * * * *", "2026-03-01T10:00:00Z", "2026-03-01T10:01:00Z", id="after, never at"),
        pytest.param("*/15 * * * *", "2026-03-01T10:50:00Z", "2026-03-01T11:00:00Z", id="steps begin with each hour"),
        pytest.param("30 6-16/4 * * 1-5", "2026-03-06T14:30:00Z", "2026-03-09T06:30:00Z", id="over the weekend"),
        pytest.param("0 0 1 1 *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", id="a year later"),
        pytest.param("0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z", id="a leap day"),
        pytest.param("0 0 13 * 5", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z", id="the 13th or any Friday"),
        pytest.param("0 0 13 * *", "2026-03-01T00:00:00Z", "2026-03-13T00:00:00Z", id="the 13th alone"),
        pytest.param("0 0 */2 * 5", "2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z", id="a star with a step is no star"),
        pytest.param("@hourly", "2026-03-01T10:00:01Z", "2026-03-01T11:00:00Z", id="by name"),
        pytest.param("@every 90s", "2026-03-01T10:00:01Z", "2026-03-01T10:01:31Z", id="every so often"),
        pytest.param(
            "@every 10ms", "2026-03-01T10:00:01Z", "2026-03-01T10:00:02Z", id="no more often than each second"
        ),
        pytest.param(
            "TZ=Europe/Berlin 0 9 * * *", "2026-03-01T08:30:00Z", "2026-03-02T08:00:00Z", id="winter in Berlin"
        ),
        pytest.param(
            "TZ=Europe/Berlin 0 9 * * *", "2026-07-01T08:30:00Z", "2026-07-02T07:00:00Z", id="summer in Berlin"
        ),
        pytest.param(
            "TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z", id="an hour that never came"
        ),
        pytest.param(
            "TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", id="an hour that came twice"
        ),
        pytest.param("0 0 31 2 *", "2026-01-01T00:00:00Z", None, id="a day that never comes"),
    ],
)
def test_next_times_of_schedules(text: str, after: str, expected: str | None) -> None:
    due_s = parse_schedule(text).next_s(parse_rfc3339(after))
    assert (format_rfc3339(due_s) if due_s is not None else None) == expected


# --- Durations are read and written as Go does -----------------------------------------------------------------------


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
def test_parse_duration(text: str, seconds: float) -> None:
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
def test_invalid_durations_are_rejected(text: str, complaint: str) -> None:
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
def test_durations_are_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(-(10**15), 10**15))
def test_a_written_duration_can_be_parsed(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds / 1e9)) == pytest.approx(nanoseconds / 1e9, rel=1e-12, abs=1e-9)
