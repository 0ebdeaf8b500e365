"""Faults of fields, worded as Kubernetes words them."""

from __future__ import annotations

import pytest

from mooring.api.field_errors import aggregated, invalid_value, listed, quoted, unsupported_value


def test_an_invalid_value_is_quoted() -> None:
    assert invalid_value("key", "a b", "no blanks") == 'key: Invalid value: "a b": no blanks'


@pytest.mark.parametrize(
    ("values", "printed"),
    [((), "null"), (("a",), '["a"]'), (("a", "b&c", "<d>"), r'["a","b\u0026c","\u003cd\u003e"]')],
    ids=["none", "one", "markup"],
)
def test_an_invalid_list_is_printed_as_json(values: tuple[str, ...], printed: str) -> None:
    assert listed(values) == printed
    assert invalid_value("values", values, "too few") == f"values: Invalid value: {printed}: too few"


def test_a_value_without_a_field_says_so() -> None:
    assert invalid_value("", "x", "wrong") == '<nil>: Invalid value: "x": wrong'


def test_an_unsupported_value_comes_with_what_is_supported() -> None:
    text = unsupported_value("operator", "Bogus", ["In", "NotIn"])
    assert text == 'operator: Unsupported value: "Bogus": supported values: "In", "NotIn"'


@pytest.mark.parametrize(
    ("faults", "text"),
    [(["a"], "a"), (["a", "b"], "[a, b]"), (["a", "b", "a"], "[a, b]"), (["a", "a"], "a")],
    ids=["one", "two", "one twice among others", "one twice"],
)
def test_several_faults_are_told_once_each(faults: list[str], text: str) -> None:
    assert aggregated(faults) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('say "hi"', r'"say \"hi\""'),
        ("a\\b", r'"a\\b"'),
        ("a\tb\n", r'"a\tb\n"'),
        ("\x00\x7f", r'"\x00\x7f"'),
        ("é中", '"é中"'),
        ("\u200b", r'"\u200b"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_what_cannot_be_printed_is_escaped(text: str, printed: str) -> None:
    assert quoted(text) == printed
