"""HTTP probes: send a GET to a container and judge the status code.

Input: an `httpGet` action and the address of the pod. Output: an `Answer`; 200 to 399 is a success.

1. A probe uses no proxy and does not verify the certificate of the container. Each probe opens its own connection.
2. A probe follows a redirect to the same host, at most `REDIRECTS_MAX` times. A redirect to another host is a success
   with a warning.
3. A probe reads at most `BODY_BYTES_MAX` of the body. The text of a failure never contains the body: it may hold
   secrets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

from mooring.client.http.dial import exchange_error_text
from mooring.client.http.exchange import REDIRECT_CODES, HttpUrl, open_get
from mooring.client.http.tls import unverified_tls
from mooring.kubelet.full_views import HTTPGetAction, HTTPHeader
from mooring.kubelet.probes.handlers import Answer, Outcome, ProbeFault, failure
from mooring.kubelet.probes.sockets import address_of

BODY_BYTES_MAX = 10 * 1024
REDIRECTS_MAX = 10
USER_AGENT = "kube-probe/1.36"

_tls = cache(unverified_tls)


async def ask_http(action: HTTPGetAction, host: str, port: int, timeout_s: float) -> Answer:
    """Raises `ProbeFault` for an invalid URL."""
    text = url_of(action, host, port)
    try:
        url = HttpUrl.parse(text)
    except ValueError as error:
        raise ProbeFault(f"{text} is no address: {error}") from None
    try:
        async with asyncio.timeout(timeout_s):
            return await _follow(url, headers_of(action.http_headers))
    except TimeoutError:
        return failure(f'Get "{text}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)')
    except OSError as error:
        return failure(f'Get "{text}": {exchange_error_text(error, url.address)}')
    except ValueError as error:
        return failure(f'Get "{text}": {error}')


def url_of(action: HTTPGetAction, host: str, port: int) -> str:
    """The URL of a probe. It always contains the port, because the text of a failure shows it."""
    scheme = action.scheme.lower() or "http"
    path = action.path if action.path.startswith(("/", "?")) else f"/{action.path}"
    return f"{scheme}://{address_of(action.host or host, port)}{path}"


def headers_of(wanted: Sequence[HTTPHeader]) -> list[tuple[str, str]]:
    """The headers of the probe, with defaults for User-Agent and Accept; an empty Accept means none."""
    headers = [(header.name, header.value) for header in wanted]
    given = {name.lower(): value for name, value in reversed(headers)}
    if given.get("accept") == "":
        headers = [(name, value) for name, value in headers if name.lower() != "accept"]
    if "user-agent" not in given:
        headers.append(("User-Agent", USER_AGENT))
    if "accept" not in given:
        headers.append(("Accept", "*/*"))
    return headers


async def _follow(first: HttpUrl, headers: Sequence[tuple[str, str]]) -> Answer:
    url = first
    for _ in range(REDIRECTS_MAX):
        stream = await open_get(url, [*headers, ("Connection", "close")], _tls())
        try:
            body = (await stream.read_first(BODY_BYTES_MAX)).decode(errors="replace")
            location = stream.headers.get("Location")
        finally:
            stream.close()
        if stream.code in REDIRECT_CODES and location:
            url = url.join(location)
            if url.host == first.host:
                continue
        return _judged(stream.code, body)
    return failure(f'Get "{url.text}": stopped after {REDIRECTS_MAX} redirects')


def _judged(status: int, body: str) -> Answer:
    if 200 <= status < 300:
        return Answer(Outcome.SUCCESS, body)
    if 300 <= status < 400:
        return Answer(Outcome.WARNING, f"Probe terminated redirects, Response body: {body}")
    return failure(f"HTTP probe failed with statuscode: {status}")
