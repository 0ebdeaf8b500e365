"""Proxies between the client and a server: which one to use, and the SOCKS5 handshake (RFC 1928, RFC 1929).

Inputs: the address of the server and the environment; for SOCKS5, a socket that is connected to the proxy. Outputs: the
URL of the proxy, or an empty string; the socket, connected to the server.

1. The `proxy-url` of a kubeconfig takes precedence over the environment.
2. The environment is read as Go reads it: HTTPS_PROXY and HTTP_PROXY by the scheme of the server, and NO_PROXY with
   names, suffixes, addresses and networks (`10.0.0.0/8`). Loopback addresses never use a proxy.
3. A proxy speaks HTTP, HTTPS or SOCKS5.
4. A SOCKS5 proxy looks up host names, for both `socks5` and `socks5h`, as in Go.
5. The handshake reads only the proxy's answer: later bytes belong to the server.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

SOCKS = ("socks5", "socks5h")


def is_usable_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https", *SOCKS) and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that hold no IPv6 address, or a port that is none
        return False


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """The proxy for a server by the environment; empty: none."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = environment.get(name) or environment.get(name.lower()) or ""
    if not proxy or _is_loopback(host):
        return ""
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if any(_is_excepted(host, port, rule.strip().lower()) for rule in exceptions.split(",")):
        return ""
    return proxy if is_usable_proxy(proxy) else ""


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address is not None else host == "localhost"


def _is_excepted(host: str, port: int, rule: str) -> bool:
    if rule in ("", "*"):
        return rule == "*"
    address = _address(host)
    if "/" in rule:
        return address is not None and _is_in(address, rule)
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdecimal() and _address(rule) is None:
        if int(rule_port) != port:
            return False
        rule = name
    if address is not None:
        return address == _address(rule.strip("[]"))
    rule = rule.removeprefix("*")
    # `.example.com` matches subdomains only, `example.com` also itself.
    return host == rule or host.endswith(rule if rule.startswith(".") else f".{rule}")


def _is_in(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


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


async def connect_by_socks(sock: socket.socket, host: str, port: int, user: tuple[str, str] | None) -> None:
    """Ask the proxy to connect to a host. `user`: a name and a password for the proxy. Raises `OSError`."""
    await _authenticate(sock, user)
    await _send(sock, bytes((VERSION, 1, 0)) + _socks_address(host) + port.to_bytes(2, "big"))
    _, code, _, kind = await _read(sock, 4)
    if code != 0:
        raise OSError(f"the SOCKS proxy rejects the connection: {_REFUSALS.get(code, f'code {code}')}")
    # The address that the proxy connects from, which is not used.
    size = {IPV4: 4, IPV6: 16}.get(kind)
    await _read(sock, (size if size is not None else (await _read(sock, 1))[0]) + 2)


async def _authenticate(sock: socket.socket, user: tuple[str, str] | None) -> None:
    methods = bytes((OPEN,) if user is None else (OPEN, BY_PASSWORD))
    await _send(sock, bytes((VERSION, len(methods))) + methods)
    version, method = await _read(sock, 2)
    if version != VERSION:
        raise OSError("the proxy does not speak SOCKS5")
    if method == OPEN:
        return
    if method != BY_PASSWORD or user is None:
        raise OSError("the SOCKS proxy requires an authentication method that is not supported")
    name, password = user
    await _send(sock, b"\x01" + _with_length(name) + _with_length(password))
    _, code = await _read(sock, 2)
    if code != 0:
        raise OSError("the SOCKS proxy rejects the name or the password")


def _socks_address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        return bytes((NAME,)) + _with_length(host)
    return bytes((IPV4 if address.version == 4 else IPV6,)) + address.packed


def _with_length(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise OSError(f"{len(data)} bytes are too long for SOCKS: names and passwords have 255 at most")
    return bytes((len(data),)) + data


async def _send(sock: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, data)


async def _read(sock: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    found = b""
    while len(found) < size:
        piece = await loop.sock_recv(sock, size - len(found))
        if not piece:
            raise OSError("the SOCKS proxy closed the connection")
        found += piece
    return found
