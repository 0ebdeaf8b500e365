"""TLS contexts for clients: which servers to trust, and which certificate to present.

Inputs: a connection, and the current client certificate. Output: an `ssl.SSLContext`.

1. The server is verified by the authorities of the connection, or else by those of the system, unless the connection
   turns verification off.
2. A connection resumes the TLS session of an earlier connection with the same context, and therefore with the same
   authority and certificate. This saves the server a signature and the client a verification, which is most of the cost
   of a connection. A server without the session does a full handshake.
3. The ssl module reads certificates from files only. A certificate in memory goes through a temporary file that only
   this user can read.
"""

from __future__ import annotations

import ssl
import tempfile

from mooring.client.http.connection import Certificate, Connection, CredentialsError


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
    """A context that accepts any server certificate and shows none."""
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
        _load_certificate(context, certificate)
    return context


def _load_authority(context: ssl.SSLContext, connection: Connection) -> None:
    try:
        context.load_verify_locations(cadata=connection.authority.decode())
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"the certificate authority of {connection.server} cannot be read: {error}") from None


def _load_certificate(context: ssl.SSLContext, certificate: Certificate) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.chain + b"\n" + certificate.key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_refuse_password)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"the client certificate or its key cannot be used: {error}") from None


def _refuse_password() -> str:
    # Without this, the ssl module would prompt at the terminal.
    raise ValueError("the key is protected by a password; expected an unencrypted key")
