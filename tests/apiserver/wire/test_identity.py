"""Kind and apiVersion of request bodies, and the kinds that are registered in each scheme."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import all_kinds
from mooring.apiserver.wire.identity import (
    EXTENSIONS_GROUP,
    EXTENSIONS_SCHEME,
    LEGACY_SCHEME,
    IdentityError,
    TypeMeta,
    go_package,
    identity_of,
    is_registered,
    no_conversion,
    not_registered,
)
from mooring.apiserver.wire.json_text import parse_carefully

PREFIX = "couldn't get version/kind; json parse error: json: cannot unmarshal"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, ("v1", "Pod"), id="in the body"),
        pytest.param({}, ("apps/v1", "Deployment"), id="from the URL"),
        pytest.param(None, ("apps/v1", "Deployment"), id="null"),
        pytest.param(
            {"kind": None, "apiVersion": "/"}, ("apps/v1", "Deployment"), id="a null kind and an empty apiVersion"
        ),
        pytest.param({"apiVersion": "apps/"}, ("apps/v1", "Deployment"), id="a group without a version"),
        pytest.param({"apiVersion": "/v1"}, ("v1", "Deployment"), id="a version without a group"),
        pytest.param({"Kind": "Secret"}, ("apps/v1", "Secret"), id="case does not matter here"),
    ],
)
def test_identity_of_reads_kind_and_version_or_uses_those_of_the_url(raw: Any, expected: tuple[str, str]) -> None:
    assert identity_of(raw, "apps/v1", "Deployment", b"") == TypeMeta(*expected)


def test_the_last_of_several_kinds_counts() -> None:
    raw = parse_carefully(b'{"kind":"Pod","KIND":"Secret"}')
    assert identity_of(raw, "v1", "Pod", b"") == TypeMeta("v1", "Secret")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        ({"kind": 5}, f"{PREFIX} number into Go struct field .kind of type string"),
        ({"apiVersion": []}, f"{PREFIX} array into Go struct field .apiVersion of type string"),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ({"apiVersion": "batch/"}, "Object 'apiVersion' is missing in 'text'"),
    ],
    ids=repr,
)
def test_an_invalid_kind_or_api_version_is_rejected(raw: Any, error: str) -> None:
    with pytest.raises(IdentityError) as raised:
        identity_of(raw, "apps/v1", "Deployment", b"text")
    assert str(raised.value) == error


def test_a_body_that_is_no_object_is_rejected() -> None:
    with pytest.raises(IdentityError, match="cannot unmarshal array into Go value of type struct"):
        identity_of([], "v1", "Pod", b"[]")


def test_type_meta_has_group_and_version() -> None:
    assert (TypeMeta("apps/v1", "x").group, TypeMeta("apps/v1", "x").version) == ("apps", "v1")
    assert (TypeMeta("v1", "x").group, TypeMeta("v1", "x").version) == ("", "v1")


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("v1", "ConfigMapList", True),
        ("v1", "BindingList", False),
        ("v1", "Status", True),
        ("apps/v1", "ListOptions", True),
        ("apps/v1beta1", "Deployment", True),
        ("apps/v1", "ConfigMap", False),
        ("v2", "ConfigMap", False),
        ("meta.k8s.io/v1", "Table", False),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", False),
    ],
)
def test_kinds_of_the_legacy_scheme_are_registered(api_version: str, kind: str, expected: bool) -> None:
    assert is_registered(api_version, kind, LEGACY_SCHEME) is expected


def test_custom_resource_definitions_are_registered_in_the_extensions_scheme() -> None:
    assert is_registered("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", EXTENSIONS_SCHEME)
    assert is_registered("v1", "Status", EXTENSIONS_SCHEME)
    assert not is_registered("v1", "Pod", EXTENSIONS_SCHEME)


def test_every_served_kind_is_registered() -> None:
    for kind in all_kinds():
        scheme = EXTENSIONS_SCHEME if kind.group == EXTENSIONS_GROUP else LEGACY_SCHEME
        assert is_registered(kind.api_version, kind.kind, scheme), kind


@pytest.mark.parametrize(
    ("group", "kind", "package"),
    [
        ("", "Pod", "core"),
        ("events.k8s.io", "Event", "core"),
        ("rbac.authorization.k8s.io", "Role", "rbac"),
        ("storage.k8s.io", "CSINode", "storage"),
        ("extensions", "Ingress", "networking"),
        ("apps", "Scale", "autoscaling"),
    ],
)
def test_go_package_of_kinds(group: str, kind: str, package: str) -> None:
    assert go_package(group, kind) == package


def test_messages_for_unregistered_kinds_and_failed_conversions() -> None:
    assert not_registered("v2", "Pod", LEGACY_SCHEME) == (
        'no kind "Pod" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    )
    assert no_conversion("v1", "Secret", "", "ConfigMap") == (
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    )
