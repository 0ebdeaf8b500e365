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
IT: Document = {"metadata": {"name": "it", "labels": {"app": "web"}}, "data": {"x": "1"}}
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


class Asker:
    """Sends requests to a server and records its warnings."""

    def __init__(self, api: Served) -> None:
        self._api = api
        self.warnings: list[str] = []

    async def ask(
        self, method: str, path: str, body: object = None, content_type: str = JSON, accept: str = JSON
    ) -> tuple[int, Document]:
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        async with self._api.session.request(method, self._api.url(path), data=data, headers=headers) as response:
            self.warnings += response.headers.getall("Warning", [])
            return response.status, await response.json(content_type=None)

    async def exists(self, path: str) -> bool:
        code, _ = await self.ask("GET", path)
        return code == 200


def play(story: Callable[[Asker], Awaitable[None]]) -> None:
    async def playing() -> None:
        async with asyncio.timeout(LIMIT_S), served() as api:
            await story(Asker(api))
            assert api.handler.failures == 0

    run_real(playing())


# ----------------------------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("body", "content_type", "code", "expected_message"),
    [
        pytest.param(IT, JSON, 201, "", id="JSON"),
        pytest.param(IT, f"{JSON}; charset=utf-8", 201, "", id="JSON with a parameter"),
        pytest.param("metadata: {name: it}", YAML, 201, "", id="YAML"),
        pytest.param({**IT, "kind": "ConfigMap", "apiVersion": "v1"}, JSON, 201, "", id="who says what it is"),
        pytest.param({**IT, "kind": "Secret"}, JSON, 400, "cannot be handled as a ConfigMap", id="another kind"),
        pytest.param(IT, "text/plain", 415, "accepted media types include", id="another form"),
        pytest.param("{", JSON, 400, "unexpected end of JSON input", id="half of it"),
        pytest.param("", JSON, 400, "", id="nothing"),
        pytest.param(
            {"metadata": {"name": "it"}, "data": {"x": 1}}, JSON, 400, "cannot unmarshal number", id="a number"
        ),
    ],
)
def test_valid_and_invalid_bodies_of_a_create_request(
    body: object, content_type: str, code: int, expected_message: str
) -> None:
    async def story(asker: Asker) -> None:
        answer = await asker.ask("POST", CONFIG_MAPS, body, content_type)
        assert (answer[0], expected_message in answer[1].get("message", "")) == (code, True), answer
        assert await asker.exists(f"{CONFIG_MAPS}/it") == (code == 201)

    play(story)


@pytest.mark.parametrize(
    ("query", "code", "warnings"),
    [
        pytest.param("", 201, 1, id="it is warned of"),
        pytest.param("?fieldValidation=Ignore", 201, 0, id="nobody cares"),
        pytest.param("?fieldValidation=Strict", 400, 0, id="it is refused"),
        pytest.param("?fieldValidation=Never", 422, 0, id="nobody knows what that means"),
        pytest.param("?dryRun=Some", 422, 0, id="nor that"),
    ],
)
def test_field_validation_of_an_unknown_field(query: str, code: int, warnings: int) -> None:
    async def story(asker: Asker) -> None:
        answer, _ = await asker.ask("POST", f"{CONFIG_MAPS}{query}", {**IT, "strange": 1})
        assert (answer, len(asker.warnings)) == (code, warnings)

    play(story)


# --------------------------------------------------------------------------------------------------- the verbs


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        pytest.param(MERGE, {"data": {"y": "2"}}, 200, id="merge"),
        pytest.param(STRATEGIC, {"data": {"y": "2"}}, 200, id="strategic merge"),
        pytest.param(STEPS, [{"op": "add", "path": "/data/y", "value": "2"}], 200, id="steps"),
        pytest.param(APPLY, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"y": "2"}}, 422, id="nobody's fields"),
        pytest.param(JSON, {"data": {"y": "2"}}, 415, id="no patch at all"),
        pytest.param(MERGE, [1], 400, id="a merge of a list"),
        pytest.param(STEPS, {"op": "add"}, 400, id="steps that are none"),
    ],
)
def test_content_types_of_patches(content_type: str, body: object, code: int) -> None:
    async def story(asker: Asker) -> None:
        await asker.ask("POST", CONFIG_MAPS, IT)
        answer, document = await asker.ask("PATCH", f"{CONFIG_MAPS}/it", body, content_type)
        assert (answer, document.get("data")) == (code, {"x": "1", "y": "2"} if code == 200 else None)

    play(story)


def test_apply_creates_the_object_and_then_updates_it() -> None:
    async def story(asker: Asker) -> None:
        path = f"{CONFIG_MAPS}/it?fieldManager=me"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"x": "1"}}
        assert (await asker.ask("PATCH", path, body, APPLY))[0] == 201
        code, document = await asker.ask("PATCH", path, {**body, "data": {"x": "2"}}, APPLY)
        assert (code, document["data"]) == (200, {"x": "2"})

    play(story)


