"""Dialling a server directly or through a proxy, verification by TLS, session resumption, and errors of connections."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mooring.api.kinds import CONFIG_MAP, POD
from mooring.client.errors import ClientError, NoAnswerError, NotFoundError
from mooring.client.http.client import HttpClient
from mooring.client.http.connection import (
    ANONYMOUS,
    Certificate,
    Connection,
    Credentials,
    CredentialsError,
    Identity,
    StaticCredentials,
)
from mooring.client.http.dial import Dialler, TlsError, tls_context
from mooring.client.interface import Change
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup
from tests.client.certificates import Authority, make_authority, pem_of
from tests.client.contract_play import NS
from tests.client.http.play import HttpSetup, run_over_http
from tests.client.objects import config_map


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
            lambda old: replace(old, server="https://127.0.0.1:1"),
            "cannot connect: Connection refused$",
            id="connection refused",
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


SECURE = Connection("https://127.0.0.1")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param(lambda it: it, NotFoundError, id="its authority"),
        pytest.param(lambda it: replace(it, authority=b""), NoAnswerError, id="the authorities of the system"),
        pytest.param(
            lambda it: replace(it, authority=make_authority("elsewhere").pem), NoAnswerError, id="another authority"
        ),
        pytest.param(
            lambda it: replace(it, authority=b"", is_server_unverified=True), NotFoundError, id="no verification"
        ),
        pytest.param(
            lambda it: replace(it, server_name="api.internal"), NotFoundError, id="another name of its certificate"
        ),
        pytest.param(
            lambda it: replace(it, server_name="other.internal"), NoAnswerError, id="a name not in its certificate"
        ),
        pytest.param(lambda it: replace(it, server=it.server.replace("https", "http")), NoAnswerError, id="plain HTTP"),
    ],
)
def test_the_certificate_of_the_server_is_verified(
    authority: Authority, tmp_path: Path, change: Callable[[Connection], Connection], error: type[ClientError]
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        connection = change(setup.client.connection)
        async with HttpClient(connection, setup.clock, Entropy(1), environment={}) as client:
            with pytest.raises(error):
                await client.get(POD, NS, "web")

    certificate = authority.issue("server", names=("api.internal",), address="127.0.0.1")
    security = authority.server_context(tmp_path, certificate)
    run_over_http(scenario, security=security, authority=authority.pem)


@pytest.mark.parametrize(
    ("issuer", "error"),
    [
        pytest.param("the server's", NotFoundError, id="of a trusted authority"),
        pytest.param("another", NoAnswerError, id="of another authority"),
        pytest.param("", NoAnswerError, id="none"),
    ],
)
def test_the_client_sends_its_certificate(
    authority: Authority, tmp_path: Path, issuer: str, error: type[ClientError]
) -> None:
    async def scenario(setup: HttpSetup) -> None:
        with pytest.raises(error):
            await setup.client.get(POD, NS, "web")

    issuers = {"the server's": authority, "another": make_authority("elsewhere")}
    identity = Identity(certificate=issuers[issuer].issue("scheduler")) if issuer else ANONYMOUS
    server = authority.issue("server", address="127.0.0.1")
    run_over_http(
        scenario,
        security=authority.server_context(tmp_path, server, wants_client=True),
        authority=authority.pem,
        credentials=StaticCredentials(identity),
    )


class Rotating:
    """Credentials with another certificate for each request; the last one is repeated."""

    def __init__(self, identities: list[Identity]) -> None:
        self._identities = identities

    def identity_nowait(self) -> Identity | None:
        return self._identities.pop(0) if len(self._identities) > 1 else self._identities[0]

    async def wait_identity(self) -> Identity:
        raise NotImplementedError

    def reject(self, identity: Identity) -> bool:
        return False


def test_a_new_certificate_is_used_for_new_connections(authority: Authority, tmp_path: Path) -> None:
    async def scenario(setup: HttpSetup) -> None:
        for error in (NotFoundError, NotFoundError, NoAnswerError):
            with pytest.raises(error):
                await setup.client.get(POD, NS, "web")

    stranger = make_authority("elsewhere").issue("scheduler")
    identities = [Identity(certificate=each) for each in (authority.issue("a"), authority.issue("b"), stranger)]
    credentials: Credentials = Rotating(identities)
    run_over_http(
        scenario,
        security=authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1"), wants_client=True),
        authority=authority.pem,
        credentials=credentials,
    )


@pytest.mark.parametrize(
    "wants_client", [False, True], ids=["without a client certificate", "with a client certificate"]
)
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_later_connections_resume_the_tls_session(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str, wants_client: bool
) -> None:
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    server = authority.issue("server", address="127.0.0.1")
    security = authority.server_context(tmp_path, server, wants_client=wants_client)

    async def scenario(setup: HttpSetup) -> None:
        async def send() -> None:
            with pytest.raises(NotFoundError):
                await setup.client.get(POD, NS, "web")

        await send()
        assert security.session_stats()["hits"] == 0
        async with TaskGroup("clients") as group:
            for number in range(4):
                group.start(send(), name=f"{number}")
        assert security.session_stats()["hits"] == 3
        assert security.session_stats()["accept_good"] == 4

    identity = Identity(certificate=authority.issue("scheduler")) if wants_client else ANONYMOUS
    run_over_http(scenario, security=security, authority=authority.pem, credentials=StaticCredentials(identity))


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_watch_over_tls(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def scenario(setup: HttpSetup) -> None:
        since = (await setup.client.list(CONFIG_MAP)).revision
        async with setup.client.watch(CONFIG_MAP, since=since) as watch:
            await setup.client.create(CONFIG_MAP, NS, config_map("a"))
            (event,) = await watch.next_batch()
        assert event.change is Change.ADDED

    security = authority.server_context(tmp_path, authority.issue("server", address="127.0.0.1"))
    run_over_http(scenario, security=security, authority=authority.pem)
    gc.collect()  # a socket that is left open would be reported here


def test_invalid_certificates_and_keys_are_rejected(authority: Authority) -> None:
    with pytest.raises(TlsError, match=r"the certificate authority of https://127\.0\.0\.1 cannot be read"):
        tls_context(replace(SECURE, authority=b"no certificate"), None)
    with pytest.raises(CredentialsError, match="client certificate or its key cannot be used"):
        tls_context(SECURE, Certificate(b"no certificate", b"no key"))
    locked = Certificate(authority.issue("a").chain, pem_of(authority.key, b"secret"))
    with pytest.raises(CredentialsError, match="protected by a password"):
        tls_context(SECURE, locked)
