"""Validation of the schema of a custom kind.

Order: structural form, defaults, forbidden fields, list and map types, CEL rules.

1. CEL rules are validated only where the schema is valid at their place and below it.
2. A default inside metadata is validated as a part of a whole object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mooring.api.document import Document, copied_json, same_json
from mooring.apiserver.custom.pruning import EmbeddedResourceError, coerce_embedded, prune, validate_embedded
from mooring.apiserver.custom.rules import rules_of
from mooring.apiserver.custom.schema import META_FIELDS, Schema, read_schema
from mooring.apiserver.custom.value_rules import ValueRules, validate_value
from mooring.apiserver.kinds.custom_resource_definition.rules import (
    RuleScope,
    validate_rule,
    validate_rule_text,
    validate_total_cost,
)
from mooring.apiserver.kinds.custom_resource_definition.structural import (
    unsupported,
    validate_list,
    validate_map_set,
    validate_structural,
)
from mooring.apiserver.validation.fields import FieldError, aggregated, forbidden, invalid, not_supported
from mooring.apiserver.validation.values import internal_value

_INDEX = 0

TYPES = ("array", "boolean", "integer", "number", "object", "string")

_ROOT_FIELDS = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_NOT_AT_ROOT_BEFORE_TYPE = ("id", "$schema", "$ref")
_NOT_AT_ROOT = (
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
)
_FORBIDDEN = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


def validate_default(schema: Schema, path: str, *, needs_pruned: bool) -> list[FieldError]:
    """Field errors of the defaults in a schema."""
    return list(_Defaults(needs_pruned).errors(schema, schema, path, (), is_resource=True, is_meta=False))


class _Defaults:
    def __init__(self, needs_pruned: bool) -> None:
        self._needs_pruned = needs_pruned

    def errors(
        self, schema: Schema, root: Schema, path: str, way: tuple[str | int, ...], *, is_resource: bool, is_meta: bool
    ) -> Iterator[FieldError]:
        """`way` leads from the root of the resource to the value."""
        is_resource = is_resource or schema.is_embedded
        if schema.is_embedded:
            is_meta, root, way = False, schema, ()
        if schema.default is not None:
            place = f"{path}.default"
            if is_meta:
                yield from self._validate_meta(schema, root, place, way)
            else:
                yield from self._validate_own(schema, place)
        if schema.items is not None:
            yield from self.errors(
                schema.items, root, f"{path}.items", (*way, _INDEX), is_resource=False, is_meta=is_meta
            )
        for name, nested in schema.properties.items():
            below = f"{path}.properties[{name}]"
            is_nested_meta = is_meta or (is_resource and name in META_FIELDS)
            yield from self.errors(nested, root, below, (*way, name), is_resource=False, is_meta=is_nested_meta)

    def _validate_own(self, schema: Schema, path: str) -> Iterator[FieldError]:
        default = schema.default
        if self._needs_pruned:
            pruned = copied_json(default)
            prune(pruned, schema, is_root=schema.is_embedded)
            if not same_json(pruned, default):
                yield invalid(path, default, "must not have unknown fields")
        coerced = copied_json(default)
        try:
            coerce_embedded(coerced, schema, path)
        except EmbeddedResourceError as error:
            yield error.error
            return
        wrong = validate_embedded(coerced, schema, path)
        yield from wrong or _validate_schema_value(schema, default, path)

    def _validate_meta(
        self, schema: Schema, root: Schema, path: str, way: tuple[str | int, ...]
    ) -> Iterator[FieldError]:
        whole = _surrounded(copied_json(schema.default), way)
        must = "must result in valid metadata: "
        try:
            coerce_embedded(whole, root, is_resource=True)
        except EmbeddedResourceError as error:
            yield invalid(path, schema.default, f"{must}{error}")
            return
        wrong = validate_embedded(whole, root, is_resource=True)
        if wrong:
            yield invalid(path, schema.default, f"{must}{aggregated(wrong)}")
        else:
            yield from _validate_schema_value(schema, schema.default, path)


def _validate_schema_value(schema: Schema, default: Any, path: str) -> list[FieldError]:
    field_errors = validate_value(ValueRules(schema.raw), default, path)
    rules = rules_of(schema, is_root=False) if not field_errors else None
    if rules is not None:
        field_errors = rules.check(default, default, None, path).errors
        field_errors = field_errors or rules.check(default, None, None, path).errors
    return field_errors


def _surrounded(value: Any, way: tuple[str | int, ...]) -> Document:
    """An object that has a value where a way leads."""
    for step in reversed(way):
        value = [value] if isinstance(step, int) else {step: value}
    whole: Document = value if isinstance(value, dict) else {}
    whole.setdefault("kind", "Validation")
    whole.setdefault("apiVersion", "validation/v1")
    return whole


@dataclass(frozen=True, slots=True)
class SchemaValidationOptions:
    """The rules that apply to a schema. An update applies only the rules that the stored schema satisfies."""

    needs_schema: bool = True
    needs_known_types: bool = True
    needs_structural: bool = True
    needs_pruned_defaults: bool = True
    needs_atomic_sets: bool = True
    needs_safe_keys: bool = True
    has_known_costs: bool = False
    """Whether the rules are unchanged: then the cost of a single rule is not limited."""


@dataclass(slots=True)
class SchemaErrors:
    """Errors of a schema, and of its rules."""

    own: list[FieldError] = field(default_factory=list)
    rules: list[FieldError] = field(default_factory=list)

    def add(self, other: SchemaErrors) -> None:
        self.own += other.own
        self.rules += other.rules


def validate_schema(
    validation: Document | None, path: str, options: SchemaValidationOptions, *, has_status: bool
) -> list[FieldError]:
    """Field errors of `schema` of a version."""
    raw: Document | None = (validation or {}).get("openAPIV3Schema")
    if raw is None:
        return []
    place = f"{path}.openAPIV3Schema"
    field_errors = list(_validate_root(raw, place)) if has_status else []
    if raw.get("nullable"):
        field_errors.append(forbidden(f"{place}.nullable", "nullable cannot be true at the root"))
    scope: RuleScope | None = None
    late = ""
    if options.needs_structural:
        late = unsupported(raw)
        wrong = [] if late else validate_structural(raw, place)
        if not late and not wrong:
            schema = read_schema(raw)
            wrong = validate_default(schema, place, needs_pruned=options.needs_pruned_defaults)
            scope = RuleScope.root(schema) if not wrong else None
        field_errors += wrong
    found = _Walk(options).errors(raw, place, _Place(is_root=True), scope)
    field_errors += found.own + found.rules
    if late and not field_errors:
        # Other errors cover this case with a better message, with one exception.
        field_errors.append(invalid(place, "", late))
    return field_errors + (validate_total_cost(scope, place) if scope is not None else [])


def _validate_root(raw: Document, path: str) -> Iterator[FieldError]:
    """With the status subresource, the root schema may have only fields that keep their meaning."""
    why = f"only [{_ROOT_FIELDS}] fields are allowed at the root of the schema if the status subresource is enabled"
    shown = internal_value(raw, "JSONSchemaProps", "apiextensions")
    if any(raw.get(name) for name in _NOT_AT_ROOT_BEFORE_TYPE):
        yield invalid(path, shown, why)
    elif raw.get("type") and raw["type"] != "object":
        only = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(f"{path}.type", raw["type"], only)
    elif any(
        raw.get(name) not in (None, False, "", [], {}) or (raw.get(name) is False and name == "additionalProperties")
        for name in _NOT_AT_ROOT
    ):
        yield invalid(path, shown, why)


@dataclass(frozen=True, slots=True)
class _Place:
    """A position in a schema."""

    is_root: bool = False
    is_meta: bool = False
    no_default_because: str | None = None
    no_old_value_within: str = ""
    """The first list on the path whose items cannot be correlated with old values."""


class _Walk:
    def __init__(self, options: SchemaValidationOptions) -> None:
        self._options = options

    def errors(self, raw: Document, path: str, at: _Place, scope: RuleScope | None) -> SchemaErrors:
        found = SchemaErrors(list(self._validate_own(raw, path, at)))
        inner = replace(at, is_root=False)
        self._additional(found, raw, path, inner, scope)
        for name, nested in sorted((raw.get("properties") or {}).items()):
            below = _below_property(raw, at, inner, name)
            place = f"{path}.properties[{name}]"
            found.add(self.errors(nested, place, below, scope and scope.of_property(name, nested)))
        if raw.get("not") is not None:
            found.add(self.errors(raw["not"], f"{path}.not", inner, None))
        for name in ("allOf", "oneOf", "anyOf"):
            for index, nested in enumerate(raw.get(name) or ()):
                found.add(self.errors(nested, f"{path}.{name}[{index}]", inner, None))
        for name, nested in sorted((raw.get("definitions") or {}).items()):
            found.add(self.errors(nested, f"{path}.definitions[{name}]", inner, None))
        self._items(found, raw, path, inner, scope)
        for name, nested in sorted((raw.get("dependencies") or {}).items()):
            if isinstance(nested, dict):
                found.add(self.errors(nested, f"{path}.dependencies[{name}]", inner, None))
        found.own += validate_list(raw, path, needs_atomic_sets=self._options.needs_atomic_sets)
        if self._options.needs_safe_keys:
            found.own += validate_map_set(raw, path)
        self._rules(found, raw, path, at, scope)
        return found

    def _validate_own(self, raw: Document, path: str, at: _Place) -> Iterator[FieldError]:
        type_name = raw.get("type", "")
        if self._options.needs_known_types and type_name and type_name not in TYPES:
            yield not_supported(f"{path}.type", type_name, TYPES)
        if raw.get("default") is not None and at.no_default_because is not None:
            yield forbidden(f"{path}.default", f"must not be set {at.no_default_because}")
        for name in _FORBIDDEN:
            if raw.get(name) is not None and not (name == "id" and raw[name] == ""):
                yield forbidden(f"{path}.{name}", f"{name} is not supported")
        if type_name == "null":
            yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
        if isinstance(raw.get("items"), list):
            yield forbidden(f"{path}.items", "items must be a schema object and not an array")
        if at.is_meta and raw.get("x-kubernetes-embedded-resource"):
            yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
        if raw.get("uniqueItems"):
            why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            yield forbidden(f"{path}.uniqueItems", why)

    def _additional(
        self, found: SchemaErrors, raw: Document, path: str, inner: _Place, scope: RuleScope | None
    ) -> None:
        additional = raw.get("additionalProperties")
        if additional is None:
            return
        if raw.get("properties") and additional is not True:
            why = "additionalProperties and properties are mutual exclusive"
            found.own.append(forbidden(f"{path}.additionalProperties", why))
        if isinstance(additional, dict):
            if inner.is_meta:
                why = "inside additionalProperties applying to object metadata"
                inner = replace(inner, no_default_because=why)
            below = scope and scope.of_additional(additional)
            found.add(self.errors(additional, f"{path}.additionalProperties", inner, below))

    def _items(self, found: SchemaErrors, raw: Document, path: str, inner: _Place, scope: RuleScope | None) -> None:
        items = raw.get("items")
        if items is None:
            return
        if raw.get("x-kubernetes-list-type") != "map" and not inner.no_old_value_within:
            inner = replace(inner, no_old_value_within=path)
        if isinstance(items, dict):
            found.add(self.errors(items, f"{path}.items", inner, scope and scope.of_items(items)))
        else:
            for index, nested in enumerate(items):
                found.add(self.errors(nested, f"{path}.items[{index}]", inner, None))

    def _rules(self, found: SchemaErrors, raw: Document, path: str, at: _Place, scope: RuleScope | None) -> None:
        rules = raw.get("x-kubernetes-validations")
        if not rules:
            return
        found.own += validate_rule_text(raw, path)
        if not found.own and scope is not None:
            found.rules += validate_rule(
                scope,
                path,
                no_old_value_within=at.no_old_value_within,
                has_known_costs=self._options.has_known_costs,
            )


def _below_property(raw: Document, at: _Place, inner: _Place, name: str) -> _Place:
    is_resource = at.is_root or raw.get("x-kubernetes-embedded-resource", False)
    if is_resource and name in META_FIELDS:
        inner = replace(inner, is_meta=True)
        if at.is_root:
            inner = replace(inner, no_default_because=f"in top-level {name}")
    return inner
