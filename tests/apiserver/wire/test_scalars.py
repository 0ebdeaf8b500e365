"""Scalars in request bodies: canonical forms of times, numbers and bytes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.wire import scalars
from mooring.apiserver.wire.json_text import NumberText
from mooring.apiserver.wire.scalars import (
    SCHEMA_VALUES,
    BytesError,
    ScalarError,
    TimeFormatError,
    UnexpectedJsonType,
    _parsed,
    canonical_micro_time,
    canonical_time,
)

TIME = "2006-01-02T15:04:05Z07:00"
MICRO = "2006-01-02T15:04:05.000000Z07:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z", id="a time in UTC is unchanged"),
        pytest.param("2020-01-01T00:00:00+01:00", "2019-12-31T23:00:00Z", id="a zone is taken into account"),
        pytest.param("2020-01-01T00:00:00.999Z", "2020-01-01T00:00:00Z", id="a fraction is dropped"),
        pytest.param("2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00Z", id="a comma before the fraction"),
        pytest.param("2020-01-01T5:00:00Z", "2020-01-01T05:00:00Z", id="an hour may have one digit"),
        pytest.param("0001-01-01T00:00:00Z", None, id="the zero time is null"),
        pytest.param("2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z", id="a leap day"),
    ],
)
def test_canonical_time_is_in_utc_without_a_fraction(text: str, expected: str | None) -> None:
    assert canonical_time(text) == expected
    assert expected is None or canonical_time(expected) == expected


@given(st.datetimes(), st.sampled_from(["Z", "+00:00", "-01:30", ""]), st.integers(0, 9))
def test_canonical_times_agree_with_the_parser_of_go_layouts(moment: datetime, zone: str, fraction_digits: int) -> None:
    """The fast path for canonical text gives the same result as parsing the text."""
    text = moment.isoformat(timespec="seconds")
    text += f".{moment.microsecond:09d}"[: fraction_digits + 1] if fraction_digits else ""
    for canonical, layout, is_micro in ((canonical_time, TIME, False), (canonical_micro_time, MICRO, True)):
        try:
            read, micro = _parsed(text + zone, layout, is_micro=is_micro)
        except TimeFormatError as error:
            with pytest.raises(TimeFormatError, match=re.escape(str(error))):
                canonical(text + zone)
            continue
        fraction = f".{micro:06d}" if is_micro else ""
        assert canonical(text + zone) == (None if read is None else f"{read.isoformat()}{fraction}Z")


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
            id="a zone offset out of range",
        ),
        pytest.param(
            "2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"', id="more than a time"
        ),
        pytest.param(
            'é"',
            f'parsing time "\\xc3\\xa9\\"" as "{TIME}": cannot parse "\\xc3\\xa9\\"" as "2006"',
            id="escaped characters",
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
def test_canonical_micro_time_is_in_utc(text: str, expected: str | None) -> None:
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


FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        (".5", "500m"),
        ("5.", "5."),
        ("+1", "+1"),
        (" 1 ", "1"),
        ("-0", "0"),
        ("1000", "1k"),
        ("0.1Ki", "102400m"),
        ("1e400", "10e399"),
        ("9223372036854775807Ei", "9223372036854775807"),
        (1, "1"),
        (NumberText("1.50"), "1500m"),
        (NumberText("1e3"), "1e3"),
        (None, "0"),
    ],
)
def test_a_quantity_is_canonical_in_its_format(raw: object, expected: str) -> None:
    assert scalars.quantity(raw) == expected


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        pytest.param("", FORMAT, id="nothing"),
        pytest.param("1 0", FORMAT, id="a space inside"),
        pytest.param("abc", FORMAT, id="letters"),
        pytest.param(True, FORMAT, id="a flag"),
        pytest.param({}, FORMAT, id="an object"),
        pytest.param("1K", "unable to parse quantity's suffix", id="no such suffix"),
        pytest.param("1e", "unable to parse quantity's suffix", id="an exponent without a number"),
    ],
)
def test_invalid_quantities(raw: object, error: str) -> None:
    with pytest.raises(ScalarError) as raised:
        scalars.quantity(raw)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YQ==", "YQ=="),
        ("YR==", "YQ=="),
        ("YQ\n==", "YQ=="),
        ("YWJj\r\nYWJj", "YWJjYWJj"),
        ("", ""),
    ],
)
def test_base64_bytes_are_canonical(text: str, expected: str) -> None:
    assert scalars.base64_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("YQ=", 3),
        ("YQ", 0),
        ("Y Q==", 1),
        ("====", 0),
        ("YWJjZ", 4),
        ("YW!j", 2),
        ("YQ==YQ==", 4),
        ("YQ=a", 2),
        ("_-8=", 0),
        ("é", 0),
        ("YWJjZ===", 5),
    ],
)
def test_invalid_base64_has_the_message_of_go(text: str, position: int) -> None:
    with pytest.raises(BytesError) as raised:
        scalars.base64_bytes(text)
    assert str(raised.value) == f"illegal base64 data at input byte {position}"


def test_a_list_of_numbers_becomes_base64() -> None:
    assert scalars.base64_bytes([97, 98]) == "YWI="


@pytest.mark.parametrize("raw", [2**31, -(2**31) - 1, 1.0, True, "1", []], ids=repr)
def test_int32_rejects_values_that_are_no_32_bit_integers(raw: object) -> None:
    with pytest.raises(UnexpectedJsonType):
        scalars.int32(raw)


@pytest.mark.parametrize(("raw", "expected"), [("80%", "80%"), (80, 80), (None, 0)])
def test_int_or_string_accepts_both(raw: object, expected: object) -> None:
    assert scalars.int_or_string(raw) == expected


@pytest.mark.parametrize(("raw", "expected"), [(1.0, 1), (1.5, 1.5), (2, 2), (1e21, 1e21)])
def test_a_float_without_a_fraction_is_written_without_one(raw: object, expected: object) -> None:
    assert repr(scalars.float64(raw)) == repr(expected)


def schema(raw: Any, dropped: list[str]) -> Any:
    return {"schema": raw}


@pytest.mark.parametrize(
    ("field", "raw", "expected"),
    [
        ("items", {"type": "x"}, {"schema": {"type": "x"}}),
        ("items", [None, {}], [{"schema": {}}, {"schema": {}}]),
        ("items", "overlooked", None),
        ("additionalProperties", False, False),
        ("additionalItems", {}, {"schema": {}}),
        ("dependencies", {"a": {}, "b": ["c"], "d": 5}, {"a": {"schema": {}}, "b": ["c"], "d": None}),
    ],
)
def test_schema_values_accept_schemas_and_other_types(field: str, raw: Any, expected: Any) -> None:
    assert SCHEMA_VALUES[field](schema)(raw, []) == expected


def test_schema_values_of_a_wrong_type_are_errors() -> None:
    with pytest.raises(ScalarError, match="boolean or JSON schema expected"):
        SCHEMA_VALUES["additionalProperties"](schema)("x", [])
    with pytest.raises(UnexpectedJsonType):
        SCHEMA_VALUES["dependencies"](schema)([], [])
    with pytest.raises(UnexpectedJsonType):
        SCHEMA_VALUES["dependencies"](schema)({"a": [5]}, [])
