"""Schedules that can be read, and those that cannot."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.cron_schedule import ScheduleError, check_schedule, zone_fault


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
    check_schedule(text)


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
def test_what_cannot_be_read(text: str, fault: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check_schedule(text)
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
    assert zone_fault(name) == fault
