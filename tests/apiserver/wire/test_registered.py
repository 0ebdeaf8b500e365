from __future__ import annotations

import pytest

from mooring.api.kinds import all_kinds
from mooring.apiserver.wire import registered
from mooring.apiserver.wire.registered import EXTENSIONS_SCHEME, LEGACY_SCHEME


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
def test_which_kinds_are_known(api_version: str, kind: str, expected: bool) -> None:
    assert registered.is_registered(api_version, kind, LEGACY_SCHEME) is expected


def test_definitions_are_known_to_another_part() -> None:
    assert registered.is_registered("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", EXTENSIONS_SCHEME)
    assert registered.is_registered("v1", "Status", EXTENSIONS_SCHEME)
    assert not registered.is_registered("v1", "Pod", EXTENSIONS_SCHEME)


def test_every_kind_of_ours_is_known() -> None:
    for kind in all_kinds():
        scheme = EXTENSIONS_SCHEME if kind.group == registered.EXTENSIONS_GROUP else LEGACY_SCHEME
        assert registered.is_registered(kind.api_version, kind.kind, scheme), kind


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
def test_go_keeps_each_kind_in_a_package(group: str, kind: str, package: str) -> None:
    assert registered.go_package(group, kind) == package


def test_messages() -> None:
    assert registered.not_registered("v2", "Pod", LEGACY_SCHEME) == (
        'no kind "Pod" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    )
    assert registered.no_conversion("v1", "Secret", "", "ConfigMap") == (
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    )