def test_create_get_update_and_delete_of_an_object() -> None:
    async def story(asker: Asker) -> None:
        code, created = await asker.ask("POST", CONFIG_MAPS, IT)
        assert code == 201
        assert await asker.ask("GET", f"{CONFIG_MAPS}/it") == (200, created)
        code, changed = await asker.ask("PUT", f"{CONFIG_MAPS}/it", {**created, "data": {"x": "2"}})
        assert (code, changed["data"]) == (200, {"x": "2"})
        assert (await asker.ask("PUT", f"{CONFIG_MAPS}/it", created))[0] == 409
        code, status = await asker.ask("DELETE", f"{CONFIG_MAPS}/it")
        assert (code, status["status"], status["details"]["uid"]) == (200, "Success", created["metadata"]["uid"])
        assert (await asker.ask("DELETE", f"{CONFIG_MAPS}/it"))[0] == 404

    play(story)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        pytest.param("", [], id="all"),
        pytest.param("?labelSelector=app%3Dweb", ["b"], id="some"),
        pytest.param("?fieldSelector=metadata.name%3Db", ["a"], id="one"),
        pytest.param("?dryRun=All", ["a", "b"], id="none, it was not meant"),
        pytest.param("?labelSelector=app%3Ddb", ["a", "b"], id="none that is meant"),
    ],
)
def test_delete_collection(query: str, left: list[str]) -> None:
    async def story(asker: Asker) -> None:
        for name, labels in (("a", {"app": "web"}), ("b", {})):
            await asker.ask("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}})
        code, deleted = await asker.ask("DELETE", f"{CONFIG_MAPS}{query}")
        assert (code, deleted["kind"]) == (200, "ConfigMapList")
        _, listed = await asker.ask("GET", CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in listed["items"]] == left

    play(story)


@pytest.mark.parametrize(
    ("query", "body", "code", "is_gone"),
    [
        pytest.param("", None, 200, True, id="at once"),
        pytest.param("?propagationPolicy=Foreground", None, 200, False, id="after those who belong to it"),
        pytest.param("", {"propagationPolicy": "Foreground"}, 200, False, id="the same in a body"),
        pytest.param("?dryRun=All", None, 200, False, id="it was not meant"),
        pytest.param("", {"dryRun": ["All"]}, 200, False, id="it was not meant, in a body"),
        pytest.param("", {"preconditions": {"uid": "other"}}, 409, False, id="another one was meant"),
        pytest.param("?propagationPolicy=Sideways", None, 422, False, id="in no known way"),
        pytest.param("", "{", 400, False, id="in half a body"),
    ],
)
def test_delete_options(query: str, body: object, code: int, is_gone: bool) -> None:
    async def story(asker: Asker) -> None:
        await asker.ask("POST", DEPLOYMENTS, WEB)
        assert (await asker.ask("DELETE", f"{DEPLOYMENTS}/web{query}", body))[0] == code
        assert await asker.exists(f"{DEPLOYMENTS}/web") != is_gone

    play(story)


# ------------------------------------------------------------------------------------------------------- scale


@pytest.mark.parametrize(
    ("method", "body", "content_type"),
    [
        pytest.param("PUT", {"metadata": {"name": "web"}, "spec": {"replicas": 3}}, JSON, id="put"),
        pytest.param("PATCH", {"spec": {"replicas": 3}}, MERGE, id="patched"),
    ],
)
def test_the_scale_subresource_is_read_and_written(method: str, body: object, content_type: str) -> None:
    async def story(asker: Asker) -> None:
        await asker.ask("POST", DEPLOYMENTS, WEB)
        code, scale = await asker.ask("GET", f"{DEPLOYMENTS}/web/scale")
        assert (code, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 1})
        code, scale = await asker.ask(method, f"{DEPLOYMENTS}/web/scale", body, content_type)
        assert (code, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 3})
        _, deployment = await asker.ask("GET", f"{DEPLOYMENTS}/web")
        assert deployment["spec"]["replicas"] == 3

    play(story)


# ------------------------------------------------------------------------------------------------------- pages


def test_a_paginated_list_contains_all_items() -> None:
    async def story(asker: Asker) -> None:
        for number in range(5):
            await asker.ask("POST", CONFIG_MAPS, {"metadata": {"name": f"n{number}"}})
        names: list[Any] = []
        token = ""
        for remaining in (3, 1, None):
            _, page = await asker.ask("GET", f"{CONFIG_MAPS}?limit=2&continue={token}")
            names += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            assert page["metadata"].get("remainingItemCount") == remaining
        assert (names, token) == ([f"n{number}" for number in range(5)], "")

    play(story)
