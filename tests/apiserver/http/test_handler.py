"""The request handler: authentication, authorization, routing and error responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import aiohttp
import pytest

from mooring.apiserver.http.handler import CHECKS, Deadlines
from mooring.apiserver.http.request import RequestLimits
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run, run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.interface import Record, StoreBusy, StoreError
from mooring.store.memory import MemoryStore
from tests.apiserver.http.served import ADMIN_TOKEN, Served, served
from tests.serving.http.loopback import get
from tests.waiting import LIMIT_S

S_MAX = 60.0


async def _work(deadlines: Deadlines, clock: VirtualClock, seconds: float) -> str:
    task = deadlines.begin()
    try:
        await clock.wait(seconds)
    except asyncio.CancelledError:
        if not deadlines.is_over(task):
            raise
        return f"cut off at {clock.now_s():.0f}"
    finally:
        deadlines.end(task)
    return "done"


@pytest.mark.parametrize(
    ("begin_s", "seconds", "end"),
    [
        pytest.param(0.0, 1.0, "done", id="quick"),
        pytest.param(0.0, S_MAX, "done", id="within the deadline"),
        pytest.param(0.0, 100.0, "cut off at 68", id="too slow"),
        pytest.param(7.4, 100.0, "cut off at 68", id="too slow, begun just before a check"),
        pytest.param(7.6, 100.0, "cut off at 75", id="too slow, begun just after a check"),
    ],
)
def test_a_request_beyond_its_deadline_is_cancelled(begin_s: float, seconds: float, end: str) -> None:
    clock = VirtualClock()

    async def scenario() -> None:
        deadlines = Deadlines(S_MAX)
        async with TaskGroup("test") as group:
            group.start(_work(deadlines, clock, 10.0), name="another")
            await clock.wait(begin_s)
            work = group.start(_work(deadlines, clock, seconds), name="work")
        assert work.result() == end

    run(scenario(), clock)


def test_a_task_can_continue_after_its_request_was_cancelled() -> None:
    clock = VirtualClock()

    async def scenario() -> None:
        deadlines = Deadlines(S_MAX)
        assert (await _work(deadlines, clock, 1_000.0)).startswith("cut off")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        assert await _work(deadlines, clock, 1.0) == "done"

    run(scenario(), clock)


def test_another_cancellation_is_propagated() -> None:
    clock = VirtualClock()

    async def scenario() -> None:
        deadlines = Deadlines(S_MAX)
        async with TaskGroup("test") as group:
            work = group.start(_work(deadlines, clock, 1_000.0), name="work")
            await clock.wait(1.0)
            work.cancel()
        assert work.cancelled()

    run(scenario(), clock)


def test_deadlines_set_no_timer_without_requests() -> None:
    clock = VirtualClock()

    async def scenario() -> None:
        deadlines = Deadlines(S_MAX)
        await _work(deadlines, clock, 1.0)
        await clock.wait(S_MAX / CHECKS)
        assert asyncio.get_running_loop().statistics()["alarms"] == 0  # type: ignore[attr-defined]

    run(scenario(), clock)


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
NOT_FOUND = "the server could not find the requested resource"
NO_TOKEN: Mapping[str, str] = {"Authorization": ""}
UNKNOWN_TOKEN: Mapping[str, str] = {"Authorization": "Bearer nobody-knows-it"}
LIMITED: Mapping[str, str] = {"Authorization": "Bearer limited"}
ADMIN: Mapping[str, str] = {}

Scenario = Callable[[Served], Coroutine[Any, Any, None]]


def run_scenario(scenario: Scenario, limits: RequestLimits | None = None, *, failures: int = 0, **options: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), served(limits, **options) as api:
            await scenario(api)
            assert api.handler.failures == failures
            assert (api.handler.requests_open, api.handler.changes_open, api.handler.watches_open) == (0, 0, 0)

    run_real(main())


async def response_of(api: Served, method: str, path: str, headers: Mapping[str, str] = ADMIN, data: str = "") -> str:
    """The code of the response, and its message, kind, or the beginning of its text."""
    headers = {"Content-Type": "application/json", **headers}
    async with api.session.request(method, api.url(path), headers=headers, data=data or None) as response:
        if response.content_type == "application/json" and method != "HEAD":
            document = await response.json()
            return f"{response.status} {document.get('message', document.get('kind'))}"
        return f"{response.status} {(await response.text())[:40].strip()}"


# ---------------------------------------------------------------------------- authentication and authorization


@pytest.mark.parametrize(
    ("path", "who", "answer"),
    [
        pytest.param(CONFIG_MAPS, NO_TOKEN, "401 Unauthorized", id="no token"),
        pytest.param(CONFIG_MAPS, UNKNOWN_TOKEN, "401 Unauthorized", id="an unknown token"),
        pytest.param("/nothing", NO_TOKEN, "401 Unauthorized", id="no token, an unknown path"),
        pytest.param("/healthz", NO_TOKEN, "200 ok", id="no token, a health check"),
        pytest.param("/healthz", UNKNOWN_TOKEN, "401 Unauthorized", id="an unknown token, a health check"),
        pytest.param(
            CONFIG_MAPS,
            LIMITED,
            '403 configmaps is forbidden: User "limited" cannot list resource "configmaps" in API group "" in the '
            'namespace "default"',
            id="a user without permission",
        ),
        pytest.param(
            "/api/v1/nothings",
            LIMITED,
            '403 nothings is forbidden: User "limited" cannot list resource "nothings" in API group "" at the cluster '
            "scope",
            id="a user without permission, an unknown resource",
        ),
        pytest.param(
            "/nothing",
            LIMITED,
            '403 forbidden: User "limited" cannot get path "/nothing"',
            id="a user without permission, an unknown path",
        ),
        pytest.param(CONFIG_MAPS, ADMIN, "200 ConfigMapList", id="a user with permission"),
        pytest.param(CONFIG_MAPS, {"Impersonate-User": "limited"}, "403 configmaps is forb", id="impersonation"),
        pytest.param(
            CONFIG_MAPS,
            {**LIMITED, "Impersonate-User": "admin"},
            '403 configmaps is forbidden: User "limited" cannot impersonate-on',
            id="impersonation without permission",
        ),
    ],
)
def test_authentication_and_authorization_of_requests(path: str, who: Mapping[str, str], answer: str) -> None:
    async def scenario(api: Served) -> None:
        assert (await response_of(api, "GET", path, who))[: len(answer)] == answer

    run_scenario(scenario, is_anonymous_allowed=False)


# ---------------------------------------------------------------------------------------------------- routing


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        pytest.param("GET", "/nothing", "404 404 page not found", id="an unknown path"),
        pytest.param("GET", "/apis/none.example.com/v1/things", "404 404 page not found", id="an unknown group"),
        pytest.param("GET", "/api/v1/nothings", f"404 {NOT_FOUND}", id="an unknown resource"),
        pytest.param("GET", "/api/v1/namespaces/default/nodes", f"404 {NOT_FOUND}", id="a node in a namespace"),
        pytest.param("GET", f"{CONFIG_MAPS}/x", '404 configmaps "x" not found', id="a missing object"),
        pytest.param("GET", f"{CONFIG_MAPS}/x/status", f"404 {NOT_FOUND}", id="an unknown subresource"),
        pytest.param("GET", f"{CONFIG_MAPS}?watch=false&limit=1", "200 ConfigMapList", id="watch=false"),
        pytest.param("GET", f"{CONFIG_MAPS}?watch=False", "200 ConfigMapList", id="watch=False"),
        pytest.param("POST", "/api/v1/configmaps", f"405 {NOT_ALLOWED}", id="create without a namespace"),
        pytest.param("DELETE", "/api/v1/configmaps", f"405 {NOT_ALLOWED}", id="delete collection without a namespace"),
        pytest.param("PUT", CONFIG_MAPS, f"405 {NOT_ALLOWED}", id="update of a list"),
        pytest.param("PATCH", CONFIG_MAPS, f"405 {NOT_ALLOWED}", id="patch of a list"),
        pytest.param("POST", f"{CONFIG_MAPS}/x", f"405 {NOT_ALLOWED}", id="create with a name in the path"),
        pytest.param("HEAD", CONFIG_MAPS, "405 ", id="HEAD"),
        pytest.param("OPTIONS", CONFIG_MAPS, f"405 {NOT_ALLOWED}", id="OPTIONS"),
        pytest.param("POST", "/api/v1/watch/configmaps", f"405 {NOT_ALLOWED}", id="POST to the old watch path"),
        pytest.param("DELETE", "/api/v1/watch/configmaps", f"405 {NOT_ALLOWED}", id="DELETE of the old watch path"),
        pytest.param("GET", "/api/v1/watch/nothings", f"404 {NOT_FOUND}", id="an unknown resource, the old watch path"),
        pytest.param("GET", "/api/v1/nothings?watch=1", f"404 {NOT_FOUND}", id="an unknown resource, a watch"),
    ],
)
def test_routing_of_methods_and_paths(method: str, path: str, answer: str) -> None:
    async def scenario(api: Served) -> None:
        assert await response_of(api, method, path) == answer

    run_scenario(scenario)


@pytest.mark.parametrize("path", ["/livez?verbose", "/readyz?verbose=false", "/healthz?verbose=0"])
def test_verbose_health_checks(path: str) -> None:
    async def scenario(api: Served) -> None:
        assert (await response_of(api, "GET", path)).startswith("200 [+]ping ok")

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("path", "code", "body"),
    [
        pytest.param("/readyz", 500, "[+]ping ok\n[-]nodes failed: reason withheld\nreadyz check failed\n", id="ready"),
        pytest.param("/livez", 200, "ok", id="alive"),
        pytest.param("/readyz?exclude=nodes", 200, "ok", id="the failing check is excluded"),
        pytest.param("/readyz/ping", 200, "ok", id="one check"),
        pytest.param("/readyz/nodes", 500, "internal server error: no nodes\n", id="the failing check"),
        pytest.param("/livez/nodes", 404, "404 page not found\n", id="a check of another page"),
    ],
)
def test_health_checks_of_a_server_that_is_not_ready(path: str, code: int, body: str) -> None:
    async def scenario(api: Served) -> None:
        api.api_server.ready_checks["nodes"] = lambda: "no nodes"
        async with api.session.get(api.url(path)) as response:
            assert (response.status, await response.text()) == (code, body)
            assert response.headers["Content-Type"] == "text/plain; charset=utf-8"

    run_scenario(scenario)


@pytest.mark.parametrize(
    "is_anonymous_allowed",
    [pytest.param(True, id="anonymous requests allowed"), pytest.param(False, id="anonymous requests rejected")],
)
def test_options_asterisk_is_answered_without_authentication(is_anonymous_allowed: bool) -> None:
    async def scenario(api: Served) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(get("*", "Connection: close", method="OPTIONS").encode())
        answer = (await reader.read()).decode()
        writer.close()
        assert answer.startswith("HTTP/1.1 200 OK\r\n")
        assert "Content-Length: 0\r\n" in answer

    run_scenario(scenario, is_anonymous_allowed=is_anonymous_allowed)


# -------------------------------------------------------------------------------------------------------- errors


class FailingStore(MemoryStore):
    """A store whose `get` of one object fails."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__()
        self._error = error

    async def get(self, key: str, *, at: int | None = None) -> Record | None:
        if key.endswith("/broken"):
            raise self._error("a secret")
        return await super().get(key, at=at)


