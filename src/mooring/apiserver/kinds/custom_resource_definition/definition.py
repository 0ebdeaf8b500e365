"""Validation of a CustomResourceDefinition: versions, columns, selectable fields, subresources.

1. kube-apiserver validates an internal form in which fields that all versions share are set once, at the top. Errors
   of a definition with one version therefore name `spec.validation`, not `spec.versions[0].schema`. `_Inside` is that
   form.
2. An update is validated by the rules that the stored definition satisfies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mooring.api.document import Document
from mooring.apiserver.custom.conditions import is_true
from mooring.apiserver.custom.field_paths import FieldPathError, read_field_path
from mooring.apiserver.custom.formats import known_format
from mooring.apiserver.custom.schema import Schema, any_schema, read_schema, schemas_in
from mooring.apiserver.kinds.custom_resource_definition.conversion import (
    bundle_faults,
    choice_faults,
    conversion_faults,
    has_known_review,
)
from mooring.apiserver.kinds.custom_resource_definition.schema import TYPES, SchemaWishes, schema_faults
from mooring.apiserver.kinds.custom_resource_definition.status import (
    approval_faults,
    names_faults,
    preserving_faults,
    status_faults,
)
from mooring.apiserver.kinds.custom_resource_definition.structural import (
    has_unatomic_set,
    map_set_faults,
    structural_faults,
    unsupported,
)
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, required, too_many
from mooring.apiserver.validation.metadata import NameCheck, immutable_faults, name_is_dns_subdomain
from mooring.apiserver.validation.names import dns_1035_label_faults, dns_subdomain_faults
from mooring.apiserver.validation.values import internal_value

SELECTABLE_FIELDS_MAX = 8
_TYPES = ("boolean", "date", "integer", "number", "string")
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)

WARNING_LENGTH_MAX = 256

# --- the form inside --------------------------------------------------------------------------------------------

_SHARED = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


def column_faults(column: Document, path: str) -> list[Fault]:
    faults: list[Fault] = []
    if not column.get("name"):
        faults.append(required(f"{path}.name"))
    one_of = f"must be one of {','.join(_TYPES)}"
    if not column.get("type"):
        faults.append(required(f"{path}.type", one_of))
    elif column["type"] not in _TYPES:
        faults.append(invalid(f"{path}.type", column["type"], one_of))
    if column.get("format") and column["format"] not in _FORMATS:
        faults.append(invalid(f"{path}.format", column["format"], f"must be one of {','.join(_FORMATS)}"))
    if not column.get("jsonPath"):
        faults.append(required(f"{path}.JSONPath"))
    else:
        faults += _json_path_faults(column["jsonPath"], f"{path}.JSONPath")
    return faults


def selectable_faults(
    fields: Sequence[Document], schema: Schema, path: str, *, may_be_too_many: bool = False
) -> list[Fault]:
    faults: list[Fault] = []
    known: dict[str, None] = {}
    for index, field in enumerate(fields):
        place, text = f"{path}[{index}].jsonPath", field.get("jsonPath", "")
        if not text:
            faults.append(required(place))
            continue
        try:
            found = read_field_path(text, schema, may_index=False)
        except FieldPathError as error:
            faults.append(invalid(place, text, f"is an invalid path: {error}"))
            continue
        if found.root == "metadata":
            faults.append(invalid(place, text, "must not point to fields in metadata"))
        if found.schema is None or found.schema.type not in _SELECTABLE_TYPES:
            faults.append(invalid(place, text, _NOT_SELECTABLE))
        if found.path in known:
            faults.append(duplicate(place, text))
        known[found.path] = None
    if len(known) > SELECTABLE_FIELDS_MAX and not may_be_too_many:
        faults.append(too_many(path, len(known), SELECTABLE_FIELDS_MAX))
    return faults


def subresources_faults(subresources: Document | None, path: str) -> list[Fault]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return []
    faults: list[Fault] = []
    for field, below in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, place = scale.get(field, ""), f"{path}.scale.{field}"
        if not text:
            faults.append(required(place))
            continue
        wrong = _json_path_faults(text, place)
        if not wrong and not text.startswith(below):
            wrong = [invalid(place, text, f"should be a json path under {below[:-1]}")]
        faults += wrong
    text, place = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if text:
        wrong = _json_path_faults(text, place)
        if not wrong and not text.startswith((".spec.", ".status.")):
            wrong = [invalid(place, text, "should be a json path under either .spec or .status")]
        faults += wrong
    return faults


def _json_path_faults(text: str, path: str) -> list[Fault]:
    return [] if text.startswith(".") else [invalid(path, text, "must be a simple json path starting with .")]


def name_faults(definition: Document) -> NameCheck:
    """A definition is named after what it defines."""
    spec = definition["spec"]
    wanted = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"

    def faults(name: str, is_prefix: bool) -> Sequence[str]:
        found = list(name_is_dns_subdomain(name, is_prefix))
        if name != wanted:
            found.append('must be spec.names.plural+"."+spec.group')
        return found

    return faults


def definition_faults(definition: Document) -> list[Fault]:
    """What is wrong with a new definition, apart from its metadata."""
    faults = _definition_spec_faults(_Inside.of(definition["spec"]), _Wishes(SchemaWishes()))
    faults += status_faults(definition)
    faults += approval_faults(definition, None)
    return faults + preserving_faults(definition, None)


def definition_update_faults(definition: Document, old: Document) -> list[Fault]:
    faults = _definition_spec_faults(_Inside.of(definition["spec"]), _wishes_after(definition, old))
    faults += _immutable_faults(definition["spec"], old["spec"], is_established=is_true(old, "Established"))
    faults += status_faults(definition)
    faults += approval_faults(definition, old)
    return faults + preserving_faults(definition, old)


def unrecognized_formats(definition: Document) -> list[str]:
    """Formats in schemas that nobody checks."""
    inside = _Inside.of(definition["spec"])
    return [
        schema["format"]
        for raw in inside.schemas()
        for schema in schemas_in(raw)
        if schema.get("format") and not known_format(schema["format"], schema.get("type", ""))
    ]


@dataclass(frozen=True, slots=True)
class _Inside:
    """A spec with what its versions have in common taken out of them."""

    spec: Document
    shared: Document
    versions: Sequence[Document]

    @classmethod
    def of(cls, spec: Document) -> _Inside:
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
        return [each["openAPIV3Schema"] for each in held if each and each.get("openAPIV3Schema") is not None]

    def any_schema(self, holds: Callable[[Document], bool]) -> bool:
        return any(any_schema(raw, holds) for raw in self.schemas())

    def has_status(self, version: Document) -> bool:
        return "status" in (version.get("subresources") or self.shared.get("subresources") or {})

    def shown_versions(self) -> list[Document]:
        return [
            internal_value(version, "CustomResourceDefinitionVersion", "apiextensions") for version in self.versions
        ]


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What is asked of a definition."""

    schema: SchemaWishes
    needs_known_review: bool = True
    may_have_bad_bundle: bool = True
    unchanged_versions: frozenset[str] = frozenset()
    """Versions whose schema is the one of before."""
    crowded_versions: frozenset[str] = frozenset()
    """Versions that have as many selectable fields as before, too many; an empty name for all of them."""

    def of(self, version: str) -> SchemaWishes:
        return replace(self.schema, has_known_costs=version in self.unchanged_versions)


def _wishes_after(definition: Document, old: Document) -> _Wishes:
    before, spec = _Inside.of(old["spec"]), definition["spec"]
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
    is_structural = not any(unsupported(raw) or structural_faults(raw, "") for raw in schemas)
    conversion = old["spec"].get("conversion")
    return _Wishes(
        SchemaWishes(
            needs_schema=bool(before.shared.get("schema")) or len(schemas) == len(before.versions),
            needs_known_types=not before.any_schema(lambda raw: bool(raw.get("type")) and raw["type"] not in TYPES),
            needs_structural=is_structural,
            needs_pruned_defaults=True,
            needs_atomic_sets=not before.any_schema(has_unatomic_set),
            needs_safe_keys=not before.any_schema(lambda raw: bool(map_set_faults(raw, ""))),
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
    return bool(bundle) and bool(bundle_faults(bundle, ""))


# --- the spec ---------------------------------------------------------------------------------------------------


def _definition_spec_faults(inside: _Inside, wishes: _Wishes) -> list[Fault]:
    spec = inside.spec
    preserves = spec.get("preserveUnknownFields", False)
    faults = _group_faults(spec.get("group", ""))
    faults += choice_faults(spec.get("scope", ""), ("Cluster", "Namespaced"), "spec.scope")
    has_defaults = inside.any_schema(lambda raw: raw.get("default") is not None)
    if not preserves or has_defaults or inside.any_schema(_has_extension):
        wishes = replace(wishes, schema=replace(wishes.schema, needs_structural=True))
    faults += _missing_schema_faults(inside, wishes.schema.needs_schema, preserves)
    if has_defaults and preserves:
        why = "must be false in order to use defaults in the schema"
        faults.append(invalid("spec.preserveUnknownFields", True, why))
    faults += _versions_faults(inside, wishes)
    faults += _definition_names_faults(spec.get("names") or {})
    faults += _shared_faults(inside, wishes)
    conversion = spec.get("conversion")
    if conversion is not None and conversion.get("strategy") != "None" and preserves:
        why = "must be None if spec.preserveUnknownFields is true"
        faults.append(invalid("spec.conversion.strategy", conversion.get("strategy", ""), why))
    faults += conversion_faults(
        conversion,
        "spec.conversion",
        needs_known_review=wishes.needs_known_review,
        may_have_bad_bundle=wishes.may_have_bad_bundle,
    )
    return faults


def _group_faults(group: str) -> list[Fault]:
    if not group:
        return [required("spec.group")]
    wrong = dns_subdomain_faults(group)
    if wrong:
        return [invalid("spec.group", group, ",".join(wrong))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _missing_schema_faults(inside: _Inside, needs_schema: bool, preserves: bool) -> list[Fault]:
    if (inside.shared.get("schema") or {}).get("openAPIV3Schema") is not None:
        return []
    faults: list[Fault] = []
    for index, version in enumerate(inside.versions):
        place = f"spec.versions[{index}].schema.openAPIV3Schema"
        if (version.get("schema") or {}).get("openAPIV3Schema") is not None:
            continue
        if needs_schema:
            faults.append(required(place))
        elif not preserves and version.get("served"):
            faults.append(required(place, "because otherwise all fields are pruned"))
    return faults


def _has_extension(raw: Document) -> bool:
    return (
        raw.get("x-kubernetes-preserve-unknown-fields") is not None
        or raw.get("x-kubernetes-list-type") is not None
        or any(
            raw.get(f"x-kubernetes-{name}")
            for name in ("embedded-resource", "int-or-string", "list-map-keys", "validations")
        )
    )


def _versions_faults(inside: _Inside, wishes: _Wishes) -> list[Fault]:
    faults: list[Fault] = []
    for index, version in enumerate(inside.versions):
        path = f"spec.versions[{index}]"
        wrong = dns_1035_label_faults(version.get("name", ""))
        if wrong:
            faults.append(invalid(f"{path}.name", version.get("name", ""), ",".join(wrong)))
        faults += _version_faults(inside, version, path, wishes)
    names = [version.get("name", "") for version in inside.versions]
    if len(frozenset(names)) != len(names):
        faults.append(invalid("spec.versions", inside.shown_versions(), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in inside.versions) != 1:
        why = "must have exactly one version marked as storage version"
        faults.append(invalid("spec.versions", inside.shown_versions(), why))
    if names and names[0]:
        wrong = dns_1035_label_faults(names[0])
        if wrong:
            faults.append(invalid("spec.version", names[0], ",".join(wrong)))
    return faults


def _version_faults(inside: _Inside, version: Document, path: str, wishes: _Wishes) -> list[Fault]:
    warning = version.get("deprecationWarning")
    faults = [
        invalid(f"{path}.deprecationWarning", warning, why)
        for why in _warning_faults(version.get("deprecated", False), warning)
    ]
    has_status = inside.has_status(version)
    faults += schema_faults(
        version.get("schema"), f"{path}.schema", wishes.of(version.get("name", "")), has_status=has_status
    )
    faults += subresources_faults(version.get("subresources"), f"{path}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        faults += column_faults(column, f"{path}.additionalPrinterColumns[{index}]")
    fields, place = version.get("selectableFields") or (), f"{path}.selectableFields"
    raw: Document | None = (version.get("schema") or {}).get("openAPIV3Schema")
    if fields and raw is None:
        why = "may only be set when `version.schema.openAPIV3Schema` is not included"
        faults.append(invalid(place, "", why))
    elif fields and raw is not None:
        may = version["name"] in wishes.crowded_versions
        faults += selectable_faults(fields, read_schema(raw), place, may_be_too_many=may)
    return faults


def _warning_faults(is_deprecated: bool, warning: str | None) -> list[str]:
    if warning is None:
        return []
    if not is_deprecated:
        return ["can only be set for deprecated versions"]
    faults = []
    if len(warning.encode()) > WARNING_LENGTH_MAX:
        faults.append(f"must be <= {WARNING_LENGTH_MAX} characters long")
    if not warning:
        faults.append("must not be an empty string")
    position = 0
    for letter in warning:
        if not letter.isprintable():
            why = "must only contain printable UTF-8 characters; non-printable character found at index"
            faults.append(f"{why} {position}")
            break
        position += len(letter.encode())
    return faults


def _definition_names_faults(names: Document) -> list[Fault]:
    faults = [
        required(f"spec.names.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)
    ]
    return faults + names_faults(names, "spec.names")


def _shared_faults(inside: _Inside, wishes: _Wishes) -> list[Fault]:
    shared = inside.shared
    has_status = any(inside.has_status(version) for version in inside.versions)
    first = inside.versions[0].get("name", "") if inside.versions else ""
    faults = schema_faults(shared.get("schema"), "spec.validation", wishes.of(first), has_status=has_status)
    faults += subresources_faults(shared.get("subresources"), "spec.subresources")
    for index, column in enumerate(shared.get("additionalPrinterColumns") or ()):
        faults += column_faults(column, f"spec.additionalPrinterColumns[{index}]")
    fields, raw = shared.get("selectableFields") or (), (shared.get("schema") or {}).get("openAPIV3Schema")
    if fields and raw is None:
        faults.append(invalid("spec.selectableFields", "", "may only be set when validations.schema is included"))
    elif fields and raw is not None:
        may = "" in wishes.crowded_versions
        faults += selectable_faults(fields, read_schema(raw), "spec.selectableFields", may_be_too_many=may)
    return faults


# --- the rest ---------------------------------------------------------------------------------------------------


def _immutable_faults(spec: Document, old: Document, *, is_established: bool) -> list[Fault]:
    names, old_names = spec.get("names") or {}, old.get("names") or {}
    faults: list[Fault] = []
    if is_established:
        faults += immutable_faults(spec.get("scope", ""), old.get("scope", ""), "spec.scope")
        faults += immutable_faults(names.get("kind", ""), old_names.get("kind", ""), "spec.names.kind")
    faults += immutable_faults(spec.get("group", ""), old.get("group", ""), "spec.group")
    return faults + immutable_faults(names.get("plural", ""), old_names.get("plural", ""), "spec.names.plural")
