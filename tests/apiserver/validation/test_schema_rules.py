"""Tests of validation.schema_rules."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.schema_rules import (
    enum_values,
    sorted_enum_values,
    struct_rules,
    validate_enum,
    validate_required,
    validate_required_enum,
)
from tests.apiserver.core_documents import messages

UNSUPPORTED = 'p: Unsupported value: "{}": supported values: "SCTP", "TCP", "UDP"'


def test_enum_values_come_in_schema_order_or_sorted() -> None:
    assert enum_values("core", "Protocol") == ("TCP", "UDP", "SCTP")
    assert sorted_enum_values("core", "Protocol") == ("SCTP", "TCP", "UDP")


def test_a_type_without_values_is_no_enum() -> None:
    with pytest.raises(AssertionError, match=r"storage\.FSGroupPolicy is no enum"):
        enum_values("storage", "FSGroupPolicy")


@pytest.mark.parametrize(
    ("value", "optional", "required"),
    [
        pytest.param("TCP", [], [], id="a value of the enum"),
        pytest.param("tcp", [UNSUPPORTED.format("tcp")], [UNSUPPORTED.format("tcp")], id="another value"),
        pytest.param("", [UNSUPPORTED.format("")], ["p: Required value"], id="empty"),
        pytest.param(None, [], ["p: Required value"], id="absent"),
    ],
)
def test_optional_and_required_enums_are_validated(value: str | None, optional: list[str], required: list[str]) -> None:
    choices = sorted_enum_values("core", "Protocol")
    assert messages(validate_enum(value, choices, "p")) == optional
    assert messages(validate_required_enum(value, choices, "p")) == required


def test_required_fields_are_reported_in_the_given_order() -> None:
    errors = validate_required({"b": "x", "c": ""}, ("a", "b", "c"), "spec")
    assert messages(errors) == ["spec.a: Required value", "spec.c: Required value"]


@pytest.mark.parametrize(
    ("struct", "obj", "errors"),
    [
        pytest.param("EnvVar", {"name": "A"}, [], id="valid"),
        pytest.param("EnvVar", {}, ["p.name: Required value"], id="required and absent"),
        pytest.param("EnvVar", {"name": ""}, ["p.name: Required value"], id="required and empty"),
        pytest.param("GitRepoVolumeSource", {"repository": "r"}, [], id="a format of an empty field"),
        pytest.param(
            "GitRepoVolumeSource",
            {"directory": "/a"},
            ["p.repository: Required value", 'p.directory: Invalid value: "/a": must be a relative path'],
            id="in the order of the schema",
        ),
        pytest.param(
            "LocalVolumeSource",
            {"path": "a/.."},
            ["p.path: Invalid value: \"a/..\": must not contain '..'"],
            id="a format",
        ),
        pytest.param(
            "HostPathVolumeSource",
            {"path": "/a", "type": "Pipe"},
            [
                'p.type: Unsupported value: "Pipe": supported values: "", "BlockDevice", "CharDevice", "Directory", '
                '"DirectoryOrCreate", "File", "FileOrCreate", "Socket"'
            ],
            id="a sorted enum",
        ),
        pytest.param(
            "ContainerRestartRule",
            {},
            ['p.action: Unsupported value: "": supported values: "Restart", "RestartAllContainers"'],
            id="an absent enum that is no pointer",
        ),
        pytest.param("EndpointAddress", {"hostname": ""}, [], id="an empty value"),
    ],
)
def test_struct_rules_validate_required_fields_enums_and_formats(struct: str, obj: Document, errors: list[str]) -> None:
    assert messages(struct_rules("core", struct).validate(obj, "p")) == errors


def test_a_named_field_is_validated_even_if_it_is_zero() -> None:
    rules = struct_rules("core", "ServicePort")
    assert messages(rules.validate({}, "p", "port")) == [
        "p.port: Invalid value: 0: must be between 1 and 65535, inclusive"
    ]


def test_named_fields_are_validated_in_the_order_of_their_names() -> None:
    rules = struct_rules("core", "FileKeySelector")
    assert messages(rules.validate({}, "p", "key", "path")) == ["p.key: Required value", "p.path: Required value"]


@pytest.mark.parametrize(
    ("new", "old", "errors"),
    [
        pytest.param({"provisioner": "a"}, {"provisioner": "a"}, [], id="unchanged"),
        pytest.param(
            {"provisioner": "a"},
            {"provisioner": "b"},
            ['provisioner: Invalid value: "a": field is immutable'],
            id="changed",
        ),
        pytest.param({"parameters": {}}, {}, [], id="an empty map is an absent one"),
        pytest.param(
            {"parameters": {"b": "1", "a": "2"}},
            {},
            ['parameters: Invalid value: {"a":"2","b":"1"}: field is immutable'],
            id="a map prints sorted",
        ),
        pytest.param({"allowVolumeExpansion": True}, {}, [], id="a field that may change"),
    ],
)
def test_validate_update_rejects_changes_of_immutable_fields(new: Document, old: Document, errors: list[str]) -> None:
    assert messages(struct_rules("storage", "StorageClass").validate_update(new, old, "")) == errors
