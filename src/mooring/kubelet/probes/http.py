"""Requests: what a container answers to a GET.

Comes in   where to ask, with which headers
Goes out   an answer: 200 to 399 is a success; whatever a certificate says is believed

 1. No proxy is asked and nothing is kept: each probe is a connection of its own.
 2. A redirect to the same host is followed, `REDIRECTS_MAX` at most; one to somewhere else is a success with a warning.
 3. Of the body no more than `BODY_BYTES_MAX` is read, and it never gets into what is told of a failure: it may hold
    secrets.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from mooring.kubelet.probes.answers import Answer, Outcome, ProbeFault, failure
from mooring.kubelet.probes.sockets import address_of, dial_error
from mooring.kubelet.whole_views import HTTPGetAction, HTTPHeader

BODY_BYTES_MAX = 10 * 1024
REDIRECTS_MAX = 10
USER_AGENT = "kube-probe/1.36"


async def ask_http(action: HTTPGetAction, host: str, port: int, timeout_s: float) -> Answer:
    """Raises `ProbeFault` for an address that cannot be."""
    url = url_of(action, host, port)
    try:
        first = URL(url)
    except ValueError as error:
        raise ProbeFault(f"{url} is no address: {error}") from None
    connector = aiohttp.TCPConnector(ssl=False, force_close=True)
    try:
        async with (
            asyncio.timeout(timeout_s),
            aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=False) as session,
        ):
            return await _follow(session, first, headers_of(action.http_headers))
    except TimeoutError:
        waiting = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        return failure(f'Get "{url}": {waiting}')
    except aiohttp.ClientConnectorError as error:
        return failure(f'Get "{url}": {dial_error(action.host or host, port, error.os_error)}')
    except aiohttp.ServerDisconnectedError:
        return failure(f'Get "{url}": EOF')
    except (aiohttp.ClientError, OSError, ssl.SSLError, ValueError) as error:
        return failure(f'Get "{url}": {error}')


def url_of(action: HTTPGetAction, host: str, port: int) -> str:
    """With its port, whatever the scheme: it stands in what is told of a failure."""
    scheme = action.scheme.lower() or "http"
    path = action.path if action.path.startswith(("/", "?")) else f"/{action.path}"
    return f"{scheme}://{address_of(action.host or host, port)}{path}"


def headers_of(wanted: Sequence[HTTPHeader]) -> CIMultiDict[str]:
    """Those of the probe, and who asks; an empty Accept means none."""
    headers: CIMultiDict[str] = CIMultiDict((header.name, header.value) for header in wanted)
    headers.setdefault("User-Agent", USER_AGENT)
    if headers.setdefault("Accept", "*/*") == "":
        del headers["Accept"]
    return headers


async def _follow(session: aiohttp.ClientSession, url: URL, headers: CIMultiDict[str]) -> Answer:
    first = url
    for _ in range(REDIRECTS_MAX):
        skipped = [name for name in ("Accept", "Accept-Encoding") if name not in headers]
        async with session.get(url, headers=headers, allow_redirects=False, skip_auto_headers=skipped) as response:
            body = (await _some(response.content)).decode(errors="replace")
            location = response.headers.get("Location")
            if response.status in (301, 302, 303, 307, 308) and location:
                url = url.join(URL(location))
                if url.host == first.host:
                    continue
            return _judged(response.status, body)
    return failure(f'Get "{url}": stopped after {REDIRECTS_MAX} redirects')


async def _some(content: aiohttp.StreamReader) -> bytes:
    body = b""
    while len(body) < BODY_BYTES_MAX and (chunk := await content.read(BODY_BYTES_MAX - len(body))):
        body += chunk
    return body


def _judged(status: int, body: str) -> Answer:
    if 200 <= status < 300:
        return Answer(Outcome.SUCCESS, body)
    if 300 <= status < 400:
        return Answer(Outcome.WARNING, f"Probe terminated redirects, Response body: {body}")
    return failure(f"HTTP probe failed with statuscode: {status}")
