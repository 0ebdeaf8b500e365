"""Tests of validation.fields."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation import fields
from mooring.apiserver.validation.fields import FieldError, Verbatim, aggregated, go_value


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (fields.required("spec.image"), "spec.image: Required value"),
        (fields.required("spec.image", "say one"), "spec.image: Required value: say one"),
        (fields.invalid("spec.count", -1, "too few"), "spec.count: Invalid value: -1: too few"),
        (fields.invalid("spec.name", 'a"b', "odd"), 'spec.name: Invalid value: "a\\"b": odd'),
        (fields.duplicate("spec.ports[1]", "web"), 'spec.ports[1]: Duplicate value: "web"'),
        (fields.not_found("spec.volume", "x"), 'spec.volume: Not found: "x"'),
        (
            fields.not_supported("spec.type", "A", ("B", "C")),
            'spec.type: Unsupported value: "A": supported values: "B", "C"',
        ),
        (fields.forbidden("spec", "not now"), "spec: Forbidden: not now"),
        (fields.too_long("name", 63), "name: Too long: may not be more than 63 bytes"),
        (fields.too_long("name", 1), "name: Too long: may not be more than 1 byte"),
        (fields.too_many("items", 9, 8), "items: Too many: 9: must have at most 8 items"),
        (fields.invalid("", "x", "nowhere"), '<nil>: Invalid value: "x": nowhere'),
    ],
    ids=lambda each: each.field if isinstance(each, FieldError) else "",
)
def test_messages(error: FieldError, message: str) -> None:
    assert error.message == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3.0, "3"),
        (0.5, "0.5"),
        (None, "null"),
        (["a", "<b>"], '["a","\\u003cb\\u003e"]'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        (Verbatim("0x0"), "0x0"),
    ],
)
def test_values_as_go_prints_them(value: object, text: str) -> None:
    assert go_value(value) == text


def test_several_errors_are_in_brackets_without_duplicates() -> None:
    first, second = fields.required("a"), fields.required("b")
    assert aggregated([first]) == "a: Required value"
    assert aggregated([first, second, first]) == "[a: Required value, b: Required value]"
