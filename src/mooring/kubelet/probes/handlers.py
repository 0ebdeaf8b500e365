"""Probe handlers: exec, HTTP, TCP and gRPC.

Input: the action of a probe, and the address of the pod. Output: a `ProbeResult`; or a `ProbeError` if the probe could
not run. Texts are those of the kubelet, and Go's for network errors.

 1. exec: exit code 0 is a success. A command sees only variables with a plain value, as in the kubelet.
 2. httpGet: 200 to 399 is a success. A probe uses no proxy, does not verify certificates, and opens its own
    connection. It follows at most `REDIRECTS_MAX` redirects to the same host; a redirect to another host is a success
    with a warning. The text of a failure never contains the body: it may hold secrets.
 3. tcpSocket: a connection is a success.

The gRPC probe: one call of `grpc.health.v1.Health/Check`, without TLS.

Input: an address, a port and a service name. Output: a `ProbeResult`; only SERVING is a success.

One call does not justify a gRPC library: `probe_grpc` opens an HTTP/2 connection, sends the request, and reads frames
until the stream ends.

 1. The request uses no header compression, and headers of the response are not decoded: the health is in the message.
    So a rejected call is reported as a response without health, without its reason.
 2. Frames longer than `FRAME_BYTES_MAX` are errors: longer ones were never allowed.
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
from mooring.client.http.dial import exchange_error_text, unverified_tls
from mooring.client.http.exchange import REDIRECT_CODES, HttpUrl, open_get
from mooring.kubelet.environment import expanded
from mooring.kubelet.views import ExecAction, FullContainer, HTTPGetAction, HTTPHeader

OUTPUT_BYTES_MAX = 10 * 1024
_LINGER_S = 1
BODY_BYTES_MAX = 10 * 1024
REDIRECTS_MAX = 10
USER_AGENT = "kube-probe/1.36"

_tls = cache(unverified_tls)


class ProbeOutcome(Enum):
    SUCCESS = "success"
    WARNING = "warning"
    """A success that is reported as an event."""
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    outcome: ProbeOutcome
    text: str = ""


class ProbeError(Exception):
    """The probe could not run. It counts neither as success nor as failure."""


def failure(text: str) -> ProbeResult:
    return ProbeResult(ProbeOutcome.FAILURE, text)


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    output: bytes
    """Output of the command, up to `OUTPUT_BYTES_MAX`."""


class CommandTimeout(Exception):
    """The command was killed after its timeout."""


class CommandError(Exception):
    """The command could not be started."""


class CommandRunner(Protocol):
    """Runs a command in a container."""

    async def run_command(self, pod_uid: str, container: str, argv: Sequence[str], timeout_s: float) -> CommandResult:
        """Raises `CommandTimeout` and `CommandError`."""
        ...


async def probe_exec(
    runner: CommandRunner, pod_uid: str, container: FullContainer, action: ExecAction, timeout_s: float
) -> ProbeResult:
    """Raises `ProbeError`."""
    variables = {variable.name: variable.value for variable in container.env}
    argv = [expanded(argument, variables) for argument in action.command]
    try:
        result = await runner.run_command(pod_uid, container.name, argv, timeout_s)
    except CommandTimeout:
        return failure(f'command timed out: "{" ".join(argv)}" timed out after {format_duration(int(timeout_s))}')
    except CommandError as error:
        raise ProbeError(str(error)) from None
    text = result.output[:OUTPUT_BYTES_MAX].decode(errors="replace")
    return ProbeResult(ProbeOutcome.SUCCESS if result.code == 0 else ProbeOutcome.FAILURE, text)


async def probe_tcp(host: str, port: int, timeout_s: float) -> ProbeResult:
    """A success if a connection can be opened."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError) as error:
        return failure(dial_error(host, port, error))
    # As in the kubelet: avoids thousands of connections in TIME-WAIT.
    peer = writer.get_extra_info("socket")
    if peer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, _LINGER_S))
    writer.close()
    return ProbeResult(ProbeOutcome.SUCCESS)


def dial_error(host: str, port: int, error: OSError | TimeoutError) -> str:
    """The text of a connection error, as Go prints it."""
    dial = f"dial tcp {address_of(host, port)}"
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"{dial}: i/o timeout"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    number = error.errno or _hidden_number(error)
    return f"{dial}: connect: {_errno_text(number)}" if number else f"{dial}: {error}"