@pytest.mark.parametrize(
    ("error", "answer", "failures"),
    [
        pytest.param(
            RuntimeError, "500 Internal error occurred: see the log of the server", 1, id="an unexpected exception"
        ),
        pytest.param(RecursionError, "400 exceeded max depth", 0, id="too deeply nested"),
        pytest.param(StoreBusy, "429 ", 0, id="a busy store"),
        pytest.param(StoreError, "500 ", 0, id="a store error"),
        pytest.param(ConnectionResetError, "500 500 Internal Server Error", 1, id="a reset connection"),
    ],
)
def test_status_codes_of_internal_errors(error: type[Exception], answer: str, failures: int) -> None:
    async def scenario(api: Served) -> None:
        for _ in range(2):
            assert (await response_of(api, "GET", f"{CONFIG_MAPS}/broken")).startswith(answer)
        assert await response_of(api, "GET", f"{CONFIG_MAPS}/whole") == '404 configmaps "whole" not found'

    run_scenario(scenario, store=FailingStore(error), failures=2 * failures)


# ------------------------------------------------------------------------------------------------ the response


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        pytest.param("gzip", True, id="gzip"),
        pytest.param("br, gzip", True, id="gzip among others"),
        pytest.param("gzip;q=0", False, id="gzip with quality 0"),
        pytest.param("gzip;q=1.0", False, id="gzip with a quality"),
        pytest.param("x-gzip", False, id="x-gzip"),
        pytest.param("identity", False, id="no gzip"),
    ],
)
def test_long_responses_are_compressed_if_the_client_accepts_gzip(accepted: str, is_compressed: bool) -> None:
    async def scenario(api: Served) -> None:
        assert await api.create_config_map("large", {"x": "y" * 2_000}) == 201
        for path, is_long in ((f"{CONFIG_MAPS}/large", True), (f"{CONFIG_MAPS}/none", False)):
            async with api.session.get(api.url(path), headers={"Accept-Encoding": accepted}) as response:
                assert response.headers.get("Content-Encoding") == ("gzip" if is_compressed and is_long else None)
                assert (await response.json())["kind"] == ("ConfigMap" if is_long else "Status")

    run_scenario(scenario, RequestLimits(gzip_bytes_min=1_000))


