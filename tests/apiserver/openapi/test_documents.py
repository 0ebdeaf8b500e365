from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from mooring.api.kinds import STATUS, Kind
from mooring.apiserver.discovery import Discovery
from mooring.apiserver.openapi.documents import OpenApi
from mooring.apiserver.resources import Resource, ResourceTable, built_in_resources
from mooring.apiserver.strategy import Strategy

KIND = Kind("example.com/v1", "Widget", "widgets")


def widget(color: str) -> Resource:
    schema = {"type": "object", "properties": {color: {"type": "string"}}}
    return Resource(KIND, Strategy(KIND), None, subresources={"status": STATUS}, schema=schema)


def fresh() -> tuple[ResourceTable, OpenApi]:
    table = ResourceTable(built_in_resources())
    return table, OpenApi(table, Discovery(table))


@cache
def shared() -> OpenApi:
    return fresh()[1]


def third(name: str) -> dict[str, Any]:
    written = shared().third(name)
    assert written is not None
    found = json.loads(written.body)
    assert isinstance(found, dict)
    return found


def test_the_index_has_a_hash_for_every_document() -> None:
    paths = shared().index()["paths"]
    written = shared().third("apis/apps/v1")
    assert written is not None
    assert paths["apis/apps/v1"] == {"serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={written.digest}"}
    assert {"api", "api/v1", "apis", "apis/apps", "apis/authorization.k8s.io/v1", "version"} <= set(paths)


@pytest.mark.parametrize("name", ["apis/nope/v1", "apis/apps/v2", "api/v2", "nope", ""])
def test_documents_that_there_are_not(name: str) -> None:
    assert shared().third(name) is None


def test_everything_that_is_referred_to_is_there() -> None:
    for name in shared().index()["paths"]:
        text = json.dumps(third(name))
        schemas = third(name)["components"]["schemas"]
        wanted = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert wanted <= set(schemas), name


def test_the_second_dialect_has_everything_in_one() -> None:
    document = json.loads(shared().second().body)
    assert document["swagger"] == "2.0"
    text = json.dumps(document)
    for prefix, section in (("#/definitions/", "definitions"), ("#/parameters/", "parameters")):
        wanted = {part.partition('"')[0] for part in text.split(prefix)[1:]}
        assert wanted <= set(document[section])
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}
    assert {"$ref": "#/parameters/fieldValidation"} in patch["parameters"]


def test_operations_in_the_third_dialect() -> None:
    item = third("api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert [each["name"] for each in item["parameters"]] == ["name", "namespace", "pretty"]
    patch = item["patch"]
    assert sorted(patch["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ]
    assert {"name": "force", "in": "query", "schema": {"type": "boolean", "uniqueItems": True}} in patch["parameters"]
    assert list(patch["responses"]) == ["200", "201", "401"]
    get = item["get"]["responses"]["200"]["content"]["application/json"]
    assert get == {"schema": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}}


def test_custom_kinds_come_change_and_go() -> None:
    table, openapi = fresh()
    apps = openapi.third("apis/apps/v1")
    assert openapi.third("apis/example.com/v1") is None
    blue = widget("blue")
    table.add(blue)
    first = openapi.third("apis/example.com/v1")
    assert first is not None
    assert b'"blue"' in first.body
    assert "com.example.v1.Widget" in json.loads(openapi.second().body)["definitions"]
    table.add(widget("red"))
    changed = openapi.third("apis/example.com/v1")
    assert changed is not None
    assert b'"red"' in changed.body
    assert changed.digest != first.digest
    table.remove(blue)
    assert openapi.third("apis/example.com/v1") is None
    assert openapi.third("apis/apps/v1") is apps  # what is not concerned is kept


def test_documents_of_custom_kinds() -> None:
    table, openapi = fresh()
    table.add(widget("blue"))
    written = openapi.third("apis/example.com/v1")
    assert written is not None
    document = json.loads(written.body)
    assert list(document["paths"]) == [
        "/apis/example.com/v1/namespaces/{namespace}/widgets",
        "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}",
        "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status",
        "/apis/example.com/v1/widgets",
    ]
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert "apis/example.com" not in openapi.index()["paths"]
