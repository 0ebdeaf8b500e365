"""The console on a secure port over real sockets: logins, sessions, permissions, live data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import aiohttp
import pytest

from mooring.client.interface import Client
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.serving.authentication import Caller, DelegatingAuthenticator, Trust
from mooring.serving.authorization import AllowedPaths, DelegatingAuthorizer
from mooring.serving.console.paths import ConsolePaths
from mooring.serving.console.sessions import ConsoleSessions
from mooring.serving.pages import PageRequest, PageResponse, as_json
from mooring.serving.server import Page, SecureServer
from mooring.serving.tls import ServingTls, serving_context
from tests.serving.callers import Reviewer

JANE = Caller("jane")
REVIEWER = Reviewer(
    tokens={"jane": {"username": "jane"}},
    allowed={
        ("jane", "get", "/console/"),
        ("jane", "get", "/console/data/live"),
        ("jane", "get", "/console/data/queue"),
        ("jane", "get", "/console/link"),
        ("jane", "get", "/metrics"),
        ("jane", "list", "pods of open"),
        ("jane", "post", "/console/do/pause"),
    },
)


def named(question: PageRequest) -> PageResponse:
    return PageResponse(b'{"names": ["open/a", "secret/b"]}', namespaces=frozenset({"open", "secret"}))


PAGES: dict[str, Page] = {
    "/console/data/queue": named,
    "/console/data/overview": lambda question: as_json({"nodes": 1}),
    "/console/do/pause": lambda question: as_json({"method": question.method}),
    "/metrics": lambda question: as_json({}),
}


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, str, SecureServer]]:
    """The URL, a login token of Jane, and the server."""
    clock, client = SystemClock(), cast(Client, REVIEWER)
    sessions: ConsoleSessions[Caller] = ConsoleSessions(clock)
    server = SecureServer(
        PAGES,
        DelegatingAuthenticator(Trust(), client, clock),
        DelegatingAuthorizer(AllowedPaths(()), client, clock),
        clock,
        host="127.0.0.1",
        port=0,
        tls=serving_context(ServingTls("test"), clock.wall_s()),
        console=ConsolePaths(sessions, "ask <somebody>"),
    )
    async with server:
        yield f"https://127.0.0.1:{server.port}", sessions.new_login(JANE), server


async def response_of(
    url: str, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, Mapping[str, str], bytes]:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session,
        session.request(method, url + path, headers=headers, allow_redirects=False) as response,
    ):
        return response.status, response.headers, await response.read()


async def logged_in(url: str, token: str) -> dict[str, str]:
    code, headers, _ = await response_of(url, f"/console/login?token={token}")
    assert code == 200
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "Secure", "SameSite=Strict"} < {*attributes}
    return {"Cookie": cookie}


def test_a_session_has_the_permissions_of_its_user_only_for_console_paths() -> None:
    async def main() -> None:
        async with served() as (url, token, _):
            session = await logged_in(url, token)
            for path, code in (
                ("/console/", 200),
                ("/console/app.js", 403),
                ("/console/data/queue", 200),
                ("/console/data/overview", 403),
                ("/console/link", 403),
                ("/metrics", 403),
            ):
                found, headers, body = await response_of(url, path, session)
                assert found == code, (path, body)
                policy = headers.get("Content-Security-Policy", "")
                assert policy.startswith("default-src 'self';") is path.startswith("/console/"), path
                assert b"secret/b" not in body
            assert (await response_of(url, "/metrics", {"Authorization": "Bearer jane"}))[0] == 200

    run_real(main())


@pytest.mark.parametrize(
    "path", ["/console/", "/console/login?token=wrong", "/console/login", "/console/do/pause", "/console/data/queue"]
)
def test_requests_without_a_session_are_rejected(path: str) -> None:
    async def main() -> None:
        async with served() as (url, _, _):
            code, headers, body = await response_of(url, path)
            assert (code, headers["Content-Security-Policy"][:19]) == (401, "default-src 'self';")
            assert path.startswith("/console/data/") or b"ask &lt;somebody&gt;" in body

    run_real(main())


def test_a_login_link_is_used_once_and_a_new_one_can_be_requested() -> None:
    async def main() -> None:
        async with served() as (url, token, _):
            await logged_in(url, token)
            assert (await response_of(url, f"/console/login?token={token}"))[0] == 401
            code, headers, link = await response_of(url, "/console/link", {"Authorization": "Bearer jane"})
            assert (code, headers["Cache-Control"]) == (200, "no-store")
            await logged_in(url, link.decode().strip().rpartition("token=")[2])

    run_real(main())


PROOF = {"X-Mooring-Console": "1"}


@pytest.mark.parametrize(
    ("headers", "is_own_origin", "code"),
    [
        pytest.param(PROOF, True, 200, id="the console page"),
        pytest.param({}, True, 403, id="a form of the same host, without the header"),
        pytest.param(PROOF, False, 403, id="a script without an origin"),
        pytest.param({**PROOF, "Origin": "https://evil.example"}, False, 403, id="a script of another site"),
        pytest.param({**PROOF, "Origin": "null"}, False, 403, id="a sandboxed frame"),
    ],
)
def test_changes_are_accepted_only_from_the_console_page(
    headers: dict[str, str], is_own_origin: bool, code: int
) -> None:
    async def main() -> None:
        async with served() as (url, token, _):
            session = await logged_in(url, token)
            sent = {**session, **headers, **({"Origin": url} if is_own_origin else {})}
            assert (await response_of(url, "/console/do/pause", sent, "POST"))[0] == code

    run_real(main())


@pytest.mark.parametrize(
    ("site", "code"), [("same-origin", 200), ("none", 200), ("same-site", 401), ("cross-site", 401), ("other", 401)]
)
def test_the_session_cannot_be_used_by_other_sites(site: str, code: int) -> None:
    async def main() -> None:
        async with served() as (url, token, _):
            session = {**await logged_in(url, token), "Sec-Fetch-Site": site}
            assert (await response_of(url, "/console/data/queue", session))[0] == code
            with_token = {**session, "Authorization": "Bearer jane"}
            assert (await response_of(url, "/console/data/queue", with_token))[0] == 200

    run_real(main())


@pytest.mark.parametrize("destination", ["image", "iframe", "script", "empty"])
def test_a_login_link_cannot_be_redeemed_by_an_embedded_request(destination: str) -> None:
    async def main() -> None:
        async with served() as (url, token, _):
            code, headers, _ = await response_of(url, f"/console/login?token={token}", {"Sec-Fetch-Dest": destination})
            assert (code, "Set-Cookie" in headers) == (403, False)
            await logged_in(url, token)  # it has not been redeemed

    run_real(main())


def test_a_stream_is_authorized_and_masked_per_page_and_ends_with_the_server() -> None:
    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as client:
            async with served() as (url, token, _):
                session = await logged_in(url, token)
                query = "watch=queue&watch=overview"
                response = await client.get(f"{url}/console/data/live?{query}", headers=session)
                assert (response.status, response.content_type) == (200, "text/event-stream")
                first = await response.content.readuntil(b"\n\n")
                assert first == b'event: queue\ndata: {"names": ["open/a", "hidden/1"]}\n\n'
                second = await response.content.readuntil(b"\n\n")
                assert second.startswith(b'event: problem\ndata: {"path": "overview", "code": 403')
            assert await response.content.read() == b""

    run_real(main())
