"""Validation of a CustomResourceDefinition: versions, columns, selectable fields, subresources, names, status.

1. kube-apiserver validates an internal form in which fields that all versions share are set once, at the top. Errors
   of a definition with one version therefore name `spec.validation`, not `spec.versions[0].schema`. `_InternalSpec` is
   that form.
2. An update is validated by the rules that the stored definition satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mooring.api.document import Document, copied_json
from mooring.apiserver.custom.formats import known_format
from mooring.apiserver.custom.naming import APPROVED_ANNOTATION, approval_of, is_protected, is_true
from mooring.apiserver.custom.schema import FieldPathError, Schema, any_schema, read_field_path, read_schema, schemas_in
from mooring.apiserver.kinds.custom_resource_definition.conversion import (
    has_known_review,
    validate_bundle,
    validate_conversion,
)
from mooring.apiserver.kinds.custom_resource_definition.schema import TYPES, SchemaValidationOptions, validate_schema
from mooring.apiserver.kinds.custom_resource_definition.structural import (
    has_unatomic_set,
    unsupported,
    validate_map_set,
    validate_structural,
)
from mooring.apiserver.validation.fields import FieldError, duplicate, invalid, required, too_many
from mooring.apiserver.validation.metadata import NameCheck, name_is_dns_subdomain
from mooring.apiserver.validation.names import dns_1035_label_errors, dns_subdomain_errors
from mooring.apiserver.validation.schema_rules import struct_rules
from mooring.apiserver.validation.values import internal_value

SELECTABLE_FIELDS_MAX = 8
VERSIONS_MAX = 1_000
"""kube-apiserver has no such limit. Each version becomes about 100 objects, which block all threads while the garbage
collector traverses them."""
_TYPES = ("boolean", "date", "integer", "number", "string")
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)

WARNING_LENGTH_MAX = 256


_SPEC = struct_rules("apiextensions", "CustomResourceDefinitionSpec")
_NAMES = struct_rules("apiextensions", "CustomResourceDefinitionNames")
_SHARED = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


def validate_column(column: Document, path: str) -> list[FieldError]:
    errors = struct_rules("apiextensions", "CustomResourceColumnDefinition").validate(column, path)
    one_of = f"must be one of {','.join(_TYPES)}"
    if not column.get("type"):
        errors.append(required(f"{path}.type", one_of))
    elif column["type"] not in _TYPES:
        errors.append(invalid(f"{path}.type", column["type"], one_of))
    if column.get("format") and column["format"] not in _FORMATS:
        errors.append(invalid(f"{path}.format", column["format"], f"must be one of {','.join(_FORMATS)}"))
    if not column.get("jsonPath"):
        errors.append(required(f"{path}.JSONPath"))
    else:
        errors += _validate_json_path(column["jsonPath"], f"{path}.JSONPath")
    return errors


def validate_selectable(
    fields: Sequence[Document], schema: Schema, path: str, *, may_be_too_many: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    known: dict[str, None] = {}
    for index, field in enumerate(fields):
        place, text = f"{path}[{index}].jsonPath", field.get("jsonPath", "")
        if not text:
            errors.append(required(place))
            continue
        try:
            found = read_field_path(text, schema, may_index=False)
        except FieldPathError as error:
            errors.append(invalid(place, text, f"is an invalid path: {error}"))
            continue
        if found.root == "metadata":
            errors.append(invalid(place, text, "must not point to fields in metadata"))
        if found.schema is None or found.schema.type not in _SELECTABLE_TYPES:
            errors.append(invalid(place, text, _NOT_SELECTABLE))
        if found.path in known:
            errors.append(duplicate(place, text))
        known[found.path] = None
    if len(known) > SELECTABLE_FIELDS_MAX and not may_be_too_many:
        errors.append(too_many(path, len(known), SELECTABLE_FIELDS_MAX))
    return errors


def validate_subresources(subresources: Document | None, path: str) -> list[FieldError]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    errors: list[FieldError] = []
    for field, below in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, place = scale.get(field, ""), f"{path}.scale.{field}"
        if not text:
            errors.append(required(place))
            continue
        wrong = _validate_json_path(text, place)
        if not wrong and not text.startswith(below):
            wrong = [invalid(place, text, f"should be a json path under {below[:-1]}")]
        errors += wrong
    text, place = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if text:
        wrong = _validate_json_path(text, place)
        if not wrong and not text.startswith((".spec.", ".status.")):
            wrong = [invalid(place, text, "should be a json path under either .spec or .status")]
        errors += wrong
    return errors


def _validate_json_path(text: str, path: str) -> list[FieldError]:
    return [] if text.startswith(".") else [invalid(path, text, "must be a simple json path starting with .")]


def name_errors(definition: Document) -> NameCheck:
    """A definition is named after what it defines."""
    spec = definition["spec"]
    expected = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"

    def errors(name: str, is_prefix: bool) -> Sequence[str]:
        found = list(name_is_dns_subdomain(name, is_prefix))
        if name != expected:
            found.append('must be spec.names.plural+"."+spec.group')
        return found

    return errors


def validate_definition(definition: Document) -> list[FieldError]:
    """Field errors of a new definition, apart from its metadata."""
    errors = _validate_definition_spec(
        _InternalSpec.of(definition["spec"]), _ValidationOptions(SchemaValidationOptions())
    )
    errors += validate_status(definition)
    errors += validate_approval(definition, None)
    return errors + validate_preserving(definition, None)


def validate_definition_update(definition: Document, old: Document) -> list[FieldError]:
    errors = _validate_definition_spec(_InternalSpec.of(definition["spec"]), _options_after(definition, old))
    errors += _validate_immutable(definition["spec"], old["spec"], is_established=is_true(old, "Established"))
    errors += validate_status(definition)
    errors += validate_approval(definition, old)
    return errors + validate_preserving(definition, old)


def unrecognized_formats(definition: Document) -> list[str]:
    """Unrecognized formats in schemas."""
    internal_spec = _InternalSpec.of(definition["spec"])
    return [
        schema["format"]
        for raw in internal_spec.schemas()
        for schema in schemas_in(raw)
        if schema.get("format") and not known_format(schema["format"], schema.get("type", ""))
    ]


@dataclass(frozen=True, slots=True)
class _InternalSpec:
    """A spec, with the fields that all versions share at the top."""

    spec: Document
    shared: Document
    versions: Sequence[Document]

    @classmethod
    def of(cls, spec: Document) -> _InternalSpec:
        versions: list[Document] = spec.get("versions") or []
        shared: Document = {}
        if versions:
            first = versions[0]
            shared = {
                name: first.get(name)
                for name in _SHARED
                if all(version.get(name) == first.get(name) for version in versions)
            }
        rest = [{name: value for name, value in version.items() if name not in shared} for version in versions]
        return cls(spec, shared, rest)

    def schemas(self) -> list[Document]:
        held = [self.shared.get("schema"), *(version.get("schema") for version in self.versions)]
        return [holder["openAPIV3Schema"] for holder in held if holder and holder.get("openAPIV3Schema") is not None]

    def any_schema(self, holds: Callable[[Document], bool]) -> bool:
        return any(any_schema(raw, holds) for raw in self.schemas())

    def has_status(self, version: Document) -> bool:
        return "status" in (version.get("subresources") or self.shared.get("subresources") or {})

    def shown_versions(self) -> list[Document]:
        return [
            internal_value(version, "CustomResourceDefinitionVersion", "apiextensions") for version in self.versions
        ]


@dataclass(frozen=True, slots=True)
class _ValidationOptions:
    """The rules that apply to a definition."""

    schema: SchemaValidationOptions
    needs_known_review: bool = True
    may_have_bad_bundle: bool = True
    unchanged_versions: frozenset[str] = frozenset()
    """Versions with an unchanged schema."""
    crowded_versions: frozenset[str] = frozenset()
    """Versions whose selectable fields exceed the limit and are unchanged; an empty name stands for all versions."""

    def of(self, version: str) -> SchemaValidationOptions:
        return replace(self.schema, has_known_costs=version in self.unchanged_versions)


def _options_after(definition: Document, old: Document) -> _ValidationOptions:
    before, spec = _InternalSpec.of(old["spec"]), definition["spec"]
    old_versions = {version["name"]: version for version in old["spec"].get("versions") or ()}
    unchanged = [
        version["name"]
        for version in spec.get("versions") or ()
        if version["name"] in old_versions and version.get("schema") == old_versions[version["name"]].get("schema")
    ]
    crowded = [
        version["name"]
        for version in spec.get("versions") or ()
        if version["name"] in old_versions
        and len(version.get("selectableFields") or ()) > SELECTABLE_FIELDS_MAX
        and version["selectableFields"] == old_versions[version["name"]].get("selectableFields")
    ]
    if crowded and len(crowded) == len(spec["versions"]):
        crowded.append("")
    schemas = before.schemas()
    is_structural = not any(unsupported(raw) or validate_structural(raw, "") for raw in schemas)
    conversion = old["spec"].get("conversion")
    return _ValidationOptions(
        SchemaValidationOptions(
            needs_schema=bool(before.shared.get("schema")) or len(schemas) == len(before.versions),
            needs_known_types=not before.any_schema(lambda raw: bool(raw.get("type")) and raw["type"] not in TYPES),
            needs_structural=is_structural,
            needs_pruned_defaults=True,
            needs_atomic_sets=not before.any_schema(has_unatomic_set),
            needs_safe_keys=not before.any_schema(lambda raw: bool(validate_map_set(raw, ""))),
        ),
        needs_known_review=has_known_review(conversion),
        may_have_bad_bundle=_may_have_bad_bundle(old, conversion),
        unchanged_versions=frozenset(unchanged),
        crowded_versions=frozenset(crowded),
    )


def _may_have_bad_bundle(old: Document, conversion: Document | None) -> bool:
    if not is_true(old, "Established"):
        return True
    bundle: str = (((conversion or {}).get("webhook") or {}).get("clientConfig") or {}).get("caBundle", "")
    return bool(bundle) and bool(validate_bundle(bundle, ""))


# --- the spec ---------------------------------------------------------------------------------------------------


def _validate_definition_spec(internal_spec: _InternalSpec, options: _ValidationOptions) -> list[FieldError]:
    spec = internal_spec.spec
    if len(internal_spec.versions) > VERSIONS_MAX:
        return [too_many("spec.versions", len(internal_spec.versions), VERSIONS_MAX)]
    preserves = spec.get("preserveUnknownFields", False)
    errors = _validate_group(spec.get("group", ""))
    errors += _SPEC.validate(spec, "spec", "scope")
    has_defaults = internal_spec.any_schema(lambda raw: raw.get("default") is not None)
    if not preserves or has_defaults or internal_spec.any_schema(_has_extension):
        options = replace(options, schema=replace(options.schema, needs_structural=True))
    errors += _validate_missing_schema(internal_spec, options.schema.needs_schema, preserves)
    if has_defaults and preserves:
        why = "must be false in order to use defaults in the schema"
        errors.append(invalid("spec.preserveUnknownFields", True, why))
    errors += _validate_versions(internal_spec, options)
    errors += _validate_definition_names(spec.get("names") or {})
    errors += _validate_shared(internal_spec, options)
    conversion = spec.get("conversion")
    if conversion is not None and conversion.get("strategy") != "None" and preserves:
        why = "must be None if spec.preserveUnknownFields is true"
        errors.append(invalid("spec.conversion.strategy", conversion.get("strategy", ""), why))
    errors += validate_conversion(
        conversion,
        "spec.conversion",
        needs_known_review=options.needs_known_review,
        may_have_bad_bundle=options.may_have_bad_bundle,
    )
    return errors


def _validate_group(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    wrong = dns_subdomain_errors(group)
    if wrong:
        return [invalid("spec.group", group, ",".join(wrong))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _validate_missing_schema(internal_spec: _InternalSpec, needs_schema: bool, preserves: bool) -> list[FieldError]:
    if (internal_spec.shared.get("schema") or {}).get("openAPIV3Schema") is not None:
        return []
    errors: list[FieldError] = []
    for index, version in enumerate(internal_spec.versions):
        place = f"spec.versions[{index}].schema.openAPIV3Schema"
        if (version.get("schema") or {}).get("openAPIV3Schema") is not None:
            continue
        if needs_schema:
            errors.append(required(place))
        elif not preserves and version.get("served"):
            errors.append(required(place, "because otherwise all fields are pruned"))
    return errors


def _has_extension(raw: Document) -> bool:
    return (
        raw.get("x-kubernetes-preserve-unknown-fields") is not None
        or raw.get("x-kubernetes-list-type") is not None
        or any(
            raw.get(f"x-kubernetes-{name}")
            for name in ("embedded-resource", "int-or-string", "list-map-keys", "validations")
        )
    )


def _validate_versions(internal_spec: _InternalSpec, options: _ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, version in enumerate(internal_spec.versions):
        path = f"spec.versions[{index}]"
        wrong = dns_1035_label_errors(version.get("name", ""))
        if wrong:
            errors.append(invalid(f"{path}.name", version.get("name", ""), ",".join(wrong)))
        errors += _validate_version(internal_spec, version, path, options)
    names = [version.get("name", "") for version in internal_spec.versions]
    if len(frozenset(names)) != len(names):
        errors.append(invalid("spec.versions", internal_spec.shown_versions(), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in internal_spec.versions) != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", internal_spec.shown_versions(), why))
    if names and names[0]:
        wrong = dns_1035_label_errors(names[0])
        if wrong:
            errors.append(invalid("spec.version", names[0], ",".join(wrong)))
    return errors


def _validate_version(
    internal_spec: _InternalSpec, version: Document, path: str, options: _ValidationOptions
) -> list[FieldError]:
    warning = version.get("deprecationWarning")
    errors = [
        invalid(f"{path}.deprecationWarning", warning, why)
        for why in _warning_errors(version.get("deprecated", False), warning)
    ]
    has_status = internal_spec.has_status(version)
    errors += validate_schema(
        version.get("schema"), f"{path}.schema", options.of(version.get("name", "")), has_status=has_status
    )
    errors += validate_subresources(version.get("subresources"), f"{path}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        errors += validate_column(column, f"{path}.additionalPrinterColumns[{index}]")
    fields, place = version.get("selectableFields") or (), f"{path}.selectableFields"
    raw: Document | None = (version.get("schema") or {}).get("openAPIV3Schema")
    if fields and raw is None:
        why = "may only be set when `version.schema.openAPIV3Schema` is not included"
        errors.append(invalid(place, "", why))
    elif fields and raw is not None:
        may = version["name"] in options.crowded_versions
        errors += validate_selectable(fields, read_schema(raw), place, may_be_too_many=may)
    return errors


def _warning_errors(is_deprecated: bool, warning: str | None) -> list[str]:
    if warning is None:
        return []
    if not is_deprecated:
        return ["can only be set for deprecated versions"]
    errors = []
    if len(warning.encode()) > WARNING_LENGTH_MAX:
        errors.append(f"must be <= {WARNING_LENGTH_MAX} characters long")
    if not warning:
        errors.append("must not be an empty string")
    position = 0
    for letter in warning:
        if not letter.isprintable():
            why = "must only contain printable UTF-8 characters; non-printable character found at index"
            errors.append(f"{why} {position}")
            break
        position += len(letter.encode())
    return errors


def _validate_definition_names(names: Document) -> list[FieldError]:
    errors = _NAMES.validate(names, "spec.names", "plural", "singular", "kind", "listKind")
    return errors + validate_names(names, "spec.names")


def _validate_shared(internal_spec: _InternalSpec, options: _ValidationOptions) -> list[FieldError]:
    shared = internal_spec.shared
    has_status = any(internal_spec.has_status(version) for version in internal_spec.versions)
    first = internal_spec.versions[0].get("name", "") if internal_spec.versions else ""
    errors = validate_schema(shared.get("schema"), "spec.validation", options.of(first), has_status=has_status)
    errors += validate_subresources(shared.get("subresources"), "spec.subresources")
    for index, column in enumerate(shared.get("additionalPrinterColumns") or ()):
        errors += validate_column(column, f"spec.additionalPrinterColumns[{index}]")
    fields, raw = shared.get("selectableFields") or (), (shared.get("schema") or {}).get("openAPIV3Schema")
    if fields and raw is None:
        errors.append(invalid("spec.selectableFields", "", "may only be set when validations.schema is included"))
    elif fields and raw is not None:
        may = "" in options.crowded_versions
        errors += validate_selectable(fields, read_schema(raw), "spec.selectableFields", may_be_too_many=may)
    return errors


def _validate_immutable(spec: Document, old: Document, *, is_established: bool) -> list[FieldError]:
    names, old_names = spec.get("names") or {}, old.get("names") or {}
    errors: list[FieldError] = []
    if is_established:
        errors += _SPEC.validate_update(spec, old, "spec", "scope")
        errors += _NAMES.validate_update(names, old_names, "spec.names", "kind")
    errors += _SPEC.validate_update(spec, old, "spec", "group")
    return errors + _NAMES.validate_update(names, old_names, "spec.names", "plural")


# --- names and status -----------------------------------------------------------------------------------------


_MIXED_CASE = "may have mixed case, but should otherwise match: "


def validate_names(names: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("plural", "singular"):
        errors += _validate_definition_label(names.get(field, ""), f"{path}.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field, "")
        wrong = dns_1035_label_errors(name.lower()) if name else ()
        if wrong:
            errors.append(invalid(f"{path}.{field}", name, _MIXED_CASE + ",".join(wrong)))
    for index, name in enumerate(names.get("shortNames") or ()):
        errors += _validate_definition_label(name, f"{path}.shortNames[{index}]", is_optional=False)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for index, name in enumerate(names.get("categories") or ()):
        errors += _validate_definition_label(name, f"{path}.categories[{index}]", is_optional=False)
    return errors


def _validate_definition_label(name: str, path: str, *, is_optional: bool = True) -> list[FieldError]:
    if is_optional and not name:
        return []
    wrong = dns_1035_label_errors(name)
    return [invalid(path, name, ",".join(wrong))] if wrong else []


def validate_status(definition: Document) -> list[FieldError]:
    status = definition["status"]
    errors = validate_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    path, stored = "status.storedVersions", status.get("storedVersions")
    if not stored:
        return [*errors, invalid(path, stored, "must have at least one stored version")]
    left: dict[str, int] = {name: index for index, name in enumerate(stored)}
    for version in definition["spec"].get("versions") or ():
        name = version.get("name", "")
        if version.get("storage") and name not in left and name not in stored:
            errors.append(invalid(path, copied_json(stored), f"must have the storage version {name}"))
        left.pop(name, None)
    for name, index in left.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        errors.append(invalid(f"{path}[{index}]", name, why))
    return errors


def validate_approval(definition: Document, old: Document | None) -> list[FieldError]:
    if not is_protected(definition["spec"].get("group", "")):
        return []
    annotations = definition["metadata"].get("annotations") or {}
    state, why = approval_of(annotations)
    if old is not None and approval_of(old["metadata"].get("annotations") or {})[0] == state:
        return []
    path = f"metadata.annotations[{APPROVED_ANNOTATION}]"
    if state == "Missing":
        return [required(path, why)]
    return [invalid(path, annotations[APPROVED_ANNOTATION], why)] if state == "Invalid" else []


def validate_preserving(definition: Document, old: Document | None) -> list[FieldError]:
    def preserves(defined: Any) -> bool:
        return bool(defined["spec"].get("preserveUnknownFields", False))

    if not preserves(definition) or (old is not None and preserves(old)):
        return []
    why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [invalid("spec.preserveUnknownFields", True, why)]
