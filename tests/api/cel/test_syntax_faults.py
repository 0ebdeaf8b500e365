"""Faults of syntax: what is reported, where, and that reading goes on after it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.cel import DeviceSelectorError, compile_device_selector
from tests.api.cel.builders import refusal

OPERAND = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)

WORDS = [*"ab.()[]{},?:!-+1", "==", "in", "&&", "||", "'x'", "true", "foo", "device"]


def reports(expression: str) -> list[str]:
    return re.findall(r"^(?:compilation failed: )?ERROR: <input>:(.*)$", refusal(expression), re.MULTILINE)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", [f"1:0: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"]),
        ("1 2", ["1:3: Syntax error: extraneous input '2' expecting <EOF>"]),
        ("a b c", ["1:3: Syntax error: mismatched input 'b' expecting <EOF>"]),
        ("(1", ["1:3: Syntax error: missing ')' at '<EOF>'"]),
        ("a.", ["1:3: Syntax error: no viable alternative at input '.'"]),
        ("a.)", ["1:3: Syntax error: no viable alternative at input '.)'"]),
        ("a.true", ["1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"]),
        ("a[1", ["1:4: Syntax error: missing ']' at '<EOF>'"]),
        ("f(1,", [f"1:5: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"]),
        ("[1,,2]", ["1:4: Syntax error: mismatched input ',' expecting ']'"]),
        ("{1}", ["1:3: Syntax error: mismatched input '}' expecting ':'"]),
        ("a ? b", ["1:6: Syntax error: mismatched input '<EOF>' expecting ':'"]),
        ("1 + ", [f"1:5: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}"]),
        ("!", [f"1:2: Syntax error: extraneous input '<EOF>' expecting {{{OPERAND}}}"]),
        ("!-x", ["1:3: Syntax error: no viable alternative at input '-x'"]),
        (
            "a & b",
            [
                "1:3: Syntax error: token recognition error at: '& '",
                "1:5: Syntax error: extraneous input 'b' expecting <EOF>",
            ],
        ),
        (
            '"abc',
            [
                "1:1: Syntax error: token recognition error at: '\"abc'",
                f"1:5: Syntax error: mismatched input '<EOF>' expecting {{{OPERAND}}}",
            ],
        ),
        ("a ==== b", ["1:5: Syntax error: extraneous input '==' expecting {" + OPERAND + "}"]),
    ],
)
def test_reports(expression: str, expected: list[str]) -> None:
    assert reports(expression) == expected


def test_a_line_is_shown_with_a_pointer() -> None:
    assert refusal('device.driver ==\n"ä" +\t 1 2') == (
        "compilation failed: ERROR: <input>:2:10: Syntax error: extraneous input '2' expecting <EOF>\n"
        ' | "ä" +  1 2\n'
        " | .\uff0e.......^"
    )


def test_going_on_has_a_limit() -> None:
    assert reports("(" + "a b " * 200 + ")")[0] == "-1:0: error recovery token lookahead limit exceeded: 256"
    assert reports("+ " * 40)[-1].endswith("error recovery attempt limit exceeded: 30")


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_whatever_the_words_they_are_compiled_or_reported(words: list[str]) -> None:
    try:
        compile_device_selector(" ".join(words))
    except DeviceSelectorError as error:
        shown = str(error)
    else:
        shown = "must evaluate to"
    assert shown.startswith(("compilation failed: ERROR", "must evaluate to", "program instantiation failed"))


@given(st.text(max_size=20))
def test_whatever_the_letters_they_are_compiled_or_reported(text: str) -> None:
    try:
        compile_device_selector(text)
    except DeviceSelectorError as error:
        shown = str(error)
    else:
        shown = "must evaluate to"
    assert shown.startswith(("compilation failed: ERROR", "must evaluate to", "program instantiation failed"))
