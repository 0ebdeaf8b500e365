"""Tests of validation.schema_rules."""

from __future__ import annotations

import pytest

from mooring.apiserver.validation.schema_rules import (
    enum_values,
    sorted_enum_values,
    validate_enum,
    validate_required,
    validate_required_enum,
)
from tests.apiserver.field_errors import messages

UNSUPPORTED = 'p: Unsupported value: "{}": supported values: "SCTP", "TCP", "UDP"'


def test_enums_are_those_of_the_schema_in_two_orders() -> None:
    assert enum_values("core", "Protocol") == ("TCP", "UDP", "SCTP")
    assert sorted_enum_values("core", "Protocol") == ("SCTP", "TCP", "UDP")


def test_a_type_without_values_is_no_enum() -> None:
    with pytest.raises(AssertionError, match=r"storage\.FSGroupPolicy is no enum"):
        enum_values("storage", "FSGroupPolicy")


@pytest.mark.parametrize(
    ("value", "optional", "required"),
    [
        pytest.param("TCP", [], [], id="a value of the enum"),
        pytest.param("tcp", [UNSUPPORTED.format("tcp")], [UNSUPPORTED.format("tcp")], id="another value"),
        pytest.param("", [UNSUPPORTED.format("")], ["p: Required value"], id="empty"),
        pytest.param(None, [], ["p: Required value"], id="absent"),
    ],
)
def test_enums(value: str | None, optional: list[str], required: list[str]) -> None:
    choices = sorted_enum_values("core", "Protocol")
    assert messages(validate_enum(value, choices, "p")) == optional
    assert messages(validate_required_enum(value, choices, "p")) == required


def test_required_fields_are_reported_in_the_given_order() -> None:
    errors = validate_required({"b": "x", "c": ""}, ("a", "b", "c"), "spec")
    assert messages(errors) == ["spec.a: Required value", "spec.c: Required value"]
