"""Proxy settings from environment variables, with the rules of Go programs.

SOCKS5: the handshake with a proxy.
"""

from __future__ import annotations

import asyncio
import socket

import pytest

from mooring.client.http.proxy import connect_by_socks, is_usable_proxy, proxy_for
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup

BOTH = {"HTTPS_PROXY": "http://proxy:3128", "HTTP_PROXY": "http://plain:3128"}


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        pytest.param("https://api:6443", BOTH, "http://proxy:3128", id="https server"),
        pytest.param("http://api:8080", BOTH, "http://plain:3128", id="http server"),
        pytest.param(
            "https://api:6443", {"https_proxy": "proxy:3128"}, "http://proxy:3128", id="variable in lower case"
        ),
        pytest.param("https://api:6443", {}, "", id="no variables"),
        pytest.param("https://127.0.0.1:6443", BOTH, "", id="loopback address"),
        pytest.param("https://localhost", BOTH, "", id="localhost"),
        pytest.param("https://api:6443", {"HTTPS_PROXY": "socks5://p:1"}, "socks5://p:1", id="SOCKS5"),
        pytest.param("https://api:6443", {"HTTPS_PROXY": "ftp://proxy:21"}, "", id="an unsupported scheme"),
    ],
)
def test_proxy_for_reads_the_environment(server: str, environment: dict[str, str], expected: str) -> None:
    assert proxy_for(server, environment) == expected


@pytest.mark.parametrize(
    ("server", "exceptions", "is_excepted"),
    [
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://api.example.com", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://api.example.com", "example.com", True),
        ("https://example.com", "example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", True),
        ("https://badexample.com", "example.com", False),
        ("https://api.example.com", "a, *", True),
        ("https://api.example.com:6443", "example.com:6443", True),
        ("https://api.example.com:6443", "example.com:443", False),
        ("https://api.example.com", "", False),
        ("https://10.1.2.3", "10.0.0.0/99", False),
    ],
)
def test_no_proxy_lists_exceptions(server: str, exceptions: str, is_excepted: bool) -> None:
    assert (proxy_for(server, {**BOTH, "NO_PROXY": exceptions}) == "") is is_excepted


def test_is_usable_proxy() -> None:
    assert is_usable_proxy("https://proxy:3128")
    assert is_usable_proxy("socks5h://proxy:1080")
    assert not is_usable_proxy("ftp://proxy:21")
    assert not is_usable_proxy("http://")


CREDENTIALS = ("jane", "p@ss")
HELLO = bytes((5, 1, 0))
HELLO_JANE = bytes((5, 2, 0, 2))
NAME_AND_PASSWORD = b"\x01\x04jane\x04p@ss"
TO_NAME = b"\x05\x01\x00\x03\x03api\x19\x2b"
FROM_IPV4 = bytes((5, 0, 0, 1, 127, 0, 0, 1, 0, 80))
FROM_IPV6 = bytes((5, 0, 0, 4, *range(16), 0, 80))
FROM_NAME = b"\x05\x00\x00\x03\x02me\x00\x50"


async def run_handshake(script: list[tuple[bytes, bytes]], host: str, user: tuple[str, str] | None) -> bytes | OSError:
    """Run a proxy that expects the first of each pair and sends the second; return the data after the handshake."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()

        async def proxy() -> None:
            for expected, response in script:
                assert await loop.sock_recv(theirs, 1_000) == expected
                await loop.sock_sendall(theirs, response)
            theirs.shutdown(socket.SHUT_WR)

        async with TaskGroup("run_handshake") as group:
            group.start(proxy(), name="proxy")
            try:
                await connect_by_socks(ours, host, 6443, user)
            except OSError as error:
                return error
        return await loop.sock_recv(ours, 1_000)


@pytest.mark.parametrize(
    ("script", "host", "user"),
    [
        pytest.param([(HELLO, b"\x05\x00"), (TO_NAME, FROM_IPV4)], "api", None, id="bound to an IPv4 address"),
        pytest.param([(HELLO, b"\x05\x00"), (TO_NAME, FROM_IPV6)], "api", None, id="bound to an IPv6 address"),
        pytest.param([(HELLO, b"\x05\x00"), (TO_NAME, FROM_NAME)], "api", None, id="bound to a name"),
        pytest.param(
            [(HELLO_JANE, b"\x05\x00"), (TO_NAME, FROM_IPV4)],
            "api",
            CREDENTIALS,
            id="the proxy does not request credentials",
        ),
        pytest.param(
            [(HELLO_JANE, b"\x05\x02"), (NAME_AND_PASSWORD, b"\x01\x00"), (TO_NAME, FROM_IPV4)],
            "api",
            CREDENTIALS,
            id="with user name and password",
        ),
        pytest.param(
            [(HELLO, b"\x05\x00"), (b"\x05\x01\x00\x01\x0a\x00\x00\x01\x19\x2b", FROM_IPV4)],
            "10.0.0.1",
            None,
            id="to an IPv4 address",
        ),
        pytest.param(
            [(HELLO, b"\x05\x00"), (b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x19\x2b", FROM_IPV4)],
            "::1",
            None,
            id="to an IPv6 address",
        ),
    ],
)
def test_socks_handshakes(script: list[tuple[bytes, bytes]], host: str, user: tuple[str, str] | None) -> None:
    expected, response = script[-1]
    assert run_real(run_handshake([*script[:-1], (expected, response + b"server")], host, user)) == b"server", (
        "the handshake consumed data of the server"
    )


@pytest.mark.parametrize(
    ("script", "user", "words"),
    [
        pytest.param([(HELLO, b"HT")], None, "does not speak SOCKS5", id="another kind of proxy"),
        pytest.param([(HELLO, b"\x05\xff")], None, "an authentication method", id="credentials are required"),
        pytest.param(
            [(HELLO_JANE, b"\x05\x02"), (NAME_AND_PASSWORD, b"\x01\x01")],
            CREDENTIALS,
            "the password",
            id="a wrong password",
        ),
        pytest.param(
            [(HELLO, b"\x05\x00"), (TO_NAME, b"\x05\x05\x00\x01")],
            None,
            "connection refused",
            id="the target refuses the connection",
        ),
        pytest.param([(HELLO, b"\x05\x00"), (TO_NAME, b"\x05\x63\x00\x01")], None, "code 99", id="an unknown code"),
        pytest.param([(HELLO_JANE, b"\x05\x02")], ("jane", 256 * "x"), "too long", id="a password that is too long"),
        pytest.param([(HELLO, b"\x05")], None, "closed the connection", id="the proxy closes the connection"),
    ],
)
def test_failed_socks_handshakes(script: list[tuple[bytes, bytes]], user: tuple[str, str] | None, words: str) -> None:
    response = run_real(run_handshake(script, "api", user))
    assert isinstance(response, OSError)
    assert words in str(response)
