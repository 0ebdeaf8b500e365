from __future__ import annotations

import pytest

from mooring.apiserver.wire import scalars
from mooring.apiserver.wire.json_text import NumberText
from mooring.apiserver.wire.scalars import BytesError, Irregular, ScalarError

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
def test_bytes_are_written_anew(text: str, expected: str) -> None:
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
def test_go_says_where_base64_ends(text: str, position: int) -> None:
    with pytest.raises(BytesError) as raised:
        scalars.base64_bytes(text)
    assert str(raised.value) == f"illegal base64 data at input byte {position}"


def test_a_list_of_numbers_is_bytes_too() -> None:
    assert scalars.base64_bytes([97, 98]) == "YWI="


@pytest.mark.parametrize("raw", [2**31, -(2**31) - 1, 1.0, True, "1", []], ids=repr)
def test_what_is_no_32_bit_number_is_irregular(raw: object) -> None:
    with pytest.raises(Irregular):
        scalars.int32(raw)


@pytest.mark.parametrize(("raw", "expected"), [("80%", "80%"), (80, 80), (None, 0)])
def test_an_int_or_string_is_either(raw: object, expected: object) -> None:
    assert scalars.int_or_string(raw) == expected


@pytest.mark.parametrize(("raw", "expected"), [(1.0, 1), (1.5, 1.5), (2, 2), (1e21, 1e21)])
def test_a_float_without_a_fraction_is_written_without_one(raw: object, expected: object) -> None:
    assert repr(scalars.float64(raw)) == repr(expected)
