"""SOCKS5: asking a proxy to connect a socket onwards (RFC 1928, with a name and a password as in RFC 1929).

Comes in   a socket that is connected to the proxy, and where to go from there
Goes out   the same socket, connected to that place; or an `OSError` that says why not

 1. Names are passed on as they are: what they mean is looked up at the other end, as Go does it for both `socks5` and
    `socks5h`.
 2. Not one byte more than the proxy's answer is read: what follows belongs to the server.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

VERSION = 5
OPEN, BY_PASSWORD = 0, 2
IPV4, NAME, IPV6 = 1, 3, 4

_REFUSALS = {
    1: "general SOCKS server failure",
    2: "connection not allowed by ruleset",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}


async def connect_onwards(joined: socket.socket, host: str, port: int, user: tuple[str, str] | None) -> None:
    """`user`: a name and a password, if the proxy may ask for them."""
    await _introduce(joined, user)
    await _send(joined, bytes((VERSION, 1, 0)) + _address(host) + port.to_bytes(2, "big"))
    _, code, _, kind = await _read(joined, 4)
    if code != 0:
        raise OSError(f"the SOCKS proxy refuses: {_REFUSALS.get(code, f'code {code}')}")
    # From where it connects, which is of no use to us.
    size = {IPV4: 4, IPV6: 16}.get(kind)
    await _read(joined, (size if size is not None else (await _read(joined, 1))[0]) + 2)


async def _introduce(joined: socket.socket, user: tuple[str, str] | None) -> None:
    ways = bytes((OPEN,) if user is None else (OPEN, BY_PASSWORD))
    await _send(joined, bytes((VERSION, len(ways))) + ways)
    version, way = await _read(joined, 2)
    if version != VERSION:
        raise OSError("the proxy does not speak SOCKS5")
    if way == OPEN:
        return
    if way != BY_PASSWORD or user is None:
        raise OSError("the SOCKS proxy wants to know who we are, in a way that we cannot tell")
    name, password = user
    await _send(joined, b"\x01" + _short(name) + _short(password))
    _, code = await _read(joined, 2)
    if code != 0:
        raise OSError("the SOCKS proxy does not know the name or the password")


def _address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        return bytes((NAME,)) + _short(host)
    return bytes((IPV4 if address.version == 4 else IPV6,)) + address.packed


def _short(words: str) -> bytes:
    data = words.encode()
    if len(data) > 255:
        raise OSError(f"{len(data)} bytes are too long for SOCKS: names and passwords have 255 at most")
    return bytes((len(data),)) + data


async def _send(joined: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(joined, data)


async def _read(joined: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    found = b""
    while len(found) < size:
        piece = await loop.sock_recv(joined, size - len(found))
        if not piece:
            raise OSError("the SOCKS proxy closed the connection")
        found += piece
    return found
