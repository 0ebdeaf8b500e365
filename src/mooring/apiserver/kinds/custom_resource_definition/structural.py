"""Validation that a schema is structural, and of its list and map types.

1. `allOf`, `anyOf`, `oneOf` and `not` restrict values and define no types, defaults or descriptions. The exception is
   `x-kubernetes-int-or-string`, written in one of two ways.
2. Every field restricted there is defined outside of it.
3. A schema may restrict only the name in metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from mooring.api.cel.patterns import PatternError, compile_pattern
from mooring.api.document import Document
from mooring.apiserver.custom.schema import schemas_in
from mooring.apiserver.validation.fields import FieldError, first_positions, forbidden, invalid, not_supported, required
from mooring.apiserver.validation.values import internal_value

_LIST, _KEYS, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


_MUST_BE = {
    "type": "empty",
    "additionalProperties": "undefined",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}


def validate_list(raw: Document, path: str, *, needs_atomic_sets: bool) -> list[FieldError]:
    """Field errors of one node."""
    errors = list(_validate_preserving(raw, path))
    errors += _validate_map(raw, path)
    errors += _validate_list(raw, path, needs_atomic_sets)
    errors += _validate_keys(raw, path)
    return errors


def validate_map_set(raw: Document, path: str) -> list[FieldError]:
    """Field errors of fields that prevent the comparison of items of a set or map."""
    kind, items = raw.get(_LIST), raw.get("items")
    if kind not in ("set", "map") or not isinstance(items, dict):
        return []
    errors: list[FieldError] = []
    if items.get("nullable"):
        errors.append(forbidden(f"{path}.items.nullable", f"cannot be nullable when {_LIST} is {kind}"))
    properties: Document = items.get("properties") or {}
    for name in (raw.get(_KEYS) or ()) if kind == "map" else ():
        nested = properties.get(name)
        if nested is None:
            continue
        place = f"{path}.items.properties[{name}]"
        if name not in (items.get("required") or ()) and nested.get("default") is None:
            why = f"this property is in {_KEYS}, so it must have a default or be a required property"
            errors.append(required(f"{place}.default", why))
        if nested.get("nullable"):
            errors.append(forbidden(f"{place}.nullable", f"this property is in {_KEYS}, so it cannot be nullable"))
    return errors


def has_unatomic_set(raw: Document) -> bool:
    return raw.get(_LIST) == "set" and any(_validate_unatomic(raw, ""))


def _validate_preserving(raw: Document, path: str) -> Iterator[FieldError]:
    name = "x-kubernetes-preserve-unknown-fields"
    if raw.get(name) is False:
        yield invalid(f"{path}.{name}", False, "must be true or undefined")


def _validate_map(raw: Document, path: str) -> Iterator[FieldError]:
    kind = raw.get(_MAP)
    if kind is None:
        return
    yield from _validate_list_or_map_type(raw, path, "object", _MAP)
    if kind not in ("atomic", "granular"):
        yield not_supported(f"{path}.{_MAP}", kind, ("atomic", "granular"))


def _validate_list(raw: Document, path: str, needs_atomic_sets: bool) -> Iterator[FieldError]:
    kind = raw.get(_LIST)
    if kind is None:
        return
    wrong = list(_validate_list_or_map_type(raw, path, "array", _LIST))
    if not wrong and needs_atomic_sets and kind == "set":
        wrong = list(_validate_unatomic(raw, path))
    yield from wrong
    if kind not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.{_LIST}", kind, ("atomic", "set", "map"))


def _validate_list_or_map_type(raw: Document, path: str, expected: str, extension: str) -> Iterator[FieldError]:
    type_name, why = raw.get("type", ""), f"must be {expected} if {extension} is specified"
    if type_name != expected:
        yield invalid(f"{path}.type", type_name, why) if type_name else required(f"{path}.type", why)


def _validate_unatomic(raw: Document, path: str) -> Iterator[FieldError]:
    items = raw.get("items")
    if not isinstance(items, dict):
        return
    why = f"must be atomic as item of a list with {_LIST}=set"
    kind = items.get(_LIST)
    if items.get("type") == "array" and kind not in (None, "atomic"):
        yield invalid(f"{path}.items.{_LIST}", kind, why)
    if items.get("type") == "object" and items.get(_MAP) != "atomic":
        # kube-apiserver shows the list type of the item here, which an object has not.
        yield invalid(f"{path}.items.{_MAP}", kind, why)


def _validate_keys(raw: Document, path: str) -> Iterator[FieldError]:
    kind, keys = raw.get(_LIST), raw.get(_KEYS) or ()
    if keys and kind != "map":
        why = f"must be map if {_KEYS} is non-empty"
        yield required(f"{path}.{_LIST}", why) if kind is None else invalid(f"{path}.{_LIST}", kind, why)
    if kind != "map":
        return
    items = raw.get("items")
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    if items is None:
        yield required(f"{path}.items", f"must have a schema if {_LIST} is map")
    elif not isinstance(items, dict):
        shown = {
            "Schema": None,
            "JSONSchemas": [internal_value(item, "JSONSchemaProps", "apiextensions") for item in items],
        }
        yield invalid(f"{path}.items", shown, f"must only have a single schema if {_LIST} is map")
    elif items.get("type", "") != "object":
        why = f"must be object if parent array's {_LIST} is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), why)
    else:
        yield from _validate_schema_key(items, keys, path)


def _validate_schema_key(items: Document, keys: Sequence[str], path: str) -> Iterator[FieldError]:
    properties: Document = items.get("properties") or {}
    first = first_positions(keys)
    for index, key in enumerate(keys):
        if key not in properties:
            yield invalid(f"{path}.{_KEYS}", list(keys), "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {_LIST} is map"
            yield invalid(f"{path}.items.properties[{key}].type", items["type"], why)
        if first[key] != index:
            yield invalid(f"{path}.{_KEYS}", list(keys), "must not contain duplicate entries")


class _Level(Enum):
    ROOT = "at the root"
    ITEM = "for specified array items"
    FIELD = "for specified object fields"


def validate_structural(raw: Document, path: str) -> list[FieldError]:
    """Field errors of a schema that is not structural."""
    errors = [*_invariants(raw, _Level.ROOT, path), *_incomplete(raw, raw, path, path)]
    return sorted(errors, key=lambda field_error: field_error.message)


def unsupported(raw: Document) -> str:
    """The first field that a structural schema cannot have; otherwise empty."""
    for schema in schemas_in(raw):
        for name in _UNSUPPORTED:
            if schema.get(name):
                return f"OpenAPIV3Schema '{name.removeprefix('$') if name == '$schema' else name}' is not supported"
        if isinstance(schema.get("items"), list):
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if schema.get("x-kubernetes-preserve-unknown-fields") is False:
            return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return ""


def _invariants(raw: Document, level: _Level, path: str) -> Iterator[FieldError]:
    items, additional, type_name = raw.get("items"), raw.get("additionalProperties"), raw.get("type", "")
    if type_name == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, _Level.ITEM, f"{path}.items")
    for name, nested in (raw.get("properties") or {}).items():
        yield from _invariants(nested, _Level.FIELD, f"{path}.properties[{name}]")
    if additional is not None and level is _Level.ROOT:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        yield from _invariants(additional, _Level.FIELD, f"{path}.additionalProperties")
    yield from _validate_extension(raw, path)
    all_of: list[Document] = raw.get("allOf") or []
    skips_first = bool(all_of) and all_of[0].get("anyOf") == _INT_OR_STRING
    yield from _validate_restriction(raw, path, skips_any=raw.get("anyOf") == _INT_OR_STRING, skips_first=skips_first)
    yield from _validate_schema_type(raw, level, path, type_name)
    yield from _validate_meta(raw, level, path)


def _validate_extension(raw: Document, path: str) -> Iterator[FieldError]:
    if raw.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if raw.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


def _validate_schema_type(raw: Document, level: _Level, path: str, type_name: str) -> Iterator[FieldError]:
    is_embedded = raw.get("x-kubernetes-embedded-resource", False)
    is_free = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    if is_embedded and type_name != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", type_name, why) if type_name else required(f"{path}.type", why)
    elif not type_name and not is_free:
        yield required(f"{path}.type", f"must not be empty {level.value}")
    if is_embedded and raw.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", why)
    if level is _Level.ROOT and type_name and type_name != "object":
        yield invalid(f"{path}.type", type_name, "must be object at the root")


def _validate_meta(raw: Document, level: _Level, path: str) -> Iterator[FieldError]:
    properties: Document = raw.get("properties") or {}
    is_embedded = raw.get("x-kubernetes-embedded-resource", False)
    is_resource = level is _Level.ROOT or is_embedded
    for name in ("kind", "apiVersion"):
        if is_resource and name in properties and properties[name].get("type", "") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string")
    metadata = properties.get("metadata")
    if metadata is not None:
        place = f"{path}.properties[metadata]"
        if is_resource and metadata.get("type", "") != "object":
            yield invalid(f"{place}.type", metadata.get("type", ""), "must be object")
        if level is _Level.ROOT and not _restricts_names_only(metadata):
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(place, why)
    if is_embedded and not raw.get("x-kubernetes-preserve-unknown-fields") and not properties:
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


def _restricts_names_only(metadata: Document) -> bool:
    names = frozenset(metadata.get("properties") or ())
    rest = [name for name in metadata if name not in ("type", "default", "properties")]
    return not rest and names <= {"name", "generateName"}


def _validate_restriction(raw: Document, path: str, *, skips_any: bool, skips_first: bool) -> Iterator[FieldError]:
    if not skips_any:
        for index, nested in enumerate(raw.get("anyOf") or ()):
            yield from _validate_nested(nested, f"{path}.anyOf[{index}]")
    for index, nested in enumerate(raw.get("allOf") or ()):
        yield from _validate_nested(nested, f"{path}.allOf[{index}]", skips_any=skips_first and index == 0)
    for index, nested in enumerate(raw.get("oneOf") or ()):
        yield from _validate_nested(nested, f"{path}.oneOf[{index}]")
    if raw.get("not") is not None:
        yield from _validate_nested(raw["not"], f"{path}.not")
    if raw.get("pattern"):
        try:
            compile_pattern(raw["pattern"])
        except PatternError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", raw["pattern"], why)


def _validate_nested(raw: Document, path: str, *, skips_any: bool = False) -> Iterator[FieldError]:
    yield from _validate_restriction(raw, path, skips_any=skips_any, skips_first=False)
    if isinstance(raw.get("items"), dict):
        yield from _validate_nested(raw["items"], f"{path}.items")
    for name, held in (raw.get("properties") or {}).items():
        yield from _validate_nested(held, f"{path}.properties[{name}]")
    for name, required_value in _MUST_BE.items():
        if raw.get(name) not in (None, False, "", []):
            yield forbidden(f"{path}.{name}", f"must be {required_value} to be structural")
    if "metadata" in (raw.get("properties") or ()):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


# --- completeness -----------------------------------------------------------------------------------------------


def _incomplete(restriction: Document, schema: Document | None, path: str, at: str) -> Iterator[FieldError]:
    """Field errors of fields that are restricted but not defined."""
    if restriction.get("not") is not None:
        yield from _nested_incomplete(restriction["not"], schema, path, f"{at}.not")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, nested in enumerate(restriction.get(name) or ()):
            yield from _nested_incomplete(nested, schema, path, f"{at}.{name}[{index}]")


def _nested_incomplete(restriction: Any, schema: Document | None, path: str, at: str) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {at}")
        return
    yield from _incomplete(restriction, schema, path, at)
    if isinstance(restriction.get("items"), dict):
        items = schema.get("items")
        yield from _nested_incomplete(
            restriction["items"], items if isinstance(items, dict) else None, f"{path}.items", f"{at}.items"
        )
    known: Document = schema.get("properties") or {}
    for name, held in (restriction.get("properties") or {}).items():
        yield from _nested_incomplete(held, known.get(name), f"{path}.properties[{name}]", f"{at}.properties[{name}]")
