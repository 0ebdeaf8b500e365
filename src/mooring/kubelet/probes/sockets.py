"""Connections: whether somebody listens.

Comes in   an address and a port
Goes out   an answer; a connection is a success, and is closed at once
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct

from mooring.kubelet.probes.handlers import Answer, Outcome, failure

_LINGER_S = 1


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
