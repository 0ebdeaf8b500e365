"""Discovery and OpenAPI documents: formats, caching, unknown paths and methods."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from mooring.apiserver.discovery import Discovery
from mooring.apiserver.http.non_resource_paths import discovery_reply, openapi_reply
from mooring.apiserver.http.rendering import Reply
from mooring.apiserver.http.request import IncomingRequest, RequestLimits
from mooring.apiserver.openapi.documents import OpenApi
from mooring.apiserver.resources import ResourceTable, built_in_resources
from mooring.client.errors import StatusError
from tests.serving.http.loopback import request

JSON = "application/json"
AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED_BETA = AGGREGATED.replace("v2", "v2beta1")


@cache
def discovery() -> Discovery:
    return Discovery(ResourceTable(built_in_resources()))


def discovery_of(path: str, accept: str = JSON, method: str = "GET", **headers: str) -> Reply:
    http_request = request(method, path, {"Accept": accept, "User-Agent": "test", "Host": "h:1", **headers})
    parts = [part for part in path.partition("?")[0].split("/") if part]
    return discovery_reply(discovery(), parts, IncomingRequest(http_request, RequestLimits()))


@pytest.mark.parametrize(
    ("path", "accept", "content_type", "kind"),
    [
        ("/api", JSON, JSON, "APIVersions"),
        ("/api/", "*/*", JSON, "APIVersions"),
        ("/apis", JSON, JSON, "APIGroupList"),
        ("/apis/apps", f"{AGGREGATED},{JSON}", JSON, "APIGroup"),
        ("/apis/apps/v1", JSON, JSON, "APIResourceList"),
        ("/api/v1/", JSON, JSON, "APIResourceList"),
        ("/api", f"{AGGREGATED},{JSON}", AGGREGATED, "APIGroupDiscoveryList"),
        ("/apis", f"{AGGREGATED_BETA},{AGGREGATED},{JSON}", AGGREGATED, "APIGroupDiscoveryList"),
        ("/apis", f"{AGGREGATED_BETA},{JSON}", JSON, "APIGroupList"),
        ("/apis", f"{AGGREGATED};profile=nopeer", AGGREGATED, "APIGroupDiscoveryList"),
    ],
)
def test_discovery_documents(path: str, accept: str, content_type: str, kind: str) -> None:
    reply = discovery_of(path, accept)
    assert (reply.code, reply.content_type) == (200, content_type)
    assert msgspec.json.decode(reply.body)["kind"] == kind


def test_discovery_as_yaml() -> None:
    reply = discovery_of("/apis/apps", "application/yaml")
    assert reply.content_type == "application/yaml"
    assert reply.body.startswith(b"apiVersion: v1\nkind: APIGroup\nname: apps\n")


def test_pretty_discovery_is_indented() -> None:
    assert b'\n  "kind"' in discovery_of("/apis/apps?pretty=true").body


def test_an_unchanged_discovery_document_is_not_sent_again() -> None:
    headers = dict(discovery_of("/apis", AGGREGATED).headers)
    assert headers["Cache-Control"] == "public"
    again = discovery_of("/apis", AGGREGATED, **{"If-None-Match": headers["ETag"]})
    assert (again.code, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("path", "is_status"),
    [("/apis/nope", False), ("/apis/nope/v1", False), ("/apis/apps/v7", True), ("/api/v2", True)],
)
def test_unknown_groups_and_versions_are_404(path: str, is_status: bool) -> None:
    reply = discovery_of(path)
    assert reply.code == 404
    assert (reply.content_type == JSON) is is_status


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        ("/apis", "text/html", "only the following media types"),
        ("/apis", AGGREGATED_BETA, "only the following media types"),
        ("/apis/apps", AGGREGATED, "only the following media types"),
        ("/apis/apps/v1", "text/html", "406: Not Acceptable"),
    ],
)
def test_unsupported_media_types_are_406(path: str, accept: str, message: str) -> None:
    with pytest.raises(StatusError, match=message) as caught:
        discovery_of(path, accept)
    assert caught.value.code == 406


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1"])
def test_discovery_of_versions_allows_only_get(path: str) -> None:
    with pytest.raises(StatusError) as caught:
        discovery_of(path, method="POST")
    assert caught.value.code == 405


@pytest.mark.parametrize("path", ["/apis", "/apis/apps"])
def test_discovery_of_groups_allows_all_methods(path: str) -> None:
    assert discovery_of(path, method="POST").code == 200


NODE = "/openapi/v3/apis/node.k8s.io/v1"


@cache
def openapi() -> OpenApi:
    table = ResourceTable(built_in_resources())
    return OpenApi(table, Discovery(table))


def openapi_of(path: str, accept: str = "application/json", **headers: str) -> Reply:
    http_request = request("GET", path, {"Accept": accept, **headers})
    return openapi_reply(openapi(), path.partition("?")[0], IncomingRequest(http_request, RequestLimits()))


def hash_of_node_document() -> str:
    written = openapi().v3("apis/node.k8s.io/v1")
    assert written is not None
    return written.digest


def test_the_openapi_index_has_the_content_type_text() -> None:
    reply = openapi_of("/openapi/v3", "text/html")
    assert (reply.code, reply.content_type) == (200, "text/plain; charset=utf-8")
    assert "apis/node.k8s.io/v1" in msgspec.json.decode(reply.body)["paths"]


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, */*", ""])
def test_openapi_documents_are_json(accept: str) -> None:
    reply = openapi_of(NODE, accept)
    assert (reply.code, reply.content_type) == (200, "application/json")
    assert dict(reply.headers)["ETag"] == f'"{hash_of_node_document()}"'


@pytest.mark.parametrize(
    "accept", ["application/yaml", "text/html", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"]
)
def test_openapi_documents_in_other_formats_are_406(accept: str) -> None:
    assert openapi_of(NODE, accept).code == 406


def test_an_openapi_document_with_its_hash_is_immutable() -> None:
    reply = openapi_of(f"{NODE}?hash={hash_of_node_document()}")
    assert reply.code == 200
    assert dict(reply.headers)["Cache-Control"] == "public, immutable"


def test_an_old_hash_is_redirected_to_the_current_one() -> None:
    reply = openapi_of(f"{NODE}?hash=OLD")
    assert reply.code == 301
    assert dict(reply.headers)["Location"] == f"{NODE}?hash={hash_of_node_document()}"


def test_an_unchanged_openapi_document_is_not_sent_again() -> None:
    assert openapi_of(NODE, **{"If-None-Match": f'"{hash_of_node_document()}"'}).code == 304


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/openapi/v3/apis/nope/v1", b""),
        ("/openapi/v3/", b""),
        ("/openapi/v2/", b"404 page not found\n"),
        ("/openapi", b"404 page not found\n"),
    ],
)
def test_unknown_openapi_documents(path: str, body: bytes) -> None:
    reply = openapi_of(path)
    assert (reply.code, reply.body) == (404, body)
    assert bool(reply.content_type) is bool(body)
