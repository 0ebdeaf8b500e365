"""HTTP requests to scheduler extenders: implements `Transport`.

Inputs: an extender, a verb, the body of a request. Output: the bytes of the answer; or an `ExtenderError` with the text
of kube-scheduler.

1. Each request has the time limit of its extender (`httpTimeout`, default 5 s), from connecting to the last byte.
2. Connections are reused, at most `CONNECTIONS_MAX` to one extender.
3. With `enableHTTPS` and no certificate authority the server is not verified, as in kube-scheduler. Otherwise it is
   verified, unless `insecure` is set.
4. An answer has at most `ANSWER_BYTES_MAX`.
5. `may_write` is checked immediately before each request is sent: a process that does not lead asks no extender.
6. Redirects are followed as Go follows them, at most `REDIRECTS_MAX`.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable, Iterable
from types import TracebackType

from mooring.client.http.dial import exchange_error_text
from mooring.client.http.exchange import REDIRECT_CODES, HttpUrl, connect_to, encode_request
from mooring.client.http.http_connection import HttpConnection, HttpResponse, ResponseTooLongError
from mooring.client.http.transport import ConnectionPool
from mooring.scheduler.config.types import ExtenderTLSConfig
from mooring.scheduler.extenders.extender import Extender, ExtenderError

CONNECTIONS_MAX = 100
REDIRECTS_MAX = 10
ANSWER_BYTES_MAX = 64 << 20
"""An extender without a node cache of its own answers with whole nodes: 5,000 of them take about 50 MB."""

_HEADERS = (("Accept", "*/*"), ("Content-Type", "application/json"))
_SAME_METHOD_CODES = (307, 308)


class ExtenderTLSError(ValueError):
    """The TLS settings of an extender cannot work. Raised when the scheduler starts."""

    def __init__(self, extender: Extender, text: str) -> None:
        super().__init__(f"extender {extender.name}: tlsConfig: {text}")


class ExtenderTransport:
    """Sends requests to extenders over HTTP. A context manager: leaving it closes the connections."""

    def __init__(self, extenders: Iterable[Extender], may_write: Callable[[], bool] | None = None) -> None:
        self._may_write = may_write
        self._tls = {extender.name: tls_of(extender) for extender in extenders}
        self._pools: dict[tuple[str, bool, str], ConnectionPool] = {}

    async def __aenter__(self) -> ExtenderTransport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    async def send(self, extender: Extender, verb: str, body: bytes) -> bytes:
        """The answer of an extender. Raises `ExtenderError`."""
        text = extender.url(verb)
        try:
            url = HttpUrl.parse(text)
        except ValueError as error:
            raise ExtenderError(f'Post "{text}": {error}') from error
        try:
            async with asyncio.timeout(extender.settings.http_timeout_s or None):
                answer = await self._post(extender, url, body)
        except ExtenderError:
            raise
        except ResponseTooLongError as error:
            raise ExtenderError(
                f"extender at URL {text} answers {verb} with more than {ANSWER_BYTES_MAX} bytes"
            ) from error
        except TimeoutError as error:
            raise ExtenderError(
                f'Post "{text}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            ) from error
        except OSError as error:
            raise ExtenderError(f'Post "{text}": {exchange_error_text(error, url.address)}') from error
        except ValueError as error:
            raise ExtenderError(f'Post "{text}": {error}') from error
        if answer.code != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {text}, code {answer.code}")
        return answer.body

    async def _post(self, extender: Extender, url: HttpUrl, body: bytes) -> HttpResponse:
        request = encode_request("POST", url, _HEADERS, body)
        for _ in range(REDIRECTS_MAX):
            answer = await self._exchange(extender, url, request)
            location = answer.headers.get("Location") if answer.code in REDIRECT_CODES else None
            if not location:
                return answer
            url = url.join(location)
            if answer.code in _SAME_METHOD_CODES:
                request = encode_request("POST", url, _HEADERS, body)
            else:
                request = encode_request("GET", url, _HEADERS[:1])
        raise ValueError(f"stopped after {REDIRECTS_MAX} redirects")

    async def _exchange(self, extender: Extender, url: HttpUrl, request: bytes) -> HttpResponse:
        pool = self._pool(extender, url)
        wire = pool.take_nowait() or await pool.take()
        try:
            if self._may_write is not None and not self._may_write():
                raise ExtenderError("this process does not lead any more: nothing was sent")
            return await wire.send(request, body_bytes_max=ANSWER_BYTES_MAX)
        finally:
            pool.give_back(wire)

    def _pool(self, extender: Extender, url: HttpUrl) -> ConnectionPool:
        key = extender.name, url.is_secure, url.address
        if key not in self._pools:
            tls_config = extender.settings.tls_config
            server_name = tls_config.server_name if tls_config is not None else ""
            tls = self._tls.get(extender.name) if url.is_secure else None
            if url.is_secure and tls is None:
                tls = ssl.create_default_context()

            async def dial() -> HttpConnection:
                return await connect_to(url, tls, server_name or "")

            # `send` has the time limit.
            self._pools[key] = ConnectionPool(dial, wires_max=CONNECTIONS_MAX, request_s_max=None)
        return self._pools[key]


def tls_of(extender: Extender) -> ssl.SSLContext | None:
    """The TLS context of an extender; None: the default one, which trusts the authorities of the system."""
    settings = extender.settings
    tls = settings.tls_config or ExtenderTLSConfig()
    has_authority = bool(tls.ca_data or tls.ca_file)
    is_insecure = tls.insecure or (settings.enable_https and not has_authority)
    if is_insecure and has_authority:
        raise ExtenderTLSError(extender, "specifying a root certificates file with the insecure flag is not allowed")
    if not (has_authority or is_insecure or _has_certificate(extender, tls)):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if has_authority else ssl.create_default_context()
    try:
        if tls.ca_data:
            context.load_verify_locations(cadata=tls.ca_data.decode())
        elif tls.ca_file:
            context.load_verify_locations(cafile=tls.ca_file)
        if _has_certificate(extender, tls):
            _load_certificate(context, tls)
    except (OSError, ValueError) as error:
        raise ExtenderTLSError(extender, f"a certificate or key cannot be read: {error}") from error
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _has_certificate(extender: Extender, tls: ExtenderTLSConfig) -> bool:
    has_certificate, has_key = bool(tls.cert_data or tls.cert_file), bool(tls.key_data or tls.key_file)
    if has_certificate and not has_key:
        raise ExtenderTLSError(extender, "there is a client certificate but no key: set keyFile or keyData")
    if has_key and not has_certificate:
        raise ExtenderTLSError(extender, "there is a client key but no certificate: set certFile or certData")
    return has_certificate


def _load_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    # The ssl module reads certificates from files only. Data from the configuration goes through temporary files.
    with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
        certificate.write(tls.cert_data)
        certificate.flush()
        key.write(tls.key_data)
        key.flush()
        certificate_file = certificate.name if tls.cert_data else tls.cert_file
        context.load_cert_chain(certificate_file, key.name if tls.key_data else tls.key_file)
