"""The address by which other machines reach this one."""

from __future__ import annotations

import socket

_ELSEWHERE = ("192.0.2.1", 9)
"""An address reserved for documentation. Nothing is sent there."""


def host_address() -> str:
    """An IPv4 address; loopback on a host without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)  # the kernel chooses the route; no datagram is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
