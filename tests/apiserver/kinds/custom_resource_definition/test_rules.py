"""Tests of kinds.custom_resource_definition.rules."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.kinds.custom_resource_definition.rules import (
    RuleScope,
    validate_rule,
    validate_rule_text,
    validate_total_cost,
)
from tests.apiserver.custom.definitions import fields, ruled

NUMBER: Document = {"type": "integer"}
TEXT: Document = {"type": "string"}
SCHEMA = fields(a=NUMBER, b=TEXT, l={"type": "array", "items": TEXT})


def errors(schema: Document, **options: object) -> list[str]:
    scope = RuleScope.root(read_schema(schema))
    within = str(options.get("within", ""))
    found = validate_rule(scope, "p", no_old_value_within=within, has_known_costs=bool(options.get("known")))
    return [error.message.removeprefix("p.x-kubernetes-validations[0].") for error in found]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        pytest.param({"rule": "self.a > 1"}, [], id="fine"),
        pytest.param({"rule": " "}, ["rule: Required value: rule is not specified"], id="no rule"),
        pytest.param(
            {"rule": "x", "message": " "},
            ['message: Invalid value: " ": must be non-empty if specified'],
            id="an empty message",
        ),
        pytest.param(
            {"rule": "x", "message": "a\nb"},
            ['message: Invalid value: "a\\nb": must not contain line breaks'],
            id="lines in a message",
        ),
        pytest.param(
            {"rule": "x\ny"},
            ["message: Required value: message must be specified if rule contains line breaks"],
            id="lines in a rule",
        ),
        pytest.param(
            {"rule": "x", "messageExpression": " "},
            ["messageExpression: Required value: messageExpression must be non-empty if specified"],
            id="an empty expression",
        ),
        pytest.param(
            {"rule": "x", "reason": "Foo"},
            [
                'reason: Unsupported value: "Foo": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
                '"FieldValueInvalid", "FieldValueRequired"'
            ],
            id="an unknown reason",
        ),
        pytest.param(
            {"rule": "x", "fieldPath": ".z"},
            ['fieldPath: Invalid value: ".z": must be a valid path'],
            id="an unknown field",
        ),
    ],
)
def test_texts_of_rules_are_validated(rule: Document, found: list[str]) -> None:
    prefix = "p.x-kubernetes-validations[0]."
    assert [error.message.removeprefix(prefix) for error in validate_rule_text(ruled(SCHEMA, rule), "p")] == found


def test_compile_errors_contain_the_rule() -> None:
    (message,) = errors(ruled(SCHEMA, "self.a"))
    assert message == (
        'rule: Invalid value: {"Rule":"self.a","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
        '"OptionalOldSelf":null}: cel expression must evaluate to a bool'
    )


def test_rules_about_old_values_are_validated() -> None:
    assert errors(ruled(SCHEMA, "self.a == oldSelf.a")) == []
    assert errors(ruled(SCHEMA, "self.a == oldSelf.a"), within="p.items") == [
        'rule: Invalid value: "self.a == oldSelf.a": oldSelf cannot be used on the uncorrelatable portion of the '
        "schema within p.items"
    ]
    assert errors(ruled(SCHEMA, {"rule": "self.a > 1", "optionalOldSelf": True})) == [
        "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
    ]


def test_a_rule_beyond_the_cost_limit_is_rejected() -> None:
    expensive = ruled(SCHEMA, "self.l.all(x, self.l.all(y, x == y))")
    assert errors(expensive) == [
        "rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or "
        "adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    ]
    assert errors(expensive, known=True) == []


def test_the_cost_of_a_rule_is_multiplied_by_the_number_of_values() -> None:
    contains = f"self.contains('{'abcdefghijk' * 8}')"
    raw = fields(l={"type": "array", "maxItems": 4000, "items": ruled({**TEXT, "maxLength": 1000}, contains)})
    scope = RuleScope.root(read_schema(raw)).of_property("l", raw["properties"]["l"])
    items = scope.of_items(raw["properties"]["l"]["items"])
    (error,) = validate_rule(items, "p", no_old_value_within="", has_known_costs=False)
    assert "exceeds budget by factor of 1.440400x" in error.detail


def test_the_total_cost_of_rules_is_limited() -> None:
    scope = RuleScope.root(read_schema(SCHEMA))
    for number in range(6):
        scope.costs.note(f"p{number}", 30_000_000 + number)
    details = [(error.field, error.detail) for error in validate_total_cost(scope, "s")]
    assert [field for field, _ in details] == ["p5", "p4", "p3", "p2", "s"]
    assert "exceeds budget by factor of 1.8x" in details[-1][1]
