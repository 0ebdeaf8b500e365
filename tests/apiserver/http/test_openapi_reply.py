from __future__ import annotations

from functools import cache

import msgspec
import pytest

from mooring.apiserver.discovery.documents import Discovery
from mooring.apiserver.http.limits import RequestLimits
from mooring.apiserver.http.openapi_reply import openapi_reply
from mooring.apiserver.http.reply import Reply
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.openapi.documents import OpenApi
from mooring.apiserver.resources import ResourceTable, built_in_resources
from tests.serving.http.heard import request

NODE = "/openapi/v3/apis/node.k8s.io/v1"


@cache
def openapi() -> OpenApi:
    table = ResourceTable(built_in_resources())
    return OpenApi(table, Discovery(table))


def ask(path: str, accept: str = "application/json", **headers: str) -> Reply:
    asked = request("GET", path, {"Accept": accept, **headers})
    return openapi_reply(openapi(), path.partition("?")[0], Incoming(asked, RequestLimits()))


def digest() -> str:
    written = openapi().third("apis/node.k8s.io/v1")
    assert written is not None
    return written.digest


def test_the_index_calls_itself_text() -> None:
    reply = ask("/openapi/v3", "text/html")
    assert (reply.code, reply.content_type) == (200, "text/plain; charset=utf-8")
    assert "apis/node.k8s.io/v1" in msgspec.json.decode(reply.body)["paths"]


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, */*", ""])
def test_documents_are_json(accept: str) -> None:
    reply = ask(NODE, accept)
    assert (reply.code, reply.content_type) == (200, "application/json")
    assert dict(reply.headers)["ETag"] == f'"{digest()}"'


@pytest.mark.parametrize(
    "accept", ["application/yaml", "text/html", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"]
)
def test_nothing_else_is_written(accept: str) -> None:
    assert ask(NODE, accept).code == 406


def test_a_document_at_its_hash_may_be_kept_for_ever() -> None:
    reply = ask(f"{NODE}?hash={digest()}")
    assert reply.code == 200
    assert dict(reply.headers)["Cache-Control"] == "public, immutable"


def test_an_old_hash_leads_to_the_new_one() -> None:
    reply = ask(f"{NODE}?hash=OLD")
    assert reply.code == 301
    assert dict(reply.headers)["Location"] == f"{NODE}?hash={digest()}"


def test_what_one_has_need_not_be_sent_again() -> None:
    assert ask(NODE, **{"If-None-Match": f'"{digest()}"'}).code == 304


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/openapi/v3/apis/nope/v1", b""),
        ("/openapi/v3/", b""),
        ("/openapi/v2/", b"404 page not found\n"),
        ("/openapi", b"404 page not found\n"),
    ],
)
def test_what_is_not_there(path: str, body: bytes) -> None:
    reply = ask(path)
    assert (reply.code, reply.body) == (404, body)
    assert bool(reply.content_type) is bool(body)
