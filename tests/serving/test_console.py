"""The web console on a secure port: logins, sessions and their limits; permissions; live data and its limits."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest

from mooring.client.interface import Client
from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.loop import run, run_real
from mooring.serving.authentication import DelegatingAuthenticator, Trust
from mooring.serving.authorization import AllowedPaths, DelegatingAuthorizer
from mooring.serving.console import (
    HEARTBEAT,
    HEARTBEAT_S,
    LOGIN_S_MAX,
    LOGINS_MAX,
    OF_USER_MAX,
    READ_INTERVAL_S,
    SESSION_S_MAX,
    SESSIONS_MAX,
    STALLED_S_MAX,
    STREAMS_MAX,
    STREAMS_OF_USER_MAX,
    WATCHED_MAX,
    ConsolePaths,
    ConsoleSessions,
    LiveStreams,
)
from mooring.serving.http.long_running import LongRunningRequests
from mooring.serving.http.request import Request
from mooring.serving.http.response import Stream
from mooring.serving.pages import PageRequest, PageResponse, as_json, text, unauthorized
from mooring.serving.server import Page, SecureServer
from mooring.serving.tls import ServingTls, serving_context
from mooring.serving.users import User
from tests.serving.callers import Reviewer

ALICE = User("alice", groups=("team",))


def session_of(sessions: ConsoleSessions, user: User = ALICE) -> str:
    token = sessions.redeem(sessions.new_login(user))
    assert token is not None
    return token


def test_a_session_belongs_to_the_user_of_its_login() -> None:
    sessions = ConsoleSessions(VirtualClock())
    assert sessions.user_of(session_of(sessions)) is ALICE


def test_a_login_is_redeemed_once_and_is_not_a_session() -> None:
    sessions = ConsoleSessions(VirtualClock())
    login = sessions.new_login(ALICE)
    assert sessions.user_of(login) is None
    assert sessions.redeem(login) is not None
    assert sessions.redeem(login) is None
    assert sessions.redeem("") is None
    assert sessions.redeem(session_of(sessions)) is None


def test_logins_and_sessions_expire() -> None:
    clock = VirtualClock()
    sessions = ConsoleSessions(clock)
    session, login = session_of(sessions), sessions.new_login(ALICE)
    clock.advance_to(LOGIN_S_MAX + 1)
    assert sessions.redeem(login) is None
    clock.advance_to(SESSION_S_MAX)
    assert sessions.user_of(session) is not None
    clock.advance_to(SESSION_S_MAX + 1)
    assert sessions.user_of(session) is None


def test_at_the_limits_the_oldest_login_or_session_is_removed() -> None:
    sessions = ConsoleSessions(VirtualClock())
    tokens = [session_of(sessions, User(f"user-{number}")) for number in range(SESSIONS_MAX + 1)]
    assert [sessions.user_of(token) is not None for token in (tokens[0], tokens[1], tokens[-1])] == [False, True, True]
    logins = [sessions.new_login(User(f"user-{number}")) for number in range(LOGINS_MAX + 1)]
    assert [sessions.redeem(login) is not None for login in (logins[0], logins[1], logins[-1])] == [False, True, True]


def test_logins_of_one_user_do_not_end_sessions_of_others() -> None:
    sessions = ConsoleSessions(VirtualClock())
    session, login = session_of(sessions, User("bob")), sessions.new_login(User("bob"))
    # The same user with other credentials.
    tokens = [session_of(sessions, User("alice", extra={"id": (str(number),)})) for number in range(SESSIONS_MAX)]
    for _ in range(LOGINS_MAX):
        sessions.new_login(ALICE)
    assert sessions.user_of(session) is not None
    assert sessions.redeem(login) is not None
    assert sum(sessions.user_of(token) is not None for token in tokens) == OF_USER_MAX


JANE = User("jane")
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
    sessions = ConsoleSessions(clock)
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


Answers = Callable[[PageRequest], PageResponse]


def begin(streams: LiveStreams, answers: Answers, *watched: str, user: str = "jane") -> AsyncGenerator[bytes, None]:
    async def answer(request: PageRequest) -> PageResponse:
        return answers(request)

    response = streams.response(PageRequest("GET", "/console/data/live", {"watch": list(watched)}), answer, user)
    assert (response.code, response.content_type) == (200, "text/event-stream")
    assert response.stream is not None
    return response.stream


def parsed(event: bytes) -> tuple[str, object]:
    name, data, *rest = event.decode().split("\n")
    assert rest == ["", ""]
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_a_changed_page_is_sent() -> None:
    clock = VirtualClock()

    def answers(request: PageRequest) -> PageResponse:
        return as_json({"path": request.path, "seconds": int(clock.now_s() / (3 * READ_INTERVAL_S))})

    async def main() -> None:
        events = begin(LiveStreams(clock), answers, "overview")
        for seconds in (0, 1, 2):
            assert parsed(await anext(events)) == (
                "overview",
                {"path": "/console/data/overview", "seconds": seconds},
            )
            assert int(clock.now_s() / (3 * READ_INTERVAL_S)) == seconds

    run(main(), clock)


def test_heartbeats_are_sent_without_changes() -> None:
    clock = VirtualClock()

    async def main() -> None:
        events = begin(LiveStreams(clock), lambda request: as_json({}), "overview", "queue?filter=a%20b")
        assert [parsed(await anext(events))[0] for _ in range(2)] == ["overview", "queue"]
        assert await anext(events) == HEARTBEAT
        assert clock.now_s() >= HEARTBEAT_S

    run(main(), clock)


def test_a_failed_page_is_sent_as_a_problem_and_other_pages_continue() -> None:
    clock = VirtualClock()

    def answers(request: PageRequest) -> PageResponse:
        return text("no such node\n", 404) if request.path.endswith("/node") else as_json({"now": clock.now_s()})

    async def main() -> None:
        events = begin(LiveStreams(clock), answers, "node?node=x", "overview")
        assert parsed(await anext(events)) == ("problem", {"path": "node", "code": 404, "message": "no such node\n"})
        assert [parsed(await anext(events))[0] for _ in range(3)] == ["overview"] * 3

    run(main(), clock)


def test_a_stream_ends_with_its_session() -> None:
    clock, streams = VirtualClock(), LiveStreams(VirtualClock())

    async def main() -> None:
        events = [each async for each in begin(streams, lambda request: unauthorized(), "overview", "queue")]
        assert [parsed(event)[0] for event in events] == ["problem"]

    run(main(), clock)
    assert streams.open == 0


@pytest.mark.parametrize(
    ("watched", "code"), [pytest.param(0, 400, id="no page"), pytest.param(WATCHED_MAX + 1, 400, id="too many pages")]
)
def test_a_stream_without_pages_or_with_too_many_is_rejected(watched: int, code: int) -> None:
    async def answer(request: PageRequest) -> PageResponse:
        raise AssertionError("no page must be requested")

    request = PageRequest("GET", "/console/data/live", {"watch": ["overview"] * watched})
    assert LiveStreams(VirtualClock()).response(request, answer, "jane").code == code


def test_streams_beyond_the_limit_are_rejected_until_one_ends() -> None:
    clock = VirtualClock()

    async def answer(request: PageRequest) -> PageResponse:
        return as_json({})

    async def main() -> None:
        streams, request = LiveStreams(clock), PageRequest("GET", "/console/data/live", {"watch": ["overview"]})
        users = [f"user-{number // STREAMS_OF_USER_MAX}" for number in range(STREAMS_MAX)]
        begun = [begin(streams, lambda request: as_json({}), "overview", user=user) for user in users]
        for events in begun:
            await anext(events)
        assert streams.open == STREAMS_MAX
        assert streams.response(request, answer, "jane").code == 429
        await begun[-1].aclose()
        assert streams.response(request, answer, "jane").code == 200

    run(main(), clock)


def test_streams_of_one_user_are_limited() -> None:
    clock = VirtualClock()

    async def answer(request: PageRequest) -> PageResponse:
        return as_json({})

    async def main() -> None:
        streams, request = LiveStreams(clock), PageRequest("GET", "/console/data/live", {"watch": ["overview"]})
        begun = [begin(streams, lambda request: as_json({}), "overview") for _ in range(STREAMS_OF_USER_MAX)]
        for events in begun:
            await anext(events)
        assert streams.response(request, answer, "jane").code == 429
        assert streams.response(request, answer, "john").code == 200
        await begun[0].aclose()
        assert streams.response(request, answer, "jane").code == 200

    run(main(), clock)


class _DisconnectedClient:
    """A connection whose client disconnects during a write."""

    is_open, must_wait, backlog_bytes, on_lost = True, True, 0, None

    def write(self, data: bytes) -> None:
        pass

    async def wait_drained(self) -> None:
        raise ConnectionResetError


def test_a_client_that_disconnects_during_a_write_frees_its_stream() -> None:
    clock, streams = VirtualClock(), LiveStreams(VirtualClock())

    async def main() -> None:
        events, client = begin(streams, lambda request: as_json({}), "overview"), _DisconnectedClient()
        request = cast(Request, SimpleNamespace(connection=client))
        with pytest.raises(ConnectionResetError):
            await LongRunningRequests(STALLED_S_MAX).send(request, Stream(client, 200, is_chunked=True), events)
        assert streams.open == 0, "the stream still counts until its generator is collected"

    run(main(), clock)
