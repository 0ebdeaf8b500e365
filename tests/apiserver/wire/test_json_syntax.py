from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.wire.json_text import END, json_syntax_error


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
def test_nothing_is_wrong_with_what_python_writes(value: object) -> None:
    assert json_syntax_error(json.dumps(value, indent=1).encode()) is None


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\ u', max_size=12))
def test_it_agrees_with_python_about_what_is_json(text: str) -> None:
    try:
        json.loads(text)
        is_json = True
    except ValueError:
        is_json = False
    assert (json_syntax_error(text.encode()) is None) == is_json
