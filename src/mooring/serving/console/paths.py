"""The paths of the web console, below /console/.

    /console/login?token=…   exchanges a login token for a session cookie, once; the only path without authentication
    /console/link            a new login link for the user who requests it
    /console/data/live       live data (`live`)
    /console/data/…          pages of the scheduler, as JSON
    /console/do/…            POST: pages of the scheduler that change something
    /console/…               the files of `mooring.console`

1. The cookie of a session authenticates requests below /console/ and no others: no request that another site causes
   reaches the API with it. It is HttpOnly, Secure and SameSite=Strict.
2. A session authenticates GET, and POST only with the header `X-Mooring-Console` and the origin of this server: forms
   and scripts of other sites can send neither. A GET that a page of another origin causes has no session: SameSite
   does not stop another port of the same host. A login is a navigation of a tab, no image or frame of another page.
3. Requests are authorized by RBAC like those for other paths (`nonResourceURLs`). A session has the rights of the user
   that its login was made for, and cannot make another login.
4. The name of the cookie contains a random id of this server, because all ports of a host share their cookies.
5. Every response, whatever its code, has a Content-Security-Policy that allows scripts and styles of this server only:
   the server adds `headers_below(path)` where it sends responses.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Generic
from urllib.parse import unquote

from mooring.console import INDEX, assets
from mooring.serving.console.sessions import SESSION_S_MAX, Account, ConsoleSessions, new_token
from mooring.serving.http.request import Request
from mooring.serving.pages import PageResponse, method_not_allowed, not_found, refused, text

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


class ConsolePaths(Generic[Account]):
    """Answers for the paths of the console."""

    def __init__(self, sessions: ConsoleSessions[Account], new_link: str) -> None:
        """`new_link`: the command that prints another link."""
        self._sessions = sessions
        self._cookie = f"mooring_console_{new_token()[:12].replace('-', '_')}"
        advice = "<p>Open the link that was printed at the start. It can be used once. A new link:</p>"
        body = f"{advice}<pre>{escape(new_link)}</pre>"
        self._unauthorized = _PAGE.format(head="", title="Not logged in", body=body).encode()

    def session_user(self, request: Request) -> Account | None:
        """The user of the session, if the request has the cookie of one and is a request that a session may make."""
        is_own = _is_own_post(request) or (request.method == "GET" and not _is_of_another_page(request))
        return self._user(request) if is_own else None

    def _is_forged(self, request: Request) -> bool:
        """Whether a request has nothing but the cookie of a session, and another site may have caused it."""
        if request.method != "POST" or _is_own_post(request) or request.has(b"authorization"):
            return False
        return self._user(request) is not None

    def _user(self, request: Request) -> Account | None:
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

    def response(self, path: str, request: Request, user: Account) -> PageResponse:
        """The response to an authorized request for a file or a link."""
        if request.method != "GET":
            return method_not_allowed()
        return self._link(request, user) if path == LINK else _file(path, request)

    def unauthorized(self) -> PageResponse:
        """A page with instructions for the login."""
        return PageResponse(self._unauthorized, 401, HTML)

    def _link(self, request: Request, user: Account) -> PageResponse:
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
