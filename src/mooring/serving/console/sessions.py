"""Logins and sessions of the console.

    login token ── redeemed once, within LOGIN_S_MAX ──> session ── valid for SESSION_S_MAX ──> user

1. A token is 256 random bits. Only its digest is held, and a lookup by digest takes no time that reveals a token.
2. A login is redeemed once. A session is the user that the login was made for, and is authorized like that user.
3. At the limits the oldest login or session is dropped; at the limit of a user, the oldest of that user: a user who
   makes many does not end the sessions of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

from cryptography.fernet import Fernet

from mooring.kit.clock import Clock

LOGIN_S_MAX = 3_600.0
SESSION_S_MAX = 12 * 3_600.0
LOGINS_MAX = 100
SESSIONS_MAX = 100
OF_USER_MAX = 10
"""Logins, and sessions, of one user."""


class NamedAccount(Protocol):
    @property
    def name(self) -> str: ...


Account = TypeVar("Account", bound=NamedAccount)
"""How a server represents a user: `User` in the API server, `Caller` in other components."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Account]):
    user: Account
    end_s: float


class ConsoleSessions(Generic[Account]):
    """The open logins and sessions of one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logins: dict[bytes, _Entry[Account]] = {}
        self._sessions: dict[bytes, _Entry[Account]] = {}

    def new_login(self, user: Account) -> str:
        """A token that can be redeemed once for a session of the user."""
        return self._add(self._logins, LOGINS_MAX, user, LOGIN_S_MAX)

    def redeem(self, token: str) -> str | None:
        """The token of a new session; None if the login is unknown, redeemed or too old."""
        login = self._logins.pop(_digest(token), None)
        if login is None or login.end_s < self._clock.now_s():
            return None
        return self._add(self._sessions, SESSIONS_MAX, login.user, SESSION_S_MAX)

    def user_of(self, token: str) -> Account | None:
        """The user of a session; None if there is no such session, or it has expired."""
        session = self._sessions.get(_digest(token))
        return session.user if session is not None and self._clock.now_s() <= session.end_s else None

    def _add(self, entries: dict[bytes, _Entry[Account]], count_max: int, user: Account, valid_s: float) -> str:
        own = [digest for digest, entry in entries.items() if entry.user.name == user.name]
        if len(own) >= OF_USER_MAX:
            del entries[own[0]]
        elif len(entries) >= count_max:
            del entries[next(iter(entries))]
        token = new_token()
        entries[_digest(token)] = _Entry(user, self._clock.now_s() + valid_s)
        return token


def new_token() -> str:
    """Never from a seed: a token must not be predictable, not even in a simulation."""
    return Fernet.generate_key().decode("ascii").rstrip("=")


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
