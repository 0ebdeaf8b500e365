from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.wire.json_text import (
    END,
    NESTING_MAX,
    BodySyntaxError,
    NumberText,
    Pairs,
    check_nesting,
    check_numbers,
    has_repeated_keys,
    json_syntax_error,
    parse_carefully,
    plain,
    repeats_keys,
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * NESTING_MAX + b"]" * NESTING_MAX, id="as deep as allowed"),
        pytest.param(b'{"a":' * NESTING_MAX + b"1" + b"}" * NESTING_MAX, id="objects as deep as allowed"),
        pytest.param(b"[" + b",".join([b"[]"] * 5_000) + b"]", id="wide, not deep"),
        pytest.param(b'["' + b"[" * 5_000 + b'"]', id="brackets in a string"),
    ],
)
def test_nesting_within_the_limit_is_accepted(data: bytes) -> None:
    check_nesting(data, msgspec.json.decode(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 201 + b"]" * 201, id="one level too many"),
        pytest.param(b'[1,{"b":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]", id="far too deep in one place"),
    ],
)
def test_nesting_beyond_the_limit_is_rejected(data: bytes) -> None:
    with pytest.raises(BodySyntaxError, match="exceeded max depth of 200"):
        check_nesting(data, msgspec.json.decode(data))


def test_repeated_objects_are_merged_and_other_values_replaced() -> None:
    value = parse_carefully(b'{"m":{"a":1},"m":{"b":2},"x":1,"x":2,"n":{"a":1},"n":null}')
    assert plain(value) == {"m": {"a": 1, "b": 2}, "x": 2, "n": {"a": 1}}
    assert isinstance(value, Pairs)
    assert [key for key, _ in value.pairs] == ["m", "m", "x", "x", "n", "n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"a":1,"b":[{"c":1}]}', False), ('{"a":1,"a":2}', True), ('{"b":[{"c":1,"c":1}]}', True)],
)
def test_repeated_keys_are_found_at_any_depth(text: str, expected: bool) -> None:
    assert has_repeated_keys(parse_carefully(text.encode())) is expected
    assert repeats_keys(text.encode()) is expected


def test_numbers_keep_their_text() -> None:
    value = parse_carefully(b"[1e3, 1.50]")
    assert isinstance(value, list)
    assert [number.text for number in value if isinstance(number, NumberText)] == ["1e3", "1.50"]
    assert [type(number) for number in plain(value)] == [float, float]
    assert plain([2.0], numbers_as_written=True)[0].text == "2"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b'"\xff\xe2\x82x"', "\ufffd\ufffd\ufffdx", id="each byte that is no UTF-8"),
        pytest.param(b'"\\ud800x"', "\ufffdx", id="an unpaired surrogate"),
        pytest.param(b'"\\ud83d\\ude00"', "\U0001f600", id="a surrogate pair"),
    ],
)
def test_invalid_utf_8_is_replaced(data: bytes, expected: str) -> None:
    assert plain(parse_carefully(data)) == expected


def test_parse_carefully_rejects_truncated_json() -> None:
    with pytest.raises(BodySyntaxError, match="unexpected end of JSON input"):
        parse_carefully(b"{")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(rb'"\ud800x"', "\ufffdx", id="a high surrogate"),
        pytest.param(rb'"x\uDC00"', "x\ufffd", id="a low surrogate"),
        pytest.param(rb'"\ud83d\ude00"', "\U0001f600", id="a surrogate pair"),
        pytest.param(rb'"\\ud800"', r"\ud800", id="no escape at all"),
        pytest.param(rb'"\\\ud800"', "\\\ufffd", id="an escape after a backslash"),
    ],
)
def test_unpaired_surrogates_are_replaced(text: bytes, value: str) -> None:
    assert parse_carefully(text) == value


def test_an_integer_too_long_for_python_is_kept_as_text() -> None:
    value = parse_carefully(b"[" + b"9" * 5_000 + b"]")
    assert isinstance(value, list)
    assert isinstance(value[0], NumberText)
    assert len(value[0].text) == 5_000


@pytest.mark.parametrize(
    "text",
    ["1e400", "-1e400", "1e+0400", "9" * 400, "[[" + "9" * 250 + "e99]]", '{"a":{"b":1E999}}'],
)
def test_a_number_beyond_a_float64_is_an_error(text: str) -> None:
    data = text.encode()
    with pytest.raises(BodySyntaxError, match=r"json: cannot unmarshal number .* into Go value of type float64"):
        check_numbers(data, parse_carefully(data))


@pytest.mark.parametrize("text", ["1e308", "-1e308", "1e-999", "9" * 308, '["1e400"]', "null", '{"1e400":true}'])
def test_numbers_within_a_float64_are_accepted(text: str) -> None:
    data = text.encode()
    check_numbers(data, parse_carefully(data))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", END),
        ("{", END),
        ('{"a"', END),
        ('{"a":1', END),
        ('"abc', END),
        ("   ", END),
        ("}", "invalid character '}' looking for beginning of value"),
        ("{]", "invalid character ']' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("tRue", "invalid character 'R' in literal true (expecting 'r')"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("01", "invalid character '1' after top-level value"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.a", "invalid character 'a' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ('{"a":"\x01"}', "invalid character '\\x01' in string literal"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_syntax_errors_have_the_message_of_go(text: str, error: str) -> None:
    assert json_syntax_error(text.encode()) == error


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)


@given(_values)
def test_json_written_by_python_has_no_syntax_error(value: object) -> None:
    assert json_syntax_error(json.dumps(value, indent=1).encode()) is None


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\ u', max_size=12))
def test_json_syntax_error_agrees_with_the_parser_of_python(text: str) -> None:
    try:
        json.loads(text)
        is_json = True
    except ValueError:
        is_json = False
    assert (json_syntax_error(text.encode()) is None) == is_json