def address_of(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _hidden_number(error: OSError) -> int:
    """asyncio reports several failed addresses as text only."""
    return errno.ECONNREFUSED if "Connect call failed" in str(error) else 0


def _errno_text(number: int) -> str:
    known = {
        errno.ECONNREFUSED: "connection refused",
        errno.ECONNRESET: "connection reset by peer",
        errno.EHOSTUNREACH: "no route to host",
        errno.ENETUNREACH: "network is unreachable",
        errno.ETIMEDOUT: "connection timed out",
        errno.EACCES: "permission denied",
    }
    return known.get(number, errno.errorcode.get(number, str(number)))


async def probe_http(action: HTTPGetAction, host: str, port: int, timeout_s: float) -> ProbeResult:
    """Raises `ProbeFault` for an invalid URL."""
    text = url_of(action, host, port)
    try:
        url = HttpUrl.parse(text)
    except ValueError as error:
        raise ProbeError(f"{text} is not a URL: {error}") from None
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


def headers_of(http_headers: Sequence[HTTPHeader]) -> list[tuple[str, str]]:
    """The headers of the probe, with defaults for User-Agent and Accept; an empty Accept means none."""
    headers = [(header.name, header.value) for header in http_headers]
    given = {name.lower(): value for name, value in reversed(headers)}
    if given.get("accept") == "":
        headers = [(name, value) for name, value in headers if name.lower() != "accept"]
    if "user-agent" not in given:
        headers.append(("User-Agent", USER_AGENT))
    if "accept" not in given:
        headers.append(("Accept", "*/*"))
    return headers


async def _follow(first: HttpUrl, headers: Sequence[tuple[str, str]]) -> ProbeResult:
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
        return _http_result(stream.code, body)
    return failure(f'Get "{url.text}": stopped after {REDIRECTS_MAX} redirects')


def _http_result(status: int, body: str) -> ProbeResult:
    if 200 <= status < 300:
        return ProbeResult(ProbeOutcome.SUCCESS, body)
    if 300 <= status < 400:
        return ProbeResult(ProbeOutcome.WARNING, f"Probe terminated redirects, Response body: {body}")
    return failure(f"HTTP probe failed with statuscode: {status}")


# --- gRPC -----------------------------------------------------------------------------------------------------


FRAME_BYTES_MAX = 16384
HEALTH_NAMES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_ACK = _END_STREAM = 1
_END_HEADERS = 4
_STREAM = 1


class _NoHealthError(Exception):
    """The call ended without a health."""


async def probe_grpc(host: str, port: int, service: str, timeout_s: float) -> ProbeResult:
    """Whether the service reports SERVING."""
    address, within = address_of(host, port), format_duration(int(timeout_s))
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(_call(address, service))
            health = await _health(reader, writer)
    except TimeoutError:
        if writer is None:
            return _not_connected(address, within)
        return failure(f"timeout: health rpc did not complete within {within}")
    except (OSError, EOFError, _NoHealthError) as error:
        if writer is None:
            return _not_connected(address, within)
        return failure(f"error: health rpc probe failed: {error}")
    finally:
        if writer is not None:
            writer.close()
    name = HEALTH_NAMES[health] if health < len(HEALTH_NAMES) else str(health)
    if name != "SERVING":
        return failure(f'service unhealthy (responded with "{name}")')
    return ProbeResult(ProbeOutcome.SUCCESS, "service healthy")


def _not_connected(address: str, within: str) -> ProbeResult:
    return failure(f'timeout: failed to connect service "{address}" within {within}: context deadline exceeded')


def _call(address: str, service: str) -> bytes:
    """The bytes of the request."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": address,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.36",
    }
    block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in headers.items())
    name = service.encode()
    message = b"\x0a" + _number(len(name)) + name if name else b""
    data = b"\x00" + struct.pack(">I", len(message)) + message
    return b"".join(
        (
            _PREFACE,
            _frame(_SETTINGS, 0, 0, b""),
            _frame(_HEADERS, _END_HEADERS, _STREAM, block),
            _frame(_DATA, _END_STREAM, _STREAM, data),
        )
    )


async def _health(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    """Read until the stream ends. Raises `_NoHealthError`, `EOFError` and `OSError`."""
    received = b""
    while True:
        length, kind, flags, stream = await _frame_head(reader)
        body = await reader.readexactly(length)
        if kind == _SETTINGS and not flags & _ACK:
            writer.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            writer.write(_frame(_PING, _ACK, 0, body))
        elif kind in (_RST_STREAM, _GOAWAY):
            raise _NoHealthError("the server aborted the call")
        elif kind == _DATA and stream == _STREAM:
            received += body
        if kind in (_DATA, _HEADERS) and stream == _STREAM and flags & _END_STREAM:
            return _health_in(received)


async def _frame_head(reader: asyncio.StreamReader) -> tuple[int, int, int, int]:
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    if length > FRAME_BYTES_MAX:
        raise _NoHealthError("the server does not speak HTTP/2")
    return length, head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF


def _health_in(received: bytes) -> int:
    """The first field of the message; 0 if the message is empty."""
    if len(received) < 5:
        raise _NoHealthError("the response has no health (the server may lack grpc.health.v1.Health, or the service)")
    message = received[5:]
    return message[1] if len(message) >= 2 and message[0] == 0x08 else 0


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + body


def _text(text: str) -> bytes:
    """An uncompressed HPACK string."""
    data = text.encode()
    assert len(data) < 127, f"{text} takes more than one byte for its length"
    return bytes((len(data),)) + data


def _number(number: int) -> bytes:
    """A protobuf varint."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
