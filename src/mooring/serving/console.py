"""The web console on a secure port: logins, sessions, files and live data.

The API server (`apiserver.http.handler`) and the secure port of the scheduler (`serving.server`) use the same code.
Each authorizes the requests with its own authorizer.

    /console/login?token=…   exchanges a login token for a session cookie, once; the only path without authentication
    /console/link            a new login link for the user who requests it
    /console/data/live       live data: server-sent events
    /console/data/…          pages of the scheduler, as JSON
    /console/do/…            POST: pages of the scheduler that change something
    /console/…               the files of `mooring.console`

Logins and sessions:

    login token ── redeemed once, within LOGIN_S_MAX ──> session ── valid for SESSION_S_MAX ──> user

1. A token is 256 random bits. Only its digest is held, and a lookup by digest takes no time that reveals a token.
2. A login is redeemed once. A session is the user that the login was made for, and is authorized like that user.
3. At the limits the oldest login or session is dropped; at the limit of a user, the oldest of that user: a user who
   makes many does not end the sessions of others.

Requests:

4. The cookie of a session authenticates requests below /console/ and no others: no request that another site causes
   reaches the API with it. It is HttpOnly, Secure and SameSite=Strict.
5. A session authenticates GET, and POST only with the header `X-Mooring-Console` and the origin of this server: forms
   and scripts of other sites can send neither. A GET that a page of another origin causes has no session: SameSite
   does not stop another port of the same host. A login is a navigation of a tab, no image or frame of another page.
6. Requests are authorized by RBAC like those for other paths (`nonResourceURLs`). A session has the rights of the user
   that its login was made for, and cannot make another login.
7. The name of the cookie contains a random id of this server, because all ports of a host share their cookies.
8. Every response, whatever its code, has a Content-Security-Policy that allows scripts and styles of this server only:
   the server adds `headers_below(path)` where it sends responses.

Live data, one stream for each open page:

    GET /console/data/live?watch=overview&watch=nodes/version%3Flabel%3D…

    event: overview          each watched page below /console/data/, with its JSON, when it has changed
    data: {…}

    event: problem           a watched page that could not be answered: its path, the code and the message
    data: {"path": "node", "code": 404, "message": "…"}

9. A stream reads its pages once in `READ_INTERVAL_S`, each time authorized and masked like a single request. When a
   session or a permission ends, its data ends within that time.
10. A page that has not changed is not sent. After `HEARTBEAT_S` without an event the stream sends a comment.
11. The next data is read when the client has taken the last: a slow client skips states and needs no more memory than
    one state. A client that reads nothing is disconnected (`http.long_running`).
12. At most `STREAMS_MAX` streams are open, `STREAMS_OF_USER_MAX` of them of one user. Beyond that: 429. The server
    closes the generator of a stream when its connection ends, so that its place is free again at once.
13. Events are text. Of a table that is sent as bytes a stream has the version, and the client requests the bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from html import escape
from urllib.parse import parse_qs, unquote

from cryptography.fernet import Fernet

from mooring.console import INDEX, assets
from mooring.kit.clock import Clock
from mooring.serving.http.request import Request
from mooring.serving.pages import PageRequest, PageResponse, method_not_allowed, not_found, refused, text
from mooring.serving.users import User

LOGIN_S_MAX = 3_600.0
SESSION_S_MAX = 12 * 3_600.0
LOGINS_MAX = 100
SESSIONS_MAX = 100
OF_USER_MAX = 10
"""Logins, and sessions, of one user."""


@dataclass(frozen=True, slots=True)
class _Entry:
    user: User
    end_s: float


class ConsoleSessions:
    """The open logins and sessions of one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logins: dict[bytes, _Entry] = {}
        self._sessions: dict[bytes, _Entry] = {}

    def new_login(self, user: User) -> str:
        """A token that can be redeemed once for a session of the user."""
        return self._add(self._logins, LOGINS_MAX, user, LOGIN_S_MAX)

    def redeem(self, token: str) -> str | None:
        """The token of a new session; None if the login is unknown, redeemed or too old."""
        login = self._logins.pop(_digest(token), None)
        if login is None or login.end_s < self._clock.now_s():
            return None
        return self._add(self._sessions, SESSIONS_MAX, login.user, SESSION_S_MAX)

    def user_of(self, token: str) -> User | None:
        """The user of a session; None if there is no such session, or it has expired."""
        session = self._sessions.get(_digest(token))
        return session.user if session is not None and self._clock.now_s() <= session.end_s else None

    def _add(self, entries: dict[bytes, _Entry], count_max: int, user: User, valid_s: float) -> str:
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


