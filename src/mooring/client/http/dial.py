"""New connections: name lookup, Unix sockets, proxies, TLS.

Inputs: a `Connection` with its proxy and the current client certificate, or a host and a port. Output: a connected
`HttpConnection`; or a `DialError` or `ConnectError` with the reason.

1. The addresses of a name are tried one after the other, `NEXT_ADDRESS_S` apart, without waiting for a failure.
2. An HTTPS server is reached through a tunnel (CONNECT). For an HTTP server, the proxy gets the whole URL. A SOCKS
   proxy connects to either.
3. A peer that disappears is detected after about a minute (`_KEEPALIVE`).

TLS contexts: which servers to trust, and which certificate to present.

4. The server is verified by the authorities of the connection, or else by those of the system, unless the connection
   turns verification off.
5. A connection resumes the TLS session of an earlier connection with the same context, and therefore with the same
   authority and certificate. This saves the server a signature and the client a verification, which is most of the cost
   of a connection. A server without the session does a full handshake.
6. The ssl module reads certificates from files only. A certificate in memory goes through a temporary file that only
   this user can read.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import aiohappyeyeballs

from mooring.client.http.connection import Certificate, Connection, CredentialsError, basic
from mooring.client.http.http_connection import ConnectionClosedError, HttpConnection
from mooring.client.http.proxy import SOCKS, connect_by_socks


class TlsError(ValueError):
    """The certificate authority of a connection cannot be used. Raised before anything is sent."""


class _ResumingContext(ssl.SSLContext):
    """A context whose connections resume the session of an earlier one."""

    def __init__(self, *_: object) -> None:
        self._last: dict[object, ssl.SSLObject] = {}  # by server name
        self._sessions: dict[object, ssl.SSLSession] = {}

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Event loops call this for each connection, without a session."""
        known = session or self._known_session(server_hostname)
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, known)
        self._last[server_hostname] = made
        return made

    def _known_session(self, server_hostname: object) -> ssl.SSLSession | None:
        # The ticket of a session arrives some time after the handshake, with the first answer. So the session of the
        # last connection is read as late as possible.
        last = self._last.get(server_hostname)
        if last is not None and last.version() is not None:  # otherwise the handshake is not complete
            session = last.session
            if session is not None and session.has_ticket:
                self._sessions[server_hostname] = session
        return self._sessions.get(server_hostname)


def unverified_tls() -> ssl.SSLContext:
    """A context that accepts any server certificate and presents none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def tls_context(connection: Connection, certificate: Certificate | None) -> ssl.SSLContext:
    """Raises `TlsError` for the authority of the connection, `CredentialsError` for the certificate."""
    context = _ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if connection.is_server_unverified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.authority:
        _load_authority(context, connection)
    else:
        context.load_default_certs()
    if certificate is not None:
        try:
            load_certificate(context, certificate.chain, certificate.key)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"the client certificate or its key cannot be used: {error}") from None
    return context


def _load_authority(context: ssl.SSLContext, connection: Connection) -> None:
    try:
        context.load_verify_locations(cadata=connection.authority.decode())
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"the certificate authority of {connection.server} cannot be read: {error}") from None


def load_certificate(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    """Show this certificate. Raises `SSLError` and `ValueError`."""
    # OpenSSL reads from files only. This one is private and removed after it was read.
    with tempfile.NamedTemporaryFile() as file:
        file.write(chain + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name, password=_refuse_password)


def _refuse_password() -> str:
    # Without this, the ssl module would prompt at the terminal.
    raise ValueError("the key is protected by a password; expected an unencrypted key")


UNTRUSTED = "the server cannot be trusted"
"""How the error of a server without a valid certificate begins."""
CONNECT_S_MAX = 30.0
NEXT_ADDRESS_S = 0.25

_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 60_000))
_PORTS = {"https": 443, "http": 80, **dict.fromkeys(SOCKS, 1080)}


class ConnectError(OSError):
    """No connection to an address. The text is the one that Go's `net` package has for it: people search for it."""

    def __init__(self, error: OSError, host: str, address: str) -> None:
        super().__init__(_connect_text(error, host, address))
        self.error = error


class DialError(OSError):
    """No connection to an API server. The text has the reason."""


