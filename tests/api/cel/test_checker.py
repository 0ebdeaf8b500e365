"""The parser and the checker: literals, syntax errors and type errors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.cel import DeviceSelectorError, compile_device_selector
from tests.api.cel.builders import answer, compile_error, first_error

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
def test_random_tokens_compile_or_have_errors(words: list[str]) -> None:
    try:
        compile_device_selector(" ".join(words))
    except DeviceSelectorError as error:
        shown = str(error)
    else:
        shown = "must evaluate to"
    assert shown.startswith(("compilation failed: ERROR", "must evaluate to", "program instantiation failed"))


@given(st.text(max_size=20))
def test_random_text_compiles_or_has_errors(text: str) -> None:
    try:
        compile_device_selector(text)
    except DeviceSelectorError as error:
        shown = str(error)
    else:
        shown = "must evaluate to"
    assert shown.startswith(("compilation failed: ERROR", "must evaluate to", "program instantiation failed"))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("foo", "undeclared reference to 'foo' (in container '')"),
        ("foo()", "undeclared reference to 'foo' (in container '')"),
        ("a.b.c == 1", "undeclared reference to 'a' (in container '')"),
        ('"a".foo()', "undeclared reference to 'foo' (in container '')"),
        ("Foo{a: 1} == 1", "undeclared reference to 'Foo' (in container '')"),
        ("device.driver == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("1 == 1.0", "found no matching overload for '_==_' applied to '(int, double)'"),
        ('1 + "a" == 2', "found no matching overload for '_+_' applied to '(int, string)'"),
        ("size(1) == 1", "found no matching overload for 'size' applied to '(int)'"),
        ('"a".startsWith(1)', "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        (
            'device.driver.isGreaterThan(semver("1.0.0"))',
            "found no matching overload for 'isGreaterThan' applied to 'string.(kubernetes.Semver)'",
        ),
        ('device.capacity["a"].b > 3', "found no matching overload for '_>_' applied to '(kubernetes.Quantity, int)'"),
        ('device.capacity["a"].b.c == 1', "unexpected failed resolution of 'kubernetes.Quantity'"),
        ("device.driver.name == 1", "type 'string' does not support field selection"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ('[1, "a"] == [1]', "expected type 'int' but found 'string'"),
        ('{"a": 1, "b": true}.a == 1', "expected type 'int' but found 'bool'"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("1.all(x, x)", "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"),
        (
            'device.attributes["a"].b.all(x, x)',
            "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[?1] == [1]", "expected type 'optional_type(int)' but found 'int'"),
        ('null == "a"', "found no matching overload for '_==_' applied to '(null, string)'"),
        ('duration("1s") > 1', "found no matching overload for '_>_' applied to '(duration, int)'"),
        ('"a".name("b")', "found no matching overload for 'name' applied to 'string.(string)'"),
        ("if(true)", "reserved identifier: if"),
        ("[1].map(x.y, 1) == [1]", "argument is not an identifier"),
        ("[1].all(1, true)", "argument must be a simple name"),
        ("[1].all(a, a, true)", "duplicate variable name: a"),
        ("[1].all(__result__, true)", "iteration variable overwrites accumulator variable"),
        ("has(device)", "invalid argument to has() macro"),
        ("cel.bind(1, 2, true)", "cel.bind() variable names must be simple identifiers"),
        ("optional.of(1).optMap(1, true).value()", "optMap() variable name must be a simple identifier"),
        ("9223372036854775808 == 1", "invalid int literal"),
        ("18446744073709551616u == 1u", "invalid uint literal"),
        ("device.`driver`", "unsupported syntax: '`'"),
        ('"\\ud800" == ""', "invalid unicode code point"),
    ],
)
def test_type_errors(expression: str, text: str) -> None:
    assert first_error(expression) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('duration("x") == duration("1s")', "invalid duration argument"),
        ('timestamp("x") == timestamp("y")', "invalid timestamp argument"),
        ('device.driver.matches("[")', "invalid matches argument"),
        ("[dyn(1), 2] == [dyn(1)]", "expected type 'dyn' but found 'int'"),
        ('{"a": dyn(1), "b": 2} == {}', "expected type 'dyn' but found 'int'"),
        (
            '"%d".format(["a"]) == ""',
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ('"%s".format([]) == ""', "index 0 out of range"),
        ('"%s".format([1, 2]) == ""', "too many arguments supplied to string.format (expected 1, got 2)"),
        ('"%z".format([1]) == ""', 'could not parse formatting clause: unrecognized formatting clause "z"'),
        (
            '"%s".format([[quantity("1")]]) == ""',
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
            "lists, types, durations, and timestamps, was given kubernetes.Quantity",
        ),
    ],
)
def test_errors_that_the_validator_finds(expression: str, text: str) -> None:
    assert first_error(expression) == text


def test_errors_are_reported_in_the_order_of_their_positions() -> None:
    shown = [line for line in compile_error("bar && foo && 1 + true == 2").split("\n") if "ERROR" in line]
    assert [line.split("<input>:")[1] for line in shown] == [
        "1:1: undeclared reference to 'bar' (in container '')",
        "1:8: undeclared reference to 'foo' (in container '')",
        "1:17: found no matching overload for '_+_' applied to '(int, bool)'",
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "[].all(x, x > 1)",
        "{}.all(x, x)",
        "type(1) == int && type(type(1)) == type",
        'type(duration("1s")) == google.protobuf.Duration',
        "dyn(1) == 1.0 && dyn(1u) == 1 && 1 < 1.5",
        '["%s", "%d"].all(form, form.format([dyn(1)]) == "1")',
        'optional.none().or(optional.of("a")).orValue("b") == "a"',
        "true ? true : dyn(1) == 2",
        ".device.driver != ''",
    ],
)
def test_valid_expressions(expression: str) -> None:
    assert answer(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "[1]" + ".map(a, {a: a})" * 40 + ".size() > 0",
        "[]" + ".map(a, [a])" * 240 + ".size() > 0",
        "".join(f"cel.bind(a{n + 1}, {{}}, [a{n + 1}, {{a{n}: a{n}}}] == [] || " for n in range(1, 40)).replace(
            "{a1: a1}", "{1: 1}"
        )
        + "true"
        + ")" * 39,
    ],
)
def test_types_that_grow_with_each_level_are_an_error(expression: str) -> None:
    assert first_error(expression) == "the types of the expression are too large"


def test_a_long_list_of_empty_lists_is_checked_in_linear_time() -> None:
    assert answer("[" + "[]," * 3_000 + "].size() == 3000")
