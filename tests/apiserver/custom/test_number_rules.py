"""Bounds and multiples of numbers."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.number_rules import NumberRules, is_whole, number_text


@pytest.mark.parametrize(
    ("raw", "type_name", "value", "message"),
    [
        pytest.param({"minimum": 1}, "integer", 0, ["a in body should be greater than or equal to 1"], id="too small"),
        pytest.param(
            {"minimum": 1, "exclusiveMinimum": True},
            "integer",
            1,
            ["a in body should be greater than 1"],
            id="not above",
        ),
        pytest.param({"maximum": 5}, "integer", 6, ["a in body should be less than or equal to 5"], id="too large"),
        pytest.param(
            {"maximum": 5, "exclusiveMaximum": True}, "integer", 5, ["a in body should be less than 5"], id="not below"
        ),
        pytest.param({"multipleOf": 2}, "integer", 3, ["a in body should be a multiple of 2"], id="no multiple"),
        pytest.param(
            {"multipleOf": 0.5},
            "number",
            1.7,
            ["a in body should be a multiple of 0.5"],
            id="no multiple of a fraction",
        ),
        pytest.param({"multipleOf": 0.1}, "number", 0.3, [], id="a multiple but for rounding"),
        pytest.param(
            {"maximum": 1000000.5},
            "number",
            2000000.5,
            ["a in body should be less than or equal to 1.0000005e+06"],
            id="large numbers",
        ),
        pytest.param(
            {}, "integer", 1.5, ["Checked value must be of type integer (default format) in a"], id="a fraction"
        ),
        pytest.param(
            {"maximum": 1.5},
            "integer",
            1,
            ["Maximum boundary value must be of type integer (default format) in a"],
            id="a bound that cannot be",
        ),
    ],
)
def test_numbers(raw: Document, type_name: str, value: float, message: list[str]) -> None:
    assert [found[0] for found in NumberRules(raw, type_name, "").findings(value, "a")] == message


def test_numbers_of_32_bits() -> None:
    found = list(NumberRules({}, "integer", "int32").findings(2**31, "a"))
    assert [message for message, _, _ in found] == ["Checked value must be of type integer with format int32 in a"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (0.0, "0"),
        (1.5, "1.5"),
        (1e6, "1e+06"),
        (123456.5, "123456.5"),
        (1234567.5, "1.2345675e+06"),
        (1e-5, "1e-05"),
    ],
    ids=str,
)
def test_numbers_are_printed_as_go_prints_them(value: float, text: str) -> None:
    assert number_text(value) == text


def test_whole_numbers() -> None:
    assert [is_whole(number) for number in (3.0, 3.5, 1e30)] == [True, False, False]
