"""Custom objects by their schema: pruning, defaulting, and the metadata of embedded resources.

Input: an object, or a part of one, and its schema. Output: the same object without unknown fields, and their sorted
paths; the same object with defaults.

1. Nothing is pruned below `x-kubernetes-preserve-unknown-fields`, except in parts that have a schema again.
2. kind, apiVersion and metadata of an object and of embedded resources are not pruned.
3. A null that is not nullable is replaced by the default, or dropped if there is none.
4. A default is set only if its parent exists: a default of `spec.a` creates no `spec`. Defaults are copied.
5. All defaults of an object together have at most `DEFAULTS_BYTES_MAX`: a list of a hundred thousand `{}` could
   otherwise get a large default as often.
6. Embedded resources are values with a kind, an apiVersion and metadata (`x-kubernetes-embedded-resource`). Their
   metadata is made canonical and validated here; that of the object itself is decoded earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.api.document import Document, copied_json
from mooring.apiserver.custom.schema import META_FIELDS, Schema
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.metadata import name_is_path_segment, validate_object_meta
from mooring.apiserver.validation.names import dns_1035_label_errors
from mooring.apiserver.wire.custom_bodies import custom_metadata
from mooring.apiserver.wire.examine import DecodingError
from mooring.client.errors import StatusError


def prune(obj: Any, schema: Schema | None, *, is_root: bool) -> list[str]:
    """Drop fields that the schema does not have. `schema` None: drop all."""
    unknown: list[str] = []
    _prune(obj, schema, "", unknown, is_resource=is_root or (schema is not None and schema.is_embedded))
    unknown.sort()
    return unknown


def _prune(value: Any, schema: Schema | None, path: str, unknown: list[str], is_resource: bool) -> None:
    if isinstance(value, dict):
        _prune_fields(value, schema, path, unknown, is_resource)
    elif isinstance(value, list):
        items = schema.items if schema is not None else None
        skips_lists = schema is not None and schema.preserves_unknown
        for index, item in enumerate(value):
            if not isinstance(item, dict | list):
                continue
            if skips_lists:
                # The items of a list that preserves unknown fields preserve them, too.
                if items is not None:
                    _keep(item, items, f"{path}[{index}]", unknown)
            else:
                _prune(item, items, f"{path}[{index}]", unknown, items is not None and items.is_embedded)


def _prune_fields(fields: Any, schema: Schema | None, path: str, unknown: list[str], is_resource: bool) -> None:
    if schema is not None and schema.preserves_unknown:
        _keep(fields, schema, path, unknown, is_resource)
        return
    dropped: list[str] = []
    for name, value in fields.items():
        if is_resource and name in META_FIELDS:
            continue
        nested = schema.properties.get(name) if schema is not None else None
        if nested is None and (schema is None or not schema.has_additional):
            dropped.append(name)
        elif isinstance(value, dict | list):
            assert schema is not None
            nested = nested or schema.additional
            _prune(value, nested, _below(path, name), unknown, nested is not None and nested.is_embedded)
    for name in dropped:
        del fields[name]
        # At the root these fields are known. If the schema lacks them, they are dropped without a warning.
        if path or name not in META_FIELDS:
            unknown.append(_below(path, name))


def _keep(value: Any, schema: Schema, path: str, unknown: list[str], is_resource: bool = False) -> None:
    """Keep all fields, and prune below parts that have a schema again."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if (is_resource or schema.is_embedded) and name in META_FIELDS:
                continue
            if not isinstance(inner, dict | list):
                continue
            nested = schema.properties.get(name)
            if nested is None and not schema.has_additional:
                continue
            nested = nested or schema.additional
            _prune(inner, nested, _below(path, name), unknown, nested is not None and nested.is_embedded)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            _keep(item, schema.items, f"{path}[{index}]", unknown)


def prune_nulls(value: Any, schema: Schema | None) -> None:
    """Drop nulls of fields that are neither nullable nor have a default."""
    if schema is None:
        return
    if isinstance(value, dict):
        dropped: list[str] = []
        for name, inner in value.items():
            nested = schema.properties.get(name) or schema.additional
            if nested is None:
                continue
            if inner is None:
                if not nested.is_nullable and nested.default is None:
                    dropped.append(name)
            elif isinstance(inner, dict | list):
                prune_nulls(inner, nested)
        for name in dropped:
            del value[name]
    elif isinstance(value, list):
        for item in value:
            prune_nulls(item, schema.items)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


DEFAULTS_BYTES_MAX = 3 * 1024 * 1024
"""As large as a body may be. A write that needs more is rejected (413)."""


class DefaultsTooLargeError(StatusError):
    """The total size of the defaults of one object exceeds the limit."""

    code, reason = 413, "RequestEntityTooLarge"


