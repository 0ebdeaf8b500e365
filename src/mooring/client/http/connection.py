"""How to reach one API server, and how to authenticate to it.

Inputs: a kubeconfig, the service account of a pod, or a test. Output: a `Connection`, which the transport uses.

1. A connection is a value. Tokens and certificates, which change with time, come from `Credentials`.
2. Identities are compared with `is`: another object means another token or certificate.
3. No `repr` contains a secret.
4. Credentials are not sent over plain HTTP, only over TLS and to a Unix socket.
5. `FileCredentials` reads its files at the first request, again every `REREAD_S`, and when the server rejects the
   identity. If a file cannot be read again, the last identity stays in use: a renewal may be half done. The first read
   must succeed.
6. A token file takes precedence over a token. The token is used while the file cannot be read.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mooring.client.errors import ClientError
from mooring.kit.clock import Clock


class CredentialsError(ClientError):
    """There are no credentials, so nothing was sent: a token cannot be read, or a plug-in failed."""

    can_help_to_retry = True


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate with its chain, and its key, both PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """The value of the Authorization header, a client certificate, both or neither."""

    authorization: str = field(default="", repr=False)
    certificate: Certificate | None = None


ANONYMOUS = Identity()
UNIX = "unix://"


class Credentials(Protocol):
    """The source of an identity."""

    def identity_nowait(self) -> Identity | None:
        """The current identity; None if it must be fetched."""
        ...

    async def wait_identity(self) -> Identity:
        """The current identity, fetched if necessary. Raises `CredentialsError`."""
        ...

    def reject(self, identity: Identity) -> bool:
        """The server rejected this identity (401). Returns whether another one is available."""
        ...


class StaticCredentials:
    """Always the same identity."""

    def __init__(self, identity: Identity = ANONYMOUS) -> None:
        self._identity = identity

    def identity_nowait(self) -> Identity | None:
        return self._identity

    async def wait_identity(self) -> Identity:
        return self._identity

    def reject(self, identity: Identity) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one API server."""

    server: str
    """`https://host:port`, optionally with a path prefix; or `unix:///path` of a Unix socket."""
    authority: bytes = b""
    """The certificate authorities (PEM) of the server; empty: those of the system."""
    is_server_unverified: bool = False
    server_name: str = ""
    """The name in the server's certificate, if it is not the host of `server`."""
    proxy: str = ""
    credentials: Credentials = field(default_factory=StaticCredentials)
    impersonation: Sequence[tuple[str, str]] = ()
    """The Impersonate-* headers."""
    namespace: str = ""
    """The namespace of the context or of the service account."""

    @property
    def is_secure(self) -> bool:
        """Whether the server is reached over TLS."""
        return self.server.startswith("https://")

    @property
    def unix_path(self) -> str:
        """The path of the server's Unix socket; empty if it has none."""
        return self.server.removeprefix(UNIX) if self.server.startswith(UNIX) else ""

    @property
    def is_private(self) -> bool:
        """Whether credentials may be sent."""
        return self.is_secure or self.server.startswith(UNIX)


REREAD_S = 50.0
"""A pod's token is valid for an hour and renewed well before; client-go has a similar period."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM data in a configuration, or in a file that the configuration names."""

    data: bytes = field(default=b"", repr=False)
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)

    def read(self) -> bytes:
        """Raises `OSError`."""
        return self.data or Path(self.path).read_bytes()


NO_PEM = Pem()


class FileCredentials:
    """An identity from files, which are read again for changes."""

    def __init__(
        self,
        clock: Clock,
        *,
        authorization: str = "",
        token: str = "",
        token_file: str = "",
        certificate: Pem = NO_PEM,
        key: Pem = NO_PEM,
    ) -> None:
        """`authorization` is used without a token."""
        self._clock = clock
        self._authorization = authorization
        self._token = token
        self._token_file = token_file
        self._certificate = certificate
        self._key = key
        self._identity: Identity | None = None
        self._reread_at_s = 0.0

    def identity_nowait(self) -> Identity | None:
        if self._identity is None or self._clock.now_s() >= self._reread_at_s:
            self._read()
        return self._identity

    async def wait_identity(self) -> Identity:
        identity = self.identity_nowait()
        assert identity is not None, "a successful read gave no identity"
        return identity

    def reject(self, identity: Identity) -> bool:
        if identity is self._identity:
            self._read()
        return identity is not self._identity

    def _read(self) -> None:
        self._reread_at_s = self._clock.now_s() + REREAD_S
        try:
            read = Identity(bearer(self._read_token()) or self._authorization, self._read_certificate())
        except OSError as error:
            if self._identity is None:
                raise CredentialsError(f"credentials cannot be read: {error}") from error
            logger.warning("credentials cannot be read again; the last ones stay in use: %s", error)
            return
        last = self._identity
        if last is None or (read.authorization, read.certificate) != (last.authorization, last.certificate):
            self._identity = read

    def _read_token(self) -> str:
        if not self._token_file:
            return self._token
        try:
            token = Path(self._token_file).read_text().strip()
        except OSError:
            if not self._token:
                raise
            return self._token
        if not token:
            raise OSError(f"{self._token_file} is empty; expected a token")
        return token

    def _read_certificate(self) -> Certificate | None:
        if not self._certificate:
            return None
        return Certificate(self._certificate.read(), self._key.read())


def bearer(token: str) -> str:
    """The Authorization header of a token; empty without a token."""
    return f"Bearer {token}" if token else ""


def basic(username: str, password: str) -> str:
    """The Authorization header of a user and a password."""
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"
