"""Rules that follow from the schema: enum values, required fields.

Input: names of types in `api/schema`, and the values of fields. Output: field errors in the words of kube-apiserver.

1. The schema is the only list of the values of an enum.
2. kube-apiserver prints the values sorted for most fields, and in the order of their declaration for a few.
   `sorted_enum_values` and `enum_values` are these two orders.
3. A rule returns at most one error for each field, so that the caller decides about the order of errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mooring.api.document import Document
from mooring.api.schema.model import Scalar
from mooring.api.schema.tables import type_named
from mooring.apiserver.validation.fields import FieldError, not_supported, required


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
