"""Compilation of CEL rules, and its errors."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.custom.rule_compiling import CompiledRule, cardinality_max, compiled_rules
from mooring.apiserver.custom.rule_types import declared_type
from mooring.apiserver.custom.schema import read_schema
from tests.apiserver.custom.definitions import fields, ruled

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
        pytest.param("self.a", "cel expression must evaluate to a bool", id="no answer"),
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
            id="no bindings here",
        ),
    ],
)
def test_rules(rule: str, error: str) -> None:
    found = compiled(rule)
    assert found.error == error
    assert (found.program is None) is bool(error)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param("'a'", "", id="fine"),
        pytest.param("self.a", "messageExpression must evaluate to a string", id="no text"),
        pytest.param(
            "self.zz",
            "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz\n | ....^",
            id="an unknown field",
        ),
    ],
)
def test_messages(message: str, error: str) -> None:
    assert compiled({"rule": "self.a > 1", "messageExpression": message}).message_error == error


def test_what_a_rule_says_of_the_old_value() -> None:
    assert compiled("self.a == oldSelf.a").uses_old
    assert not compiled("self.a == 1").uses_old
    optional = compiled({"rule": "oldSelf.hasValue()", "optionalOldSelf": True})
    assert (optional.uses_old, optional.is_old_optional) == (True, True)


def test_the_path_of_an_error() -> None:
    assert compiled({"rule": "self.a > 1", "fieldPath": ".b"}).field_path == "b"


def test_costs() -> None:
    assert compiled("self.a > 1").cost_max == 3
    assert compiled("self.l.all(x, x == 'a')").cost_max == 5_242_878
    assert compiled("self.l.all(x, self.l.all(y, x == y))").cost_max > 10**12
    declared = declared_type(read_schema({"type": "string"}), is_root=False)
    assert declared is not None
    assert cardinality_max(declared) == 1_048_576
