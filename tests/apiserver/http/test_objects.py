"""Verbs on objects over HTTP: bodies, options and responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.kit.loop import run_real
from tests.apiserver.http.served import Served, served
from tests.waiting import LIMIT_S

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
EXAMPLE: Document = {"metadata": {"name": "it", "labels": {"app": "web"}}, "data": {"x": "1"}}
WEB: Document = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
JSON, YAML = "application/json", "application/yaml"
MERGE, STEPS = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


class WarningsClient:
    """Sends requests to a server and records its warnings."""

    def __init__(self, api: Served) -> None:
        self._api = api
        self.warnings: list[str] = []

    async def send(
        self, method: str, path: str, body: object = None, content_type: str = JSON, accept: str = JSON
    ) -> tuple[int, Document]:
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        async with self._api.session.request(method, self._api.url(path), data=data, headers=headers) as response:
            self.warnings += response.headers.getall("Warning", [])
            return response.status, await response.json(content_type=None)

    async def exists(self, path: str) -> bool:
        code, _ = await self.send("GET", path)
        return code == 200


def run_scenario(scenario: Callable[[WarningsClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), served() as api:
            await scenario(WarningsClient(api))
            assert api.handler.failures == 0

    run_real(main())


# ----------------------------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("body", "content_type", "code", "expected_message"),
    [
        pytest.param(EXAMPLE, JSON, 201, "", id="JSON"),
        pytest.param(EXAMPLE, f"{JSON}; charset=utf-8", 201, "", id="JSON with a parameter"),
        pytest.param("metadata: {name: it}", YAML, 201, "", id="YAML"),
        pytest.param({**EXAMPLE, "kind": "ConfigMap", "apiVersion": "v1"}, JSON, 201, "", id="with kind and version"),
        pytest.param({**EXAMPLE, "kind": "Secret"}, JSON, 400, "cannot be handled as a ConfigMap", id="another kind"),
        pytest.param(EXAMPLE, "text/plain", 415, "accepted media types include", id="another content type"),
        pytest.param("{", JSON, 400, "unexpected end of JSON input", id="truncated"),
        pytest.param("", JSON, 400, "", id="empty"),
        pytest.param(
            {"metadata": {"name": "it"}, "data": {"x": 1}},
            JSON,
            400,
            "cannot unmarshal number",
            id="a value of the wrong type",
        ),
    ],
)
def test_valid_and_invalid_bodies_of_a_create_request(
    body: object, content_type: str, code: int, expected_message: str
) -> None:
    async def scenario(client: WarningsClient) -> None:
        answer = await client.send("POST", CONFIG_MAPS, body, content_type)
        assert (answer[0], expected_message in answer[1].get("message", "")) == (code, True), answer
        assert await client.exists(f"{CONFIG_MAPS}/it") == (code == 201)

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("query", "code", "warnings"),
    [
        pytest.param("", 201, 1, id="the default: a warning"),
        pytest.param("?fieldValidation=Ignore", 201, 0, id="Ignore"),
        pytest.param("?fieldValidation=Strict", 400, 0, id="Strict"),
        pytest.param("?fieldValidation=Never", 422, 0, id="an unknown value"),
        pytest.param("?dryRun=Some", 422, 0, id="an unknown dryRun value"),
    ],
)
def test_field_validation_of_an_unknown_field(query: str, code: int, warnings: int) -> None:
    async def scenario(client: WarningsClient) -> None:
        answer, _ = await client.send("POST", f"{CONFIG_MAPS}{query}", {**EXAMPLE, "strange": 1})
        assert (answer, len(client.warnings)) == (code, warnings)

    run_scenario(scenario)


# --------------------------------------------------------------------------------------------------- the verbs


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        pytest.param(MERGE, {"data": {"y": "2"}}, 200, id="merge"),
        pytest.param(STRATEGIC, {"data": {"y": "2"}}, 200, id="strategic merge"),
        pytest.param(STEPS, [{"op": "add", "path": "/data/y", "value": "2"}], 200, id="JSON patch"),
        pytest.param(
            APPLY,
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"y": "2"}},
            422,
            id="apply without a field manager",
        ),
        pytest.param(JSON, {"data": {"y": "2"}}, 415, id="not a patch type"),
        pytest.param(MERGE, [1], 400, id="a merge patch that is a list"),
        pytest.param(STEPS, {"op": "add"}, 400, id="a JSON patch that is not a list"),
    ],
)
def test_content_types_of_patches(content_type: str, body: object, code: int) -> None:
    async def scenario(client: WarningsClient) -> None:
        await client.send("POST", CONFIG_MAPS, EXAMPLE)
        answer, document = await client.send("PATCH", f"{CONFIG_MAPS}/it", body, content_type)
        assert (answer, document.get("data")) == (code, {"x": "1", "y": "2"} if code == 200 else None)

    run_scenario(scenario)


def test_apply_creates_the_object_and_then_updates_it() -> None:
    async def scenario(client: WarningsClient) -> None:
        path = f"{CONFIG_MAPS}/it?fieldManager=me"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"x": "1"}}
        assert (await client.send("PATCH", path, body, APPLY))[0] == 201
        code, document = await client.send("PATCH", path, {**body, "data": {"x": "2"}}, APPLY)
        assert (code, document["data"]) == (200, {"x": "2"})

    run_scenario(scenario)


def test_create_get_update_and_delete_of_an_object() -> None:
    async def scenario(client: WarningsClient) -> None:
        code, created = await client.send("POST", CONFIG_MAPS, EXAMPLE)
        assert code == 201
        assert await client.send("GET", f"{CONFIG_MAPS}/it") == (200, created)
        code, changed = await client.send("PUT", f"{CONFIG_MAPS}/it", {**created, "data": {"x": "2"}})
        assert (code, changed["data"]) == (200, {"x": "2"})
        assert (await client.send("PUT", f"{CONFIG_MAPS}/it", created))[0] == 409
        code, status = await client.send("DELETE", f"{CONFIG_MAPS}/it")
        assert (code, status["status"], status["details"]["uid"]) == (200, "Success", created["metadata"]["uid"])
        assert (await client.send("DELETE", f"{CONFIG_MAPS}/it"))[0] == 404

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        pytest.param("", [], id="no selector"),
        pytest.param("?labelSelector=app%3Dweb", ["b"], id="a label selector"),
        pytest.param("?fieldSelector=metadata.name%3Db", ["a"], id="a field selector"),
        pytest.param("?dryRun=All", ["a", "b"], id="a dry run"),
        pytest.param("?labelSelector=app%3Ddb", ["a", "b"], id="a selector without matches"),
    ],
)
def test_delete_collection(query: str, left: list[str]) -> None:
    async def scenario(client: WarningsClient) -> None:
        for name, labels in (("a", {"app": "web"}), ("b", {})):
            await client.send("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}})
        code, deleted = await client.send("DELETE", f"{CONFIG_MAPS}{query}")
        assert (code, deleted["kind"]) == (200, "ConfigMapList")
        _, listed = await client.send("GET", CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in listed["items"]] == left

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("query", "body", "code", "is_deleted"),
    [
        pytest.param("", None, 200, True, id="the default"),
        pytest.param("?propagationPolicy=Foreground", None, 200, False, id="foreground"),
        pytest.param("", {"propagationPolicy": "Foreground"}, 200, False, id="foreground in the body"),
        pytest.param("?dryRun=All", None, 200, False, id="a dry run"),
        pytest.param("", {"dryRun": ["All"]}, 200, False, id="a dry run in the body"),
        pytest.param("", {"preconditions": {"uid": "other"}}, 409, False, id="a failed precondition"),
        pytest.param("?propagationPolicy=Sideways", None, 422, False, id="an unknown policy"),
        pytest.param("", "{", 400, False, id="a truncated body"),
    ],
)
def test_delete_options(query: str, body: object, code: int, is_deleted: bool) -> None:
    async def scenario(client: WarningsClient) -> None:
        await client.send("POST", DEPLOYMENTS, WEB)
        assert (await client.send("DELETE", f"{DEPLOYMENTS}/web{query}", body))[0] == code
        assert await client.exists(f"{DEPLOYMENTS}/web") != is_deleted

    run_scenario(scenario)


# ------------------------------------------------------------------------------------------------------- scale


@pytest.mark.parametrize(
    ("method", "body", "content_type"),
    [
        pytest.param("PUT", {"metadata": {"name": "web"}, "spec": {"replicas": 3}}, JSON, id="put"),
        pytest.param("PATCH", {"spec": {"replicas": 3}}, MERGE, id="patch"),
    ],
)
def test_the_scale_subresource_is_read_and_written(method: str, body: object, content_type: str) -> None:
    async def scenario(client: WarningsClient) -> None:
        await client.send("POST", DEPLOYMENTS, WEB)
        code, scale = await client.send("GET", f"{DEPLOYMENTS}/web/scale")
        assert (code, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 1})
        code, scale = await client.send(method, f"{DEPLOYMENTS}/web/scale", body, content_type)
        assert (code, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 3})
        _, deployment = await client.send("GET", f"{DEPLOYMENTS}/web")
        assert deployment["spec"]["replicas"] == 3

    run_scenario(scenario)


# ------------------------------------------------------------------------------------------------------- pages


def test_a_paginated_list_contains_all_items() -> None:
    async def scenario(client: WarningsClient) -> None:
        for number in range(5):
            await client.send("POST", CONFIG_MAPS, {"metadata": {"name": f"n{number}"}})
        names: list[Any] = []
        token = ""
        for remaining in (3, 1, None):
            _, page = await client.send("GET", f"{CONFIG_MAPS}?limit=2&continue={token}")
            names += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            assert page["metadata"].get("remainingItemCount") == remaining
        assert (names, token) == ([f"n{number}" for number in range(5)], "")

    run_scenario(scenario)
