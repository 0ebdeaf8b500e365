"""Answers, read as their bytes arrive: HTTP/1.1, as much of it as a client of Kubernetes meets.

Comes in   pieces of bytes, cut anywhere
Goes out   a code, headers, and the body: whole, or piece by piece

 1. A body ends where its length says, with its last chunk, or with the connection; if it ends sooner, that is an error.
 2. What announces more than we asked for is no answer: a connection on which something is left over is not used again.
 3. A head has at most `HEADER_BYTES_MAX`; how long a body may be is up to whoever asks.
 4. Answers that only say "wait" (1xx) are skipped.

Why by hand: a good answer is read for its code and where it ends, which is three searches in a few hundred bytes. Its
other headers are looked at only if something is wrong with it. See docs/adr/0015-our-own-http-client.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum, auto

HEADER_BYTES_MAX = 1 << 16

_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_BODILESS = (204, 304)
_CONNECTION = b"\r\nconnection:"
_ENCODING = b"\r\ntransfer-encoding:"
_LENGTH = b"\r\ncontent-length:"


class BrokenAnswerError(ConnectionError):
    """What came is no answer of HTTP, or only half of one."""


class ConnectionClosedError(BrokenAnswerError):
    """The server closed the connection before the first byte of an answer."""


class TooLongAnswerError(BrokenAnswerError):
    """The body of an answer has more bytes than its reader accepts."""


class Answer:
    """One answer, whole."""

    __slots__ = ("_head", "body", "code")

    def __init__(self, code: int, head: bytes, body: bytes) -> None:
        self.code = code
        self._head = head
        self.body = body

    @property
    def headers(self) -> Mapping[str, str]:
        return headers_in(self._head)


class _Framing(Enum):
    """How one knows where a body ends."""

    LENGTH = auto()
    CHUNKS = auto()
    END_OF_CONNECTION = auto()


class AnswerReader:
    """Reads one answer."""

    __slots__ = (
        "_body_bytes",
        "_body_bytes_max",
        "_framing",
        "_is_last_chunk",
        "_left",
        "_rest",
        "code",
        "head",
        "is_complete",
        "keeps_alive",
        "pieces",
    )

    def __init__(self, body_bytes_max: int = sys.maxsize) -> None:
        self.code = 0
        """0 until the head has been read."""
        self.head = b""
        self.pieces: list[bytes] = []
        """What has come of the body. Whoever reads bit by bit takes them out."""
        self.is_complete = False
        self.keeps_alive = True
        self._body_bytes = 0
        self._body_bytes_max = body_bytes_max
        self._framing = _Framing.LENGTH
        self._left = 0  # of the body, or of the chunk
        self._is_last_chunk = False
        self._rest = b""  # of a head or of a line that is not complete yet

    def feed(self, data: bytes) -> None:
        """Raises `BrokenAnswerError`."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        if not self.code:
            data = self._read_heads(data)
            if not self.code:
                return
        if self._framing is _Framing.LENGTH:
            self._read_length(data)
        elif self._framing is _Framing.CHUNKS:
            self._read_chunks(data)
        elif data:
            self._announce(len(data))
            self.pieces.append(data)

    def end(self) -> None:
        """The connection has ended. Raises `BrokenAnswerError` if the answer has not."""
        if self.code and self._framing is _Framing.END_OF_CONNECTION:
            self.is_complete = True
        if self.is_complete:
            return
        if not self.code and not self._rest:
            raise ConnectionClosedError("the server hung up")
        raise BrokenAnswerError("the server hung up in the middle of an answer" if self.code else "the server hung up")

    def answer(self) -> Answer:
        pieces = self.pieces
        return Answer(self.code, self.head, pieces[0] if len(pieces) == 1 else b"".join(pieces))

    # ----------------------------------------------------------------------------------------------- the head

    def _read_heads(self, data: bytes) -> bytes:
        """What comes behind the head; the code is known then, or everything has been put by for later."""
        while (end := data.find(_HEAD_END)) >= 0:
            code = _code_in(data)
            if code >= 200:
                self._understand(code, data[: end + 2])
                return data[end + 4 :]
            data = data[end + 4 :]
        if len(data) > HEADER_BYTES_MAX:
            raise BrokenAnswerError(f"the server answered with a head of more than {HEADER_BYTES_MAX} bytes")
        if len(data) > 5 and not data.startswith(b"HTTP/"):
            raise BrokenAnswerError(f"the server does not speak HTTP: {data[:40]!r}")
        self._rest = data
        return b""

    def _understand(self, code: int, head: bytes) -> None:
        self.code, self.head = code, head
        lower = head.lower()
        self.keeps_alive = head[7:8] != b"0" and b"close" not in _field(lower, _CONNECTION)
        encoding = _field(lower, _ENCODING)
        length = _field(lower, _LENGTH)
        if code in _BODILESS:
            self.is_complete = True
        elif encoding:
            if not encoding.endswith(b"chunked"):
                raise BrokenAnswerError(f"the server encoded its answer as {encoding!r}; wanted chunks")
            self._framing = _Framing.CHUNKS
        elif length:
            if not length.isdigit():
                raise BrokenAnswerError(f"the server announced an answer of {length!r} bytes")
            self._left = int(length)
            self._announce(self._left)
            self.is_complete = not self._left
        else:
            self._framing = _Framing.END_OF_CONNECTION
            self.keeps_alive = False

    # ----------------------------------------------------------------------------------------------- the body

    def _read_length(self, data: bytes) -> None:
        if data:
            if len(data) > self._left:
                self.keeps_alive = False
                data = data[: self._left]
            self._left -= len(data)
            self.pieces.append(data)
            self.is_complete = not self._left

    def _read_chunks(self, data: bytes) -> None:
        position = 0
        while True:
            if self._left:
                piece = data[position : position + self._left]
                if piece:
                    self.pieces.append(piece)
                    self._left -= len(piece)
                    position += len(piece)
                if self._left:
                    return
            end = data.find(_LINE_END, position)
            if end < 0:
                self._put_by(data[position:])
                return
            line = data[position:end]
            position = end + 2
            if line and not self._is_last_chunk:
                self._left = _chunk_bytes(line)
                self._announce(self._left)
                self._is_last_chunk = not self._left
            elif not line and self._is_last_chunk:
                self.is_complete = True
                self.keeps_alive = self.keeps_alive and position == len(data)
                return

    def _announce(self, size: int) -> None:
        """So many bytes of the body come next."""
        self._body_bytes += size
        if self._body_bytes > self._body_bytes_max:
            raise TooLongAnswerError(f"the answer has more than {self._body_bytes_max} bytes")

    def _put_by(self, rest: bytes) -> None:
        if len(rest) > HEADER_BYTES_MAX:
            raise BrokenAnswerError(f"the server began a chunk with a line of more than {HEADER_BYTES_MAX} bytes")
        self._rest = rest


def headers_in(head: bytes) -> dict[str, str]:
    """The headers of a head, their names in Title-Case; of several with one name the last."""
    found = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().title()] = value.strip()
    return found


def _code_in(head: bytes) -> int:
    if not head.startswith(b"HTTP/1.") or not head[9:12].isdigit():
        raise BrokenAnswerError(f"the server does not speak HTTP/1.1: {head[:40]!r}")
    return int(head[9:12])


def _field(lower: bytes, line_start: bytes) -> bytes:
    """The value of a header in a head of small letters; nothing if it is not there."""
    start = lower.find(line_start)
    if start < 0:
        return b""
    start += len(line_start)
    return lower[start : lower.index(_LINE_END, start)].strip()


def _chunk_bytes(line: bytes) -> int:
    text = line.partition(b";")[0].strip()
    try:
        size = int(text, 16)
    except ValueError:
        size = -1
    if size < 0:
        raise BrokenAnswerError(f"the server began a chunk with {line[:40]!r}")
    return size
