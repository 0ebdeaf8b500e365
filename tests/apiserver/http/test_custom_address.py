"""Paths of custom objects that kube-apiserver v1.36.4 rejects."""

from __future__ import annotations

import pytest

from mooring.apiserver.custom.serving import resources_of
from mooring.apiserver.http.address import read_address
from mooring.apiserver.http.custom_address import is_custom_address
from mooring.client.errors import BadRequestError, NotFoundError, StatusError
from tests.apiserver.custom.definitions import definition, version

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
