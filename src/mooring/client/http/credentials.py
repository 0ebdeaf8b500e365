"""Credentials in files: tokens and certificates that somebody else renews while we run.

Comes in   paths, or values that need no file
Goes out   an `Identity`, a new one whenever a file says something new

 1. Files are read at the first question and again every `REREAD_S`, or at once when the server rejected what they said.
 2. A file that cannot be read any more leaves the last identity in force: a renewal may be half done. The first read
    must succeed.
 3. Of a token and a token file the file wins; the token serves while the file cannot be read.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

from mooring.client.http.connection import Certificate, CredentialsError, Identity
from mooring.kit.clock import Clock

REREAD_S = 50.0
"""A token lives for an hour in a pod and is renewed well before its end; client-go looks as often."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pem:
    """Something that stands in a configuration, or in a file that it names."""

    data: bytes = field(default=b"", repr=False)
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)

    def read(self) -> bytes:
        """Raises `OSError`."""
        return self.data or Path(self.path).read_bytes()


NO_PEM = Pem()


class FileCredentials:
    """An identity put together from files, watched for changes."""

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
        """`authorization` serves who has no token."""
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
        assert identity is not None, "a read that did not fail gave no identity"
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
            logger.warning("credentials cannot be read again, the last ones stay in force: %s", error)
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
            raise OSError(f"{self._token_file} is empty; wanted a token")
        return token

    def _read_certificate(self) -> Certificate | None:
        if not self._certificate:
            return None
        return Certificate(self._certificate.read(), self._key.read())


def bearer(token: str) -> str:
    """The Authorization header of a token; nothing for none."""
    return f"Bearer {token}" if token else ""


def basic(username: str, password: str) -> str:
    """The Authorization header of a name and a password."""
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"
