"""The secure port over real sockets."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp
import pytest

from mooring.client.interface import Client
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.serving.authentication import DelegatingAuthenticator, Trust
from mooring.serving.authorization import AllowedPaths, DelegatingAuthorizer
from mooring.serving.http.listener import PortTakenError
from mooring.serving.pages import PageRequest, PageResponse, text
from mooring.serving.profiling import Profiler
from mooring.serving.server import Page, SecureServer
from mooring.serving.tls import ServingTls, serving_context, trust
from tests.serving.callers import Authority, Reviewer

REVIEWER = Reviewer(
    tokens={"jane": {"username": "jane"}, "root": {"username": "root", "groups": ["system:masters"]}},
    allowed={("jane", "get", "/metrics"), ("jane", "get", "/names"), ("jane", "list", "pods of open")},
)


async def fails(question: PageRequest) -> PageResponse:
    raise RuntimeError("a bug")


async def late(question: PageRequest) -> PageResponse:
    await SystemClock().wait(0.01)
    return text(f"late {question.query.get('a')}")


def streams(question: PageRequest) -> PageResponse:
    async def parts() -> AsyncGenerator[bytes, None]:
        for part in (b"a ", b"stream of ", question.path.encode()):
            await SystemClock().wait(0.01)
            yield part

    return PageResponse(b"", stream=parts())


PAGES: dict[str, Page] = {
    "/below/": streams,
    "/healthz": lambda question: text("ok"),
    "/metrics": lambda question: text("numbers"),
    "/late": late,
    "/names": lambda question: PageResponse(b"open/a secret/b", namespaces=frozenset({"open", "secret"})),
    "/fails": fails,
    "/put": lambda question: text(f"{question.method} {question.body.decode()}"),
    **Profiler(SystemClock()).pages(),
}


@asynccontextmanager
async def served(trusted: Trust | None = None, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    clock = SystemClock()
    context = tls if tls is not None else serving_context(ServingTls("test"), clock.wall_s())
    client = cast(Client, REVIEWER)
    server = SecureServer(
        PAGES,
        DelegatingAuthenticator(trusted or Trust(), client, clock),
        DelegatingAuthorizer(AllowedPaths(("/healthz",)), client, clock),
        clock,
        host="127.0.0.1",
        port=0,
        tls=context,
    )
    async with server:
        yield f"https://127.0.0.1:{server.port}"


async def response_of(
    url: str, method: str = "GET", token: str = "", body: bytes | None = None, tls: ssl.SSLContext | None = None
) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, headers=headers, data=body, ssl=tls or False) as answer,
    ):
        assert answer.headers["Cache-Control"] == "no-cache, private"
        return answer.status, await answer.read()


@pytest.mark.parametrize(
    ("method", "path", "token", "code", "body_part"),
    [
        pytest.param("GET", "/healthz", "", 200, b"ok", id="an allowed path"),
        pytest.param("GET", "/metrics", "jane", 200, b"numbers", id="an authorized path"),
        pytest.param("GET", "/metrics", "", 403, b'User \\"system:anonymous\\" cannot get path', id="anonymous"),
        pytest.param("GET", "/metrics", "wrong", 401, b'"message": "Unauthorized"', id="a wrong token"),
        pytest.param("POST", "/metrics", "jane", 403, b'User \\"jane\\" cannot post path', id="another verb"),
        pytest.param("GET", "/nothing", "jane", 403, b"cannot get path", id="an unknown path without permission"),
        pytest.param("GET", "/nothing", "root", 404, b"404 page not found\n", id="an unknown path"),
        pytest.param("GET", "/late?a=1&a=2", "root", 200, b"late ['1', '2']", id="a page that waits"),
        pytest.param("GET", "/below/it", "root", 200, b"a stream of /below/it", id="a stream below a path"),
        pytest.param("GET", "/below", "root", 404, b"404 page not found\n", id="the parent of a path"),
        pytest.param("GET", "/fails", "root", 500, b"Internal error occurred: a bug", id="a page with a bug"),
        pytest.param("GET", "/names", "jane", 200, b"open/a hidden/1", id="masked names"),
        pytest.param("GET", "/names", "root", 200, b"open/a secret/b", id="names with all permissions"),
        pytest.param("PUT", "/put", "root", 200, b"PUT 4", id="a request with a body"),
    ],
)
def test_requests_over_a_real_socket(method: str, path: str, token: str, code: int, body_part: bytes) -> None:
    async def main() -> tuple[int, bytes]:
        async with served() as url:
            return await response_of(url + path, method, token, b"4" if method == "PUT" else None)

    found, body = run_real(main())
    assert found == code
    assert body_part in body


def test_a_client_certificate_authenticates_the_caller(tmp_path: Path) -> None:
    wall_s = SystemClock().wall_s()
    authority = Authority("clients", wall_s=wall_s)
    tls = serving_context(ServingTls("test"), wall_s)
    trust(tls, authority.pem)
    (tmp_path / "root").write_bytes(authority.client_pem("somebody", ["system:masters"]))
    shown = ssl.create_default_context()
    shown.check_hostname = False
    shown.verify_mode = ssl.CERT_NONE
    shown.load_cert_chain(tmp_path / "root")

    async def main() -> None:
        async with served(Trust((authority.certificate,)), tls) as url:
            assert await response_of(f"{url}/late", tls=shown) == (200, b"late None")
            assert (await response_of(f"{url}/late"))[0] == 403

    run_real(main())


def test_a_used_port_is_an_error() -> None:
    async def main() -> None:
        async with served() as url:
            port = int(url.rpartition(":")[2])
            tls = serving_context(ServingTls("test"), SystemClock().wall_s())
            clock = SystemClock()
            second = SecureServer(
                {},
                DelegatingAuthenticator(Trust(), None, clock),
                DelegatingAuthorizer(AllowedPaths(()), None, clock),
                clock,
                host="127.0.0.1",
                port=port,
                tls=tls,
            )
            with pytest.raises(PortTakenError, match=f"cannot listen on 127.0.0.1:{port}"):
                async with second:
                    pass

    run_real(main())


def test_profiles_over_a_real_socket() -> None:
    async def main() -> None:
        async with served() as url:
            code, profile = await response_of(f"{url}/debug/pprof/profile?seconds=0.2", token="root")
            assert code == 200
            assert b"nanoseconds" in gzip.decompress(profile)
            code, heap = await response_of(f"{url}/debug/pprof/heap?seconds=0.1", token="root")
            assert code == 200
            assert b"inuse_space" in gzip.decompress(heap)
            assert (await response_of(f"{url}/debug/pprof/", token="root"))[0] == 200
            assert b"tasks" in (await response_of(f"{url}/debug/pprof/goroutine", token="root"))[1]

    run_real(main())
