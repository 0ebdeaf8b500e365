"""A connection: where an API server is, how it proves who it is, and how we prove who we are.

Comes in   from a kubeconfig, from the pod that we run in, or from a test
Goes out   to the transport, which opens sockets by it

 1. A connection is a value. What changes with time (a token, a certificate) stands behind `Credentials`.
 2. An identity is compared with `is`: another object means that tokens and certificates must be taken anew.
 3. Secrets are in no `repr`.
 4. Nobody shows who he is on a connection that everybody can read: over plain HTTP the credentials are not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mooring.client.errors import ClientError


class CredentialsError(ClientError):
    """We cannot say who we are, so nothing was sent: a token cannot be read, a plug-in failed."""

    can_help_to_retry = True


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate with its chain and its key, both PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """Who we are: the value of the Authorization header, a certificate, both or nothing."""

    authorization: str = field(default="", repr=False)
    certificate: Certificate | None = None


ANONYMOUS = Identity()


class Credentials(Protocol):
    """Where an identity comes from."""

    def identity_nowait(self) -> Identity | None:
        """The identity, if it is at hand and still good."""
        ...

    async def wait_identity(self) -> Identity:
        """The identity, fetched if need be. Raises `CredentialsError`."""
        ...

    def reject(self, identity: Identity) -> bool:
        """The server does not know this identity (401). Whether it is worth asking for another one."""
        ...


class FixedCredentials:
    """The same identity for ever."""

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
    """`https://host:port`, perhaps with a path in front of all others."""
    authority: bytes = b""
    """The certificates (PEM) that vouch for the server; none: those of the system."""
    is_server_unverified: bool = False
    server_name: str = ""
    """The name that the server's certificate bears, if it is not the address's."""
    proxy: str = ""
    credentials: Credentials = field(default_factory=FixedCredentials)
    impersonation: Sequence[tuple[str, str]] = ()
    """Headers that say in whose name we act."""
    namespace: str = ""
    """Where our own objects live, as the context or the service account says."""

    @property
    def is_secure(self) -> bool:
        return self.server.startswith("https://")