def test_responses_are_not_cached() -> None:
    async def scenario(api: Served) -> None:
        async with api.session.get(api.url(CONFIG_MAPS)) as response:
            assert response.headers["Cache-Control"] == "no-cache, private"

    run_scenario(scenario)


def test_a_write_completes_after_the_client_disconnects() -> None:
    async def scenario(api: Served) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        body = '{"metadata":{"name":"left-alone"}}'
        headers = (f"Authorization: Bearer {ADMIN_TOKEN}", "Content-Type: application/json")
        writer.write((get(CONFIG_MAPS, *headers, f"Content-Length: {len(body)}", method="POST") + body).encode())
        await writer.drain()
        writer.close()
        while not (await response_of(api, "GET", f"{CONFIG_MAPS}/left-alone")).startswith("200"):
            await api.api_server.clock.wait(0.01)

    run_scenario(scenario)


def test_requests_are_counted_by_resource_and_status_code() -> None:
    async def scenario(api: Served) -> None:
        await response_of(api, "GET", CONFIG_MAPS)
        await response_of(api, "GET", f"{CONFIG_MAPS}/none")
        async with api.session.get(api.url("/metrics")) as response:
            lines = (await response.text()).splitlines()
        counted = [
            line for line in lines if line.startswith("apiserver_request_total") and 'resource="configmaps"' in line
        ]
        assert sorted(line.partition('code="')[2][:3] for line in counted) == ["200", "404"]

    run_scenario(scenario)


def test_a_client_session_reuses_one_connection() -> None:
    async def scenario(api: Served) -> None:
        connector = aiohttp.TCPConnector(limit=1)
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            for number in range(5):
                async with session.get(api.url(f"{CONFIG_MAPS}/none-{number}")) as response:
                    assert response.status == 404
                    assert response.headers.get("Connection") is None

    run_scenario(scenario)
