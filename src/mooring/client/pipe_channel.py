"""One end of a pipe: words go out and come in.

Comes in   words to be said; bytes from the other end
Goes out   bytes, one frame a turn; the frames of the other end, whole and in order

 1. What is said in one turn of the loop is one frame and one system call: a turn that binds a hundred pods costs
    little more than one with a single pod.
 2. A frame is its length in four bytes, and then so many bytes.
 3. Whoever has much to tell waits while the other end does not keep up (`writable`). Whoever cannot keep up stops
    reading (`pause`), and so the other end notices.
 4. When the other end is gone, that is told once, after everything that it said.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar, cast

LENGTH_BYTES = 4
UNSENT_BYTES_MAX = 1 << 22

Said = TypeVar("Said")


class Channel(asyncio.Protocol, Generic[Said]):
    """One end."""

    def __init__(
        self, encode: Callable[[list[Said]], bytes], on_frame: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> None:
        self._encode = encode
        self._on_frame = on_frame
        self._on_end = on_end
        self._unsent: list[Said] = []
        self._unread = bytearray()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.is_over = False

    def say(self, word: Said) -> None:
        """Say it at the end of this turn; to nobody, if the other end is gone."""
        if self.is_over:
            return
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(word)

    async def writable(self) -> None:
        """Until the other end has taken most of what was said."""
        await self._writable.wait()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self.is_over:
            self._transport.resume_reading()

    def close(self) -> None:
        """Say what is left, and leave."""
        if self._transport is not None and not self.is_over:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Leave at once, whatever is left to be said."""
        if self._transport is not None and not self.is_over:
            self._transport.abort()

    def _flush(self) -> None:
        if not self._unsent or self._transport is None or self.is_over:
            return
        unsent, self._unsent = self._unsent, []
        frame = self._encode(unsent)
        self._transport.write(len(frame).to_bytes(LENGTH_BYTES, "big") + frame)

    # ------------------------------------------------------------------------------------ what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of uvloop, it is one without being a subclass
        self._transport.set_write_buffer_limits(UNSENT_BYTES_MAX)
        self._flush()

    def data_received(self, data: bytes) -> None:
        unread = self._unread
        unread += data
        start = 0
        while len(unread) - start >= LENGTH_BYTES:
            end = start + LENGTH_BYTES + int.from_bytes(unread[start : start + LENGTH_BYTES], "big")
            if len(unread) < end:
                break
            self._on_frame(bytes(unread[start + LENGTH_BYTES : end]))
            start = end
        if start:
            del unread[:start]

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_over = True
        self._unsent = []
        self._writable.set()
        self._on_end()


async def open_channel(end: socket.socket, make: Callable[[], Channel[Said]]) -> Channel[Said]:
    """A channel on one end of a pair of sockets."""
    _, channel = await asyncio.get_running_loop().create_unix_connection(make, sock=end)
    return channel
