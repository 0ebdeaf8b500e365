"""The gRPC probe: one call of `grpc.health.v1.Health/Check`, without TLS.

Input: an address, a port and a service name. Output: a `ProbeResult`; only SERVING is a success.

One call does not justify a gRPC library: this module opens an HTTP/2 connection, sends the request, and reads frames
until the stream ends.

 1. The request uses no header compression, and headers of the response are not decoded: the health is in the message.
    So a rejected call is reported as a response without health, without its reason.
 2. Frames longer than `FRAME_BYTES_MAX` are errors: longer ones were never allowed.
"""

from __future__ import annotations

import asyncio
import struct

from mooring.api.durations import format_duration
from mooring.kubelet.probes.handlers import ProbeOutcome, ProbeResult, address_of, failure

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
