"""Ports for tests. One to listen on comes from `bench.machine.free_port`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_port() -> Iterator[int]:
    """A port of 127.0.0.1 that refuses connections. Inside of the block no other process can listen on it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])
