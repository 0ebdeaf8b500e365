from __future__ import annotations

import pytest

from mooring.apiserver.wire.go_times import TimeFormatError, canonical_micro_time, canonical_time

TIME = "2006-01-02T15:04:05Z07:00"
MICRO = "2006-01-02T15:04:05.000000Z07:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z", id="a time in UTC stays"),
        pytest.param("2020-01-01T00:00:00+01:00", "2019-12-31T23:00:00Z", id="a zone is taken into account"),
        pytest.param("2020-01-01T00:00:00.999Z", "2020-01-01T00:00:00Z", id="a fraction is dropped"),
        pytest.param("2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00Z", id="a comma will do"),
        pytest.param("2020-01-01T5:00:00Z", "2020-01-01T05:00:00Z", id="an hour may have one digit"),
        pytest.param("0001-01-01T00:00:00Z", None, id="the zero time is nothing"),
        pytest.param("2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z", id="a leap day"),
    ],
)
def test_a_time_is_canonical(text: str, expected: str | None) -> None:
    assert canonical_time(text) == expected
    assert canonical_time(text) == expected  # from memory


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("x", f'parsing time "x" as "{TIME}": cannot parse "x" as "2006"', id="no year"),
        pytest.param("2020", f'parsing time "2020" as "{TIME}": cannot parse "" as "-"', id="nothing but a year"),
        pytest.param("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range', id="month 13"),
        pytest.param(
            "2019-02-29T00:00:00Z", 'parsing time "2019-02-29T00:00:00Z": day out of range', id="no leap year"
        ),
        pytest.param("2020-01-01T24:00:00Z", 'parsing time "2020-01-01T24:00:00Z": hour out of range', id="hour 24"),
        pytest.param(
            "2020-01-01T00:00:00",
            f'parsing time "2020-01-01T00:00:00" as "{TIME}": cannot parse "" as "Z07:00"',
            id="no zone",
        ),
        pytest.param(
            "2020-01-01T00:00:00-25:00",
            'parsing time "2020-01-01T00:00:00-25:00": time zone offset hour out of range',
            id="a zone far away",
        ),
        pytest.param(
            "2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"', id="more than a time"
        ),
        pytest.param(
            'é"', f'parsing time "\\xc3\\xa9\\"" as "{TIME}": cannot parse "\\xc3\\xa9\\"" as "2006"', id="odd letters"
        ),
    ],
)
def test_invalid_times_have_the_message_of_go(text: str, error: str) -> None:
    with pytest.raises(TimeFormatError) as raised:
        canonical_time(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2020-01-01T00:00:00.123456Z", "2020-01-01T00:00:00.123456Z", id="six digits"),
        pytest.param("2020-01-01T00:00:00.123456+01:00", "2019-12-31T23:00:00.123456Z", id="with a zone"),
        pytest.param("0001-01-01T00:00:00.000000Z", None, id="zero"),
    ],
)
def test_a_micro_time_is_canonical(text: str, expected: str | None) -> None:
    assert canonical_micro_time(text) == expected


@pytest.mark.parametrize(
    ("text", "rest", "element"),
    [
        pytest.param("2020-01-01T00:00:00Z", "Z", ".000000", id="no fraction"),
        pytest.param("2020-01-01T00:00:00.12345Z", ".12345Z", ".000000", id="too short a fraction"),
        pytest.param("2020-01-01T00:00:00.1234567Z", "7Z", "Z07:00", id="too long a fraction"),
    ],
)
def test_a_micro_time_needs_six_digits(text: str, rest: str, element: str) -> None:
    with pytest.raises(TimeFormatError) as raised:
        canonical_micro_time(text)
    assert str(raised.value) == f'parsing time "{text}" as "{MICRO}": cannot parse "{rest}" as "{element}"'
