"""Compilation of CEL rules, and its errors."""

from __future__ import annotations

import pytest

from mooring.api.cel import types
from mooring.api.cel.call_estimates import CostRange
from mooring.api.cel.types import CelType
from mooring.api.document import Document
from mooring.apiserver.custom.rule_compiling import (
    REQUEST_BYTES_MAX,
    CompiledRule,
    cardinality_max,
    compiled_rules,
    declared_type,
    escaped,
    size_at,
)
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields, ruled

TEXT: Document = {"type": "string"}


@pytest.mark.parametrize(
    ("raw", "type_", "size_max"),
    [
        pytest.param({"type": "integer"}, types.INT, 0, id="a whole number"),
        pytest.param({"type": "number"}, types.DOUBLE, 0, id="a number"),
        pytest.param({"type": "boolean"}, types.BOOL, 0, id="a boolean"),
        pytest.param(TEXT, types.STRING, REQUEST_BYTES_MAX - 2, id="a string as long as a request"),
        pytest.param({**TEXT, "maxLength": 5}, types.STRING, 20, id="a character takes up to four bytes"),
        pytest.param({**TEXT, "enum": ["a", "bbb"]}, types.STRING, 3, id="an enum"),
        pytest.param({**TEXT, "format": "date-time"}, types.TIMESTAMP, 32, id="a date-time"),
        pytest.param({**TEXT, "format": "duration"}, types.DURATION, 32, id="a duration"),
        pytest.param({**TEXT, "format": "byte", "maxLength": 5}, types.BYTES, 5, id="bytes"),
        pytest.param({"x-kubernetes-int-or-string": True}, types.DYN, REQUEST_BYTES_MAX - 2, id="int or string"),
        pytest.param({"type": "array", "maxItems": 3, "items": TEXT}, types.list_of(types.STRING), 3, id="a list"),
        pytest.param(
            {"type": "array", "items": {"type": "integer"}},
            types.list_of(types.INT),
            1_572_863,
            id="a list without maxItems",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": TEXT},
            types.map_of(types.STRING, types.STRING),
            393_215,
            id="a map without maxProperties",
        ),
    ],
)
def test_schemas_have_cel_types_and_maximum_sizes(raw: Document, type_: CelType, size_max: int) -> None:
    declared = declared_type(read_schema(raw), is_root=False)
    assert declared is not None
    assert (declared.type, declared.size_max) == (type_, size_max)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, id="anything"),
        pytest.param(
            {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}, id="a list of anything"
        ),
    ],
)
def test_schemas_without_a_type_are_not_declared(raw: Document) -> None:
    assert declared_type(read_schema(raw), is_root=False) is None


def test_the_root_declares_type_and_name_fields_without_a_schema_of_them() -> None:
    declared = declared_type(read_schema(fields(spec=fields())), is_root=True)
    assert declared is not None
    assert sorted(declared.fields) == ["apiVersion", "kind", "metadata", "spec"]
    assert sorted(declared.fields["metadata"].fields) == ["generateName", "name"]


def test_required_fields_count_for_the_minimum_size() -> None:
    raw = {**fields(name=TEXT, other=TEXT), "required": ["name"]}
    declared = declared_type(read_schema(raw), is_root=False)
    assert declared is not None
    assert declared.bytes_min == 2 + 4 + 2 + 4


def test_size_at_returns_the_size_of_a_path() -> None:
    raw = fields(l={"type": "array", "maxItems": 4, "items": fields(a={**TEXT, "maxLength": 2})})
    declared = declared_type(read_schema(raw), is_root=False)
    assert declared is not None
    assert size_at(declared, ("self", "l")) == CostRange(0, 4)
    assert size_at(declared, ("self", "l", "@items", "a")) == CostRange(0, 8)
    assert size_at(declared, ("self", "nope")) is None


@pytest.mark.parametrize(
    ("name", "cel_name"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("1a", ""),
        ("a b", ""),
        ("", ""),
    ],
    ids=str,
)
def test_field_names_are_escaped_for_cel(name: str, cel_name: str) -> None:
    assert escaped(name) == cel_name


SCHEMA = fields(a={"type": "integer"}, b={"type": "string"}, l={"type": "array", "items": {"type": "string"}})


def compiled(rule: str | Document) -> CompiledRule:
    schema = read_schema(ruled(SCHEMA, rule))
    declared = declared_type(schema, is_root=False)
    assert declared is not None
    (found,) = compiled_rules(schema, declared)
    return found


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        pytest.param("self.a > 1", "", id="fine"),
        pytest.param("self.a", "cel expression must evaluate to a bool", id="no boolean"),
        pytest.param(
            "self.zz > 1",
            "compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz > 1\n | ....^",
            id="an unknown field",
        ),
        pytest.param(
            "foo",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^",
            id="an unknown name",
        ),
        pytest.param(
            "cel.bind(x, 1, x > 0)",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'cel' (in container '')\n"
            " | cel.bind(x, 1, x > 0)\n | ^\n"
            "ERROR: <input>:1:9: undeclared reference to 'bind' (in container '')\n"
            " | cel.bind(x, 1, x > 0)\n | ........^\n"
            "ERROR: <input>:1:10: undeclared reference to 'x' (in container '')\n"
            " | cel.bind(x, 1, x > 0)\n | .........^\n"
            "ERROR: <input>:1:16: undeclared reference to 'x' (in container '')\n"
            " | cel.bind(x, 1, x > 0)\n | ...............^",
            id="cel.bind is not available",
        ),
    ],
)
def test_rules_are_compiled_or_have_an_error(rule: str, error: str) -> None:
    found = compiled(rule)
    assert found.error == error
    assert (found.program is None) is bool(error)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param("'a'", "", id="fine"),
        pytest.param("self.a", "messageExpression must evaluate to a string", id="no string"),
        pytest.param(
            "self.zz",
            "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz\n | ....^",
            id="an unknown field",
        ),
    ],
)
def test_message_expressions_are_compiled_or_have_an_error(message: str, error: str) -> None:
    assert compiled({"rule": "self.a > 1", "messageExpression": message}).message_error == error


def test_compiled_rules_record_the_use_of_old_self() -> None:
    assert compiled("self.a == oldSelf.a").uses_old
    assert not compiled("self.a == 1").uses_old
    optional = compiled({"rule": "oldSelf.hasValue()", "optionalOldSelf": True})
    assert (optional.uses_old, optional.is_old_optional) == (True, True)


def test_the_field_path_of_a_rule_has_no_leading_dot() -> None:
    assert compiled({"rule": "self.a > 1", "fieldPath": ".b"}).field_path == "b"


def test_the_maximum_costs_of_rules_are_estimated() -> None:
    assert compiled("self.a > 1").cost_max == 3
    assert compiled("self.l.all(x, x == 'a')").cost_max == 5_242_878
    assert compiled("self.l.all(x, self.l.all(y, x == y))").cost_max > 10**12
    declared = declared_type(read_schema({"type": "string"}), is_root=False)
    assert declared is not None
    assert cardinality_max(declared) == 1_048_576
