"""Discovery documents: order of versions and groups, resource lists, and aggregated discovery."""

from __future__ import annotations

import pytest

from mooring.api.kinds import SCALE, STATUS, Kind
from mooring.apiserver.discovery import Discovery, groups_in_order, versions_in_order
from mooring.apiserver.resources import Resource, ResourceTable, built_in_resources
from mooring.apiserver.strategy import Strategy


def test_versions_in_order_sorts_by_maturity_then_number_then_name() -> None:
    given = ["foo1", "v1alpha1", "v1", "v11beta2", "v2", "v10", "v10beta3", "v3beta1", "v12alpha1", "foo10", "v0"]
    assert versions_in_order(given) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v1alpha1",
        "foo1",
        "foo10",
        "v0",
    ]


def test_groups_in_order_puts_built_in_groups_first() -> None:
    given = ["zoo.example.com", "batch", "ant.example.com", "apps", "resource.k8s.io"]
    assert groups_in_order(given) == ["apps", "batch", "resource.k8s.io", "ant.example.com", "zoo.example.com"]


def custom(version: str = "v1", storage_version: str = "v1") -> Resource:
    kind = Kind(f"example.com/{version}", "Widget", "widgets")
    return Resource(
        kind,
        Strategy(kind),
        None,
        short_names=("wd",),
        categories=("all",),
        subresources={"scale": SCALE, "status": STATUS},
        storage_version=storage_version,
    )


def discovery(*more: Resource) -> Discovery:
    return Discovery(ResourceTable([*built_in_resources(), *more]))


def test_group_and_group_list() -> None:
    group = {
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }
    assert discovery().group("apps") == {"kind": "APIGroup", "apiVersion": "v1", **group}
    assert discovery().group_list()["groups"][0] == group
    assert discovery().group("nope") is None
    assert "" not in [found["name"] for found in discovery().group_list()["groups"]]


def test_groups_of_kinds_that_are_never_stored_are_built_in() -> None:
    assert discovery().is_built_in_group("authorization.k8s.io")
    assert not discovery().is_built_in_group("nope")


@pytest.mark.parametrize(
    ("api_version", "name", "entry"),
    [
        (
            "v1",
            "bindings",
            {"singularName": "binding", "namespaced": True, "kind": "Binding", "verbs": ["create"]},
        ),
        (
            "v1",
            "configmaps",
            {
                "singularName": "configmap",
                "namespaced": True,
                "kind": "ConfigMap",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["cm"],
                "storageVersionHash": "qFsyl6wFWjQ=",
            },
        ),
        (
            "v1",
            "namespaces/finalize",
            {"singularName": "", "namespaced": False, "kind": "Namespace", "verbs": ["update"]},
        ),
        (
            "v1",
            "pods/eviction",
            {
                "singularName": "",
                "namespaced": True,
                "group": "policy",
                "version": "v1",
                "kind": "Eviction",
                "verbs": ["create"],
            },
        ),
        (
            "authorization.k8s.io/v1",
            "localsubjectaccessreviews",
            {
                "singularName": "localsubjectaccessreview",
                "namespaced": True,
                "kind": "LocalSubjectAccessReview",
                "verbs": ["create"],
            },
        ),
    ],
)
def test_resource_list_entries_of_built_in_kinds(api_version: str, name: str, entry: dict[str, object]) -> None:
    found = discovery().resource_list(api_version)
    assert found is not None
    assert {"name": name, **entry} in found["resources"]


def test_only_the_core_resource_list_has_no_api_version() -> None:
    core, apps = discovery().resource_list("v1"), discovery().resource_list("apps/v1")
    assert core is not None
    assert apps is not None
    assert list(core) == ["kind", "groupVersion", "resources"]
    assert list(apps) == ["kind", "apiVersion", "groupVersion", "resources"]
    assert discovery().resource_list("apps/v2") is None


def test_events_have_the_storage_version_hash_of_the_core_group() -> None:
    found = discovery().resource_list("events.k8s.io/v1")
    assert found is not None
    assert found["resources"][0]["storageVersionHash"] == "r2yiGXH7wu8="


def test_resource_list_entries_of_custom_kinds() -> None:
    found = discovery(custom("v2")).resource_list("example.com/v2")
    assert found is not None
    widgets, status, scale = found["resources"]
    assert widgets["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert status["name"] == "widgets/status"
    assert scale == {
        "name": "widgets/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


def test_versions_of_a_kind_share_the_hash_of_the_storage_version() -> None:
    seen = discovery(custom("v1"), custom("v2"))
    hashes = set()
    for version in ("v1", "v2"):
        found = seen.resource_list(f"example.com/{version}")
        assert found is not None
        hashes.add(found["resources"][0]["storageVersionHash"])
    assert len(hashes) == 1


def test_aggregated_discovery() -> None:
    seen = discovery(custom("v1beta1"), custom("v1"))
    everything, core = seen.aggregated(is_core=False), seen.aggregated(is_core=True)
    assert core.document["items"][0]["metadata"] == {}
    apps, widgets = everything.document["items"][0], everything.document["items"][-1]
    assert apps["metadata"] == {"name": "apps"}
    assert apps["versions"][0]["resources"][0] == {
        "resource": "controllerrevisions",
        "responseKind": {"group": "", "version": "", "kind": "ControllerRevision"},
        "scope": "Namespaced",
        "singularResource": "controllerrevision",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }
    assert [version["version"] for version in widgets["versions"]] == ["v1", "v1beta1"]
    assert widgets["versions"][0]["resources"][0] == {
        "resource": "widgets",
        "responseKind": {"group": "example.com", "version": "v1", "kind": "Widget"},
        "scope": "Namespaced",
        "singularResource": "widget",
        "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        "shortNames": ["wd"],
        "categories": ["all"],
        "subresources": [
            {
                "subresource": "status",
                "responseKind": {"group": "example.com", "version": "v1", "kind": "Widget"},
                "verbs": ["get", "patch", "update"],
            },
            {
                "subresource": "scale",
                "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_discovery_changes_when_a_kind_is_added_or_removed() -> None:
    table = ResourceTable(built_in_resources())
    seen = Discovery(table)
    before = seen.aggregated(is_core=False)
    assert seen.aggregated(is_core=False) is before
    widget = custom()
    table.add(widget)
    assert seen.group("example.com") is not None
    assert seen.aggregated(is_core=False).etag != before.etag
    table.remove(widget)
    assert seen.group("example.com") is None
    assert seen.aggregated(is_core=False).etag == before.etag
