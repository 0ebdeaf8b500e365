"""Logs: the lines of one run of a container, and reading them as `kubectl logs` asks.

Comes in   lines with their times; a `LogRequest`
Goes out   bytes, line by line; with `follow` until the run is over; `Selection`, for whoever has logs elsewhere

 1. At most `LOG_LINES_MAX` lines are kept, the youngest.
 2. The order of Kubernetes: first what is too old is left out, then the tail is taken, then the bytes are counted.
 3. A follower hears of each line once, in order.
 4. A line is made when it is read: what most containers wrote, nobody ever asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, TypeAlias

from mooring.kit.clock import Clock, format_rfc3339_micro, parse_rfc3339
from mooring.kubelet.runtime import LogRequest

LOG_LINES_MAX = 200


class Line(NamedTuple):
    number: int
    wall_s: float
    text: str


Fill: TypeAlias = Callable[[str], str]
"""Makes of a text what stands in the log."""


class Log:
    """What one run of a container wrote."""

    __slots__ = ("_followers", "_left_out", "_written", "is_closed")

    def __init__(self, *, is_closed: bool = False) -> None:
        self.is_closed = is_closed
        self._written: list[tuple[float, Sequence[str], Fill]] = []
        self._left_out = 0
        """How many lines were too old to be kept."""
        self._followers: list[asyncio.Future[None]] | None = None

    def write(self, wall_s: float, texts: Sequence[str], fill: Fill = str) -> None:
        if not texts:
            return
        self._written.append((wall_s, texts, fill))
        if len(self._written) > LOG_LINES_MAX:
            self._left_out += len(self._written.pop(0)[1])
        self._wake()

    @property
    def lines(self) -> list[Line]:
        written = [(wall_s, text, fill) for wall_s, texts, fill in self._written for text in texts]
        first = max(0, len(written) - LOG_LINES_MAX)
        return [
            Line(number, wall_s, fill(text))
            for number, (wall_s, text, fill) in enumerate(written[first:], self._left_out + first + 1)
        ]

    def close(self) -> None:
        """The run is over."""
        self.is_closed = True
        self._wake()

    async def wait_changed(self) -> None:
        """Until there is another line, or the run is over."""
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers = [*(self._followers or ()), follower]
        await follower

    def _wake(self) -> None:
        if not self._followers:
            return
        followers, self._followers = self._followers, None
        for follower in followers:
            if not follower.done():
                follower.set_result(None)


class LogReader:
    """One reading of a log."""

    def __init__(self, log: Log, request: LogRequest, clock: Clock) -> None:
        self._log = log
        self._request = request
        self._selection = Selection(request, clock)
        self._seen = 0

    async def read(self) -> AsyncIterator[bytes]:
        kept = self._log.lines
        lines = [line for line in kept if not self._selection.is_too_old(line.wall_s)]
        tail = self._request.tail_lines
        if tail is not None:
            lines = lines[-tail:] if tail else []
        self._seen = kept[-1].number if kept else 0
        while True:
            for line in lines:
                written = self._written(line)
                if written:
                    yield written
            if not self._request.follows or self._selection.is_exhausted:
                return
            while not self._fresh() and not self._log.is_closed:
                await self._log.wait_changed()
            lines = self._fresh()
            if not lines:
                return
            self._seen = lines[-1].number

    def _fresh(self) -> list[Line]:
        return [line for line in self._log.lines if line.number > self._seen]

    def _written(self, line: Line) -> bytes:
        text = f"{format_rfc3339_micro(line.wall_s)} {line.text}" if self._request.has_timestamps else line.text
        return self._selection.cut(text.encode() + b"\n")


class Selection:
    """Which lines are young enough, and how many bytes there is room for."""

    def __init__(self, request: LogRequest, clock: Clock) -> None:
        self._since_s = _since_s(request, clock)
        self._bytes_left = request.limit_bytes

    @property
    def is_exhausted(self) -> bool:
        return self._bytes_left == 0

    def is_too_old(self, wall_s: float) -> bool:
        return wall_s < self._since_s

    @property
    def has_since(self) -> bool:
        return self._since_s > 0.0

    def cut(self, written: bytes) -> bytes:
        """As much of it as is wanted."""
        if self._bytes_left is not None:
            written = written[: self._bytes_left]
            self._bytes_left -= len(written)
        return written


def _since_s(request: LogRequest, clock: Clock) -> float:
    if request.since_s is not None:
        return clock.wall_s() - request.since_s
    return parse_rfc3339(request.since_time) if request.since_time else 0.0
