"""The log subresource of pods: options, the URL at the kubelet, and the kubelet's responses.

The tests of KubeletLogs use real sockets on loopback.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mooring.api.document import Document
from mooring.api.kinds import NODE, POD
from mooring.apiserver.access.certificates import KUBELET_CLIENT
from mooring.apiserver.access.keyring import Keyring
from mooring.apiserver.http.request import Query
from mooring.apiserver.registry.pod_log import (
    KubeletLogs,
    LogOptions,
    error_of_response,
    log_location,
    open_log,
    redirected,
)
from mooring.client.errors import BadRequestError, InvalidError, NotFoundError, ServerError, StatusError
from mooring.client.http.dial import unverified_tls
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run, run_real
from tests.apiserver.registry.fixture import RegistryFixture, call
from tests.waiting import LIMIT_S

TWO = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], "nodeName": "n"}
ONE = {"containers": [{"name": "a"}], "nodeName": "n"}


class Kubelets:
    """Local kubelets whose log is one line that repeats the request."""

    def has_node(self, name: str) -> bool:
        return name == "n"

    async def logs(self, pod: Document, container: str, options: LogOptions) -> AsyncGenerator[bytes, None]:
        async def lines() -> AsyncGenerator[bytes, None]:
            yield f"{pod['metadata']['name']} {container} {options.tail_lines}".encode()

        return lines()


class RemoteKubelets:
    """Kubelets outside of this process."""

    async def logs(
        self, node: Document, pod: Document, container: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        async def lines() -> AsyncGenerator[bytes, None]:
            yield f"{container} on {node['metadata']['name']}, elsewhere".encode()

        return lines()


def log(spec: Document, options: LogOptions, *, node: Any = None, logs: Kubelets | None = None) -> list[bytes] | None:
    async def main() -> list[bytes] | None:
        api_server = RegistryFixture()
        await api_server.put(POD, "p", spec=spec)
        if node is not None:
            await api_server.put(NODE, spec.get("nodeName", "n"), status=node)
        stream = await open_log(api_server.context.lookup, call(POD, "p", "log"), options, logs, RemoteKubelets())
        return None if stream is None else [line async for line in stream]

    return run(main())


@pytest.mark.parametrize(
    ("spec", "container", "expected"),
    [(ONE, "", "a"), (TWO, "b", "b"), (TWO, "i", "i")],
    ids=["the only one", "one of several", "init container"],
)
def test_open_log_selects_the_requested_container(spec: Document, container: str, expected: str) -> None:
    options = LogOptions(container=container, tail_lines=5)
    assert log(spec, options, node={}, logs=Kubelets()) == [f"p {expected} 5".encode()]


def test_a_pod_without_a_node_has_no_log() -> None:
    assert log({"containers": [{"name": "a"}]}, LogOptions()) is None


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (TWO, LogOptions(), "a container name must be specified for pod p, choose one of: [i a b]"),
        ({"containers": []}, LogOptions(), "a container name must be specified for pod p"),
        (ONE, LogOptions(container="z"), "container z is not valid for pod p"),
    ],
    ids=["several containers", "no containers", "no such container"],
)
def test_a_missing_or_unknown_container_name_is_rejected(spec: Document, options: LogOptions, message: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        log(spec, options, node={})
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (LogOptions(tail_lines=-1), "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        (LogOptions(limit_bytes=0), "limitBytes: Invalid value: 0: must be greater than 0"),
        (LogOptions(since_s=0), "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            LogOptions(since_s=0, since_time="2026-01-01T00:00:00Z"),
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        (LogOptions(stream="All"), "stream: Forbidden: may not be specified"),
    ],
)
def test_invalid_log_options_are_rejected(options: LogOptions, fault: str) -> None:
    with pytest.raises(InvalidError) as caught:
        log(ONE, options)
    assert caught.value.message == f'PodLogOptions "p" is invalid: {fault}'


def test_a_missing_node_is_reported_as_a_missing_pod() -> None:
    with pytest.raises(NotFoundError, match='pods "n" not found'):
        log(ONE, LogOptions())


@pytest.mark.parametrize(
    ("node_name", "logs"),
    [("n", None), ("other", Kubelets())],
    ids=["this process has no nodes", "this process has other nodes"],
)
def test_logs_of_nodes_outside_of_this_process_are_read_from_remote_kubelets(
    node_name: str, logs: Kubelets | None
) -> None:
    spec = {**ONE, "nodeName": node_name}
    assert log(spec, LogOptions(), node={}, logs=logs) == [f"a on {node_name}, elsewhere".encode()]


def test_log_options_are_read_from_query_parameters() -> None:
    given = {"container": "a", "follow": "true", "tailLines": "3", "sinceTime": "2026-01-01T01:00:00+01:00"}
    assert Query({name: [text] for name, text in given.items()}).log_options() == LogOptions(
        container="a", follows=True, tail_lines=3, since_time="2026-01-01T00:00:00Z"
    )


def test_an_invalid_since_time_is_rejected() -> None:
    with pytest.raises(BadRequestError, match='cannot parse "zz" as "2006"'):
        Query({"sinceTime": ["zz"]}).log_options()


WEB_POD: Document = {"metadata": {"namespace": "ns", "name": "web"}}


def node_at(*addresses: tuple[str, str], port: int = 0) -> Document:
    listed = [{"type": type, "address": address} for type, address in addresses]
    return {"status": {"addresses": listed, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}


@pytest.mark.parametrize(
    ("found", "host"),
    [
        pytest.param(
            node_at(("InternalIP", "10.0.0.1"), ("Hostname", "n")), "n:10250", id="Hostname before InternalIP"
        ),
        pytest.param(
            node_at(("ExternalIP", "1.1.1.1"), ("InternalIP", "10.0.0.1")),
            "10.0.0.1:10250",
            id="InternalIP before ExternalIP",
        ),
        pytest.param(
            node_at(("ExternalIP", "1.1.1.1"), ("ExternalDNS", "n.example")),
            "n.example:10250",
            id="ExternalDNS before ExternalIP",
        ),
        pytest.param(
            node_at(("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")),
            "10.0.0.1:10250",
            id="first of two addresses",
        ),
        pytest.param(
            node_at(("InternalIP", "10.0.0.1"), port=1999), "10.0.0.1:1999", id="port of the kubelet endpoint"
        ),
        pytest.param(node_at(("InternalIP", "::1"), port=1999), "[::1]:1999", id="IPv6"),
        pytest.param({"status": {"addresses": [{"type": "Hostname", "address": "n"}]}}, "n:10250", id="default port"),
    ],
)
def test_the_log_url_has_the_preferred_node_address(found: Document, host: str) -> None:
    assert log_location(found, WEB_POD, "a", LogOptions()) == f"https://{host}/containerLogs/ns/web/a"


@pytest.mark.parametrize(
    ("found", "known"),
    [({}, "[]"), (node_at(("Foo", "127.0.0.1"), ("Bar", "x")), "[{Foo 127.0.0.1} {Bar x}]")],
    ids=["no addresses", "unknown address types"],
)
def test_a_node_without_a_usable_address_is_an_error(found: Document, known: str) -> None:
    with pytest.raises(ServerError) as caught:
        log_location(found, WEB_POD, "a", LogOptions())
    message = f"no preferred addresses found; known addresses: {known}"
    assert (caught.value.message, caught.value.reason) == (message, "")


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param(LogOptions(follows=True), "follow=true", id="follow"),
        pytest.param(LogOptions(since_s=5, tail_lines=0), "sinceSeconds=5&tailLines=0", id="tailLines of zero is sent"),
        pytest.param(
            LogOptions(
                is_previous=True,
                since_time="2026-01-01T00:00:00Z",
                has_timestamps=True,
                tail_lines=3,
                limit_bytes=9,
            ),
            "limitBytes=9&previous=true&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=3&timestamps=true",
            id="all other options",
        ),
    ],
)
def test_the_log_url_has_the_options_as_query_parameters(options: LogOptions, query: str) -> None:
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
def test_kubelet_error_responses_become_status_errors(code: int, body: bytes, reason: str, message: str) -> None:
    error = error_of_response(code, body, "web")
    assert (error.code, error.reason, error.message) == (code, reason, message)


def test_the_details_of_a_kubelet_error_name_the_pod() -> None:
    error = error_of_response(404, b"no", "web")
    assert (error.details, error.causes) == ({"name": "web", "kind": "pods/log"}, ())


def test_a_redirect_from_a_kubelet_is_an_error() -> None:
    assert redirected("https://n:1/").message == 'Get "https://n:1/": redirects forbidden'


Page = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def node(port: int, host: str = "127.0.0.1") -> Document:
    addresses = [{"type": "Hostname", "address": host}]
    return {"status": {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}


@asynccontextmanager
async def kubelet(page: Page, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Run a kubelet that serves this page, and yield its port."""
    runner = web.ServerRunner(web.Server(page, handler_cancellation=True))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def keys(folder: Path) -> tuple[ssl.SSLContext, Callable[[], ssl.SSLContext]]:
    """TLS of a kubelet that requires a client certificate, and a factory of TLS contexts with one."""
    keyring = Keyring(folder, SystemClock())
    server = keyring.server_tls()
    server.verify_mode = ssl.CERT_REQUIRED

    def client() -> ssl.SSLContext:
        context = unverified_tls()
        keyring.show(KUBELET_CLIENT, context)
        return context

    return server, client


