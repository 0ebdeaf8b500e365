"""Reads log files of containers for `kubectl logs`.

Input: the log file of one run, which the shim writes; a `LogRequest`. Output: bytes; with `follow` until the run ends.

 1. Rotated files (`0.log.1` is the youngest of them) are read first, oldest first.
 2. The tail is searched from the end of the files.
 3. A follower misses nothing when the shim rotates: it reads its file to the end, then the next one.
 4. Parts of a long line (tag P) are joined; the line has the time of its first part.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from mooring.kit.clock import Clock, parse_rfc3339
from mooring.kubelet.processes.shim.log import LOG_FILES_MAX
from mooring.kubelet.runtime import LogRequest, LogSelection

FOLLOW_S = 0.1
"""The poll interval of a follower."""
_READ_BYTES = 64 * 1024
_FULL = b"F"


class LogFileReader:
    """One reader of the log of one run."""

    def __init__(self, path: Path, request: LogRequest, clock: Clock, is_running: Callable[[], bool]) -> None:
        self._path = path
        self._request = request
        self._clock = clock
        self._is_running = is_running
        self._selection = LogSelection(request, clock)
        self._is_within_line = False
        self._is_passed_over = False

    async def read(self) -> AsyncGenerator[bytes, None]:
        files = self._opened()
        try:
            while files:
                async for data in self._read_file(files):
                    yield data
                    if self._selection.is_exhausted:
                        return
                files.pop(0).close()
        finally:
            for file in files:
                file.close()

    # Files

    def _opened(self) -> list[BinaryIO]:
        """The files to read, each at its position."""
        files = [file for path in generations(self._path) if (file := _open(path)) is not None]
        lines = self._request.tail_lines
        if lines is None:
            return files
        for index in range(len(files) - 1, -1, -1):
            start, found = tail_start(files[index], lines)
            if start is not None:
                files[index].seek(start)
                for older in files[:index]:
                    older.close()
                return files[index:]
            files[index].seek(0)
            lines -= found
        return files

    def _next(self, file: BinaryIO) -> BinaryIO | None:
        """The file that was created when this one was rotated; None if this one is still written."""
        inode = _inode(file)
        younger: list[BinaryIO] = []
        for path in reversed(generations(self._path)):
            other = _open(path)
            if other is None:
                continue
            if _inode(other) == inode:
                other.close()
                break
            younger.append(other)
        for passed_over in younger[:-1]:
            passed_over.close()
        return younger[-1] if younger else None

    # Content

    async def _read_file(self, files: list[BinaryIO]) -> AsyncGenerator[bytes, None]:
        """Reads the first file to its end; the last one, with `follow`, until the run ends."""
        file, rest = files[0], b""
        while True:
            was_running = self._is_running()
            data = file.read(_READ_BYTES)
            if data:
                *lines, rest = (rest + data).split(b"\n")
                written = b"".join(self._written(lines))
                if written:
                    yield written
                if self._selection.is_exhausted:
                    return
                await self._clock.wait(0)
            elif len(files) > 1 or not self._request.follows:
                return
            elif (younger := self._next(file)) is not None:
                files.append(younger)
            elif not was_running:
                return
            else:
                await self._clock.wait(FOLLOW_S)

    def _written(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            stamp, _, tagged = line.partition(b" ")
            _, _, tagged = tagged.partition(b" ")
            tag, _, text = tagged.partition(b" ")
            if not self._is_within_line:
                self._is_passed_over = self._selection.has_since and self._selection.is_too_old(
                    parse_rfc3339(stamp.decode())
                )
                if self._request.has_timestamps:
                    text = stamp + b" " + text
            self._is_within_line = tag != _FULL
            if not self._is_passed_over:
                yield self._selection.cut(text if self._is_within_line else text + b"\n")


def generations(path: Path) -> list[Path]:
    """The possible files of a log, oldest first."""
    return [*(path.with_name(f"{path.name}.{number}") for number in range(LOG_FILES_MAX - 1, 0, -1)), path]


def tail_start(file: BinaryIO, lines: int) -> tuple[int | None, int]:
    """The position of the last `lines` lines; None if there are fewer, and their number."""
    position, rest, found = file.seek(0, 2), b"", 0
    while position > 0:
        size = min(_READ_BYTES, position)
        position -= size
        file.seek(position)
        block = file.read(size) + rest
        begin = block.find(b"\n") + 1 if position else 0
        if position and not begin:
            rest = block
            continue
        rest = block[:begin]
        end = position + len(block)
        for line in reversed(block[begin:].removesuffix(b"\n").split(b"\n")):
            if _is_full(line):
                if found == lines:
                    return end, found
                found += 1
            end -= len(line) + 1
    return (0, found) if found >= lines else (None, found)


def _is_full(line: bytes) -> bool:
    return line.split(b" ", 3)[2:3] == [_FULL]


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino
