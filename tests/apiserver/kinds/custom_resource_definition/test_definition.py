"""Tests of definition, status, conversion and strategy of kinds.custom_resource_definition."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CUSTOM_RESOURCE_DEFINITION
from mooring.apiserver.call import Call
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.custom_resource_definition.conversion import (
    has_known_review,
    validate_bundle,
    validate_conversion,
)
from mooring.apiserver.kinds.custom_resource_definition.definition import (
    name_errors,
    unrecognized_formats,
    validate_approval,
    validate_column,
    validate_definition,
    validate_definition_update,
    validate_names,
    validate_preserving,
    validate_selectable,
    validate_status,
    validate_subresources,
)
from mooring.apiserver.kinds.custom_resource_definition.strategy import (
    CustomResourceDefinitionStrategy,
)
from mooring.serving.users import User
from tests.apiserver.custom.definitions import definition, fields, version

SCHEMA = read_schema(
    fields(
        spec=fields(
            a={"type": "string"}, o={"type": "object"}, **{f"f{number}": {"type": "integer"} for number in range(9)}
        ),
        metadata=fields(name={"type": "string"}),
    )
)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        pytest.param({"name": "A", "type": "string", "jsonPath": ".a"}, [], id="fine"),
        pytest.param(
            {},
            [
                "c.name: Required value",
                "c.type: Required value: must be one of boolean,date,integer,number,string",
                "c.JSONPath: Required value",
            ],
            id="empty",
        ),
        pytest.param(
            {"name": "A", "type": "x", "jsonPath": "a", "format": "z"},
            [
                'c.type: Invalid value: "x": must be one of boolean,date,integer,number,string',
                'c.format: Invalid value: "z": must be one of byte,date,date-time,double,float,int32,int64,password',
                'c.JSONPath: Invalid value: "a": must be a simple json path starting with .',
            ],
            id="all wrong",
        ),
    ],
)
def test_printer_columns_are_validated(column: Document, found: list[str]) -> None:
    assert [error.message for error in validate_column(column, "c")] == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param(".spec.a", "", id="fine"),
        pytest.param("", "s[0].jsonPath: Required value", id="none"),
        pytest.param(
            ".spec.z",
            's[0].jsonPath: Invalid value: ".spec.z": is an invalid path: does not refer to a valid field',
            id="unknown",
        ),
        pytest.param(
            ".metadata.name",
            's[0].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata',
            id="metadata",
        ),
        pytest.param(
            ".spec.o",
            's[0].jsonPath: Invalid value: ".spec.o": must point to a field of type string, boolean or integer. Enum '
            "string fields and strings with formats are allowed.",
            id="an object",
        ),
    ],
)
def test_selectable_fields_are_validated(path: str, message: str) -> None:
    errors = validate_selectable([{"jsonPath": path}], SCHEMA, "s")
    assert [error.message for error in errors] == ([message] if message else [])


def test_there_are_at_most_eight_selectable_fields() -> None:
    fields_ = [{"jsonPath": f".spec.f{number}"} for number in range(9)]
    assert [error.message for error in validate_selectable(fields_, SCHEMA, "s")] == [
        "s: Too many: 9: must have at most 8 items"
    ]
    assert validate_selectable(fields_, SCHEMA, "s", may_be_too_many=True) == []
    assert len(validate_selectable([fields_[0], fields_[0]], SCHEMA, "s")) == 1


@pytest.mark.parametrize(
    ("scale", "paths"),
    [
        pytest.param({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}, [], id="fine"),
        pytest.param({}, ["p.scale.specReplicasPath", "p.scale.statusReplicasPath"], id="empty"),
        pytest.param(
            {"specReplicasPath": ".status.n", "statusReplicasPath": "x", "labelSelectorPath": ".foo"},
            ["p.scale.specReplicasPath", "p.scale.statusReplicasPath", "p.scale.labelSelectorPath"],
            id="all wrong",
        ),
    ],
)
def test_scale_paths_are_validated(scale: Document, paths: list[str]) -> None:
    assert [error.field for error in validate_subresources({"scale": scale}, "p")] == paths
    assert validate_subresources(None, "p") == []


TEXT: Document = {"type": "string"}


def messages(whole: Document) -> list[str]:
    return [error.message for error in validate_definition(whole)]


def in_spec(**spec: Any) -> Document:
    return definition(version(), **spec)


@pytest.mark.parametrize(
    ("whole", "found"),
    [
        pytest.param(definition(), [], id="fine"),
        pytest.param(in_spec(group=""), ["spec.group: Required value"], id="no group"),
        pytest.param(
            in_spec(group="x"),
            ['spec.group: Invalid value: "x": should be a domain with at least one dot'],
            id="a short group",
        ),
        pytest.param(
            definition(scope="Galaxy"),
            ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
            id="an unknown scope",
        ),
        pytest.param(definition(scope=""), ["spec.scope: Required value"], id="no scope"),
        pytest.param(
            definition({**version(), "schema": None}),
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
            id="no schema",
        ),
        pytest.param(
            in_spec(names={}),
            [f"spec.names.{name}: Required value" for name in ("plural", "singular", "kind", "listKind")],
            id="no names",
        ),
        pytest.param(
            definition(version(deprecationWarning="x")),
            ['spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions'],
            id="a warning of a version that is not deprecated",
        ),
        pytest.param(
            definition(version(deprecated=True, deprecationWarning="a\nb")),
            [
                'spec.versions[0].deprecationWarning: Invalid value: "a\\nb": must only contain printable UTF-8 '
                "characters; non-printable character found at index 1"
            ],
            id="a warning that cannot be printed",
        ),
        pytest.param(
            definition(version(fields(a={"type": "thing"}))),
            [
                'spec.validation.openAPIV3Schema.properties[a].type: Unsupported value: "thing": supported values: '
                '"array", "boolean", "integer", "number", "object", "string"'
            ],
            id="errors of a shared schema are reported once",
        ),
        pytest.param(
            definition(version(), version(fields(a={"type": "thing"}), name="v2")),
            [
                'spec.versions[1].schema.openAPIV3Schema.properties[a].type: Unsupported value: "thing": supported '
                'values: "array", "boolean", "integer", "number", "object", "string"'
            ],
            id="errors of a version have its path",
        ),
        pytest.param(
            in_spec(preserveUnknownFields=True),
            [
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
            ],
            id="preserveUnknownFields",
        ),
    ],
)
def test_definitions_are_validated(whole: Document, found: list[str]) -> None:
    assert messages(whole) == found


def test_versions_are_validated() -> None:
    two = definition(version(), version(name="v1", storage=True))
    assert [error.detail for error in validate_definition(two)] == [
        "must contain unique version names",
        "must have exactly one version marked as storage version",
    ]
    odd = definition({**version(name="V_1"), "storage": True})
    assert [error.field for error in validate_definition(odd)] == [
        "spec.versions[0].name",
        "spec.version",
        "status.storedVersions",
        "status.storedVersions[0]",
    ]


def test_the_name_of_a_definition_is_its_plural_and_group() -> None:
    check = name_errors(definition())
    assert check("widgets.example.com", False) == []
    assert check("other.example.com", False) == ['must be spec.names.plural+"."+spec.group']


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"scope": "Cluster"}, "spec.scope", id="the scope"),
        pytest.param({"group": "other.com"}, "spec.group", id="the group"),
        pytest.param(
            {"names": {"plural": "w", "singular": "w", "kind": "Widget", "listKind": "L"}},
            "spec.names.plural",
            id="the plural",
        ),
        pytest.param(
            {"names": {"plural": "widgets", "singular": "w", "kind": "W", "listKind": "L"}},
            "spec.names.kind",
            id="the kind",
        ),
    ],
)
def test_scope_group_plural_and_kind_are_immutable(change: Document, field: str) -> None:
    new = definition()
    new["spec"] = {**new["spec"], **change}
    assert [(error.field, error.detail) for error in validate_definition_update(new, definition())] == [
        (field, "field is immutable")
    ]


def test_an_unchanged_invalid_definition_is_accepted_on_update() -> None:
    old = definition(version(fields(a={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}})))
    assert len(validate_definition(old)) == 1
    assert validate_definition_update(old, old) == []


def test_unrecognized_formats_are_found() -> None:
    raw = fields(a={**TEXT, "format": "foo"}, b={**TEXT, "format": "date"}, c={"type": "boolean", "format": "x"})
    assert unrecognized_formats(definition(version(raw))) == ["foo", "x"]


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        pytest.param(
            {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}, [], id="fine"
        ),
        pytest.param({"plural": "Things", "singular": "1"}, ["names.plural", "names.singular"], id="upper case"),
        pytest.param({"kind": "Thi ng", "listKind": "L_"}, ["names.kind", "names.listKind"], id="invalid kinds"),
        pytest.param({"kind": "Thing", "listKind": "Thing"}, ["names.listKind"], id="a list kind equal to the kind"),
        pytest.param({"shortNames": ["ok", "A", ""]}, ["names.shortNames[1]", "names.shortNames[2]"], id="short names"),
        pytest.param({"categories": ["all", "Q"]}, ["names.categories[1]"], id="categories"),
    ],
)
def test_names_are_validated(names: Document, paths: list[str]) -> None:
    assert [error.field for error in validate_names(names, "names")] == paths


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        pytest.param(["v1"], [], id="fine"),
        pytest.param(
            None, ["status.storedVersions: Invalid value: null: must have at least one stored version"], id="none"
        ),
        pytest.param(
            ["v2"], ['status.storedVersions: Invalid value: ["v2"]: must have the storage version v1'], id="another one"
        ),
    ],
)
def test_stored_versions_must_include_the_storage_version(stored: list[str] | None, found: list[str]) -> None:
    whole = definition(version(), version(name="v2"))
    whole["status"]["storedVersions"] = stored
    assert [error.message for error in validate_status(whole)] == found


def test_a_stored_version_must_not_be_removed_from_the_spec() -> None:
    whole = definition()
    whole["status"]["storedVersions"] = ["v0", "v1"]
    (error,) = validate_status(whole)
    assert (error.field, error.value) == ("status.storedVersions[0]", "v0")
    assert error.detail.startswith("missing from spec.versions; v0 was previously a storage version")


def protected(**annotations: str) -> Document:
    whole = definition()
    whole["spec"]["group"] = "foo.kubernetes.io"
    whole["metadata"]["annotations"] = {
        name.replace("_", "-") + ".kubernetes.io": text for name, text in annotations.items()
    }
    return whole


def test_protected_groups_need_an_approval() -> None:
    assert [error.kind.prefix for error in validate_approval(protected(), None)] == ["Required value"]
    assert [error.kind.prefix for error in validate_approval(protected(api_approved="hm"), None)] == ["Invalid value"]
    assert validate_approval(protected(api_approved="unapproved, a test"), None) == []
    assert validate_approval(protected(), protected()) == []
    assert validate_approval(definition(), None) == []


def test_a_new_definition_must_not_preserve_unknown_fields() -> None:
    keeps = definition(version(), preserveUnknownFields=True)
    assert len(validate_preserving(keeps, None)) == 1
    assert validate_preserving(keeps, keeps) == []


def webhook(client: Document | None = None, versions: list[str] | None = None) -> Document:
    held: Document = {"conversionReviewVersions": ["v1"] if versions is None else versions}
    return {"strategy": "Webhook", "webhook": held | ({"clientConfig": client} if client is not None else {})}


SERVICE = {"name": "a", "namespace": "b", "port": 443}


@pytest.mark.parametrize(
    ("conversion", "found"),
    [
        pytest.param({"strategy": "None"}, [], id="none"),
        pytest.param(webhook({"service": SERVICE}), [], id="a webhook"),
        pytest.param(
            {"strategy": "Foo"},
            ['c.strategy: Unsupported value: "Foo": supported values: "None", "Webhook"'],
            id="unknown",
        ),
        pytest.param({}, ["c.strategy: Required value"], id="empty"),
        pytest.param(
            {**webhook({"url": "https://a"}), "strategy": "None"},
            [
                "c.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
                "c.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
            ],
            id="a webhook without its strategy",
        ),
        pytest.param(
            webhook(versions=[]),
            [
                "c.webhookClientConfig: Required value: required when strategy is set to Webhook",
                "c.conversionReviewVersions: Required value",
            ],
            id="the strategy without a webhook",
        ),
        pytest.param(
            webhook({"url": "https://a", "service": SERVICE}),
            ["c.webhookClientConfig: Required value: exactly one of url or service is required"],
            id="url and service",
        ),
        pytest.param(
            webhook({"service": {**SERVICE, "name": ""}}),
            ["c.webhookClientConfig.service.namespace: Required value"],
            id="an empty name is reported as the namespace",
        ),
        pytest.param(
            webhook({"service": SERVICE}, ["v3", "v3"]),
            [
                'c.conversionReviewVersions[1]: Invalid value: "v3": duplicate version',
                'c.conversionReviewVersions: Invalid value: ["v3","v3"]: must include at least one of v1, v1beta1',
            ],
            id="unknown versions",
        ),
    ],
)
def test_conversions_are_validated(conversion: Document, found: list[str]) -> None:
    errors = validate_conversion(conversion, "c", needs_known_review=True, may_have_bad_bundle=True)
    assert [error.message for error in errors] == found


def test_webhook_urls_and_services_are_validated() -> None:
    options: dict[str, Any] = {"needs_known_review": True, "may_have_bad_bundle": True}
    errors = validate_conversion(webhook({"url": "http://u@h/x?y#z"}), "c", **options)
    assert [error.detail for error in errors] == [
        "'https' is the only allowed URL scheme; desired format: https://host[/path]",
        "user information is not permitted in the URL",
        "fragments are not permitted in the URL",
        "query parameters are not permitted in the URL",
    ]
    errors = validate_conversion(webhook({"service": {**SERVICE, "path": "a//B_", "port": 0}}), "c", **options)
    assert [error.field.rpartition(".")[2] for error in errors] == ["port", "path", "path", "path", "path"]


def test_ca_bundles_and_review_versions_are_validated() -> None:
    assert len(validate_bundle("bm90IHBlbQ==", "b")) == 1
    assert has_known_review(None)
    assert not has_known_review(webhook({}, ["v7"]))


def test_default_fills_in_names_conversion_and_stored_versions() -> None:
    versions = [{"name": "v1", "storage": False}, {"name": "v2", "storage": True}]
    obj = {"metadata": {}, "spec": {"names": {"plural": "things", "kind": "Thing"}, "versions": versions}}
    strategy_of(CUSTOM_RESOURCE_DEFINITION).default(obj)
    strategy_of(CUSTOM_RESOURCE_DEFINITION).default(obj)
    assert obj["spec"]["names"] == {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert obj["status"] == {"storedVersions": ["v2"]}


def test_default_sets_the_port_of_webhook_services() -> None:
    service = {"name": "a", "namespace": "b"}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}
    strategy_of(CUSTOM_RESOURCE_DEFINITION).default({"spec": {"names": {}, "versions": [], "conversion": conversion}})
    assert service == {"name": "a", "namespace": "b", "port": 443}


STRATEGY = CustomResourceDefinitionStrategy(CUSTOM_RESOURCE_DEFINITION)


def call() -> Call:
    return Call("create", CUSTOM_RESOURCE_DEFINITION, User("u"), 0.0, "now")


def test_prepare_for_create_resets_the_status() -> None:
    obj = definition()
    STRATEGY.prepare_for_create(obj, call())
    assert obj["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert STRATEGY.validate(obj, call()) == []


def test_prepare_for_update_adds_a_new_storage_version_to_stored_versions() -> None:
    old, obj = definition(), definition(version(storage=False), version(name="v2", storage=True))
    STRATEGY.prepare_for_update(obj, old, call())
    assert obj["status"]["storedVersions"] == ["v1", "v2"]
    assert obj["metadata"]["generation"] == 2
    assert old["status"]["storedVersions"] == ["v1"]


def test_new_unrecognized_formats_have_a_warning() -> None:
    obj = definition(version(fields(a={"type": "string", "format": "foo"})))
    assert STRATEGY.warnings_on_create(obj, call()) == ['unrecognized format "foo"']
    assert STRATEGY.warnings_on_update(obj, obj, call()) == []


def test_a_status_update_keeps_the_spec() -> None:
    status = STRATEGY.subresources["status"]
    old, obj = definition(), definition(scope="Cluster")
    status.prepare_for_update(obj, old, call())
    assert obj["spec"] == old["spec"]
    obj["status"]["acceptedNames"]["plural"] = "A_"
    assert [error.field for error in status.validate_update(obj, old, call())] == ["status.acceptedNames.plural"]
