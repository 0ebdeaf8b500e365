"""Requests: query parameters; limits of sizes, counts and times, and the responses beyond each limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import msgspec
import pytest

from mooring.apiserver.call import FieldValidation
from mooring.apiserver.custom.serving import resources_of
from mooring.apiserver.http.request import (
    ListOptions,
    Query,
    RequestInfo,
    RequestLimits,
    check_list_options,
    is_served_path,
    read_request_info,
)
from mooring.client.errors import BadRequestError, InvalidError, NotFoundError, StatusError
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup, run_bounded
from mooring.store.memory import MemoryStore
from tests.apiserver.custom.definitions import definition, version
from tests.apiserver.http.served import ADMIN_TOKEN, Served, served
from tests.waiting import LIMIT_S, until

CLOCK = SystemClock()
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HEAD = f"Host: a\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nContent-Type: application/json\r\n"

Scenario = Callable[[Served], Coroutine[Any, Any, None]]


def run_scenario(scenario: Scenario, limits: RequestLimits, store: MemoryStore | None = None) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), served(limits, store=store) as api:
            await scenario(api)
            assert api.handler.failures == 0

    run_real(main())


async def raw(api: Served, request: str) -> bytes:
    """The whole response to a request with `Connection: close`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
    try:
        writer.write(request.encode("latin-1"))
        return await reader.read()
    finally:
        writer.close()


# ------------------------------------------------------------------------------------------------------ sizes


def test_a_body_that_is_too_long_is_413() -> None:
    async def scenario(api: Served) -> None:
        async with api.session.post(api.url(CONFIG_MAPS), data=b" " * 5_001) as response:
            document = await response.json()
        assert (response.status, document["reason"]) == (413, "RequestEntityTooLarge")
        assert document["message"] == "Request entity too large: limit is 5000"
        assert await api.create_config_map("after") == 201

    run_scenario(scenario, RequestLimits(body_bytes_max=5_000))


def test_a_chunked_body_that_is_too_long_is_413() -> None:
    async def pieces() -> Any:
        for _ in range(6):
            yield b" " * 1_000

    async def scenario(api: Served) -> None:
        async with api.session.post(api.url(CONFIG_MAPS), data=pieces()) as response:
            assert (response.status, (await response.json())["code"]) == (413, 413)

    run_scenario(scenario, RequestLimits(body_bytes_max=5_000))


@pytest.mark.parametrize(
    ("head", "code"),
    [
        pytest.param("GET /version HTTP/1.1\r\nHost: a\r\nX: " + "a" * 70_000 + "\r\n", b"431", id="one long header"),
        pytest.param("GET /" + "a" * 70_000 + " HTTP/1.1\r\nHost: a\r\n", b"431", id="a long path"),
        pytest.param(
            "GET /version HTTP/1.1\r\nHost: a\r\n" + "".join(f"X-{n}: {'a' * 1_000}\r\n" for n in range(90)),
            b"431",
            id="many headers",
        ),
        pytest.param(
            "GET /version HTTP/1.1\r\nHost: a\r\n" + "".join(f"X-{n}: a\r\n" for n in range(500)),
            b"400",
            id="too many headers",
        ),
        pytest.param("GET /version HTTP/1.1\r\nHost: a\r\nX Y: a\r\n", b"400", id="an invalid header"),
        pytest.param("\x00\x01\x02\r\n", b"400", id="not HTTP"),
        pytest.param("FROB /version HTTP/1.1\r\nHost: a\r\n", b"405", id="an unknown method"),
    ],
)
def test_a_bad_request_head_is_rejected_and_the_next_client_is_served(head: str, code: bytes) -> None:
    async def scenario(api: Served) -> None:
        answer = await raw(api, head + "Connection: close\r\n\r\n")
        assert answer[:12] in (b"HTTP/1.1 " + code, b"HTTP/1.0 " + code), answer[:200]
        assert await api.create_config_map("after") == 201

    run_scenario(scenario, RequestLimits())


# ------------------------------------------------------------------------------------------------------ counts


