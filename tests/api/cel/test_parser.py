"""Syntax errors and literals."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.cel import DeviceSelectorError, compile_device_selector
from tests.api.cel.builders import answer, compile_error

WORDS = [*"ab.()[]{},?:!-+1", "==", "in", "&&", "||", "'x'", "true", "foo", "device"]


def reports(expression: str) -> list[str]:
    return re.findall(r"^(?:compilation failed: )?ERROR: <input>:(.*)$", compile_error(expression), re.MULTILINE)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", "1:0: Syntax error: unexpected end of expression, expected an expression"),
        ("1 2", "1:3: Syntax error: unexpected '2', expected end of expression"),
        ("a b c", "1:3: Syntax error: unexpected 'b', expected end of expression"),
        ("(1", "1:3: Syntax error: unexpected end of expression, expected ')'"),
        ("a.", "1:3: Syntax error: unexpected end of expression, expected a name"),
        ("a.)", "1:3: Syntax error: unexpected ')', expected a name"),
        ("a.true", "1:3: Syntax error: unexpected 'true', expected a name"),
        ("..a", "1:2: Syntax error: unexpected '.', expected a name"),
        ("a[1", "1:4: Syntax error: unexpected end of expression, expected ']'"),
        ("f(1,", "1:5: Syntax error: unexpected end of expression, expected an expression"),
        ("[1,,2]", "1:4: Syntax error: unexpected ',', expected an expression"),
        ("[,1]", "1:3: Syntax error: unexpected '1', expected ']'"),
        ("{1}", "1:3: Syntax error: unexpected '}', expected ':'"),
        ("{,1: 2}", "1:3: Syntax error: unexpected '1', expected '}'"),
        ("A{,b: 2}", "1:4: Syntax error: unexpected 'b', expected '}'"),
        ("a ? b", "1:6: Syntax error: unexpected end of expression, expected ':'"),
        ("1 + ", "1:5: Syntax error: unexpected end of expression, expected an expression"),
        ("!", "1:2: Syntax error: unexpected end of expression, expected an expression"),
        ("!-x", "1:2: Syntax error: unexpected '-', expected an expression"),
        ("a & b", "1:3: Syntax error: unexpected character '&'"),
        ('"abc', "1:1: Syntax error: string is not closed, or has an invalid escape sequence"),
        (r"'a\q'", "1:1: Syntax error: string is not closed, or has an invalid escape sequence"),
        ("a ==== b", "1:5: Syntax error: unexpected '==', expected an expression"),
        ("1 '" + "x" * 100 + "'", f"1:3: Syntax error: unexpected ''{'x' * 63}', expected end of expression"),
    ],
)
def test_one_syntax_error_is_reported_with_its_position(expression: str, expected: str) -> None:
    assert reports(expression) == [expected]


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("9223372036854775808", "invalid int literal"),
        ("9" * 4_301, "invalid int literal"),
        ("-" + "9" * 9_000, "invalid int literal"),
        ("0x" + "f" * 9_000, "invalid int literal"),
        ("9" * 9_000 + "u", "invalid uint literal"),
        ("0x" + "f" * 17 + "u", "invalid uint literal"),
        ("9" * 400 + ".0", "invalid double literal"),
    ],
)
def test_a_number_out_of_range_is_an_error(literal: str, expected: str) -> None:
    assert reports(f"{literal} == 1") == [f"1:1: {expected}"]


def test_a_long_expression_is_an_error() -> None:
    expected = "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    assert reports("1 == 1" + " " * 99_995) == [expected]


def test_a_trailing_comma_is_allowed() -> None:
    assert answer("[1,] == [1] && [,] == [] && {1: 2,} == {1: 2} && {,} == {}")


def test_leading_zeros_do_not_count() -> None:
    assert answer("0" * 5_000 + "7 == 7")
    assert answer("0x" + "0" * 5_000 + "7u == 7u")


def test_a_line_is_shown_with_a_pointer() -> None:
    assert compile_error('device.driver ==\n"ä" +\t 1 2') == (
        "compilation failed: ERROR: <input>:2:10: Syntax error: unexpected '2', expected end of expression\n"
        ' | "ä" +  1 2\n'
        " | .\uff0e.......^"
    )


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_any_tokens_compile_or_are_reported(words: list[str]) -> None:
    try:
        compile_device_selector(" ".join(words))
    except DeviceSelectorError as error:
        shown = str(error)
    else:
        shown = "must evaluate to"
    assert shown.startswith(("compilation failed: ERROR", "must evaluate to", "program instantiation failed"))


@given(st.text(max_size=20))
def test_any_text_compiles_or_is_reported(text: str) -> None:
    try:
        compile_device_selector(text)
    except DeviceSelectorError as error:
        shown = str(error)
    else:
        shown = "must evaluate to"
    assert shown.startswith(("compilation failed: ERROR", "must evaluate to", "program instantiation failed"))