ROOT = "/console/"
DATA = "/console/data/"
DO = "/console/do/"
LINK = "/console/link"
LIVE = "/console/data/live"
LOGIN = "/console/login"

PROOF = b"x-mooring-console"
"""A header that only scripts of this origin can set: another site's script would need permission by CORS."""
HTML = "text/html; charset=utf-8"
HEADERS = (
    ("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Mooring console</title>{head}
<body><main><h1>{title}</h1>{body}</main></body></html>
"""
_LOGGED_IN = _PAGE.format(
    # A redirect would be part of the navigation that another site may have begun, and SameSite=Strict cookies are not
    # sent with those. A refresh is a navigation of this page.
    # Without an icon, the browser requests /favicon.ico, and logs that it is forbidden.
    head=f'<meta http-equiv="refresh" content="0; url={ROOT}"><link rel="icon" href="{ROOT}icon.svg">',
    title="Logged in",
    body=f'<p><a href="{ROOT}">Open the console</a></p>',
).encode()


class ConsolePaths:
    """Serves the paths of the console."""

    def __init__(self, sessions: ConsoleSessions, new_link: str) -> None:
        """`new_link`: the command that prints another link."""
        self._sessions = sessions
        self._cookie = f"mooring_console_{new_token()[:12].replace('-', '_')}"
        advice = "<p>Open the link that was printed at the start. It can be used once. A new link:</p>"
        body = f"{advice}<pre>{escape(new_link)}</pre>"
        self._unauthorized = _PAGE.format(head="", title="Not logged in", body=body).encode()

    def session_user(self, request: Request) -> User | None:
        """The user of the session, if the request has the cookie of one and is a request that a session may make."""
        is_own = _is_own_post(request) or (request.method == "GET" and not _is_of_another_page(request))
        return self._user(request) if is_own else None

    def _is_forged(self, request: Request) -> bool:
        """Whether a request has nothing but the cookie of a session, and another site may have caused it."""
        if request.method != "POST" or _is_own_post(request) or request.has(b"authorization"):
            return False
        return self._user(request) is not None

    def _user(self, request: Request) -> User | None:
        token = _cookies(request.header(b"cookie")).get(self._cookie) if request.path.startswith(ROOT) else None
        return self._sessions.user_of(token) if token is not None else None

    def open_response(self, request: Request) -> PageResponse | None:
        """The response to a request that needs no authentication, or that another site may have caused; None for all
        other requests."""
        if request.path == ROOT.rstrip("/"):
            return PageResponse(b"", 301, "", headers=(("Location", ROOT),))
        if self._is_forged(request):
            return refused("this needs the header X-Mooring-Console and the Origin of this server")
        if request.path != LOGIN:
            return None
        if request.method != "GET":
            return method_not_allowed()
        if request.header(b"sec-fetch-dest") not in ("", "document"):
            return refused("open the link in a tab of a browser")
        session = self._sessions.redeem((request.query.get("token") or ("",))[0])
        if session is None:
            return self.unauthorized()
        attributes = f"Path={ROOT}; Max-Age={SESSION_S_MAX:.0f}; HttpOnly; Secure; SameSite=Strict"
        headers = (("Set-Cookie", f"{self._cookie}={session}; {attributes}"), ("Cache-Control", "no-store"))
        return PageResponse(_LOGGED_IN, 200, HTML, headers=headers)

    def response(self, path: str, request: Request, user: User) -> PageResponse:
        """The response to an authorized request for a file or a link."""
        if request.method != "GET":
            return method_not_allowed()
        return self._link(request, user) if path == LINK else _file(path, request)

    def unauthorized(self) -> PageResponse:
        """A page with instructions for the login."""
        return PageResponse(self._unauthorized, 401, HTML)

    def _link(self, request: Request, user: User) -> PageResponse:
        if self.session_user(request) is not None and not request.header(b"authorization"):
            return refused("a session of the console cannot make another login")
        token, host = self._sessions.new_login(user), request.header(b"host")
        link = text(f"https://{host}{LOGIN}?token={token}\n")
        return replace(link, headers=(("Cache-Control", "no-store"),))


def headers_below(path: str) -> tuple[tuple[str, str], ...]:
    """The headers of every response of the console; none for other paths."""
    return HEADERS if unquote(path).startswith(ROOT) or path == ROOT.rstrip("/") else ()


def _is_of_another_page(request: Request) -> bool:
    """Whether a page of another origin caused the request. Other clients than browsers send no such header."""
    return request.header(b"sec-fetch-site") not in ("", "none", "same-origin")


def _is_own_post(request: Request) -> bool:
    is_own = request.header(b"origin") == f"https://{request.header(b'host')}"
    return request.method == "POST" and is_own and bool(request.header(PROOF))


def _file(path: str, request: Request) -> PageResponse:
    asset = assets().get(path.removeprefix(ROOT) or INDEX)
    if asset is None:
        return not_found()
    # With `no-cache` the browser caches the file and revalidates it each time.
    headers = (("ETag", asset.etag), ("Cache-Control", "no-cache, private"))
    if asset.etag in request.header(b"if-none-match"):
        return PageResponse(b"", 304, "", headers=headers)
    return PageResponse(asset.body, 200, asset.content_type, headers=headers)


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}


READ_INTERVAL_S = 1.0
HEARTBEAT_S = 15.0
WATCHABLE = frozenset(("about", "learn", "node", "nodes/version", "overview", "past", "pod", "queue", "workloads"))
"""The parts that are cheap enough to be computed again each second."""
STREAMS_MAX = 64
STREAMS_OF_USER_MAX = 16
"""One user cannot take the places of all others."""
WATCHED_MAX = 8
"""Pages of one stream."""
STALLED_S_MAX = 60.0
"""How long a client may read nothing."""
EVENT_STREAM = "text/event-stream"
HEARTBEAT = b": heartbeat\n\n"

Answer = Callable[[PageRequest], Awaitable[PageResponse]]
"""Authorizes a request, answers and masks it."""


@dataclass(slots=True)
class _Watched:
    """One page of a stream."""

    path: str
    query: dict[str, list[str]]
    sent: bytes = b""
    """The digest of the last event."""


class LiveStreams:
    """The open streams of one server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open_of: Counter[str] = Counter()

    @property
    def open(self) -> int:
        return self._open_of.total()

    def response(self, request: PageRequest, answer: Answer, user: str) -> PageResponse:
        """The response to a request for a stream. The server sends it without waiting, so no other one is counted
        before it begins."""
        watched = [_watched(page) for page in request.query.get("watch", ())]
        if not 0 < len(watched) <= WATCHED_MAX:
            return text(f"watch: found {len(watched)} pages, expected 1 to {WATCHED_MAX}\n", 400)
        unknown = [page.path.removeprefix(DATA) for page in watched if page.path.removeprefix(DATA) not in WATCHABLE]
        if unknown:
            return text(f"watch: {unknown[0]!r} is none of {', '.join(sorted(WATCHABLE))}\n", 400)
        if self.open >= STREAMS_MAX:
            return text(f"{STREAMS_MAX} pages are open already; close one and try again\n", 429)
        if self._open_of[user] >= STREAMS_OF_USER_MAX:
            return text(f"you have {STREAMS_OF_USER_MAX} pages open already; close one and try again\n", 429)
        return PageResponse(b"", 200, EVENT_STREAM, stream=self._events(watched, answer, user))

    async def _events(self, watched: Sequence[_Watched], answer: Answer, user: str) -> AsyncGenerator[bytes, None]:
        self._open_of[user] += 1
        sent_s = self._clock.now_s()
        try:
            while True:
                for page in watched:
                    response = await answer(PageRequest("GET", page.path, page.query))
                    event = _event(page, response)
                    if event:
                        yield event
                        sent_s = self._clock.now_s()
                    if response.code == 401:  # the session is over
                        return
                if self._clock.now_s() - sent_s >= HEARTBEAT_S:
                    yield HEARTBEAT
                    sent_s = self._clock.now_s()
                await self._clock.wait(READ_INTERVAL_S)
        finally:
            self._open_of[user] -= 1
            if not self._open_of[user]:
                del self._open_of[user]


def _watched(text: str) -> _Watched:
    name, _, query = text.partition("?")
    return _Watched(f"{DATA}{name}", parse_qs(query, keep_blank_values=True))


def _event(watched: _Watched, response: PageResponse) -> bytes:
    """What the client does not have yet; empty if it has everything."""
    digest = blake2b(response.body, digest_size=16).digest()
    if digest == watched.sent:
        return b""
    watched.sent = digest
    name = watched.path.removeprefix(DATA)
    if response.code != 200:
        problem = {"path": name, "code": response.code, "message": response.body[:300].decode(errors="replace")}
        return b"event: problem\ndata: %b\n\n" % json.dumps(problem).encode()
    return b"event: %b\ndata: %b\n\n" % (name.encode(), response.body)
