"""The paths of the web console, below /console/.

    /console/login?token=…   exchanges a login token for a session cookie, once; the only path without authentication
    /console/link            a new login link for the user who requests it
    /console/data/…          pages of the scheduler, as JSON (`ApiServer.component_pages`); POST plans, all others GET
    /console/…               the files of `mooring.console`

1. The cookie of a session authenticates requests below /console/, and no other request: no request that another
   site causes reaches the API with it. It is HttpOnly, Secure and SameSite=Strict. A request that is no GET also needs
   the header `X-Mooring-Console`, which no form of another site can send, and an Origin that is this server.
2. Requests are authorized by RBAC like those for other paths (`nonResourceURLs`). A session has the rights of the user
   that its login was made for, and cannot make another login.
3. The name of the cookie contains a random id of this server, because all ports of a host share their cookies.
4. Every response has a Content-Security-Policy that allows scripts and styles of this server only.
"""

from __future__ import annotations

from dataclasses import replace

from mooring.apiserver.access.console_sessions import SESSION_S_MAX, ConsoleSessions, new_token
from mooring.apiserver.access.users import User
from mooring.apiserver.http.reply import Reply, page_not_found, text_reply
from mooring.apiserver.http.request import Incoming
from mooring.apiserver.registry.errors import method_not_allowed
from mooring.client.errors import ForbiddenError
from mooring.console import INDEX, assets

ROOT = "/console/"
DATA = "/console/data/"
LINK = "/console/link"
LOGIN = "/console/login"

CSRF_HEADER = b"x-mooring-console"
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
<body><h1>{title}</h1>{body}</body></html>
"""
_UNAUTHORIZED = _PAGE.format(
    head="",
    title="Not logged in",
    body="<p>Open the link that <code>mooring up</code> prints. It can be used once. A new link:</p>"
    "<pre>kubectl get --raw /console/link</pre>",
).encode()
_LOGGED_IN = _PAGE.format(
    # A redirect would be part of the navigation that another site may have begun, and SameSite=Strict cookies are not
    # sent with those. A refresh is a navigation of this page.
    # Without an icon of its own, the browser asks for /favicon.ico, and logs that it may not have it.
    head=f'<meta http-equiv="refresh" content="0; url={ROOT}"><link rel="icon" href="{ROOT}icon.svg">',
    title="Logged in",
    body=f'<p><a href="{ROOT}">Open the console</a></p>',
).encode()


class ConsolePaths:
    """Answers for the paths of the console."""

    def __init__(self, sessions: ConsoleSessions) -> None:
        self._sessions = sessions
        self._cookie = f"mooring_console_{new_token()[:12].replace('-', '_')}"

    def session_user(self, incoming: Incoming) -> User | None:
        """The user of the session, if the request has the cookie of one and is a request that a session may make."""
        if not incoming.path.startswith(ROOT):
            return None
        token = _cookies(incoming.header(b"cookie")).get(self._cookie)
        user = self._sessions.user_of(token) if token is not None else None
        if user is not None and incoming.method != "GET":
            _require_own_page(incoming)
        return user

    def open_reply(self, incoming: Incoming) -> Reply | None:
        """The reply to a request that needs no authentication; None for all other requests."""
        if incoming.path == ROOT.rstrip("/"):
            return _with_headers(Reply(301, b"", "", [("Location", ROOT)]))
        if incoming.path != LOGIN:
            return None
        if incoming.method != "GET":
            raise method_not_allowed()
        session = self._sessions.redeem(incoming.query.text("token"))
        if session is None:
            return unauthorized_reply()
        attributes = f"Path={ROOT}; Max-Age={SESSION_S_MAX:.0f}; HttpOnly; Secure; SameSite=Strict"
        cookie = ("Set-Cookie", f"{self._cookie}={session}; {attributes}")
        return _with_headers(Reply(200, _LOGGED_IN, HTML, [cookie, ("Cache-Control", "no-store")]))

    def reply(self, path: str, incoming: Incoming, user: User) -> Reply:
        """The reply to an authorized request for a file or a link."""
        if incoming.method != "GET":
            raise method_not_allowed()
        return _with_headers(self._link(incoming, user) if path == LINK else _file(path, incoming))

    def _link(self, incoming: Incoming, user: User) -> Reply:
        if self.session_user(incoming) is not None and not incoming.header(b"authorization"):
            raise ForbiddenError("a session of the console cannot make another login")
        token, host = self._sessions.new_login(user), incoming.header(b"host")
        reply = text_reply(200, f"https://{host}{LOGIN}?token={token}\n")
        return replace(reply, headers=[("Cache-Control", "no-store")])


def data_reply(reply: Reply) -> Reply:
    """A page of the scheduler with the headers of the console."""
    return _with_headers(reply)


def unauthorized_reply() -> Reply:
    return _with_headers(Reply(401, _UNAUTHORIZED, HTML))


def _file(path: str, incoming: Incoming) -> Reply:
    asset = assets().get(path.removeprefix(ROOT) or INDEX)
    if asset is None:
        return page_not_found()
    # `no-cache` lets the browser keep the file and asks each time whether it is still the same.
    headers = [("ETag", asset.etag), ("Cache-Control", "no-cache, private")]
    if asset.etag in incoming.header(b"if-none-match"):
        return Reply(304, b"", "", headers)
    return Reply(200, asset.body, asset.content_type, headers)


def _with_headers(reply: Reply) -> Reply:
    reply.headers += HEADERS
    return reply


def _require_own_page(incoming: Incoming) -> None:
    """Raises if another site may have caused the request."""
    origin = incoming.header(b"origin")
    if not incoming.header(CSRF_HEADER) or origin != f"https://{incoming.header(b'host')}":
        raise ForbiddenError("wanted the header X-Mooring-Console and the Origin of this server: CSRF check failed")


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, _, value in pairs}
