"""Embedded resources: values with a kind, an apiVersion and metadata (`x-kubernetes-embedded-resource`).

Input: a custom object and its schema. Output: the object with canonical metadata in embedded resources; field errors;
paths of unknown metadata fields.

1. The metadata of the object itself is decoded earlier and is not handled here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.api.document import Document
from mooring.apiserver.custom.schema import Schema
from mooring.apiserver.validation.fields import FieldError, invalid, required
from mooring.apiserver.validation.metadata import name_is_path_segment, validate_object_meta
from mooring.apiserver.validation.names import dns_1035_label_errors
from mooring.apiserver.wire.custom_bodies import custom_metadata
from mooring.apiserver.wire.examine import DecodingError

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
            held = schema.properties.get(name)
            if held is not None:
                yield from _embedded_resources(inner, held, f"{path}.{name}" if path else name)
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
