"""Evaluate the CEL validation rules of a CRD for a custom resource.

Input: a schema with `x-kubernetes-validations`; an object, and its old version. Output: field errors, and warnings for
unchanged parts that break a rule.

1. A rule that uses the old value runs only if there is one, unless the rule has `optionalOldSelf`.
2. All rules of one object share a budget. When it is spent, no further rule runs, which is an error.
3. If `messageExpression` fails, the error has the static message, or the rule.
4. Strings of some formats become bytes, durations and timestamps, numbers become doubles.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mooring.api.cel.compiler import Program
from mooring.api.cel.conversions import parse_timestamp
from mooring.api.cel.costs import Meter
from mooring.api.cel.errors import NO_SUCH_OVERLOAD, CostExceeded, EvaluationFailure
from mooring.api.cel.values import NONE, Duration, Optional, Timestamp, Value
from mooring.api.document import Document
from mooring.api.durations import parse_nanoseconds
from mooring.api.field_errors import NO_PATH
from mooring.apiserver.custom.rule_compiling import (
    CompiledRule,
    DeclaredType,
    compiled_rules,
    declared_type,
    escaped,
    with_object_meta,
)
from mooring.apiserver.custom.schema import CorrelatedValue, Schema, items_by_key, key_of
from mooring.apiserver.validation.fields import NO_VALUE, FieldError, FieldErrorType, invalid


def cel_value(value: Any, schema: Schema, *, is_root: bool = False) -> Value:
    """The CEL value of a JSON value. A value of a wrong type is unchanged: other rules reject it."""
    if is_root or schema.is_embedded:
        schema = with_object_meta(schema)
    match value:
        case dict():
            return _fields(value, schema)
        case list():
            items = schema.items
            return [cel_value(item, items) for item in value] if items is not None else []
        case str():
            return _text(value, schema.raw.get("format", "")) if schema.type == "string" else value
        case bool() | None:
            return value
        case int() | float():
            if schema.type == "number":
                return float(value)
            return int(value) if schema.type == "integer" else value
        case _:
            raise AssertionError(f"{value!r} is no JSON")


def _fields(fields: dict[str, Any], schema: Schema) -> dict[Value, Value]:
    found: dict[Value, Value] = {}
    for name, value in fields.items():
        if schema.additional is not None:
            found[name] = cel_value(value, schema.additional)
            continue
        nested = schema.properties.get(name)
        cel_name = escaped(name) if nested is not None else ""
        if nested is not None and cel_name:
            found[cel_name] = cel_value(value, nested)
    return found


def _text(text: str, form: str) -> Value:
    try:
        match form:
            case "byte":
                return base64.b64decode(text, validate=True)
            case "duration":
                return Duration(parse_nanoseconds(text))
            case "date":
                return Timestamp(*parse_timestamp(f"{text}T00:00:00Z"))
            case "date-time":
                return Timestamp(*parse_timestamp(text))
    except ValueError:
        return text
    return text


BUDGET = 10_000_000
MESSAGE_BYTES_MAX = 5 * 1024
_EXHAUSTED = "validation failed due to running out of cost budget, no further validation rules will be run"
_REASONS = {
    "FieldValueForbidden": FieldErrorType.FORBIDDEN,
    "FieldValueRequired": FieldErrorType.REQUIRED,
    "FieldValueDuplicate": FieldErrorType.DUPLICATE,
}


def rules_of(schema: Schema, *, is_root: bool = True) -> SchemaRules | None:
    """The rules of a schema; None if it has none."""
    if not schema.rules and not schema.has_rules_below:
        return None
    node = _node(schema, declared_type(schema, is_root=is_root), is_root=is_root)
    return SchemaRules(node) if node is not None else None


@dataclass(slots=True)
class RuleResult:
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    budget: int = BUDGET


@dataclass(slots=True, eq=False)
class _SchemaNode:
    """The rules of one node of a schema, and of the nodes below it."""

    schema: Schema
    is_root: bool
    rules: list[CompiledRule]
    properties: dict[str, _SchemaNode]
    additional: _SchemaNode | None
    items: _SchemaNode | None


class SchemaRules:
    """All rules of a schema."""

    def __init__(self, root: _SchemaNode) -> None:
        self._root = root

    def check(self, obj: Any, old: Any, pair: CorrelatedValue | None, path: str = "") -> RuleResult:
        """Evaluate the rules. Without a pair, errors of unchanged parts are not turned into warnings."""
        result = RuleResult()
        with suppress(_OutOfBudget):
            _Check(result).node(self._root, obj, old, path, pair, None, is_top=True)
        return result


def _node(schema: Schema, declared: DeclaredType | None, *, is_root: bool = False) -> _SchemaNode | None:
    if not schema.rules and not schema.has_rules_below:
        return None
    if declared is None:
        return None
    properties: dict[str, _SchemaNode] = {}
    for name, nested in schema.properties.items():
        below = declared.fields.get(escaped(name))
        if below is None and not escaped(name):
            below = declared_type(nested, is_root=nested.is_embedded)
        node = _node(nested, below, is_root=nested.is_embedded)
        if node is not None:
            properties[name] = node
    additional, items = schema.additional, schema.items
    return _SchemaNode(
        schema,
        is_root,
        compiled_rules(schema, declared),
        properties,
        _node(additional, declared.element, is_root=additional.is_embedded) if additional is not None else None,
        _node(items, declared.element, is_root=items.is_embedded) if items is not None else None,
    )


class _OutOfBudget(Exception):
    """The cost budget of the rules is exceeded."""


class _Check:
    def __init__(self, result: RuleResult) -> None:
        self._result = result

    def node(
        self,
        node: _SchemaNode,
        value: Any,
        old: Any,
        path: str,
        pair: CorrelatedValue | None,
        above: CorrelatedValue | None,
        *,
        is_top: bool = False,
    ) -> None:
        """`above` is the nearest pair of an ancestor, used if the value has no pair."""
        if value is None:
            return
        if node.rules:
            self._rules(node, value, old, path, pair if pair is not None else above)
        if isinstance(value, dict):
            self._fields(node, value, old, path, pair, above, is_top=is_top)
        elif isinstance(value, list) and node.items is not None:
            known = items_by_key(node.schema, old)
            for index, item in enumerate(value):
                before = known.get(key_of(node.schema, item)) if known else None
                below = pair.item(index) if pair is not None else None
                self.node(node.items, item, before, f"{path}[{index}]", below, pair or above)

    def _fields(
        self,
        node: _SchemaNode,
        fields: Document,
        old: Any,
        path: str,
        pair: CorrelatedValue | None,
        above: CorrelatedValue | None,
        *,
        is_top: bool,
    ) -> None:
        before: Document = old if isinstance(old, dict) else {}
        for name, value in fields.items():
            inner, place = node.properties.get(name), f"{path}.{name}" if path else name
            if node.additional is not None:
                inner, place = node.additional, f"{path}[{name}]"
            if inner is None:
                continue
            # Both objects are read in the same version, so a change of these fields is not visible.
            is_hidden = is_top and name in ("apiVersion", "kind")
            below = pair.field(name) if pair is not None and not is_hidden else None
            self.node(inner, value, before.get(name), place, below, None if is_hidden else pair or above)

    # --- one node ---

    def _rules(self, node: _SchemaNode, value: Any, old: Any, path: str, pair: CorrelatedValue | None) -> None:
        seen = cel_value(value, node.schema, is_root=node.is_root)
        old_seen = cel_value(old, node.schema, is_root=node.is_root) if old is not None else None
        for compiled in node.rules:
            if compiled.program is None:
                if compiled.error:
                    self._result.errors.append(self._at(node, path, f"rule compile error: {compiled.error}"))
                continue
            if compiled.uses_old and old is None and not compiled.is_old_optional:
                continue
            before: Value = old_seen
            if compiled.is_old_optional:
                before = Optional(old_seen) if old is not None else NONE
            if not self._holds(node, compiled, compiled.program, (seen, before), path):
                self._add_error(node, compiled, value, (seen, before), path, pair)

    def _holds(
        self, node: _SchemaNode, compiled: CompiledRule, program: Program, values: tuple[Value, Value], path: str
    ) -> bool:
        """Whether a rule holds. If the evaluation fails, this method reports the error and returns True."""
        if self._result.budget <= 0:
            self._stop(self._at(node, path, _EXHAUSTED))
        meter = Meter()
        shown = _shown(compiled.rule)
        try:
            answer = program.evaluate_all(values, meter)
        except CostExceeded as failure:
            why = (
                f"'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
            )
            self._stop(self._at(node, path, why))
        except EvaluationFailure as failure:
            self._spend(meter, node, path)
            why = f"{failure} evaluating rule: {shown}"
            if str(failure).startswith(NO_SUCH_OVERLOAD):
                signature = "call arguments did not match a supported operator, function or macro signature for rule"
                why = f"'{failure}': {signature}: {shown}"
            self._result.errors.append(self._at(node, path, why))
            return True
        self._spend(meter, node, path)
        return answer is True

    def _add_error(
        self,
        node: _SchemaNode,
        compiled: CompiledRule,
        value: Any,
        values: tuple[Value, Value],
        path: str,
        pair: CorrelatedValue | None,
    ) -> None:
        place = path
        if compiled.field_path:
            place = f"{path}.{compiled.field_path}" if path else compiled.field_path
        detail = self._message(compiled, values) or _message_or_default(compiled.rule)
        shown: object = NO_VALUE if node.schema.type in ("object", "array") else value
        kind = _REASONS.get(compiled.rule.get("reason") or "", FieldErrorType.INVALID)
        error = FieldError(kind, place or NO_PATH, "" if kind is FieldErrorType.DUPLICATE else detail, shown)
        if pair is not None and pair.is_same and not compiled.uses_old:
            self._result.warnings.append(error.message)
        else:
            self._result.errors.append(error)

    def _message(self, compiled: CompiledRule, values: tuple[Value, Value]) -> str:
        """The result of `messageExpression`; empty if there is none that can be shown."""
        if compiled.message is None:
            return ""
        meter = Meter()
        try:
            text = compiled.message.evaluate_all(values, meter)
        except (EvaluationFailure, CostExceeded):
            return ""
        self._result.budget -= meter.spent
        text = text.strip() if isinstance(text, str) else ""
        return "" if len(text.encode()) > MESSAGE_BYTES_MAX or "\n" in text else text

    def _spend(self, meter: Meter, node: _SchemaNode, path: str) -> None:
        if meter.spent > self._result.budget:
            self._stop(self._at(node, path, _EXHAUSTED))
        self._result.budget -= meter.spent

    def _at(self, node: _SchemaNode, path: str, detail: str) -> FieldError:
        return invalid(path or NO_PATH, node.schema.type, detail)

    def _stop(self, error: FieldError) -> NoReturn:
        self._result.errors.append(error)
        raise _OutOfBudget


def _shown(rule: Document) -> str:
    return str(rule.get("message") or rule["rule"]).strip()


def _message_or_default(rule: Document) -> str:
    return rule["message"].strip() if rule.get("message") else f"failed rule: {_shown(rule)}"
