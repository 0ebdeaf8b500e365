"""Answers to a probe.

Comes in   nothing: these are values
Goes out   `Answer`; or a `ProbeFault`, if the question could not even be put

The texts are the kubelet's, and Go's for what goes wrong on the network: people search for them.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Protocol

from mooring.api.durations import format_duration
from mooring.client.http.dial import exchange_error_text
from mooring.client.http.exchange import REDIRECT_CODES, HttpUrl, open_get
from mooring.client.http.tls import unverified_tls
from mooring.kubelet.environment.variables import expanded
from mooring.kubelet.full_views import ExecAction, HTTPGetAction, HTTPHeader, WholeContainer

OUTPUT_BYTES_MAX = 10 * 1024
_LINGER_S = 1
BODY_BYTES_MAX = 10 * 1024
REDIRECTS_MAX = 10
USER_AGENT = "kube-probe/1.36"

_tls = cache(unverified_tls)


class Outcome(Enum):
    SUCCESS = "success"
    WARNING = "warning"
    """A success that somebody should look at."""
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    text: str = ""


class ProbeFault(Exception):
    """The container could not be asked. It is nobody's fault, and counts neither way."""


def failure(text: str) -> Answer:
    return Answer(Outcome.FAILURE, text)


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    output: bytes
    """Everything that it wrote, up to `OUTPUT_BYTES_MAX`."""


class CommandTimeout(Exception):
    """It took too long, and was killed."""


class CommandError(Exception):
    """It could not be started."""


class CommandRunner(Protocol):
    """Who can run a command where a container is."""

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        """Raises `CommandTimeout` and `CommandError`."""
        ...


async def ask_command(
    runner: CommandRunner, pod_uid: str, container: WholeContainer, action: ExecAction, timeout_s: float
) -> Answer:
    """Raises `ProbeFault`."""
    variables = {variable.name: variable.value for variable in container.env}
    argv = [expanded(word, variables) for word in action.command]
    try:
        result = await runner.run_command(pod_uid, container.name, argv, timeout_s)
    except CommandTimeout:
        return failure(f'command timed out: "{" ".join(argv)}" timed out after {format_duration(int(timeout_s))}')
    except CommandError as error:
        raise ProbeFault(str(error)) from None
    text = result.output[:OUTPUT_BYTES_MAX].decode(errors="replace")
    return Answer(Outcome.SUCCESS if result.code == 0 else Outcome.FAILURE, text)


async def ask_socket(host: str, port: int, timeout_s: float) -> Answer:
    """Whether a connection can be made."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        return failure(dial_error(host, port, error))
    # As a kubelet does it: a busy machine should not keep thousands of closed connections in TIME-WAIT.
    peer = writer.get_extra_info("socket")
    if peer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, _LINGER_S))
    writer.close()
    return Answer(Outcome.SUCCESS)


def dial_error(host: str, port: int, error: OSError | TimeoutError) -> str:
    """As Go says it."""
    dial = f"dial tcp {address_of(host, port)}"
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"{dial}: i/o timeout"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    number = error.errno or _hidden_number(error)
    return f"{dial}: connect: {_words(number)}" if number else f"{dial}: {error}"


def address_of(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _hidden_number(error: OSError) -> int:
    """asyncio tells of several failed addresses in words only."""
    return errno.ECONNREFUSED if "Connect call failed" in str(error) else 0


def _words(number: int) -> str:
    known = {
        errno.ECONNREFUSED: "connection refused",
        errno.ECONNRESET: "connection reset by peer",
        errno.EHOSTUNREACH: "no route to host",
        errno.ENETUNREACH: "network is unreachable",
        errno.ETIMEDOUT: "connection timed out",
        errno.EACCES: "permission denied",
    }
    return known.get(number, errno.errorcode.get(number, str(number)))


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
