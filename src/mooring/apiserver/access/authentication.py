"""Authentication: from a client certificate or a bearer token to a user.

Input: the client's certificate and the header `Authorization`. Output: a `User`; or `UnauthorizedError`.

    certificate with a name ────────────────────────────────> user, groups
        │ none
    bearer token ── token file ── service account ──────────> user, groups
        │ none                └── neither, or invalid ──────> 401
    no credentials ── anonymous allowed ────────────────────> system:anonymous
                  └── else ─────────────────────────────────> 401

1. An invalid token is 401 even if anonymous requests are allowed. A header without a bearer token is ignored.
2. The TLS handshake verified the certificate. Its expiry is checked at each request, because connections live long.
3. The client does not learn why authentication failed. A TokenReview may report it.
4. Of the tokens of a token file only the digests are kept: no log or traceback shows a token, and the time of a lookup
   reveals nothing about it.
5. As in kube-apiserver, columns of a token file after the fourth are ignored, a line without a token is skipped, and of
   two lines with the same token the later one counts. The last two cause a warning with the line.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from cryptography import x509
from cryptography.x509.oid import NameOID

from mooring.api.caches import BoundedCache
from mooring.apiserver.access.service_account_tokens import InvalidTokenError, ServiceAccountTokens
from mooring.client.errors import UnauthorizedError
from mooring.kit.clock import Clock
from mooring.serving.users import CREDENTIAL_KEY, MASTERS_GROUP, User, anonymous, authenticated

COLUMNS_MIN = 3
ADMIN = User("admin", "admin", (MASTERS_GROUP,))
"""The user of the token given on the command line."""

_log = logging.getLogger(__name__)


class TokenFileError(ValueError):
    """A token file cannot be read. The message has the line number, never the contents."""


class FixedTokens:
    """The users of the tokens in a token file. They are in the group `system:authenticated`."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {_digest(token): authenticated(user) for token, user in users.items()}

    def user_of(self, token: str) -> User | None:
        return self._users.get(_digest(token))

    def __len__(self) -> int:
        return len(self._users)

    def __repr__(self) -> str:
        return f"FixedTokens({len(self)})"


def parse_token_file(text: str, path: str) -> dict[str, User]:
    """The users of a token file, by token. Raises `TokenFileError`; `path` is for its text."""
    users: dict[str, User] = {}
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if not row:
                continue
            _check(row, rows.line_num, path)
            token, name, uid, *rest = row
            if not token:
                _log.warning("empty token in token file '%s', line %d", path, rows.line_num)
                continue
            if token in users:
                _log.warning("duplicate token in token file '%s', line %d", path, rows.line_num)
            users[token] = User(name, uid, tuple(rest[0].split(",")) if rest else ())
    except csv.Error as error:
        raise TokenFileError(f"token file '{path}', line {rows.line_num}: {error}") from None
    return users


def _check(row: list[str], line: int, path: str) -> None:
    if len(row) < COLUMNS_MIN:
        raise TokenFileError(
            f"token file '{path}', line {line}: must have at least {COLUMNS_MIN} columns "
            f"(token, user name, user uid), found {len(row)}"
        )


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


CERTIFICATES_REMEMBERED_MAX = 4_096
INVALID_TOKEN = "invalid bearer token"

_USER_UID_OID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")


@dataclass(frozen=True, slots=True)
class AuthenticationResult:
    """A user, and the audiences of the credential."""

    user: User
    audiences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _CertificateUser:
    user: User
    not_before_s: float
    not_after_s: float


class Authenticator:
    def __init__(
        self,
        clock: Clock,
        fixed_tokens: FixedTokens,
        account_tokens: ServiceAccountTokens,
        *,
        is_anonymous_allowed: bool,
    ) -> None:
        self._clock = clock
        self._fixed_tokens = fixed_tokens
        self._account_tokens = account_tokens
        self._is_anonymous_allowed = is_anonymous_allowed
        self._certificate_users: BoundedCache[bytes, _CertificateUser | None] = BoundedCache(
            CERTIFICATES_REMEMBERED_MAX
        )

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of this server. A token must be for one of them."""
        return self._account_tokens.audiences

    def authenticate(self, certificate: bytes | None, authorization: str | None) -> User:
        """The user of a request with this certificate (DER) and Authorization header. Raises `UnauthorizedError`."""
        user = self._certificate_user(certificate) if certificate else None
        if user is not None:
            return authenticated(user)
        token = bearer_token(authorization) if authorization else None
        if token is not None:
            try:
                return self.authenticate_token(token, self.audiences).user
            except InvalidTokenError:
                raise UnauthorizedError("Unauthorized") from None
        if self._is_anonymous_allowed:
            return anonymous()
        raise UnauthorizedError("Unauthorized")

    def authenticate_token(self, token: str, audiences: Sequence[str]) -> AuthenticationResult:
        """The user of a token that is valid for one of these audiences. Raises `InvalidTokenError`."""
        user = self._fixed_tokens.user_of(token)
        if user is not None:
            # A static token is valid for the audiences of this server only.
            shared = tuple(audience for audience in self.audiences if audience in audiences)
            if shared:
                return AuthenticationResult(user, shared)
        try:
            found = self._account_tokens.authenticate(token, audiences)
        except InvalidTokenError as error:
            raise InvalidTokenError(f"[{INVALID_TOKEN}, {error}]") from None
        if found is None:
            raise InvalidTokenError(INVALID_TOKEN)
        user, accepted = found
        return AuthenticationResult(authenticated(user), accepted)

    def _certificate_user(self, certificate: bytes) -> User | None:
        certified = self._certificate_users.get(certificate)
        if certified is None:
            certified = self._certificate_users.put(certificate, certificate_user(certificate))
        if certified is None:
            return None
        if not certified.not_before_s <= self._clock.wall_s() <= certified.not_after_s:
            raise UnauthorizedError("Unauthorized")
        return certified.user


def bearer_token(authorization: str) -> str | None:
    """The token in an `Authorization` header, if it holds one."""
    parts = authorization.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer" or not parts[1]:
        return None
    return parts[1]


def certificate_user(certificate: bytes) -> _CertificateUser | None:
    """The user of a certificate (DER): the common name is the user name, the organizations are the groups.

    None for one without a name. Raises `UnauthorizedError` for one with several uids.
    """
    parsed = x509.load_der_x509_certificate(certificate)
    names = _values(parsed.subject, NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None
    uids = _values(parsed.subject, _USER_UID_OID)
    if len(uids) > 1 or "" in uids:
        raise UnauthorizedError("Unauthorized")
    user = User(
        names[-1],
        uids[0] if uids else "",
        _values(parsed.subject, NameOID.ORGANIZATION_NAME),
        {CREDENTIAL_KEY: (f"X509SHA256={sha256(certificate).hexdigest()}",)},
    )
    return _CertificateUser(user, parsed.not_valid_before_utc.timestamp(), parsed.not_valid_after_utc.timestamp())


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(_text(attribute.value) for attribute in subject.get_attributes_for_oid(oid))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
