"""The strategy of custom resources, and the versions of a definition.

Input: pruned and defaulted documents; the old document on an update. Output: prepared documents, field errors,
warnings.

1. `generation` counts changes of everything but metadata, and but the status if that is a subresource.
2. CEL rules run only if there are no other errors; otherwise one error says that they did not run.
3. Nothing is created while the definition is being deleted.
4. Lists of type set or map have no duplicates. The second occurrence of an item is an error, further ones are not.
5. A new finalizer without a domain causes a warning.
6. A `CustomVersion` (schema, value rules, CEL rules and subresources) comes from one entry of `spec.versions`. It is
   immutable; a changed definition gets new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

from mooring.api.document import Document, same_json
from mooring.api.field_errors import NO_PATH, quoted
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.custom.pruning import fill_defaults, validate_embedded
from mooring.apiserver.custom.rules import SchemaRules, rules_of
from mooring.apiserver.custom.scaling import ScalePaths, validate_spec_replicas, validate_status_replicas
from mooring.apiserver.custom.schema import CorrelatedValue, Schema, read_schema
from mooring.apiserver.custom.value_rules import ValueRules, validate_value
from mooring.apiserver.errors import forbidden, invalid_object
from mooring.apiserver.strategy import Strategy, keep
from mooring.apiserver.validation.fields import FieldError, FieldErrorType, duplicate, invalid
from mooring.apiserver.validation.metadata import STANDARD_FINALIZERS, validate_object_meta_update
from mooring.apiserver.validation.names import qualified_name_errors
from mooring.apiserver.wire.custom_bodies import go_numbers


@dataclass(frozen=True, slots=True)
class CustomVersion:
    """One version of a definition."""

    name: str
    schema: Schema
    values: ValueRules
    status_values: ValueRules | None
    """The rules for a write of `status`; None without a schema of the status."""
    rules: SchemaRules | None
    has_status: bool
    scale: ScalePaths | None
    selectable_paths: tuple[str, ...] = ()


def read_version(entry: Document) -> CustomVersion:
    """A version from its entry in a definition that was validated."""
    raw = (entry.get("schema") or {}).get("openAPIV3Schema") or {}
    schema = read_schema(raw)
    subresources = entry.get("subresources") or {}
    scale = subresources.get("scale")
    status = (raw.get("properties") or {}).get("status")
    return CustomVersion(
        name=entry["name"],
        schema=schema,
        values=ValueRules(raw),
        status_values=ValueRules(status) if status is not None else None,
        rules=rules_of(schema),
        has_status="status" in subresources,
        scale=None
        if scale is None
        else ScalePaths(
            scale.get("specReplicasPath", ""), scale.get("statusReplicasPath", ""), scale.get("labelSelectorPath", "")
        ),
        selectable_paths=tuple(
            selectable_field["jsonPath"] for selectable_field in entry.get("selectableFields") or ()
        ),
    )


_encode = msgspec.json.Encoder(order="sorted").encode


def validate_list_type(value: Any, schema: Schema | None, path: str = "") -> list[FieldError]:
    if schema is None or not (schema.has_list_types_below or schema.list_type in ("set", "map")):
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        for name, inner in value.items():
            held = schema.properties.get(name)
            if schema.additional is not None:
                errors += validate_list_type(inner, schema.additional, f"{path}[{name}]")
            if held is not None:
                errors += validate_list_type(inner, held, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        match schema.list_type:
            case "set":
                errors += [duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
            case "map":
                errors += _validate_map(value, schema, path)
        for index, item in enumerate(value):
            errors += validate_list_type(item, schema.items, f"{path}[{index}]")
    return errors


def _validate_map(items: list[Any], schema: Schema, path: str) -> list[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys: list[Document] = [
        {name: item[name] for name in schema.map_keys if item is not None and name in item} for item in items
    ]
    return [duplicate(f"{path}[{index}]", dict(sorted(keys[index].items()))) for index in _repeated(keys)]


def _repeated(items: list[Any]) -> list[int]:
    """The indexes at which an item occurs for the second time."""
    seen: dict[bytes, int] = {}
    found = []
    for index, item in enumerate(items):
        key = _encode(item)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found


_ADVICE = "to avoid accidental conflicts with other finalizer writers"


def finalizer_warnings(metadata: Document, old: Document | None) -> list[str]:
    """Warnings about new finalizers with unusual names."""
    known = frozenset((old or {}).get("finalizers") or ())
    added = sorted(frozenset(metadata.get("finalizers") or ()) - known)
    return [f"metadata.finalizers: {quoted(name)}: {text}" for name in added for text in _oddities(name)]


def _oddities(name: str) -> list[str]:
    found = list(qualified_name_errors(name))
    if "/" not in name and name not in STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in name else ""
        found.append(f"prefer a domain-qualified finalizer name{path} {_ADVICE}")
    return found


Stored = Callable[[Document], Document]
"""Converts an object of this version to the stored version and back."""

TERMINATING = "create not allowed while custom resource definition is terminating"
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_BLOCKING = frozenset(
    {
        FieldErrorType.NOT_SUPPORTED,
        FieldErrorType.REQUIRED,
        FieldErrorType.TOO_LONG,
        FieldErrorType.TOO_MANY,
        FieldErrorType.TYPE_INVALID,
    }
)


class CustomStrategy(Strategy):
    """Writing whole objects."""

    allows_unconditional_update = False
    is_costly = True
    validates_finalizer_names = False

    def __init__(
        self, kind: Kind, version: CustomVersion, *, is_terminating: bool = False, stored: Stored | None = None
    ) -> None:
        super().__init__(kind)
        self.version = version
        self._is_terminating = is_terminating
        self._stored = stored
        self._subresources: Mapping[str, Strategy] = (
            {"status": CustomStatusStrategy(kind, version, stored)} if version.has_status else {}
        )

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return self._subresources

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        return (("status",),) if self.version.has_status else ()

    def default(self, obj: Document) -> None:
        fill_defaults(obj, self.version.schema)

    def canonicalize(self, obj: Document) -> None:
        to_stored_form(obj, self._stored)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        if self._is_terminating:
            raise forbidden(self.kind, obj["metadata"].get("name", ""), TERMINATING)
        if self.version.has_status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        check_kind(self.kind, obj)
        errors = self.validate_meta(obj)
        errors += validate_value(self.version.values, obj)
        errors += self._validate_scale(obj)
        errors += validate_embedded(obj, self.version.schema)
        errors += validate_list_type(obj, self.version.schema)
        return errors + validate_rule(self.version, errors, obj, None, None, call)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return finalizer_warnings(obj["metadata"], None)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        if self.version.has_status:
            keep(obj, old, "status")
        if not same_json(_without_metadata(obj), _without_metadata(old)):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        check_kind(self.kind, obj)
        schema, pair = self.version.schema, CorrelatedValue(obj, old, self.version.schema)
        errors = validate_object_meta_update(obj["metadata"], old["metadata"], "metadata")
        errors += validate_value(self.version.values, obj, "", pair)
        errors += self._validate_scale(obj)
        errors += validate_embedded(obj, schema)
        errors += _validate_new_list_type(obj, old, self.version)
        return errors + validate_rule(self.version, errors, obj, old, pair, call)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return finalizer_warnings(obj["metadata"], old["metadata"])

    def _validate_scale(self, obj: Document) -> list[FieldError]:
        paths = self.version.scale
        return [] if paths is None else validate_spec_replicas(obj, paths) + validate_status_replicas(obj, paths)


class CustomStatusStrategy(Strategy):
    """Writing the status only."""

    allows_unconditional_update = False
    is_costly = True

    def __init__(self, kind: Kind, version: CustomVersion, stored: Stored | None = None) -> None:
        super().__init__(kind)
        self.version = version
        self._stored = stored

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {}

    @property
    def ignored_fields(self) -> Sequence[tuple[str, ...]]:
        return (("metadata",), ("spec",))

    def default(self, obj: Document) -> None:
        fill_defaults(obj, self.version.schema)

    def canonicalize(self, obj: Document) -> None:
        to_stored_form(obj, self._stored)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        managed, has_status, status = obj["metadata"].get("managedFields"), "status" in obj, obj.get("status")
        obj.clear()
        obj.update(old)
        obj["metadata"] = dict(old["metadata"])
        if managed is not None:
            obj["metadata"]["managedFields"] = managed
        else:
            obj["metadata"].pop("managedFields", None)
        if has_status:
            obj["status"] = status
        else:
            obj.pop("status", None)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        check_kind(self.kind, obj)
        version = self.version
        pair = CorrelatedValue(obj, old, version.schema)
        errors = validate_object_meta_update(obj["metadata"], old["metadata"], "metadata")
        if "status" in obj and version.status_values is not None:
            errors += validate_value(version.status_values, obj["status"], "status", pair.field("status"))
        if version.scale is not None:
            errors += validate_status_replicas(obj, version.scale)
        errors += _validate_new_list_type(obj, old, version)
        return errors + validate_rule(version, errors, obj, old, pair, call)


def to_stored_form(obj: Document, stored: Stored | None) -> None:
    """Change a validated object to the form in which it is stored.

    Validation distinguishes 1.0 from 1; both are stored as 1. An object that is stored in another version loses the
    fields that the other version does not have.
    """
    for name, value in obj.items():
        if name != "metadata" and isinstance(value, dict | list | float):
            obj[name] = go_numbers(value)
    if stored is not None:
        stored(obj)


def check_kind(kind: Kind, obj: Document) -> None:
    """Rejects an object of another kind. The error has the kind in the object."""
    errors = []
    if obj.get("kind") != kind.kind:
        errors.append(invalid("kind", obj.get("kind", ""), f"must be {kind.kind}"))
    if obj.get("apiVersion") != kind.api_version:
        errors.append(invalid("apiVersion", obj.get("apiVersion", ""), f"must be {kind.api_version}"))
    if errors:
        _raise_invalid(obj, errors)


def _raise_invalid(obj: Document, errors: list[FieldError]) -> NoReturn:
    group = obj.get("apiVersion", "").rpartition("/")[0]
    raise invalid_object(obj.get("kind", ""), group, obj["metadata"].get("name", ""), errors)


def validate_rule(
    version: CustomVersion,
    other_errors: list[FieldError],
    obj: Document,
    old: Document | None,
    pair: CorrelatedValue | None,
    call: Call,
) -> list[FieldError]:
    """Errors of the CEL rules, if there are no other errors that prevent their evaluation."""
    if version.rules is None:
        return []
    if any(error.kind in _BLOCKING for error in other_errors):
        return [FieldError(FieldErrorType.INVALID, NO_PATH, _UNCHECKED, None)]
    result = version.rules.check(obj, old, pair)
    for text in result.warnings:
        call.warn(text)
    return result.errors


def _validate_new_list_type(obj: Document, old: Document, version: CustomVersion) -> list[FieldError]:
    errors = validate_list_type(obj, version.schema)
    return errors if errors and not validate_list_type(old, version.schema) else []


def _without_metadata(obj: Document) -> Document:
    return {name: value for name, value in obj.items() if name != "metadata"}
