"""Validation of the CEL rules of a schema.

1. A rule may cost `RULE_COST_MAX` in the worst case, times the number of values that it is evaluated for; all rules
   of a schema together `SCHEMA_COST_MAX`.
2. The number of values is the product of all limits on the path to the rule. A missing limit counts as the number of
   values that fit into a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mooring.api.cel.call_estimates import MOST
from mooring.api.document import Document
from mooring.apiserver.custom.rule_compiling import (
    CompiledRule,
    DeclaredType,
    cardinality_max,
    compiled_rules,
    declared_type,
    escaped,
)
from mooring.apiserver.custom.schema import FieldPathError, Schema, read_field_path, read_schema
from mooring.apiserver.validation.fields import FieldError, forbidden, internal, invalid, not_supported, required
from mooring.apiserver.validation.schema_rules import sorted_enum_values

RULE_COST_MAX = 10_000_000
SCHEMA_COST_MAX = 100_000_000
COSTLIEST_SHOWN_MAX = 4
REASONS = sorted_enum_values("apiextensions", "FieldValueErrorReason")

_RULES = "x-kubernetes-validations"
_has_line_end = re.compile(r"[\n\r]").search


@dataclass(slots=True)
class TotalCost:
    """The maximum cost of all rules of a schema, and the most expensive rules."""

    total: int = 0
    dearest: list[tuple[int, str]] = field(default_factory=list)

    def note(self, path: str, cost: int) -> None:
        self.total = min(self.total + cost, MOST)
        if cost >= SCHEMA_COST_MAX // 100:
            self.dearest.append((cost, path))
            self.dearest.sort(key=lambda entry: -entry[0])
            del self.dearest[COSTLIEST_SHOWN_MAX:]


@dataclass(frozen=True, slots=True)
class RuleScope:
    """A node of a schema, as its rules see it."""

    schema: Schema
    declared: DeclaredType | None
    count_max: int | None
    """How many such values an object can have; None if nothing limits them."""
    costs: TotalCost

    @classmethod
    def root(cls, schema: Schema) -> RuleScope:
        return cls(schema, declared_type(schema, is_root=True), 1, TotalCost())

    def of_property(self, name: str, raw: Document) -> RuleScope:
        held = self.schema.properties[name]
        known = self.declared.fields.get(escaped(name)) if self.declared is not None else None
        return self._below(held, known)

    def of_additional(self, raw: Document) -> RuleScope:
        held = self.schema.additional or read_schema(raw)
        return self._below(held, self.declared.element if self.declared is not None else None)

    def of_items(self, raw: Document) -> RuleScope:
        held = self.schema.items or read_schema(raw)
        return self._below(held, self.declared.element if self.declared is not None else None)

    def _below(self, schema: Schema, declared: DeclaredType | None) -> RuleScope:
        if declared is None:
            declared = declared_type(schema, is_root=schema.is_embedded)
        count, own = self.count_max, _count_max(self.schema)
        return RuleScope(schema, declared, None if count is None or own is None else min(count * own, MOST), self.costs)


def validate_rule_text(raw: Document, path: str) -> list[FieldError]:
    """Field errors of the rules of a node that need no compilation."""
    errors: list[FieldError] = []
    for index, rule in enumerate(raw[_RULES]):
        errors += _validate_text(rule, raw, f"{path}.{_RULES}[{index}]")
    return errors


def validate_rule(scope: RuleScope, path: str, *, no_old_value_within: str, has_known_costs: bool) -> list[FieldError]:
    """Field errors of the expressions of the rules of a node."""
    if scope.declared is None:
        why = "internal error: failed to construct type information for x-kubernetes-validations rules"
        return [internal(f"{path}.{_RULES}", f"{why}: unable to convert structural schema to CEL declarations")]
    errors: list[FieldError] = []
    count = scope.count_max if scope.count_max is not None else cardinality_max(scope.declared)
    for index, compiled in enumerate(compiled_rules(scope.schema, scope.declared)):
        place = f"{path}.{_RULES}[{index}]"
        cost = min(compiled.cost_max * count, MOST)
        errors += _validate_cost(scope, f"{place}.rule", "estimated rule cost", cost, has_known_costs)
        errors += _validate_compiled(scope, compiled, place, has_known_costs)
        errors += _validate_old_value(compiled, place, no_old_value_within)
    return errors


def validate_total_cost(scope: RuleScope, path: str) -> list[FieldError]:
    """Field errors of the total cost of all rules."""
    if scope.costs.total <= SCHEMA_COST_MAX:
        return []
    part = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    whole = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    errors = [forbidden(place, part) for _, place in scope.costs.dearest]
    return [*errors, forbidden(path, _too_dear(whole, scope.costs.total, SCHEMA_COST_MAX))]


def _validate_text(rule: Document, raw: Document, path: str) -> Iterator[FieldError]:
    text, message = rule.get("rule", ""), rule.get("message", "")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _has_line_end(message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _has_line_end(text.strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression", "")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        yield not_supported(f"{path}.reason", reason, REASONS)
    field_path = rule.get("fieldPath", "")
    if not field_path:
        return
    if not field_path.strip():
        yield invalid(f"{path}.fieldPath", field_path, "must be non-empty if specified")
    if _has_line_end(field_path):
        yield invalid(f"{path}.fieldPath", field_path, "must not contain line breaks")
    try:
        read_field_path(field_path, read_schema(raw))
    except FieldPathError:
        yield invalid(f"{path}.fieldPath", field_path, "must be a valid path")


def _validate_compiled(scope: RuleScope, compiled: CompiledRule, path: str, has_known_costs: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    shown = _rule_shown(compiled.rule)
    if compiled.error:
        errors.append(invalid(f"{path}.rule", shown, compiled.error))
    place = f"{path}.messageExpression"
    if compiled.message_error:
        errors.append(invalid(place, shown, compiled.message_error))
    elif compiled.message is not None:
        called = "estimated messageExpression cost"
        errors += _validate_cost(scope, place, called, compiled.message_cost_max, has_known_costs)
    return errors


def _validate_cost(scope: RuleScope, path: str, called: str, cost: int, has_known_costs: bool) -> list[FieldError]:
    scope.costs.note(path, cost)
    if has_known_costs or cost <= RULE_COST_MAX:
        return []
    return [forbidden(path, _too_dear(called, cost, RULE_COST_MAX))]


def _validate_old_value(compiled: CompiledRule, path: str, no_old_value_within: str) -> list[FieldError]:
    rule = compiled.rule
    if compiled.uses_old:
        if not no_old_value_within:
            return []
        why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {no_old_value_within}"
        return [invalid(f"{path}.rule", rule["rule"], why)]
    if rule.get("optionalOldSelf") is not None:
        why = "may not be set if oldSelf is not used in rule"
        return [invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], why)]
    return []


def _count_max(schema: Schema) -> int | None:
    """How many values there are below one of these."""
    limit: int | None = 1
    if schema.type == "object" and schema.has_additional:
        limit = schema.raw.get("maxProperties")
    elif schema.type == "array":
        limit = schema.raw.get("maxItems")
    return None if limit is None else max(limit, 0)


def _too_dear(called: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    limits = "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{called} exceeds budget by factor of {shown} (try simplifying the rule, or adding {limits})"


def _rule_shown(rule: Document) -> Document:
    """A rule as kube-apiserver prints it."""
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
