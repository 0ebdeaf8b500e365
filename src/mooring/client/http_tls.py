"""TLS towards the API server: whom we trust, and the certificate that we show.

Comes in   a connection, and the client certificate of the moment
Goes out   an `ssl.SSLContext`

 1. The server is verified, by the authorities of the connection or else of the system, unless the connection says not
    to.
 2. The library reads certificates from files only: what is in memory makes a short visit to a file that nobody else can
    read.
"""

from __future__ import annotations

import ssl
import tempfile

from mooring.client.http_connection import Certificate, Connection, CredentialsError


class TlsError(ValueError):
    """The authority of a connection cannot be used: told before anything is sent."""


def tls_context(connection: Connection, certificate: Certificate | None) -> ssl.SSLContext:
    """Raises `TlsError` for what the connection says, `CredentialsError` for the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
