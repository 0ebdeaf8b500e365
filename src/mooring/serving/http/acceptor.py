"""Accepts TCP connections, and limits the TLS handshakes that are not done.

    listening socket ──> accepted ──(handshake done)──> Connection
                             └─────(failed, too slow, or one of too many)──> closed

1. A handshake that takes longer than `handshake_s_max` is ended.
2. At most `handshakes_max` connections are in their handshake. If there is one more, the oldest is closed: clients that
   never begin cannot keep others out.
3. If the process has no file descriptor left, accepting pauses for `PAUSE_S`.

Why not `create_server`: it notifies the protocol of a connection only after the handshake, so that nothing could
count or close the others.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from functools import partial

from mooring.serving.http.connection import ConnectionOwner, ServerConnection

PAUSE_S = 1.0

log = logging.getLogger(__name__)


class Acceptor:
    """Accepts the connections of a listener."""

    def __init__(self, listener: ConnectionOwner, tls: ssl.SSLContext | None) -> None:
        self._listener = listener
        self._tls = tls
        self._handshakes: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._unstarted: set[socket.socket] = set()
        self.closed_for_newer = 0
        """How many connections were closed in their handshake because there were too many."""

    @property
    def handshakes(self) -> int:
        """Connections that are in their handshake."""
        return len(self._handshakes)

    async def accept_all(self, listening: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop, is_failing = asyncio.get_running_loop(), False
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                if not is_failing:
                    log.error("connections cannot be accepted: %s", error)
                is_failing = True
                await self._listener.clock.wait(PAUSE_S)
                continue
            is_failing = False
            self._begin(accepted)

    def close(self) -> None:
        """End every handshake."""
        for task in list(self._handshakes):
            task.cancel()

    def _begin(self, accepted: socket.socket) -> None:
        if len(self._handshakes) >= self._listener.limits.handshakes_max:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
            self.closed_for_newer += 1
        self._unstarted.add(accepted)
        task = self._listener.start(self._shake_hands(accepted))
        self._handshakes[task] = None
        task.add_done_callback(partial(self._ended, accepted))

    async def _shake_hands(self, accepted: socket.socket) -> None:
        self._unstarted.discard(accepted)
        accepted.setblocking(False)
        try:
            # From here on the transport closes the socket.
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: ServerConnection(self._listener),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._listener.limits.handshake_s_max if self._tls is not None else None,
            )
        except OSError as error:
            log.debug("a TLS handshake failed: %s", error)

    def _ended(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        if accepted in self._unstarted:  # cancelled before its first step
            self._unstarted.discard(accepted)
            accepted.close()
