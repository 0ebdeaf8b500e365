"""Asking extenders over HTTP.

Comes in   an extender, a verb, the body of a question
Goes out   the bytes of the answer, or `ExtenderError` with kube-scheduler's words for what went wrong

 1. Each request has the extender's own time limit (`httpTimeout`, 5 s unless set), from the first byte to the last.
 2. Connections are kept and used again, at most `CONNECTIONS_MAX` to one extender.
 3. With `enableHTTPS` and no certificate authority the server is not verified, as in kube-scheduler. Otherwise it is,
    unless `insecure` says not to.
 4. An answer has at most `ANSWER_BYTES_MAX`.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterable
from types import TracebackType

import aiohttp

from mooring.scheduler.config.types import ExtenderTLSConfig
from mooring.scheduler.extenders.extender import Extender
from mooring.scheduler.extenders.transport import ExtenderError

CONNECTIONS_MAX = 100
ANSWER_BYTES_MAX = 64 << 20
"""Whole nodes come back from an extender that keeps none of its own: 5,000 of them take some 50 MB."""
_CHUNK_BYTES = 1 << 16


class ExtenderTLSError(ValueError):
    """The TLS settings of an extender cannot work: told when the scheduler starts."""

    def __init__(self, extender: Extender, text: str) -> None:
        super().__init__(f"extender {extender.name}: tlsConfig: {text}")


class HttpTransport:
    """A way to extenders over HTTP. A context manager: leaving it closes the connections."""

    def __init__(self, extenders: Iterable[Extender]) -> None:
        self._security = {extender.name: security_of(extender) for extender in extenders}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> HttpTransport:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, extender: Extender, verb: str, body: bytes) -> bytes:
        """The answer to a question, or `ExtenderError`."""
        url = extender.url(verb)
        try:
            return await self._post(extender, verb, url, body)
        except TimeoutError as error:
            raise ExtenderError(
                f'Post "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            ) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise ExtenderError(f'Post "{url}": {error}') from error

    async def _post(self, extender: Extender, verb: str, url: str, body: bytes) -> bytes:
        tls = extender.settings.tls_config
        request = self._open_session().post(
            url,
            data=body,
            headers={"Content-Type": "application/json"},
            timeout=aiohttp.ClientTimeout(total=extender.settings.http_timeout_s),
            ssl=self._security.get(extender.name, True),
            server_hostname=(tls.server_name or None) if tls is not None else None,
        )
        async with request as response:
            if response.status != 200:
                raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
            answer = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                answer += chunk
                if len(answer) > ANSWER_BYTES_MAX:
                    raise ExtenderError(f"extender at URL {url} answers {verb} with more than {ANSWER_BYTES_MAX} bytes")
            return bytes(answer)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit_per_host=CONNECTIONS_MAX),
                auto_decompress=True,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def security_of(extender: Extender) -> ssl.SSLContext | bool:
    """How the server is verified, and how we show who we are; True: as any server, by the system's authorities."""
    settings = extender.settings
    tls = settings.tls_config or ExtenderTLSConfig()
    has_authority = bool(tls.ca_data or tls.ca_file)
    is_insecure = tls.insecure or (settings.enable_https and not has_authority)
    if is_insecure and has_authority:
        raise ExtenderTLSError(extender, "specifying a root certificates file with the insecure flag is not allowed")
    if not (has_authority or is_insecure or _has_certificate(extender, tls)):
        return True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if has_authority else ssl.create_default_context()
    try:
        if tls.ca_data:
            context.load_verify_locations(cadata=tls.ca_data.decode())
        elif tls.ca_file:
            context.load_verify_locations(cafile=tls.ca_file)
        if _has_certificate(extender, tls):
            _show_certificate(context, tls)
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


def _show_certificate(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    # The library reads certificates from files only; data in the configuration makes a short visit to one.
    with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
        certificate.write(tls.cert_data)
        certificate.flush()
        key.write(tls.key_data)
        key.flush()
        certificate_file = certificate.name if tls.cert_data else tls.cert_file
        context.load_cert_chain(certificate_file, key.name if tls.key_data else tls.key_file)
