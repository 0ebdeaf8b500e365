"""Tests of validation.metadata and validation.names."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.metadata import (
    name_is_dns_label,
    name_is_dns_subdomain,
    name_is_path_segment,
    validate_field_manager,
    validate_object_meta,
    validate_object_meta_update,
)
from mooring.apiserver.validation.names import (
    validate_descending_path,
    validate_file_mode,
    validate_no_backsteps,
    validate_unreserved_path,
)

GOOD: dict[str, Any] = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7"}


def messages(**metadata: Any) -> list[str]:
    return [
        error.message for error in validate_object_meta({**GOOD, **metadata}, True, name_is_dns_subdomain, "metadata")
    ]


def update_messages(old: dict[str, Any], **changes: Any) -> list[str]:
    before = {**GOOD, **old}
    return [error.message for error in validate_object_meta_update({**before, **changes}, before, "metadata")]


def test_good_metadata_has_no_errors() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True}
    assert messages(labels={"app": "web"}, annotations={"Example.com/A": "x"}, ownerReferences=[owner]) == []
    assert update_messages({}, labels={"app": "web"}) == []


@pytest.mark.parametrize(
    ("metadata", "beginning"),
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "Web"}, 'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain'),
        ({"generateName": "We-"}, 'metadata.generateName: Invalid value: "We-": a lowercase'),
        ({"namespace": ""}, "metadata.namespace: Required value"),
        ({"namespace": "a.b"}, 'metadata.namespace: Invalid value: "a.b": must not contain dots'),
        ({"labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b": name part must consist'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        ({"annotations": {"a": "x" * 262_144}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, 'metadata.finalizers: Invalid value: ["orphan","foreground'),
        ({"ownerReferences": [{"kind": "A"}]}, 'metadata.ownerReferences.apiVersion: Invalid value: "": version must'),
        ({"managedFields": [{"operation": "Guess"}]}, 'metadata.managedFields[0].operation: Invalid value: "Guess"'),
        ({"generation": -1}, "metadata.generation: Invalid value: -1: must be greater than or equal to 0"),
    ],
)
def test_invalid_metadata_is_rejected(metadata: dict[str, Any], beginning: str) -> None:
    assert messages(**metadata)[0].startswith(beginning)


def test_only_one_owner_reference_may_be_the_controller() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": True} for name in ("one", "two")
    ]
    assert messages(ownerReferences=owners)[0].endswith(
        'Only one reference can have Controller set to true. Found "true" in references for A/one and A/two'
    )


@pytest.mark.parametrize(
    ("old", "changes", "message"),
    [
        ({}, {"name": "other"}, 'metadata.name: Invalid value: "other": field is immutable'),
        ({}, {"resourceVersion": ""}, 'metadata.resourceVersion: Invalid value: "": must be specified for an update'),
        ({"generation": 2}, {"generation": 1}, "metadata.generation: Invalid value: 1: must not be decremented"),
        (
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/b"]},
            {"finalizers": ["a.io/b", "a.io/c"]},
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
            'finalizers []string{"a.io/c"}',
        ),
    ],
)
def test_invalid_changes_of_metadata_are_rejected(old: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    assert update_messages(old, **changes) == [message]


@pytest.mark.parametrize(
    ("manager", "found"),
    [
        ("kubectl", []),
        ("m" * 129, ["m: Too long: may not be more than 128 bytes"]),
        ("a\nb", ['m: Invalid value: "a\\nb": invalid character U+000A (at position 1)']),
    ],
    ids=["ordinary", "long", "a line break"],
)
def test_field_manager_names_are_validated(manager: str, found: list[str]) -> None:
    assert [error.message for error in validate_field_manager(manager, "m")] == found


def test_name_rules_of_kinds() -> None:
    assert name_is_dns_label("web-", True) == ()
    assert name_is_dns_label("web-", False)
    assert name_is_path_segment("system:node", False) == ()
    assert name_is_path_segment("a/b%", False) == ("may not contain '/'", "may not contain '%'")
    assert name_is_path_segment("..", False) == ("may not be '..'",)


@pytest.mark.parametrize(
    ("path", "details"),
    [
        pytest.param("a/b", [], id="relative"),
        pytest.param("a..b", [], id="dots inside"),
        pytest.param("/a", ["must be a relative path"], id="absolute"),
        pytest.param("a/../b", ["must not contain '..'"], id="parent segment inside"),
        pytest.param("..a", ["must not start with '..'"], id="reserved"),
        pytest.param("../a", ["must not contain '..'"], id="parent segment first"),
    ],
)
def test_unreserved_paths_are_relative_without_parent_segments(path: str, details: list[str]) -> None:
    assert [error.detail for error in validate_unreserved_path(path, "p")] == details


def test_other_path_rules_allow_absolute_paths_and_leading_dots() -> None:
    assert validate_no_backsteps("/a/b", "p") == []
    assert validate_descending_path("..a", "p") == []


@pytest.mark.parametrize(("mode", "is_right"), [(None, True), (0, True), (0o777, True), (0o1000, False), (-1, False)])
def test_file_modes_are_between_0_and_0777(mode: int | None, is_right: bool) -> None:
    assert (validate_file_mode(mode, "p") == []) is is_right