def test_logs_are_read_with_the_kubelet_client_certificate(tmp_path: Path) -> None:
    server, client = keys(tmp_path)
    requests = []

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert")
        requests.append((request.path_qs, dict(pair for part in certificate["subject"] for pair in part)))
        return web.Response(text="one\ntwo\n")

    async def main() -> bytes:
        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            pieces = await logs.logs(node(port), WEB_POD, "a", LogOptions(tail_lines=2))
            return b"".join([piece async for piece in pieces])

    assert run_real(main()) == b"one\ntwo\n"
    subject = {"commonName": "kube-apiserver-kubelet-client", "organizationName": "system:masters"}
    assert requests == [("/containerLogs/ns/web/a?tailLines=2", subject)]


def test_a_followed_log_is_streamed_until_the_client_disconnects(tmp_path: Path) -> None:
    server, client = keys(tmp_path)

    async def main() -> None:
        has_disconnected = asyncio.Event()

        async def page(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"one\n")
            try:
                await asyncio.Event().wait()
            finally:
                has_disconnected.set()
            return response

        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            pieces = await logs.logs(node(port), WEB_POD, "a", LogOptions(follows=True))
            assert await anext(pieces) == b"one\n"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(pieces)
            async with asyncio.timeout(LIMIT_S):
                await has_disconnected.wait()

    run_real(main())


