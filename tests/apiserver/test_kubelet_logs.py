"""Kubelets elsewhere are asked for logs: over real sockets, on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from mooring.api.document import Document
from mooring.apiserver.access.certificates import KUBELET_CLIENT
from mooring.apiserver.access.keyring import Keyring
from mooring.apiserver.registry.pod_log import KubeletLogs, LogOptions, error_of_response, log_location, redirected
from mooring.client.errors import BadRequestError, ServerError, StatusError
from mooring.client.http.tls import unverified_tls
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from tests.waiting import LIMIT_S

WEB_POD: Document = {"metadata": {"namespace": "ns", "name": "web"}}


def node_at(*addresses: tuple[str, str], port: int = 0) -> Document:
    listed = [{"type": type, "address": address} for type, address in addresses]
    return {"status": {"addresses": listed, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}


@pytest.mark.parametrize(
    ("found", "host"),
    [
        pytest.param(node_at(("InternalIP", "10.0.0.1"), ("Hostname", "n")), "n:10250", id="its name first"),
        pytest.param(
            node_at(("ExternalIP", "1.1.1.1"), ("InternalIP", "10.0.0.1")), "10.0.0.1:10250", id="inside first"
        ),
        pytest.param(
            node_at(("ExternalIP", "1.1.1.1"), ("ExternalDNS", "n.example")), "n.example:10250", id="names first"
        ),
        pytest.param(node_at(("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")), "10.0.0.1:10250", id="of two"),
        pytest.param(node_at(("InternalIP", "10.0.0.1"), port=1999), "10.0.0.1:1999", id="the port that it tells"),
        pytest.param(node_at(("InternalIP", "::1"), port=1999), "[::1]:1999", id="version 6"),
        pytest.param({"status": {"addresses": [{"type": "Hostname", "address": "n"}]}}, "n:10250", id="no port told"),
    ],
)
def test_which_address(found: Document, host: str) -> None:
    assert log_location(found, WEB_POD, "a", LogOptions()) == f"https://{host}/containerLogs/ns/web/a"


@pytest.mark.parametrize(
    ("found", "known"),
    [({}, "[]"), (node_at(("Foo", "127.0.0.1"), ("Bar", "x")), "[{Foo 127.0.0.1} {Bar x}]")],
    ids=["none at all", "of kinds that nobody knows"],
)
def test_no_address(found: Document, known: str) -> None:
    with pytest.raises(ServerError) as caught:
        log_location(found, WEB_POD, "a", LogOptions())
    message = f"no preferred addresses found; known addresses: {known}"
    assert (caught.value.message, caught.value.reason) == (message, "")


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param(LogOptions(follows=True), "follow=true", id="follow"),
        pytest.param(LogOptions(since_s=5, tail_lines=0), "sinceSeconds=5&tailLines=0", id="no lines are some"),
        pytest.param(
            LogOptions(
                is_previous=True,
                since_time="2026-01-01T00:00:00Z",
                has_timestamps=True,
                tail_lines=3,
                limit_bytes=9,
            ),
            "limitBytes=9&previous=true&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=3&timestamps=true",
            id="all others, by their names",
        ),
    ],
)
def test_what_is_asked_for(options: LogOptions, query: str) -> None:
    assert log_location(node_at(("Hostname", "n")), WEB_POD, "a", options).partition("?")[2] == query


@pytest.mark.parametrize(
    ("code", "body", "reason", "message"),
    [
        (400, b"it waits", "BadRequest", "it waits"),
        (500, b"oh", "InternalError", "Internal error occurred: oh"),
        (404, b"no\n", "NotFound", "the server could not find the requested resource ( pods/log web)"),
        (401, b"", "Unauthorized", "the server has asked for the client to provide credentials ( pods/log web)"),
        (403, b"Forbidden (user=x)", "Forbidden", "Forbidden (user=x) ( pods/log web)"),
        (
            502,
            b"gone",
            "InternalError",
            'an error on the server ("gone") has prevented the request from succeeding ( pods/log web)',
        ),
    ],
)
def test_error_responses(code: int, body: bytes, reason: str, message: str) -> None:
    error = error_of_response(code, body, "web")
    assert (error.code, error.reason, error.message) == (code, reason, message)


def test_the_details_name_the_pod() -> None:
    error = error_of_response(404, b"no", "web")
    assert (error.details, error.causes) == ({"name": "web", "kind": "pods/log"}, ())


def test_a_kubelet_that_sends_us_elsewhere() -> None:
    assert redirected("https://n:1/").message == 'Get "https://n:1/": redirects forbidden'


POD: Document = {"metadata": {"namespace": "ns", "name": "web"}}
Page = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def node(port: int, host: str = "127.0.0.1") -> Document:
    addresses = [{"type": "Hostname", "address": host}]
    return {"status": {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}


@asynccontextmanager
async def kubelet(page: Page, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Its port."""
    runner = web.ServerRunner(web.Server(page, handler_cancellation=True))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def keys(folder: Path) -> tuple[ssl.SSLContext, Callable[[], ssl.SSLContext]]:
    """TLS of a kubelet that wants to see our certificate, and ours."""
    keyring = Keyring(folder, SystemClock())
    server = keyring.server_tls()
    server.verify_mode = ssl.CERT_REQUIRED

    def client() -> ssl.SSLContext:
        context = unverified_tls()
        keyring.show(KUBELET_CLIENT, context)
        return context

    return server, client


