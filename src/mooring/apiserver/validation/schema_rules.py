"""Validation of fields by the rules of the schema.

Input: a struct of `api/schema`, and documents of that struct. Output: field errors with the messages of kube-apiserver.

A field of a `.schema` file has its rules in `valid=`, checked in this order:

    required            not empty                          set                  not absent (pointers)
    enum                a value of the field's type        one-of:A|B           one of these values
    dns-label …         a format, see `_FORMATS`           max-bytes:N          a length
    positive, min:N     a number                           range:LOW..HIGH      a number between two numbers
    immutable           see `StructRules.validate_update`

1. A field that is not required is valid if it is empty; a pointer only if it is absent. With `optional` an empty
   pointer is valid, too; with `always` an absent value is checked as the zero value of Go. Enums imply `always`.
2. `enum` lists the values sorted, as kube-apiserver does for most fields; `declared-enum` in the order of declaration.
3. Errors come in the order of the schema, or in the order in which the caller names the fields.
4. Rules that depend on other fields stay in the modules of `apiserver/kinds`, because a schema cannot express them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

from mooring.api.document import Document
from mooring.api.schema.types import Basic, Field, Scalar, Struct, struct_named, type_named
from mooring.apiserver.validation.fields import FieldError, invalid, not_supported, required, too_long
from mooring.apiserver.validation.metadata import IMMUTABLE, validate_immutable
from mooring.apiserver.validation.names import (
    config_key_errors,
    dns_label_errors,
    dns_subdomain_errors,
    port_number_errors,
    qualified_name_errors,
    range_errors,
    relaxed_environment_name_errors,
    validate_descending_path,
    validate_file_mode,
    validate_no_backsteps,
    validate_unreserved_path,
)
from mooring.apiserver.validation.values import internal_value

_Check = Callable[[Any, str], list[FieldError]]

_FLAGS: Final = ("required", "set", "optional", "always", "immutable")
_ENUMS: Final = ("enum", "declared-enum", "one-of")


def _format(messages: Callable[[Any], Sequence[str]]) -> _Check:
    return lambda value, path: [invalid(path, value, text) for text in messages(value)]


_FORMATS: Final[dict[str, _Check]] = {
    "dns-label": _format(dns_label_errors),
    "dns-subdomain": _format(dns_subdomain_errors),
    "qualified-name": _format(qualified_name_errors),
    "config-key": _format(config_key_errors),
    "environment-name": _format(relaxed_environment_name_errors),
    "port": _format(port_number_errors),
    "no-backsteps": validate_no_backsteps,
    "descending-path": validate_descending_path,
    "unreserved-path": validate_unreserved_path,
    "file-mode": validate_file_mode,
    "positive": _format(lambda value: () if value > 0 else ("must be greater than 0",)),
}


@cache
def struct_rules(package: str, name: str) -> StructRules:
    """The rules of a struct of the schema."""
    return StructRules(struct_named(package, name))


class StructRules:
    """The rules of the fields of one struct."""

    def __init__(self, struct: Struct) -> None:
        self._fields = struct.fields
        self._rules = {field.name: _FieldRules(field) for field in struct.fields.values() if field.rules}
        self._immutable = tuple(field.name for field in struct.fields.values() if "immutable" in field.rules)

    def validate(self, obj: Document, path: str, *names: str) -> list[FieldError]:
        """Field errors of the named fields, or of all fields with rules."""
        prefix = f"{path}." if path else ""
        errors: list[FieldError] = []
        for name in names or self._rules:
            errors += self._rules[name].validate(obj.get(name), f"{prefix}{name}")
        return errors

    def validate_update(self, obj: Document, old: Document, path: str, *names: str) -> list[FieldError]:
        """Errors of changed immutable fields."""
        prefix = f"{path}." if path else ""
        errors: list[FieldError] = []
        for name in names or self._immutable:
            field = self._fields[name]
            zero = _zero(field)
            value, stored = obj.get(name, zero), old.get(name, zero)
            if validate_immutable(value, stored, name):
                errors.append(invalid(f"{prefix}{name}", _shown(value, field), IMMUTABLE))
        return errors


class _FieldRules:
    """The rules of one field."""

    __slots__ = ("_checks", "_empty", "_is_required", "_must_be_set", "_skips_empty")

    def __init__(self, field: Field) -> None:
        self._is_required = "required" in field.rules
        self._must_be_set = "set" in field.rules
        self._checks = [_check(rule, field) for rule in field.rules if rule not in _FLAGS]
        is_checked = "always" in field.rules or any(rule.partition(":")[0] in _ENUMS for rule in field.rules)
        self._skips_empty = "optional" in field.rules or not (field.is_pointer or is_checked)
        self._empty = _zero(field)

    def validate(self, value: Any, path: str) -> list[FieldError]:
        if not value:
            if self._is_required or (self._must_be_set and value is None):
                return [required(path)]
            if value is None:
                value = self._empty
            if value is None or self._skips_empty:
                return []
        return [error for check in self._checks for error in check(value, path)]


def _check(rule: str, field: Field) -> _Check:
    name, _, argument = rule.partition(":")
    match name:
        case "enum" | "declared-enum":
            assert isinstance(field.type, Scalar), f"{field.name} is no scalar"
            assert field.type.choices, f"{field.name} is no enum"
            return _one_of(tuple(sorted(field.type.choices)) if name == "enum" else field.type.choices)
        case "one-of":
            return _one_of(tuple(argument.split("|")))
        case "max-bytes":
            size = int(argument)
            return lambda value, path: [too_long(path, size)] if len(value.encode()) > size else []
        case "min":
            low = int(argument)
            return _format(lambda value: () if value >= low else (f"must be greater than or equal to {low}",))
        case "range":
            first, _, last = argument.partition("..")
            return _format(partial(range_errors, low=int(first), high=int(last)))
        case _:
            return _FORMATS[rule]


def _one_of(choices: Sequence[str]) -> _Check:
    return lambda value, path: [] if value in choices else [not_supported(path, value, choices)]


_ZEROS: Final = {Basic.STRING: "", Basic.BOOL: False, Basic.INT32: 0, Basic.INT64: 0, Basic.INT: 0}


def _zero(field: Field) -> object:
    """The value of an absent field in Go."""
    if field.is_pointer or not isinstance(field.type, Scalar):
        return None
    return _ZEROS.get(field.type.basic)


def _shown(value: Any, field: Field) -> object:
    """A changed value as Go prints it: a struct with all its fields, a map sorted by key."""
    if not isinstance(value, dict):
        return value
    if isinstance(field.type, Struct):
        return internal_value(value, field.type.name, field.type.package)
    return dict(sorted(value.items()))


@cache
def enum_values(package: str, type_name: str) -> tuple[str, ...]:
    """The values of an enum of the schema, in the order of their declaration."""
    found = type_named(package, type_name)
    assert isinstance(found, Scalar), f"{package}.{type_name} is no scalar"
    assert found.choices, f"{package}.{type_name} is no enum"
    return found.choices


@cache
def sorted_enum_values(package: str, type_name: str) -> tuple[str, ...]:
    """The values of an enum of the schema, sorted."""
    return tuple(sorted(enum_values(package, type_name)))


def validate_enum(value: str | None, choices: Sequence[str], path: str) -> list[FieldError]:
    """A field that may be absent. An empty text is a value."""
    return [] if value is None or value in choices else [not_supported(path, value, choices)]


def validate_required_enum(value: str | None, choices: Sequence[str], path: str) -> list[FieldError]:
    """A field that may neither be absent nor empty."""
    if value in choices:
        return []
    return [not_supported(path, value, choices)] if value else [required(path)]


def validate_required(obj: Document, fields: Sequence[str], path: str) -> list[FieldError]:
    """Fields that may neither be absent nor empty."""
    return [required(f"{path}.{field}") for field in fields if not obj.get(field)]
