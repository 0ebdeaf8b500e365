"""Discovery and OpenAPI documents: formats, caching, unknown paths and methods."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from mooring.apiserver.discovery import Discovery
from mooring.apiserver.http.non_resource_paths import discovery_reply, openapi_reply
from mooring.apiserver.http.reply import Reply
from mooring.apiserver.http.request import IncomingRequest, RequestLimits
from mooring.apiserver.openapi.documents import OpenApi
from mooring.apiserver.resources import ResourceTable, built_in_resources
from mooring.client.errors import StatusError
from tests.serving.http.parsed_requests import request

JSON = "application/json"
ALL_AT_ONCE = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLDER = ALL_AT_ONCE.replace("v2", "v2beta1")


@cache
def discovery() -> Discovery:
    return Discovery(ResourceTable(built_in_resources()))


def ask(path: str, accept: str = JSON, method: str = "GET", **headers: str) -> Reply:
    asked = request(method, path, {"Accept": accept, "User-Agent": "test", "Host": "h:1", **headers})
    parts = [part for part in path.partition("?")[0].split("/") if part]
    return discovery_reply(discovery(), parts, IncomingRequest(asked, RequestLimits()))


@pytest.mark.parametrize(
    ("path", "accept", "content_type", "kind"),
    [
        ("/api", JSON, JSON, "APIVersions"),
        ("/api/", "*/*", JSON, "APIVersions"),
        ("/apis", JSON, JSON, "APIGroupList"),
        ("/apis/apps", f"{ALL_AT_ONCE},{JSON}", JSON, "APIGroup"),
        ("/apis/apps/v1", JSON, JSON, "APIResourceList"),
        ("/api/v1/", JSON, JSON, "APIResourceList"),
        ("/api", f"{ALL_AT_ONCE},{JSON}", ALL_AT_ONCE, "APIGroupDiscoveryList"),
        ("/apis", f"{OLDER},{ALL_AT_ONCE},{JSON}", ALL_AT_ONCE, "APIGroupDiscoveryList"),
        ("/apis", f"{OLDER},{JSON}", JSON, "APIGroupList"),
        ("/apis", f"{ALL_AT_ONCE};profile=nopeer", ALL_AT_ONCE, "APIGroupDiscoveryList"),
    ],
)
def test_discovery_documents(path: str, accept: str, content_type: str, kind: str) -> None:
    reply = ask(path, accept)
    assert (reply.code, reply.content_type) == (200, content_type)
    assert msgspec.json.decode(reply.body)["kind"] == kind


def test_discovery_as_yaml() -> None:
    reply = ask("/apis/apps", "application/yaml")
    assert reply.content_type == "application/yaml"
    assert reply.body.startswith(b"apiVersion: v1\nkind: APIGroup\nname: apps\n")


def test_pretty_discovery_is_indented() -> None:
    assert b'\n  "kind"' in ask("/apis/apps?pretty=true").body


def test_an_unchanged_discovery_document_is_not_sent_again() -> None:
    headers = dict(ask("/apis", ALL_AT_ONCE).headers)
    assert headers["Cache-Control"] == "public"
    again = ask("/apis", ALL_AT_ONCE, **{"If-None-Match": headers["ETag"]})
    assert (again.code, again.body) == (304, b"")


@pytest.mark.parametrize(
    ("path", "is_status"),
    [("/apis/nope", False), ("/apis/nope/v1", False), ("/apis/apps/v7", True), ("/api/v2", True)],
)
def test_unknown_groups_and_versions_are_404(path: str, is_status: bool) -> None:
    reply = ask(path)
    assert reply.code == 404
    assert (reply.content_type == JSON) is is_status


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        ("/apis", "text/html", "only the following media types"),
        ("/apis", OLDER, "only the following media types"),
        ("/apis/apps", ALL_AT_ONCE, "only the following media types"),
        ("/apis/apps/v1", "text/html", "406: Not Acceptable"),
    ],
)
def test_unsupported_media_types_are_406(path: str, accept: str, message: str) -> None:
    with pytest.raises(StatusError, match=message) as caught:
        ask(path, accept)
    assert caught.value.code == 406


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1"])
def test_discovery_of_versions_allows_only_get(path: str) -> None:
    with pytest.raises(StatusError) as caught:
        ask(path, method="POST")
    assert caught.value.code == 405


@pytest.mark.parametrize("path", ["/apis", "/apis/apps"])
def test_discovery_of_groups_allows_all_methods(path: str) -> None:
    assert ask(path, method="POST").code == 200


NODE = "/openapi/v3/apis/node.k8s.io/v1"


@cache
def openapi() -> OpenApi:
    table = ResourceTable(built_in_resources())
    return OpenApi(table, Discovery(table))


def ask_openapi(path: str, accept: str = "application/json", **headers: str) -> Reply:
    asked = request("GET", path, {"Accept": accept, **headers})
    return openapi_reply(openapi(), path.partition("?")[0], IncomingRequest(asked, RequestLimits()))


def digest() -> str:
    written = openapi().third("apis/node.k8s.io/v1")
    assert written is not None
    return written.digest


def test_the_openapi_index_has_the_content_type_text() -> None:
    reply = ask_openapi("/openapi/v3", "text/html")
    assert (reply.code, reply.content_type) == (200, "text/plain; charset=utf-8")
    assert "apis/node.k8s.io/v1" in msgspec.json.decode(reply.body)["paths"]


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, */*", ""])
def test_openapi_documents_are_json(accept: str) -> None:
    reply = ask_openapi(NODE, accept)
    assert (reply.code, reply.content_type) == (200, "application/json")
    assert dict(reply.headers)["ETag"] == f'"{digest()}"'


@pytest.mark.parametrize(
    "accept", ["application/yaml", "text/html", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"]
)
def test_openapi_documents_in_other_formats_are_406(accept: str) -> None:
    assert ask_openapi(NODE, accept).code == 406


def test_an_openapi_document_with_its_hash_is_immutable() -> None:
    reply = ask_openapi(f"{NODE}?hash={digest()}")
    assert reply.code == 200
    assert dict(reply.headers)["Cache-Control"] == "public, immutable"


def test_an_old_hash_is_redirected_to_the_current_one() -> None:
    reply = ask_openapi(f"{NODE}?hash=OLD")
    assert reply.code == 301
    assert dict(reply.headers)["Location"] == f"{NODE}?hash={digest()}"


def test_an_unchanged_openapi_document_is_not_sent_again() -> None:
    assert ask_openapi(NODE, **{"If-None-Match": f'"{digest()}"'}).code == 304


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
    reply = ask_openapi(path)
    assert (reply.code, reply.body) == (404, body)
    assert bool(reply.content_type) is bool(body)
