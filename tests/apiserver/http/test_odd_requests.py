"""Unusual requests get the same responses as from kube-apiserver."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import pytest
from yarl import URL

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from tests.apiserver.http.served import served
from tests.waiting import LIMIT_S

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        return cast(dict[str, Any], json.loads(self.body))


def answer(method: str, path: str, body: object = None, **headers: str) -> Answer:
    """The response of a server that has a ConfigMap `here` in its default namespace."""
    named = {"Accept": "application/json", "Content-Type": "application/json"}
    named |= {name.replace("_", "-"): text for name, text in headers.items()}
    data = body if isinstance(body, str) or body is None else json.dumps(body)

    async def main() -> Answer:
        async with asyncio.timeout(LIMIT_S), served() as api:
            assert await api.create_config_map("here", {"a": "b"}) == 201
            url = URL(api.url(path), encoded=True)
            async with api.session.request(method, url, data=data, headers=named) as response:
                return Answer(response.status, response.headers, await response.read())

    return run_real(main())


@pytest.mark.parametrize(
    ("method", "path", "code", "expected_message"),
    [
        pytest.param("PUT", "/api/v1/watch/pods", 405, "does not allow this method", id="the old watch, put"),
        pytest.param("DELETE", "/api/v1/watch/pods", 405, "does not allow this method", id="the old watch, deleted"),
        pytest.param("GET", "/api/v1/proxy/nodes/n", 404, "could not find", id="the removed proxy path"),
        pytest.param("GET", MAPS + "?watch=1&labelSelector=a(", 400, "unable to parse", id="a watch of a bad selector"),
        pytest.param("GET", MAPS + "?watch=1&continue=x", 422, "when continue is provided", id="a watch, continued"),
        pytest.param("GET", "/" + MAPS, 404, "404 page not found", id="two slashes at the beginning"),
        pytest.param("GET", MAPS.replace("default/", "default%2F"), 200, "ConfigMapList", id="an escaped slash"),
        pytest.param("GET", MAPS + "/%zz", 400, "400 Bad Request", id="an invalid escape"),
        pytest.param("GET", MAPS + "/%2e%2e", 400, "invalid: \"..\": may not be '..'", id="a name with dots"),
        pytest.param("GET", MAPS + "/a%25b", 400, "may not contain '%'", id="a name with a percent sign"),
        pytest.param("GET", MAPS + "/%07", 404, 'configmaps "\\a" not found', id="a name with a control character"),
        pytest.param("GET", MAPS + "?timeout=soon", 400, 'time: invalid duration "soon"', id="an invalid timeout"),
        pytest.param("GET", MAPS + "/here?export=1", 400, "no longer supported", id="an export"),
        pytest.param("GET", MAPS + "?labelSelector=a;b&limit=1", 200, '"here"', id="a semicolon"),
        pytest.param("GET", "/livez/", 404, "404 page not found", id="health with a slash"),
        pytest.param("GET", "/livez//ping", 404, "404 page not found", id="health with two slashes"),
        pytest.param("GET", "/index.html", 200, '"/api/v1"', id="the index"),
        pytest.param(
            "GET",
            MAPS + "?resourceVersion=99999999&resourceVersionMatch=Exact",
            504,
            "Too large resource version: 99999999",
            id="a future revision",
        ),
    ],
)
def test_unusual_paths_and_parameters(method: str, path: str, code: int, expected_message: str) -> None:
    found = answer(method, path)
    text = found.document["message"] if found.body.startswith(b'{"kind":"Status"') else found.body.decode()
    assert (found.code, expected_message in text) == (code, True), text


@pytest.mark.parametrize(
    ("content_type", "path", "body", "code", "expected_message"),
    [
        pytest.param(MERGE, "/gone", "[", 404, 'configmaps "gone" not found', id="a bad patch of a missing object"),
        pytest.param(MERGE, "/here", "[", 400, "error decoding patch", id="a bad patch"),
        pytest.param(
            "application/apply-patch+yaml",
            "/gone?fieldManager=m",
            "",
            400,
            "invalid object type",
            id="an empty apply patch",
        ),
    ],
)
def test_invalid_patches(content_type: str, path: str, body: str, code: int, expected_message: str) -> None:
    found = answer("PATCH", MAPS + path, body, Content_Type=content_type)
    assert (found.code, expected_message in found.document["message"]) == (code, True), found.body


@pytest.mark.parametrize(
    ("accept", "path", "code", "expected_message"),
    [
        pytest.param(METADATA.format(""), "/here", 200, '"kind":"PartialObjectMetadata"', id="metadata of one object"),
        pytest.param(METADATA.format("List"), "", 200, '"kind":"PartialObjectMetadataList"', id="metadata of a list"),
        pytest.param(METADATA.format("List"), "?labelSelector=no", 200, '"items":null', id="metadata of an empty list"),
        pytest.param(
            METADATA.format(""),
            "",
            406,
            "is a list (*core.ConfigMapList)",
            id="metadata of one object requested for a list",
        ),
        pytest.param(
            METADATA.format("List"),
            "/here",
            406,
            "is not a list (*core.ConfigMap)",
            id="metadata of a list requested for one object",
        ),
        pytest.param("application/yaml", "/gone", 404, "\nreason: NotFound\n", id="an error in YAML"),
        pytest.param("application/yaml", "/here", 200, "\ndata:\n  a: b\n", id="an object in YAML"),
    ],
)
def test_response_formats(accept: str, path: str, code: int, expected_message: str) -> None:
    found = answer("GET", MAPS + path, Accept=accept)
    assert (found.code, expected_message in found.body.decode()) == (code, True), found.body


@pytest.mark.parametrize("path", [MAPS, MAPS + "/here", MAPS + "/gone", "/apis/apps", "/api"])
@pytest.mark.parametrize(("agent", "end"), [("tool/1", b"}\n"), ("curl/8", b"\n}")])
def test_line_end_of_responses(path: str, agent: str, end: bytes) -> None:
    assert answer("GET", path, User_Agent=agent).body.endswith(end)


def test_a_dry_run_create_accepts_a_resource_version() -> None:
    new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "resourceVersion": "7"}}
    dry = answer("POST", MAPS + "?dryRun=All", new)
    assert (dry.code, dry.document["metadata"]["resourceVersion"]) == (201, "7")
    assert answer("POST", MAPS, new).code == 500


@pytest.mark.parametrize(
    ("query", "key"), [("", "/registry/configmaps/default/here"), ("?dryRun=All", "/configmaps/default/here")]
)
def test_a_uid_conflict_names_the_key_of_the_object(query: str, key: str) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here", "uid": "another"}}
    found = answer("PUT", f"{MAPS}/here{query}", other)
    assert (found.code, f"Key: {key}, " in found.document["message"]) == (409, True)


@pytest.mark.parametrize(("method", "content_type"), [("PUT", "application/json"), ("PATCH", MERGE)])
def test_empty_managed_fields_remove_all_managers(method: str, content_type: str) -> None:
    metadata = {"name": "here", "managedFields": []}
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    found = answer(method, f"{MAPS}/here", whole, Content_Type=content_type)
    assert (found.code, "managedFields" in found.document["metadata"]) == (200, False)


def test_the_name_in_a_scale_is_validated_before_the_object_is_read() -> None:
    path = "/apis/apps/v1/namespaces/default/deployments/gone/scale"
    found = answer("PUT", path, {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "other"}})
    message = "the name of the object (other) does not match the name on the URL (gone)"
    assert (found.code, found.document["message"]) == (400, message)


def test_the_default_namespace_has_managed_fields_only_of_metadata() -> None:
    (entry,) = answer("GET", "/api/v1/namespaces/default").document["metadata"]["managedFields"]
    assert list(entry["fieldsV1"]) == ["f:metadata"]


@pytest.mark.parametrize("revision", ["", "&resourceVersion=0"])
def test_a_watch_without_a_revision_sends_a_bookmark_after_the_initial_events(revision: str) -> None:
    found = answer("GET", f"{MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true{revision}")
    events = [json.loads(line) for line in found.body.splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_watch_responses_are_not_cached() -> None:
    assert answer("GET", f"{MAPS}?watch=1&timeoutSeconds=1").headers["Cache-Control"] == "no-cache, private"


def test_a_review_cannot_be_rendered_as_a_table() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    spec = {"nonResourceAttributes": {"path": "/", "verb": "get"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert answer("POST", path, review, Accept=table).code == 406
    assert answer("POST", path, review, Accept=f"{table},application/json").code == 201


def test_a_table_with_an_unknown_include_object_is_rejected() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    found = answer("GET", f"{MAPS}?includeObject=Everything", Accept=table)
    message = (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Everything": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )
    assert (found.code, found.document["reason"], found.document["message"]) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("/api/v1/pods", {"spec": {"containers": None}, "status": {}}),
        ("/api/v1/configmaps", {}),
        (
            "/apis/apps/v1/deployments",
            {
                "spec": {"selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "strategy": {}},
                "status": {},
            },
        ),
    ],
)
def test_a_bookmark_contains_an_object_with_go_zero_values(path: str, rest: dict[str, Any]) -> None:
    query = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true"
    found = answer("GET", f"{path}?{query}&resourceVersionMatch=NotOlderThan&labelSelector=no=thing")
    event = json.loads(found.body.splitlines()[-1])
    del event["object"]["metadata"]
    kind = {"kind": event["object"]["kind"], "apiVersion": event["object"]["apiVersion"]}
    assert event == {"type": "BOOKMARK", "object": {**kind, **rest}}


def test_a_failed_delete_of_an_event_names_the_kind_of_the_core_group() -> None:
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
        "regarding": {"namespace": "default"},
    }

    async def main() -> tuple[int, dict[str, Any]]:
        async with asyncio.timeout(LIMIT_S), served() as api:
            async with api.session.post(api.url(events), json=event) as response:
                assert response.status == 201, await response.text()
            wrong = {"preconditions": {"uid": "another"}}
            async with api.session.delete(api.url(f"{events}/e"), json=wrong) as response:
                return response.status, await response.json()

    code, status = run_real(main())
    assert code == 409
    assert status["message"].startswith(
        'Operation cannot be fulfilled on Event "e": the UID in the precondition (another)'
    )
    assert status["details"] == {"name": "e", "kind": "Event"}


def test_the_field_manager_of_a_token_request_is_recorded() -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"

    async def main() -> tuple[int, dict[str, Any], int]:
        async with asyncio.timeout(LIMIT_S), served() as api:
            await api.session.post(api.url(accounts), json={"metadata": {"name": "robot"}})
            token_request = {"spec": {"audiences": ["https://kubernetes.default.svc"]}}
            url = api.url(f"{accounts}/robot/token?fieldManager=kubectl")
            async with api.session.post(url, json=token_request) as response:
                code, issued = response.status, await response.json()
            bearer = {"Authorization": f"Bearer {issued['status']['token']}"}
            async with api.session.get(api.url("/api"), headers=bearer) as response:
                return code, issued, response.status

    code, issued, code_of_use = run_real(main())
    assert (code, code_of_use) == (201, 200)
    (entry,) = issued["metadata"]["managedFields"]
    assert entry.pop("time")
    assert entry == {
        "manager": "kubectl",
        "operation": "Update",
        "apiVersion": "authentication.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:audiences": {}, "f:expirationSeconds": {}}},
        "subresource": "token",
    }


def test_timeout_seconds_ends_a_watch_after_that_time() -> None:
    clock = SystemClock()
    before_s = clock.now_s()
    for revision in ("", "&resourceVersion=0", "&resourceVersion=9999999"):
        assert answer("GET", f"{MAPS}?watch=1&timeoutSeconds=1{revision}").code == 200
    assert clock.now_s() - before_s >= 3.0
