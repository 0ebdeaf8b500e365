"""Tokens that were agreed on beforehand: from a file, or one on the command line.

Comes in   a CSV text, `token,user,uid,"group1,group2"` a line
Goes out   `FixedTokens`: whose is this token?

 1. Tokens are not kept, only their digests. So no log and no traceback shows one; and how long a look-up takes tells
    nothing about a token, because nobody can choose the digest of a guess.
 2. As in the original: columns after the fourth are ignored, a line without a token is skipped, and of two lines with
    the same token the later one counts. The last two are told, by line.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Mapping
from hashlib import sha256

from mooring.apiserver.access.users import MASTERS_GROUP, User, authenticated

COLUMNS_MIN = 3
ADMIN = User("admin", "admin", (MASTERS_GROUP,))
"""Who comes with the one token of the command line."""

_log = logging.getLogger(__name__)


class TokenFileError(ValueError):
    """A token file cannot be read. Says which line, and never what stands there."""


class FixedTokens:
    """Whose token is it? Whoever shows one has proved something, and is in `system:authenticated`."""

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
