"""What paths mean."""

from __future__ import annotations

import pytest

from mooring.apiserver.custom.serving import resources_of
from mooring.apiserver.http.request import Address, is_custom_address, read_address
from mooring.client.errors import BadRequestError, NotFoundError, StatusError
from tests.apiserver.custom.definitions import definition, version


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


BASE = "/apis/example.com/v1"
ONE = f"{BASE}/namespaces/default/widgets/a"
(RESOURCE,) = resources_of(definition(version(subresources={"status": {}})))


def leads(method: str, path: str) -> bool:
    return is_custom_address(RESOURCE, read_address(method, path, is_watch=False))


@pytest.mark.parametrize(
    ("method", "path", "is_there"),
    [
        pytest.param("GET", f"{BASE}/widgets", True, id="a list of everything"),
        pytest.param("POST", f"{BASE}/widgets", False, id="nothing is created nowhere"),
        pytest.param("DELETE", f"{BASE}/widgets", False, id="or deleted"),
        pytest.param("GET", f"{BASE}/widgets/a", False, id="an object without its namespace"),
        pytest.param("POST", ONE, True, id="a name behind the collection"),
        pytest.param("PATCH", f"{ONE}/status", True, id="its status"),
    ],
)
def test_addresses(method: str, path: str, is_there: bool) -> None:
    assert leads(method, path) is is_there


@pytest.mark.parametrize(
    ("method", "path", "kind", "message"),
    [
        pytest.param(
            "GET", f"{ONE}/scale", NotFoundError, 'widgets.example.com "a" not found', id="no such subresource"
        ),
        pytest.param(
            "DELETE",
            f"{ONE}/status",
            StatusError,
            'delete is not supported on resources of kind "widgets.example.com"',
            id="no such method",
        ),
        pytest.param(
            "PUT", f"{BASE}/namespaces/default/widgets", BadRequestError, "name must be provided", id="no name"
        ),
    ],
)
def test_errors(method: str, path: str, kind: type[StatusError], message: str) -> None:
    with pytest.raises(kind) as caught:
        leads(method, path)
    assert caught.value.message == message


def test_the_verb_of_a_path_that_is_no_resource_is_its_method() -> None:
    assert read_address("POST", "/plan", is_watch=False).verb == "post"
