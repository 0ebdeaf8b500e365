"""An answer that goes on: piece by piece, for as long as it takes.

Comes in   pieces
Goes out   chunks, and a last one that says that it is over

 1. A client of HTTP/1.0 knows no chunks: to him the answer ends with the connection.
 2. An answer that is not finished is cut off with its connection, so that nobody takes half of it for the whole.
 3. Who asked for the head only gets nothing else: he would take it for the next answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooring.serving.http.connection import Connection

_LAST_CHUNK = b"0\r\n\r\n"


class Stream:
    """One answer that goes on."""

    __slots__ = ("_connection", "_is_chunked", "_is_head_only", "code")

    def __init__(self, connection: Connection, code: int, *, is_chunked: bool, is_head_only: bool = False) -> None:
        self._connection = connection
        self._is_chunked = is_chunked
        self._is_head_only = is_head_only
        self.code = code

    async def write(self, piece: bytes) -> None:
        """Send a piece, when the client can take it. Raises `ConnectionError` if he is gone."""
        if not self.write_nowait(framed(piece)):
            await self.wait_drained()

    def write_nowait(self, chunk: bytes) -> bool:
        """Send a chunk that is framed already. False if the client is full or gone: then `wait_drained`."""
        connection = self._connection
        if not connection.is_open:
            return False
        if not self._is_head_only:
            connection.write(chunk if self._is_chunked else _unframed(chunk))
        return not connection.must_wait

    async def wait_drained(self) -> None:
        """Until the client can take more. Raises `ConnectionError` if he is gone."""
        await self._connection.wait_drained()

    def finish(self) -> None:
        """There is no more."""
        if self._is_chunked and not self._is_head_only and self._connection.is_open:
            self._connection.write(_LAST_CHUNK)


def framed(piece: bytes) -> bytes:
    """A chunk, as HTTP/1.1 writes it. An empty one would be the last: it is nothing at all."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


def _unframed(chunk: bytes) -> bytes:
    return chunk.partition(b"\r\n")[2][:-2]