class _PruningBudget:
    """The bytes that are left for the defaults of one object."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = DEFAULTS_BYTES_MAX

    def default_of(self, schema: Schema) -> Any:
        self.left -= schema.default_bytes
        if self.left < 0:
            raise DefaultsTooLargeError(f"the defaults of the object have more than {DEFAULTS_BYTES_MAX} bytes")
        return copied_json(schema.default)


def fill_defaults(value: Any, schema: Schema | None) -> None:
    """Set the defaults of an object. Raises `DefaultsTooLargeError`; then some are set."""
    if schema is not None and schema.has_defaults_below:
        _fill(value, schema, _PruningBudget())


def _fill(value: Any, schema: Schema, budget: _PruningBudget) -> None:
    if not schema.has_defaults_below:
        return
    if isinstance(value, dict):
        for name in schema.defaulted:
            nested = schema.properties[name]
            if name not in value or (value[name] is None and not nested.is_nullable):
                value[name] = budget.default_of(nested)
        for name, inner in value.items():
            property_schema = schema.properties.get(name)
            if property_schema is not None:
                _fill(inner, property_schema, budget)
            elif schema.additional is not None:
                if inner is None and not schema.additional.is_nullable:
                    inner = value[name] = budget.default_of(schema.additional)
                _fill(inner, schema.additional, budget)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if item is None and not schema.items.is_nullable:
                item = value[index] = budget.default_of(schema.items)
            _fill(item, schema.items, budget)


# --- embedded resources ---------------------------------------------------------------------------------------


_STAND_IN_NAME = "fakename"


class EmbeddedResourceError(Exception):
    """Metadata that cannot be read."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.message)
        self.error = error


def coerce_embedded(value: Any, schema: Schema | None, path: str = "", *, is_resource: bool = False) -> list[str]:
    """Make embedded metadata canonical. Returns unknown fields. Raises `EmbeddedResourceError`."""
    unknown: list[str] = []
    for resource, place in _embedded_resources(value, schema, path, is_resource=is_resource):
        unknown += _coerced(resource, place)
    return unknown


def validate_embedded(
    value: Any, schema: Schema | None, path: str = "", *, is_resource: bool = False
) -> list[FieldError]:
    """Field errors of embedded resources."""
    errors: list[FieldError] = []
    for resource, place in _embedded_resources(value, schema, path, is_resource=is_resource):
        errors += _validate_resource(resource, place)
    return errors


def _embedded_resources(
    value: Any, schema: Schema | None, path: str, *, is_resource: bool = False
) -> Iterator[tuple[Document, str]]:
    """The embedded resources in a value with their paths, outer ones first."""
    if schema is None or not (is_resource or schema.is_embedded or schema.has_embedded_below):
        return
    if isinstance(value, dict):
        if is_resource or schema.is_embedded:
            yield value, path
        for name, inner in value.items():
            nested = schema.properties.get(name)
            if nested is not None:
                yield from _embedded_resources(inner, nested, f"{path}.{name}" if path else name)
            elif schema.has_additional:
                yield from _embedded_resources(inner, schema.additional, f"{path}[{name}]")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _embedded_resources(item, schema.items, f"{path}[{index}]")


def _coerced(resource: Document, path: str) -> list[str]:
    prefix = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if name in resource and not isinstance(resource[name], str):
            raise EmbeddedResourceError(invalid(f"{prefix}{name}", resource[name], "must be a string"))
    if "metadata" not in resource:
        return []
    try:
        metadata, unknown = custom_metadata(resource["metadata"])
    except DecodingError as error:
        raise EmbeddedResourceError(invalid(f"{prefix}metadata", resource["metadata"], str(error))) from None
    resource["metadata"] = metadata
    return [f"{prefix}{text.removeprefix('unknown field ').strip(chr(34))}" for text in unknown]


def _validate_resource(resource: Document, path: str) -> list[FieldError]:
    prefix = f"{path}." if path else ""
    errors = [required(f"{prefix}{name}") for name in ("apiVersion", "kind") if name not in resource]
    for name, value in resource.items():
        match name:
            case "apiVersion" | "kind" if not isinstance(value, str):
                errors.append(invalid(f"{prefix}{name}", value, "must be a string"))
            case "apiVersion" | "kind" if not value:
                errors.append(invalid(f"{prefix}{name}", value, "must not be empty"))
            case "apiVersion" if value.count("/") > 1:
                errors.append(invalid(f"{prefix}apiVersion", value, f"unexpected GroupVersion string: {value}"))
            case "kind":
                wrong = dns_1035_label_errors(value.lower())
                if wrong:
                    why = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
                    errors.append(invalid(f"{prefix}kind", value, why))
            case "metadata" if isinstance(value, dict):
                named = value if value.get("name") else {**value, "name": _STAND_IN_NAME}
                is_namespaced = bool(value.get("namespace"))
                errors += validate_object_meta(named, is_namespaced, name_is_path_segment, f"{prefix}metadata")
    return errors
