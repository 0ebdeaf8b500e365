"""Tests of validation.selectors."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.selectors import plain_selector_matches, validate_conditions, validate_label_selector
from tests.apiserver.core_documents import messages

BAD_VALUE: Document = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}
UNKNOWN_OPERATOR: Document = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        pytest.param(None, [], id="none"),
        pytest.param({}, [], id="everything"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]}]},
            [
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "s.matchExpressions[1].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ],
            id="values missing, and too many",
        ),
        pytest.param(
            UNKNOWN_OPERATOR,
            ['s.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator'],
            id="unknown operator",
        ),
    ],
)
def test_label_selectors_are_validated(selector: Document | None, errors: list[str]) -> None:
    assert messages(validate_label_selector(selector, "s")) == errors


def test_invalid_values_of_selectors_can_be_tolerated() -> None:
    assert validate_label_selector(BAD_VALUE, "s") != []
    assert validate_label_selector(BAD_VALUE, "s", tolerates_values=True) == []


def test_plain_selectors_match_labels() -> None:
    assert plain_selector_matches({"a": "b"}, {"a": "b", "c": "d"})
    assert not plain_selector_matches({"a": "b"}, {})


VALID: Document = {"type": "Ready", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2020"}


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"status": "Maybe"},
            ['c[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"'],
            id="an unknown status",
        ),
        pytest.param({"lastTransitionTime": None}, ["c[0].lastTransitionTime: Required value"], id="no time"),
        pytest.param({"reason": ""}, ["c[0].reason: Required value"], id="no reason"),
        pytest.param(
            {"reason": "R" * 1025}, ["c[0].reason: Too long: may not be more than 1024 bytes"], id="a long reason"
        ),
        pytest.param(
            {"message": "m" * 32769}, ["c[0].message: Too long: may not be more than 32768 bytes"], id="a long message"
        ),
        pytest.param(
            {"observedGeneration": -1},
            ["c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero"],
            id="negative observedGeneration",
        ),
    ],
)
def test_conditions_are_validated(changes: Document, errors: list[str]) -> None:
    assert messages(validate_conditions([{**VALID, **changes}], "c")) == errors


def test_reasons_are_camel_case() -> None:
    (error,) = messages(validate_conditions([{**VALID, "reason": "not one"}], "c"))
    assert error.startswith('c[0].reason: Invalid value: "not one": a condition reason must start with')


def test_duplicate_condition_types_are_rejected() -> None:
    assert messages(validate_conditions([VALID, VALID], "c")) == ['c[1].type: Duplicate value: "Ready"']
