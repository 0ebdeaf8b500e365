"""What paths mean."""

from __future__ import annotations

import pytest

from mooring.apiserver.http.address import Address, read_address


def address(method: str, path: str, *, is_watch: bool = False) -> Address:
    return read_address(method, path, is_watch=is_watch)


@pytest.mark.parametrize(
    ("method", "path", "verb", "api_version", "namespace", "resource", "name", "subresource"),
    [
        pytest.param("GET", "/api/v1/pods", "list", "v1", "", "pods", "", "", id="all pods"),
        pytest.param("GET", "/api/v1/namespaces/a/pods", "list", "v1", "a", "pods", "", "", id="of a namespace"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/", "list", "v1", "a", "pods", "", "", id="with a slash"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/p", "get", "v1", "a", "pods", "p", "", id="one pod"),
        pytest.param("GET", "/api/v1/namespaces/a/pods/p/log", "get", "v1", "a", "pods", "p", "log", id="its log"),
        pytest.param("POST", "/api/v1/namespaces/a/pods", "create", "v1", "a", "pods", "", "", id="a new pod"),
        pytest.param(
            "DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "v1", "a", "pods", "", "", id="all of them gone"
        ),
        pytest.param("GET", "/api/v1/namespaces", "list", "v1", "", "namespaces", "", "", id="namespaces"),
        pytest.param("GET", "/api/v1/namespaces/a", "get", "v1", "a", "namespaces", "a", "", id="a namespace"),
        pytest.param(
            "PUT", "/api/v1/namespaces/a/finalize", "update", "v1", "a", "namespaces", "a", "finalize", id="finalize"
        ),
        pytest.param(
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            "patch",
            "apps/v1",
            "a",
            "deployments",
            "d",
            "scale",
            id="a group",
        ),
        pytest.param("GET", "/api/v1/nodes/a%20b", "get", "v1", "", "nodes", "a b", "", id="escaped"),
        pytest.param("GET", "/api/v1/nodes/a%2Fstatus", "get", "v1", "", "nodes", "a", "status", id="a slash, escaped"),
    ],
)
def test_resources(
    method: str, path: str, verb: str, api_version: str, namespace: str, resource: str, name: str, subresource: str
) -> None:
    found = address(method, path)
    assert found.is_resource
    assert (found.verb, found.api_version, found.namespace) == (verb, api_version, namespace)
    assert (found.resource, found.name, found.subresource) == (resource, name, subresource)


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v3"]
)
def test_paths_that_are_no_resources(path: str) -> None:
    found = address("GET", path)
    assert not found.is_resource
    assert (found.verb, found.path) == ("get", path)


def test_watching() -> None:
    assert address("GET", "/api/v1/pods", is_watch=True).verb == "watch"
    old = address("GET", "/api/v1/watch/namespaces/a/pods/p")
    assert (old.verb, old.is_old_watch, old.namespace, old.name) == ("watch", True, "a", "p")
    assert address("GET", "/api/v1/namespaces/a/pods/p", is_watch=True).verb == "get"


def test_what_a_cluster_wide_kind_does_not_understand() -> None:
    assert address("GET", "/api/v1/namespaces/a/nodes").is_below_namespace
    assert not address("GET", "/api/v1/nodes").is_below_namespace
    assert not address("GET", "/api/v1/namespaces/a/status").is_below_namespace
