"""Dialling a server directly or through a proxy, and errors of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mooring.api.kinds import POD
from mooring.client.errors import NoAnswerError, NotFoundError
from mooring.client.http.client import HttpClient
from mooring.client.http.connection import Connection
from mooring.client.http.dial import Dialler
from mooring.kit.entropy import Entropy
from tests.client.certificates import Authority, make_authority
from tests.client.contract_play import NS
from tests.client.http.play import HttpSetup, run_over_http


class TunnelProxy:
    """A proxy that opens or rejects tunnels."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.requests: list[bytes] = []
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head)
        writer.write(self._answer)
        if b" 200 " not in self._answer:
            writer.close()
            return
        host, port = head.split(b" ")[1].decode().split(":")
        behind_reader, behind_writer = await asyncio.open_connection(host, int(port))
        there = asyncio.get_running_loop().create_task(_pass_on(reader, behind_writer))
        await _pass_on(behind_reader, writer)
        await there


class SocksProxy:
    """A SOCKS5 proxy without authentication."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        wanted = await reader.readexactly(10)  # an IPv4 address
        self.requests.append(wanted)
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        host = ".".join(str(part) for part in wanted[4:8])
        behind_reader, behind_writer = await asyncio.open_connection(host, int.from_bytes(wanted[8:], "big"))
        there = asyncio.get_running_loop().create_task(_pass_on(reader, behind_writer))
        await _pass_on(behind_reader, writer)
        await there


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    except ConnectionError:
        pass
    writer.close()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        pytest.param(b"HTTP/1.1 200 Connection established\r\n\r\n", NotFoundError, "not found", id="open"),
        pytest.param(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", NoAnswerError, "a tunnel.*407", id="rejected"),
        pytest.param(b"SSH-2.0\r\n\r\n", NoAnswerError, "does not speak HTTP", id="not a proxy"),
    ],
)
def test_an_https_server_is_reached_through_a_tunnel(
    authority: Authority, tmp_path: Path, answer: bytes, error: type[Exception], words: str
) -> None:
    proxy = TunnelProxy(answer)

    async def scenario(setup: HttpSetup) -> None:
        async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            connection = replace(setup.client.connection, proxy=f"http://jane:p%40ss@127.0.0.1:{port}")
            async with HttpClient(connection, setup.clock, Entropy(1), environment={}) as client:
                with pytest.raises(error, match=words):
                    await client.get(POD, NS, "web")
        where = setup.server.url.removeprefix("https://")
        lines = proxy.requests[0].decode().split("\r\n")
        assert lines[:3] == [
            f"CONNECT {where} HTTP/1.1",
            f"Host: {where}",
            "Proxy-Authorization: Basic amFuZTpwQHNz",
        ]

    security = authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1"))
    run_over_http(scenario, security=security, authority=authority.pem)


@pytest.mark.parametrize("is_secure", [True, False], ids=["https", "http"])
def test_a_server_is_reached_through_a_socks_proxy(authority: Authority, tmp_path: Path, is_secure: bool) -> None:
    proxy = SocksProxy()

    async def scenario(setup: HttpSetup) -> None:
        async with await asyncio.start_server(proxy.serve, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            connection = replace(setup.client.connection, proxy=f"socks5://127.0.0.1:{port}")
            async with HttpClient(connection, setup.clock, Entropy(1), environment={}) as client:
                with pytest.raises(NotFoundError, match="not found"):
                    await client.get(POD, NS, "web")
        assert len(proxy.requests) == 1

    if is_secure:
        security = authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1"))
        run_over_http(scenario, security=security, authority=authority.pem)
    else:
        run_over_http(scenario)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            lambda old: replace(old, server="https://127.0.0.1:1"), "cannot connect: ", id="connection refused"
        ),
        pytest.param(lambda old: replace(old, server="https://no.host.invalid"), "cannot connect", id="unknown host"),
        pytest.param(lambda old: replace(old, authority=b""), "the server cannot be trusted: ", id="unknown authority"),
    ],
)
def test_connection_errors_have_a_reason(
    authority: Authority, tmp_path: Path, change: Callable[[Connection], Connection], words: str
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        connection = change(setup.client.connection)
        async with HttpClient(connection, setup.clock, Entropy(1), environment={}) as client:
            with pytest.raises(NoAnswerError, match=words):
                await client.get(POD, NS, "web")

    security = authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1"))
    run_over_http(scenario, security=security, authority=authority.pem)


@pytest.mark.parametrize(
    ("server", "proxy", "host", "start"),
    [
        pytest.param("https://a.example:6443", "", "a.example:6443", "", id="directly"),
        pytest.param("https://a.example/k8s/c-1/", "", "a.example", "/k8s/c-1", id="with a path in front"),
        pytest.param("https://a.example", "http://p.example:3128", "a.example", "", id="through a tunnel"),
        pytest.param(
            "http://a.example:8080/k",
            "http://p:1",
            "a.example:8080",
            "http://a.example:8080/k",
            id="through a plain proxy",
        ),
    ],
)
def test_host_and_target_of_requests(server: str, proxy: str, host: str, start: str) -> None:
    dialler = Dialler(Connection(server), proxy)
    assert (dialler.host, dialler.target_start) == (host, start)
