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
from mooring.apiserver.kubelets.logs import KubeletLogs
from mooring.apiserver.registry.pod_log import LogOptions
from mooring.client.errors import BadRequestError, StatusError
from mooring.client.http.tls import unverified_tls
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from tests.waiting import LIMIT_S

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
