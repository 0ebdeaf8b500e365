"""Logins and sessions of the console: lifetimes and limits."""

from __future__ import annotations

from mooring.kit.clock import VirtualClock
from mooring.serving.authentication import Caller
from mooring.serving.console.sessions import (
    LOGIN_S_MAX,
    LOGINS_MAX,
    OF_USER_MAX,
    SESSION_S_MAX,
    SESSIONS_MAX,
    ConsoleSessions,
)

ALICE = Caller("alice", groups=("team",))


def session_of(sessions: ConsoleSessions[Caller], user: Caller = ALICE) -> str:
    token = sessions.redeem(sessions.new_login(user))
    assert token is not None
    return token


def test_a_session_belongs_to_the_user_of_its_login() -> None:
    sessions = ConsoleSessions[Caller](VirtualClock())
    assert sessions.user_of(session_of(sessions)) is ALICE


def test_a_login_is_redeemed_once_and_is_not_a_session() -> None:
    sessions = ConsoleSessions[Caller](VirtualClock())
    login = sessions.new_login(ALICE)
    assert sessions.user_of(login) is None
    assert sessions.redeem(login) is not None
    assert sessions.redeem(login) is None
    assert sessions.redeem("") is None
    assert sessions.redeem(session_of(sessions)) is None


def test_logins_and_sessions_expire() -> None:
    clock = VirtualClock()
    sessions = ConsoleSessions[Caller](clock)
    session, login = session_of(sessions), sessions.new_login(ALICE)
    clock.advance_to(LOGIN_S_MAX + 1)
    assert sessions.redeem(login) is None
    clock.advance_to(SESSION_S_MAX)
    assert sessions.user_of(session) is not None
    clock.advance_to(SESSION_S_MAX + 1)
    assert sessions.user_of(session) is None


def test_at_the_limits_the_oldest_login_or_session_is_removed() -> None:
    sessions = ConsoleSessions[Caller](VirtualClock())
    tokens = [session_of(sessions, Caller(f"user-{number}")) for number in range(SESSIONS_MAX + 1)]
    assert [sessions.user_of(token) is not None for token in (tokens[0], tokens[1], tokens[-1])] == [False, True, True]
    logins = [sessions.new_login(Caller(f"user-{number}")) for number in range(LOGINS_MAX + 1)]
    assert [sessions.redeem(login) is not None for login in (logins[0], logins[1], logins[-1])] == [False, True, True]


def test_logins_of_one_user_do_not_end_sessions_of_others() -> None:
    sessions = ConsoleSessions[Caller](VirtualClock())
    session, login = session_of(sessions, Caller("bob")), sessions.new_login(Caller("bob"))
    # The same user with other credentials.
    tokens = [session_of(sessions, Caller("alice", extra={"id": [str(number)]})) for number in range(SESSIONS_MAX)]
    for _ in range(LOGINS_MAX):
        sessions.new_login(ALICE)
    assert sessions.user_of(session) is not None
    assert sessions.redeem(login) is not None
    assert sum(sessions.user_of(token) is not None for token in tokens) == OF_USER_MAX