def test_a_log_is_read_with_our_certificate(tmp_path: Path) -> None:
    server, client = keys(tmp_path)
    asked = []

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert")
        asked.append((request.path_qs, dict(pair for part in certificate["subject"] for pair in part)))
        return web.Response(text="one\ntwo\n")

    async def main() -> bytes:
        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            pieces = await logs.logs(node(port), POD, "a", LogOptions(tail_lines=2))
            return b"".join([piece async for piece in pieces])

    assert run_real(main()) == b"one\ntwo\n"
    subject = {"commonName": "kube-apiserver-kubelet-client", "organizationName": "system:masters"}
    assert asked == [("/containerLogs/ns/web/a?tailLines=2", subject)]


def test_a_followed_log_is_streamed_until_the_client_disconnects(tmp_path: Path) -> None:
    server, client = keys(tmp_path)

    async def main() -> None:
        has_gone = asyncio.Event()

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"one\n")
            try:
                await asyncio.Event().wait()
            finally:
                has_gone.set()
            return response

        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            pieces = await logs.logs(node(port), POD, "a", LogOptions(follows=True))
            assert await anext(pieces) == b"one\n"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(pieces)
            async with asyncio.timeout(LIMIT_S):
                await has_gone.wait()

    run_real(main())


def test_a_kubelet_that_breaks_off_ends_the_log(tmp_path: Path) -> None:
    server, client = keys(tmp_path)

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b"one\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    async def main() -> bytes:
        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            pieces = await logs.logs(node(port), POD, "a", LogOptions())
            return b"".join([piece async for piece in pieces])

    assert run_real(main()) == b"one\n"


def test_error_responses_of_a_kubelet(tmp_path: Path) -> None:
    server, client = keys(tmp_path)

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=400, text="it waits to start")

    async def main() -> None:
        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            with pytest.raises(BadRequestError, match="it waits to start"):
                await logs.logs(node(port), POD, "a", LogOptions())

    run_real(main())


def raised(port_of: Callable[[], Awaitable[int]], host: str) -> str:
    async def main() -> str:
        async with KubeletLogs(unverified_tls) as logs:
            port = await port_of()
            with pytest.raises(StatusError) as caught:
                await logs.logs(node(port, host), POD, "a", LogOptions(follows=True))
            assert (caught.value.code, caught.value.reason) == (500, "")
            return caught.value.message.replace(str(port), "PORT")

    return run_real(main())


async def nobody() -> int:
    listening = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = int(listening.sockets[0].getsockname()[1])
    listening.close()
    await listening.wait_closed()
    return port


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("127.0.0.1", "dial tcp 127.0.0.1:PORT: connect: connection refused"),
        ("::1", "dial tcp [::1]:PORT: connect: "),
        ("no-such-host.invalid", "dial tcp: lookup no-such-host.invalid: no such host"),
    ],
    ids=["nobody listens", "nobody listens on version 6", "no such host"],
)
def test_an_unreachable_kubelet(host: str, why: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    where = f'Get "https://{shown}:PORT/containerLogs/ns/web/a?follow=true": '
    assert raised(nobody, host).startswith(where + why)


def test_a_server_without_tls_answers() -> None:
    async def page(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="hello")

    async def main() -> str:
        async with kubelet(page, None) as port, KubeletLogs(unverified_tls) as logs:
            with pytest.raises(StatusError) as caught:
                await logs.logs(node(port), POD, "a", LogOptions())
            return caught.value.message

    assert run_real(main()).endswith(": http: server gave HTTP response to HTTPS client")