class Dialler:
    """Opens connections to one server."""

    def __init__(self, connection: Connection, proxy: str) -> None:
        self._server = urlsplit(connection.server)
        self._unix_path = connection.unix_path
        self._proxy = urlsplit(proxy) if proxy and not self._unix_path else None
        self._is_secure = connection.is_secure
        self._server_name = connection.server_name or self._server.hostname or ""
        is_forwarding = self._proxy is not None and self._proxy.scheme not in SOCKS and not self._is_secure
        prefix = "" if self._unix_path else self._server.path.rstrip("/")
        self.target_start = f"{self._server.scheme}://{self.host}" * is_forwarding + prefix
        """The prefix of paths in the first line of a request."""
        self.proxy_authorization = _authorization(self._proxy) if is_forwarding and self._proxy else ""

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return "localhost" if self._unix_path else self._server.netloc.rpartition("@")[2]

    async def dial(self, security: ssl.SSLContext | None) -> HttpConnection:
        """Raises `DialError`."""
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                if self._unix_path:
                    return await connect_unix(self._unix_path)
                if self._proxy is None:
                    return await self._connect(self._server, security if self._is_secure else None, self._server_name)
                if self._proxy.scheme in SOCKS:
                    return await self._connect(
                        self._proxy, security if self._is_secure else None, self._server_name, socks_target=self._server
                    )
                return await self._connect_through(self._proxy, security)
        except DialError:
            raise
        except TimeoutError as error:
            raise DialError(f"cannot connect: no answer in {CONNECT_S_MAX:.0f} s") from error
        except OSError as error:
            cause = error.error if isinstance(error, ConnectError) else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise DialError(f"{UNTRUSTED}: {cause}") from cause
            raise DialError(f"cannot connect: {_reason(cause)}") from cause

    async def _connect(
        self, address: SplitResult, security: ssl.SSLContext | None, name: str, socks_target: SplitResult | None = None
    ) -> HttpConnection:
        async def open_tunnel(sock: socket.socket) -> None:
            if socks_target is not None:
                where = socks_target.hostname or "", socks_target.port or _PORTS[socks_target.scheme]
                await connect_by_socks(sock, *where, _user(address))

        port = address.port or _PORTS[address.scheme]
        return await connect(address.hostname or "", port, security, name, before_tls=open_tunnel)

    async def _connect_through(self, proxy: SplitResult, security: ssl.SSLContext | None) -> HttpConnection:
        wire = await self._connect(proxy, security if proxy.scheme == "https" else None, proxy.hostname or "")
        if not self._is_secure:
            return wire
        assert security is not None, "an HTTPS server without a TLS context"
        try:
            code = await wire.open_stream(self._tunnel_request(proxy))
            if code != 200:
                raise DialError(f"cannot connect: the proxy rejects a tunnel to {self._server.netloc} ({code})")
            await wire.start_tls(security, self._server_name)
        except BaseException:
            wire.abort()
            raise
        return wire

    def _tunnel_request(self, proxy: SplitResult) -> bytes:
        where = f"{self._server.hostname}:{self._server.port or _PORTS['https']}"
        lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}"]
        if authorization := _authorization(proxy):
            lines.append(f"Proxy-Authorization: {authorization}")
        return "\r\n".join([*lines, "", ""]).encode()


async def connect(
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
    server_name: str = "",
    *,
    timeout_s: float | None = None,
    before_tls: Callable[[socket.socket], Awaitable[None]] | None = None,
) -> HttpConnection:
    """Connect to a host, without a proxy. Raises `ConnectError`.

    `server_name` is the name that the server's certificate must bear; empty: the host.
    """
    loop = asyncio.get_running_loop()
    address = address_text(host, port)
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            address = address_text(str(found[0][4][0]), port)
            sock = await aiohappyeyeballs.start_connection(
                found, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1, socket_factory=_keepalive_socket
            )
            try:
                if before_tls is not None:
                    await before_tls(sock)
                _, wire = await loop.create_connection(
                    lambda: HttpConnection(loop),
                    sock=sock,
                    ssl=tls,
                    server_hostname=(server_name or host) if tls is not None else None,
                )
            except BaseException:
                sock.close()
                raise
            return wire
    except OSError as error:
        raise ConnectError(error, host, address) from error


async def connect_unix(path: str) -> HttpConnection:
    """Connect to a Unix socket. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_unix_connection(lambda: HttpConnection(loop), path)
    return wire


def address_text(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def exchange_error_text(error: OSError, address: str) -> str:
    """The error of a connection, with the message of Go's `net/http`."""
    if isinstance(error, ConnectError):
        return str(error)
    if isinstance(error, ssl.SSLError):
        return _tls_text(error)
    if isinstance(error, ConnectionClosedError):
        return "EOF"
    if error.errno:
        return f"read tcp {address}: read: {os.strerror(error.errno).lower()}"
    return str(error) or type(error).__name__


def _reason(error: OSError) -> str:
    # The text of asyncio and uvloop for a failed connect() can be "Connect call failed" and the address.
    if error.errno and not isinstance(error, socket.gaierror | ssl.SSLError):
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _connect_text(error: OSError, host: str, address: str) -> str:
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    if isinstance(error, ssl.SSLError):
        return _tls_text(error)
    if isinstance(error, TimeoutError) and not error.errno:
        return f"dial tcp {address}: i/o timeout"
    if error.errno:
        return f"dial tcp {address}: connect: {os.strerror(error.errno).lower()}"
    return f"dial tcp {address}: {error}"


def _tls_text(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {(error.reason or 'handshake failure').lower().replace('_', ' ')}"


def _authorization(proxy: SplitResult) -> str:
    user = _user(proxy)
    return basic(*user) if user is not None else ""


def _user(proxy: SplitResult) -> tuple[str, str] | None:
    """The user and the password in a URL."""
    return (unquote(proxy.username), unquote(proxy.password or "")) if proxy.username is not None else None


def _keepalive_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # not on every system
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
