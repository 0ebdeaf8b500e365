"""TLS towards the API server: whom we trust, and the certificate that we show.

Comes in   a connection, and the client certificate of the moment
Goes out   an `ssl.SSLContext`

 1. The server is verified, by the authorities of the connection or else of the system, unless the connection says not
    to.
 2. Whom we spoke to before we greet in short: a connection takes up the session of an earlier one of the same context,
    so of the same authority and certificate. It spares the server a signature and us a verification, which is most of
    what a connection costs. A server that does not remember greets in full.
 3. The library reads certificates from files only: what is in memory makes a short visit to a file that nobody else can
    read.
"""

from __future__ import annotations

import ssl
import tempfile

from mooring.client.http.connection import Certificate, Connection, CredentialsError


class TlsError(ValueError):
    """The authority of a connection cannot be used: told before anything is sent."""


class _ResumingContext(ssl.SSLContext):
    """A context whose connections take up the session of an earlier one."""

    def __init__(self, *_: object) -> None:
        self._last: dict[object, ssl.SSLObject] = {}  # by the name of the server
        self._sessions: dict[object, ssl.SSLSession] = {}

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Event loops call it for each connection, and have no session to give."""
        known = session or self._known_session(server_hostname)
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, known)
        self._last[server_hostname] = made
        return made

    def _known_session(self, server_hostname: object) -> ssl.SSLSession | None:
        # A session gets its ticket some time after the greeting, with the first answer: so the last connection is
        # asked for it as late as possible, which is now.
        last = self._last.get(server_hostname)
        if last is not None and last.version() is not None:  # else it is still being greeted, and has none
            session = last.session
            if session is not None and session.has_ticket:
                self._sessions[server_hostname] = session
        return self._sessions.get(server_hostname)


def unverified_tls() -> ssl.SSLContext:
    """A context that accepts any server certificate and shows none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def tls_context(connection: Connection, certificate: Certificate | None) -> ssl.SSLContext:
    """Raises `TlsError` for what the connection says, `CredentialsError` for the certificate."""
    context = _ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if connection.is_server_unverified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.authority:
        _trust(context, connection)
    else:
        context.load_default_certs()
    if certificate is not None:
        _show(context, certificate)
    return context


def _trust(context: ssl.SSLContext, connection: Connection) -> None:
    try:
        context.load_verify_locations(cadata=connection.authority.decode())
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"the certificate authority of {connection.server} cannot be read: {error}") from None


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.chain + b"\n" + certificate.key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_refuse_password)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"the client certificate or its key cannot be used: {error}") from None


def _refuse_password() -> str:
    # Without this the library would ask a person at the terminal.
    raise ValueError("the key is protected by a password; wanted a plain one")
