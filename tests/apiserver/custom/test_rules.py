"""Errors of CEL rules about an object, with the messages of kube-apiserver v1.36.4."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.cel.values import Duration, Timestamp
from mooring.api.document import Document
from mooring.apiserver.custom.rules import cel_value, rules_of
from mooring.apiserver.custom.schema import CorrelatedValue, read_schema
from tests.apiserver.custom.definitions import fields, ruled

TEXT_SCHEMA: Document = {"type": "string"}


@pytest.mark.parametrize(
    ("raw", "value", "seen"),
    [
        pytest.param({"type": "number"}, 1, 1.0, id="a number is a double"),
        pytest.param({"type": "integer"}, 3.0, 3, id="an integer is no double"),
        pytest.param({**TEXT_SCHEMA, "format": "byte"}, "YWI=", b"ab", id="bytes"),
        pytest.param({**TEXT_SCHEMA, "format": "duration"}, "1m", Duration(60 * 10**9), id="a duration"),
        pytest.param({**TEXT_SCHEMA, "format": "date"}, "1970-01-02", Timestamp(86400 * 10**9), id="a date"),
        pytest.param({**TEXT_SCHEMA, "format": "date-time"}, "never", "never", id="an invalid date-time is kept"),
        pytest.param(fields(**{"a-b": TEXT_SCHEMA}), {"a-b": "x", "z": 1}, {"a__dash__b": "x"}, id="known fields only"),
        pytest.param({"type": "object", "additionalProperties": TEXT_SCHEMA}, {"a-b": "x"}, {"a-b": "x"}, id="a map"),
        pytest.param({"type": "array", "items": {"type": "number"}}, [1, 2], [1.0, 2.0], id="a list"),
        pytest.param({"x-kubernetes-int-or-string": True}, "5%", "5%", id="int or string"),
    ],
)
def test_cel_value_converts_values_by_their_schema(raw: Document, value: Any, seen: object) -> None:
    found = cel_value(value, read_schema(raw))
    assert found == seen
    assert type(found) is type(seen)


def test_cel_value_of_the_root_has_type_and_name_fields() -> None:
    whole = {"kind": "K", "apiVersion": "v", "metadata": {"name": "a", "labels": {}}, "spec": {"x": 1}}
    seen = cel_value(whole, read_schema(fields(spec=fields(x={"type": "integer"}))), is_root=True)
    assert seen == {"kind": "K", "apiVersion": "v", "metadata": {"name": "a"}, "spec": {"x": 1}}


NUMBER: Document = {"type": "integer"}
TEXT: Document = {"type": "string"}


def messages(schema: Document, obj: Any, old: Any = None) -> list[str]:
    rules = rules_of(read_schema(schema))
    assert rules is not None
    return [error.message for error in rules.check(obj, old, None).errors]


@pytest.mark.parametrize(
    ("held", "value", "message"),
    [
        pytest.param(ruled(NUMBER, "self > 1"), 2, None, id="the rule holds"),
        pytest.param(
            ruled(NUMBER, "self > 1"), 1, "a: Invalid value: 1: failed rule: self > 1", id="the rule is in the message"
        ),
        pytest.param(
            ruled(NUMBER, {"rule": "self > 1", "message": "more!"}), 1, "a: Invalid value: 1: more!", id="a message"
        ),
        pytest.param(
            ruled(TEXT, {"rule": "self == 'x'", "messageExpression": "'not ' + self"}),
            "y",
            'a: Invalid value: "y": not y',
            id="a computed message",
        ),
        pytest.param(
            ruled(TEXT, {"rule": "self == 'x'", "message": "m", "messageExpression": "' '"}),
            "y",
            'a: Invalid value: "y": m',
            id="a computed message that is empty",
        ),
        pytest.param(
            ruled(NUMBER, {"rule": "self > 1", "reason": "FieldValueForbidden", "message": "no"}),
            1,
            "a: Forbidden: no",
            id="another reason",
        ),
        pytest.param(
            ruled(NUMBER, {"rule": "self > 1", "reason": "FieldValueDuplicate", "message": "no"}),
            1,
            "a: Duplicate value: 1",
            id="a duplicate has no message",
        ),
        pytest.param(
            ruled(fields(b=NUMBER), {"rule": "self.b > 1", "fieldPath": ".b"}),
            {"b": 1},
            "a.b: Invalid value: failed rule: self.b > 1",
            id="a fieldPath",
        ),
        pytest.param(
            ruled(fields(b=NUMBER), "self.b > 1"),
            {},
            'a: Invalid value: "object": no such key: b evaluating rule: self.b > 1',
            id="a missing field",
        ),
        pytest.param(
            ruled({"x-kubernetes-int-or-string": True}, "self > 1"),
            "x",
            "a: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, "
            "function or macro signature for rule: self > 1",
            id="another type",
        ),
        pytest.param(
            ruled({**TEXT, "nullable": True}, "self == 'x'"), None, None, id="rules are not evaluated for null"
        ),
    ],
)
def test_failed_rules_have_the_messages_of_kube_apiserver(held: Document, value: Any, message: str | None) -> None:
    assert messages(fields(a=held), {"a": value}) == ([] if message is None else [message])


def test_rules_of_items_entries_and_the_root_are_checked() -> None:
    schema = fields(l={"type": "array", "items": ruled(NUMBER, "self > 0")}, m={"type": "object", "additionalProperties": ruled(NUMBER, "self > 0")})  # fmt: skip # noqa: E501
    assert messages(schema, {"l": [1, 0], "m": {"k": 0}}) == [
        "l[1]: Invalid value: 0: failed rule: self > 0",
        "m[k]: Invalid value: 0: failed rule: self > 0",
    ]
    assert messages(ruled(fields(), "self.metadata.name != 'a'"), {"metadata": {"name": "a"}}) == [
        "<nil>: Invalid value: failed rule: self.metadata.name != 'a'"
    ]


@pytest.mark.parametrize(
    ("rule", "old", "is_rejected"),
    [
        pytest.param("self >= oldSelf", None, False, id="no old value"),
        pytest.param("self >= oldSelf", 5, True, id="the value shrinks"),
        pytest.param("self >= oldSelf", 1, False, id="the value grows"),
        pytest.param(
            {"rule": "oldSelf.hasValue()", "optionalOldSelf": True}, None, True, id="an optional old value is absent"
        ),
        pytest.param(
            {"rule": "oldSelf.hasValue()", "optionalOldSelf": True}, 1, False, id="an optional old value is present"
        ),
    ],
)
def test_transition_rules_are_skipped_without_an_old_value_unless_optional(
    rule: str | Document, old: Any, is_rejected: bool
) -> None:
    before = None if old is None else {"a": old}
    assert bool(messages(fields(a=ruled(NUMBER, rule)), {"a": 2}, before)) is is_rejected


def test_transition_rules_correlate_list_items_by_map_keys() -> None:
    item = ruled({**fields(k=TEXT, v=NUMBER), "required": ["k"]}, "self.v >= oldSelf.v")
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    old = {"l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}
    new = {"l": [{"k": "b", "v": 1}, {"k": "c", "v": 0}]}
    assert messages(fields(l=keyed), new, old) == ["l[0]: Invalid value: failed rule: self.v >= oldSelf.v"]


def test_a_failed_rule_about_an_unchanged_value_is_a_warning() -> None:
    schema = read_schema(fields(a=ruled(NUMBER, "self > 1"), b=NUMBER))
    rules = rules_of(schema)
    assert rules is not None
    old, new = {"a": 0}, {"a": 0, "b": 1}
    result = rules.check(new, old, CorrelatedValue(new, old, schema))
    assert (result.errors, result.warnings) == ([], ["a: Invalid value: 0: failed rule: self > 1"])


def test_a_rule_beyond_the_cost_limit_ends_the_evaluation() -> None:
    expensive = "self.all(x, self.all(y, self.all(z, x + y + z > 0)))"
    schema = fields(a=ruled({"type": "array", "items": NUMBER}, expensive, "false"))
    (message,) = messages(schema, {"a": list(range(1, 120))})
    assert message.startswith(
        "a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further"
    )
