"""The logs of pods that run elsewhere: their kubelets are asked, as kube-apiserver asks them.

Comes in   a node, a pod, a container, which part of its log; the certificate that we show
Goes out   the bytes as the kubelet sends them; or a `StatusError`

 1. Whoever stops reading ends the connection to the kubelet: a log that is followed may be silent for days.
 2. A kubelet that breaks off ends the log, as kube-apiserver has it: the first bytes are out by then.
 3. A connection is for one log, with the certificate of the moment. They are too rare to be kept, and a kept one may be
    dead when it is needed.

The kubelet is not verified: most sign their certificates themselves, and kube-apiserver does not look either unless it
is told whom to trust.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from mooring.api.document import Document
from mooring.apiserver.kubelets.location import log_location
from mooring.apiserver.kubelets.words import redirected, refused, unreachable
from mooring.apiserver.registry.pod_log import LogOptions

if TYPE_CHECKING:
    import aiohttp

CONNECT_S_MAX = 30.0
REFUSAL_BYTES_MAX = 50_000

logger = logging.getLogger(__name__)


class KubeletLogs:
    """Asks kubelets for logs while inside of an `async with`."""

    def __init__(self, make_tls: Callable[[], ssl.SSLContext]) -> None:
        self._make_tls = make_tls
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def logs(self, node: Document, pod: Document, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Raises `StatusError` as long as there is nothing of the log."""
        location = log_location(node, pod, container, options)
        response = await self._get(location)
        if 200 <= response.status <= 206:
            return _pieces(response, location)
        try:
            if 300 <= response.status < 400:
                raise redirected(location)
            body = await response.content.read(REFUSAL_BYTES_MAX)
            raise refused(response.status, body, pod["metadata"]["name"])
        finally:
            _abandon(response)

    async def _get(self, location: str) -> aiohttp.ClientResponse:
        # Imported when somebody reads a log: a server is ready earlier.
        import aiohttp
        from yarl import URL

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S_MAX)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        try:
            return await self._session.get(URL(location, encoded=True), allow_redirects=False, ssl=self._make_tls())
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(location, error, await _address(location)) from error


def unverified_tls() -> ssl.SSLContext:
    """Trusts everybody, and shows nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _pieces(response: aiohttp.ClientResponse, location: str) -> AsyncIterator[bytes]:
    import aiohttp

    try:
        async for piece in response.content.iter_any():
            yield piece
    except (aiohttp.ClientError, OSError) as error:
        logger.info("%s broke off: %s", location, error)
    finally:
        _abandon(response)


def _abandon(response: aiohttp.ClientResponse) -> None:
    # Not politely: over TLS that would wait for a kubelet that has no reason to listen.
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


async def _address(location: str) -> str:
    """Where the first attempt to connect went."""
    parts = urlsplit(location)
    host, port = parts.hostname or "", parts.port or 0
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        host = str(found[0][4][0])
    except OSError:
        pass
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