def test_an_aborted_connection_ends_the_log(tmp_path: Path) -> None:
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
            pieces = await logs.logs(node(port), WEB_POD, "a", LogOptions())
            return b"".join([piece async for piece in pieces])

    assert run_real(main()) == b"one\n"


def test_an_error_response_of_a_kubelet_is_raised(tmp_path: Path) -> None:
    server, client = keys(tmp_path)

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=400, text="it waits to start")

    async def main() -> None:
        async with kubelet(page, server) as port, KubeletLogs(client) as logs:
            with pytest.raises(BadRequestError, match="it waits to start"):
                await logs.logs(node(port), WEB_POD, "a", LogOptions())

    run_real(main())


def raised(port_of: Callable[[], Awaitable[int]], host: str) -> str:
    async def main() -> str:
        async with KubeletLogs(unverified_tls) as logs:
            port = await port_of()
            with pytest.raises(StatusError) as caught:
                await logs.logs(node(port, host), WEB_POD, "a", LogOptions(follows=True))
            assert (caught.value.code, caught.value.reason) == (500, "")
            return caught.value.message.replace(str(port), "PORT")

    return run_real(main())


async def unused_port() -> int:
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
    ids=["connection refused", "connection refused on IPv6", "no such host"],
)
def test_an_unreachable_kubelet_is_an_error_with_the_reason(host: str, why: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    where = f'Get "https://{shown}:PORT/containerLogs/ns/web/a?follow=true": '
    assert raised(unused_port, host).startswith(where + why)


def test_a_plain_http_response_is_an_error() -> None:
    async def page(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="hello")

    async def main() -> str:
        async with kubelet(page, None) as port, KubeletLogs(unverified_tls) as logs:
            with pytest.raises(StatusError) as caught:
                await logs.logs(node(port), WEB_POD, "a", LogOptions())
            return caught.value.message

    assert run_real(main()).endswith(": http: server gave HTTP response to HTTPS client")
