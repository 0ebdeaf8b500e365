"""HTTP requests to servers other than an API server: scheduler extenders, containers (probes) and kubelets.

Inputs: a URL, headers, a body, a TLS context. Output: an answer that is read as it arrives; or an `OSError`, whose text
`exchange_error_text` gives with the message of Go's `net/http`.

1. No proxy is used.
2. A request accepts no compression unless the caller sends `Accept-Encoding`; see ADR 15.
3. A redirect is not followed here: `HttpUrl.join` gives the caller the next URL.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, unquote, urljoin, urlsplit

from mooring.client.http.connection import basic
from mooring.client.http.dial import address_text, connect
from mooring.client.http.http_connection import HttpConnection
from mooring.client.http.transport import HttpStream, user_agent

REDIRECT_CODES = (301, 302, 303, 307, 308)

_DEFAULT_PORTS = {"http": 80, "https": 443}
_PATH_SAFE = "/%:@!$&'()*+,;=~[]"
_QUERY_SAFE = _PATH_SAFE + "?"


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """An absolute URL of the scheme http or https, taken apart."""

    text: str
    is_secure: bool
    host: str
    port: int
    host_header: str
    target: str
    """Path and query, quoted as the first line of a request needs it."""
    authorization: str
    """The Authorization header of the user and password in the URL; empty: none."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `ValueError`."""
        parts = urlsplit(text)
        if parts.scheme not in _DEFAULT_PORTS:
            raise ValueError(f'unsupported protocol scheme "{parts.scheme}"')
        host = parts.hostname or ""
        if not host or not host.isprintable() or any(letter in host for letter in "[] "):
            raise ValueError("invalid host in the URL" if host else "no Host in request URL")
        query = f"?{quote(parts.query, safe=_QUERY_SAFE)}" if parts.query else ""
        has_user = parts.username is not None
        return cls(
            text=text,
            is_secure=parts.scheme == "https",
            host=host,
            port=parts.port or _DEFAULT_PORTS[parts.scheme],
            host_header=parts.netloc.rpartition("@")[2],
            target=(quote(parts.path, safe=_PATH_SAFE) or "/") + query,
            authorization=basic(unquote(parts.username or ""), unquote(parts.password or "")) if has_user else "",
        )

    @property
    def address(self) -> str:
        return address_text(self.host, self.port)

    def join(self, location: str) -> Self:
        """The URL that a redirect from this one names. Raises `ValueError`."""
        return self.parse(urljoin(self.text, location))


async def connect_to(
    url: HttpUrl, tls: ssl.SSLContext | None, server_name: str = "", *, timeout_s: float | None = None
) -> HttpConnection:
    """Connect to the server of a URL. `tls` is used if the URL's scheme is https. Raises `ConnectError`."""
    return await connect(url.host, url.port, tls if url.is_secure else None, server_name, timeout_s=timeout_s)


async def open_get(
    url: HttpUrl, headers: Iterable[tuple[str, str]], tls: ssl.SSLContext, *, connect_s_max: float | None = None
) -> HttpStream:
    """Send a GET on a connection of its own. The caller closes the stream. Raises `OSError` and `ValueError`."""
    request = encode_request("GET", url, headers)
    wire = await connect_to(url, tls, timeout_s=connect_s_max)
    try:
        return HttpStream(wire, await wire.open_stream(request))
    except BaseException:
        wire.abort()
        raise


def encode_request(method: str, url: HttpUrl, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> bytes:
    """A request as bytes. Headers of the caller replace the default Host, User-Agent and Authorization.

    Raises `ValueError` for a header that would break the request apart.
    """
    given = list(headers)
    names = {name.lower() for name, _ in given}
    defaults = [("Host", url.host_header), ("User-Agent", user_agent())]
    if url.authorization:
        defaults.append(("Authorization", url.authorization))
    lines = [f"{method} {url.target} HTTP/1.1"]
    for name, value in [default for default in defaults if default[0].lower() not in names] + given:
        if not name or not (name + value).isprintable():
            raise ValueError(f'net/http: invalid header field value for "{name}"')
        lines.append(f"{name}: {value}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")
