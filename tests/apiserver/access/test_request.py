"""A request is for a resource or for a path."""

from __future__ import annotations

from mooring.apiserver.access.request import Attributes, path_attributes
from mooring.apiserver.access.users import User


def test_a_subresource_is_named_with_its_resource() -> None:
    assert Attributes(User("a"), "get", resource="pods", subresource="log").combined_resource == "pods/log"
    assert Attributes(User("a"), "get", resource="pods").combined_resource == "pods"


def test_a_path_is_no_resource() -> None:
    asked = path_attributes(User("a"), "get", "/healthz")
    assert (asked.path, asked.is_resource_request, asked.resource) == ("/healthz", False, "")