def test_requests_beyond_the_limit_are_429_with_retry_after() -> None:
    async def scenario(api: Served) -> None:
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"slow"}}'
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(f"POST {CONFIG_MAPS} HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        await until(lambda: api.handler.requests_open == 1)
        async with api.session.get(api.url("/api/v1/namespaces")) as response:
            document = await response.json()
        assert (response.status, response.headers["Retry-After"]) == (429, "1")
        assert document["reason"] == "TooManyRequests"
        assert document["message"] == "Too many requests, please try again later."
        writer.write(body[10:])
        assert (await reader.readline()).startswith(b"HTTP/1.1 201")
        writer.close()
        async with api.session.get(api.url("/api/v1/namespaces")) as response:
            assert response.status == 200
        # Health checks have no limit.
        async with api.session.get(api.url("/livez")) as response:
            assert response.status == 200

    run_scenario(scenario, RequestLimits(requests_max=1))


def test_watches_beyond_the_limit_are_429_with_retry_after() -> None:
    async def scenario(api: Served) -> None:
        first = await api.session.get(api.url(CONFIG_MAPS + "?watch=1"))
        await until(lambda: api.handler.watches_open == 1)
        async with api.session.get(api.url(CONFIG_MAPS + "?watch=1")) as second:
            assert (second.status, second.headers["Retry-After"]) == (429, "1")
        first.close()
        await until(lambda: api.handler.watches_open == 0)
        third = await api.session.get(api.url(CONFIG_MAPS + "?watch=1"))
        assert third.status == 200
        third.close()

    run_scenario(scenario, RequestLimits(watches_max=1))


def test_a_request_that_takes_too_long_is_504() -> None:
    async def scenario(api: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(f"POST {CONFIG_MAPS} HTTP/1.1\r\n{HEAD}Content-Length: 100\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 504")
        text = await reader.readuntil(b'"code":504}')
        assert b"Timeout: request did not complete within the allotted timeout" in text
        writer.close()

    run_scenario(scenario, RequestLimits(request_s_max=0.1))


# ----------------------------------------------------------------------------------------------------- watches


def test_a_watch_that_lags_behind_the_log_of_the_store_gets_410() -> None:
    async def scenario(api: Served) -> None:
        watch = await api.session.get(api.url(CONFIG_MAPS + "?watch=1&resourceVersion=0"), read_bufsize=1_024)
        await until(lambda: api.handler.watches_open == 1)
        for number in range(60):
            assert await api.create_config_map(f"large-{number}", {"text": "x" * 200_000}) == 201
        lines = (await watch.read()).splitlines()
        last = msgspec.json.decode(lines[-1])
        assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert 0 < len(lines) - 1 < 60

    run_scenario(scenario, RequestLimits(), MemoryStore(buffer_max=10, changes_max=20))


def test_a_watch_that_lags_within_the_log_of_the_store_continues() -> None:
    async def scenario(api: Served) -> None:
        watch = await api.session.get(api.url(CONFIG_MAPS + "?watch=1&resourceVersion=0"), read_bufsize=1_024)
        await until(lambda: api.handler.watches_open == 1)
        for number in range(60):
            assert await api.create_config_map(f"large-{number}", {"text": "x" * 200_000}) == 201
        names: list[str] = []
        buffer = b""
        while "large-59" not in names:
            *lines, buffer = (buffer + await watch.content.readany()).split(b"\n")
            names += [msgspec.json.decode(line)["object"]["metadata"]["name"] for line in lines]
        assert [name for name in names if name.startswith("large-")] == [f"large-{number}" for number in range(60)]
        watch.close()

    run_scenario(scenario, RequestLimits(), MemoryStore(buffer_max=10))


def test_two_hundred_watches_receive_every_change_in_order() -> None:
    watches, changes = 200, 150

    async def read(response: aiohttp.ClientResponse) -> bytes:
        parts: list[bytes] = []
        async for part in response.content.iter_any():
            parts.append(part)
            if b'"the-last"' in part:
                break
        response.close()
        return b"".join(parts)

    async def scenario(api: Served) -> None:
        url = api.url(CONFIG_MAPS + f"?watch=1&resourceVersion={await api.api_server.store.revision()}")
        opened = await run_bounded(lambda _: _opened(api, url), range(watches), limit=20, name="opening")
        await until(lambda: api.handler.watches_open == watches)
        async with TaskGroup("watches") as group:
            tasks = [group.start(read(response), name=f"{number}") for number, response in enumerate(opened)]
            for number in range(changes):
                assert await api.create_config_map(f"map-{number}") == 201
            assert await api.create_config_map("the-last") == 201
        shown = {task.result() for task in tasks}
        assert len(shown) == 1
        events = [msgspec.json.decode(line) for line in shown.pop().splitlines()]
        assert [event["type"] for event in events] == ["ADDED"] * (changes + 1)
        names = [event["object"]["metadata"]["name"] for event in events]
        assert names == [*(f"map-{number}" for number in range(changes)), "the-last"]
        revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert revisions == sorted(set(revisions))

    run_scenario(scenario, RequestLimits())


async def _opened(api: Served, url: str) -> aiohttp.ClientResponse:
    return await api.session.get(url)


def request_info(method: str, path: str, *, is_watch: bool = False) -> RequestInfo:
    return read_request_info(method, path, is_watch=is_watch)


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
            "DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "v1", "a", "pods", "", "", id="delete collection"
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
def test_request_info_of_resource_paths(
    method: str, path: str, verb: str, api_version: str, namespace: str, resource: str, name: str, subresource: str
) -> None:
    found = request_info(method, path)
    assert found.is_resource
    assert (found.verb, found.api_version, found.namespace) == (verb, api_version, namespace)
    assert (found.resource, found.name, found.subresource) == (resource, name, subresource)


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v3"]
)
def test_request_info_of_non_resource_paths(path: str) -> None:
    found = request_info("GET", path)
    assert not found.is_resource
    assert (found.verb, found.path) == ("get", path)


def test_request_info_of_watches() -> None:
    assert request_info("GET", "/api/v1/pods", is_watch=True).verb == "watch"
    old = request_info("GET", "/api/v1/watch/namespaces/a/pods/p")
    assert (old.verb, old.is_old_watch, old.namespace, old.name) == ("watch", True, "a", "p")
    assert request_info("GET", "/api/v1/namespaces/a/pods/p", is_watch=True).verb == "get"


def test_is_below_namespace() -> None:
    assert request_info("GET", "/api/v1/namespaces/a/nodes").is_below_namespace
    assert not request_info("GET", "/api/v1/nodes").is_below_namespace
    assert not request_info("GET", "/api/v1/namespaces/a/status").is_below_namespace


BASE = "/apis/example.com/v1"
ONE = f"{BASE}/namespaces/default/widgets/a"
(RESOURCE,) = resources_of(definition(version(subresources={"status": {}})))


def is_custom(method: str, path: str) -> bool:
    return is_served_path(RESOURCE, read_request_info(method, path, is_watch=False))


@pytest.mark.parametrize(
    ("method", "path", "is_there"),
    [
        pytest.param("GET", f"{BASE}/widgets", True, id="a list of all namespaces"),
        pytest.param("POST", f"{BASE}/widgets", False, id="create without a namespace"),
        pytest.param("DELETE", f"{BASE}/widgets", False, id="delete without a namespace"),
        pytest.param("GET", f"{BASE}/widgets/a", False, id="get without a namespace"),
        pytest.param("POST", ONE, True, id="create with a name"),
        pytest.param("PATCH", f"{ONE}/status", True, id="the status"),
    ],
)
def test_paths_of_a_custom_resource(method: str, path: str, is_there: bool) -> None:
    assert is_custom(method, path) is is_there


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
def test_unsupported_paths_and_methods_of_a_custom_resource_are_rejected(
    method: str, path: str, kind: type[StatusError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        is_custom(method, path)
    assert caught.value.message == message


def test_the_verb_of_a_non_resource_path_is_its_method() -> None:
    assert read_request_info("POST", "/plan", is_watch=False).verb == "post"


def query(**parameters: str) -> Query:
    return Query({name: [value] for name, value in parameters.items()})


@pytest.mark.parametrize(
    ("text", "is_set"),
    [
        *(("true", True), ("1", True), ("perhaps", True), ("", True), ("00", True)),
        *(("false", False), ("False", False), ("FALSE", False), ("0", False)),
    ],
)
def test_a_flag_is_true_unless_its_value_is_false_or_0(text: str, is_set: bool) -> None:
    assert query(watch=text).flag("watch") is is_set


def test_absent_parameters() -> None:
    assert query().flag("watch") is False
    assert query().optional_flag("sendInitialEvents") is None
    assert query().integer("limit") is None


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("many", 'strconv.ParseInt: parsing "many": invalid syntax'),
        ("", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
    ],
)
def test_invalid_integers_are_rejected(text: str, expected_message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        query(limit=text).integer("limit")
    assert raised.value.message == expected_message


def test_a_negative_limit_means_no_limit() -> None:
    assert query(limit="-5").list_options().limit == 0


@pytest.mark.parametrize(
    ("options", "expected_message"),
    [
        pytest.param(
            ListOptions(match="Exact"),
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            id="a match without a version",
        ),
        pytest.param(
            ListOptions(match="Exact", revision="0"),
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            id="an exact match of revision 0",
        ),
        pytest.param(
            ListOptions(initial_events=True),
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
            id="initial events of a list",
        ),
        pytest.param(
            ListOptions(is_watch=True, match="NotOlderThan"),
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
            "provided",
            id="a watch with a match",
        ),
    ],
)
def test_invalid_combinations_of_list_options(options: ListOptions, expected_message: str) -> None:
    with pytest.raises(InvalidError) as raised:
        check_list_options(options)
    assert raised.value.message == f'ListOptions.meta.k8s.io "" is invalid: {expected_message}'


def test_write_options_are_parsed() -> None:
    options = query(dryRun="All", fieldManager="me", fieldValidation="Strict").write_options("CreateOptions")
    assert (options.is_dry_run, options.field_manager) == (True, "me")
    assert options.field_validation is FieldValidation.STRICT
    assert query().write_options("UpdateOptions").field_validation is FieldValidation.WARN


@pytest.mark.parametrize(
    ("parameters", "is_apply", "expected_message"),
    [
        ({"dryRun": "Some"}, False, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        ({}, True, "fieldManager: Required value: is required for apply patch"),
        ({"force": "true"}, False, "force: Forbidden: may not be specified for non-apply patch"),
        ({"fieldManager": "m" * 129}, False, "fieldManager: Too long: may not be more than 128 bytes"),
    ],
)
def test_invalid_write_options_are_rejected(parameters: dict[str, str], is_apply: bool, expected_message: str) -> None:
    with pytest.raises(InvalidError) as raised:
        query(**parameters).write_options("PatchOptions", is_apply=is_apply)
    assert raised.value.message == f'PatchOptions.meta.k8s.io "" is invalid: {expected_message}'


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        ("bad", 'time: invalid duration "bad"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1y", 'time: unknown unit "y" in duration "1y"'),
    ],
)
def test_invalid_timeouts_are_rejected(text: str, expected_message: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        query(timeout=text).check_timeout()
    assert raised.value.message == f"invalid timeout specified in the request URL - {expected_message}"


@pytest.mark.parametrize("text", ["", "0", "10s", "-1s", "1h30m"])
def test_valid_timeouts_are_accepted(text: str) -> None:
    query(timeout=text).check_timeout()


@pytest.mark.parametrize(
    ("parameters", "begins_with_state"),
    [
        ({"watch": "1"}, True),
        ({"watch": "1", "resourceVersion": "0"}, True),
        ({"watch": "1", "resourceVersion": "7"}, None),
        ({"watch": "1", "sendInitialEvents": "false"}, False),
        ({}, None),
    ],
)
def test_a_watch_without_a_revision_requests_initial_events(
    parameters: dict[str, str], begins_with_state: bool | None
) -> None:
    assert query(**parameters).list_options().initial_events is begins_with_state


def test_the_export_parameter_is_rejected() -> None:
    query(export="false").check_export()
    with pytest.raises(BadRequestError, match="no longer supported"):
        query(export="true").check_export()
