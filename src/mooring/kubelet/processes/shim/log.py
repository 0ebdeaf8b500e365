"""The log files of a container, in the CRI format.

Input: output of a process. Output: lines `<time> stdout F text`; a long line in parts, all but the last tagged P.

 1. A line is written when it is complete; an incomplete last line when the process has ended.
 2. A file of `bytes_max` is renamed to `.1`, that one to `.2`, and so on; `LOG_FILES_MAX` are kept.

Imports the standard library only, like `program`.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

LOG_BYTES_MAX = 10 * 1024 * 1024
LOG_FILES_MAX = 5
LINE_BYTES_MAX = 16 * 1024
"""Longer lines are split, as by containerd."""


class LogFile:
    """The log of one run."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._file = _open(path)
        self._size = os.fstat(self._file).st_size
        self._rests = {"stdout": b"", "stderr": b""}

    def write(self, stream: str, data: bytes) -> None:
        stamp = _stamp()
        *lines, rest = (self._rests[stream] + data).split(b"\n")
        entries = []
        for line in lines:
            while len(line) > LINE_BYTES_MAX:
                entries.append(_entry(stamp, stream, b"P", line[:LINE_BYTES_MAX]))
                line = line[LINE_BYTES_MAX:]
            entries.append(_entry(stamp, stream, b"F", line))
        while len(rest) >= LINE_BYTES_MAX:
            entries.append(_entry(stamp, stream, b"P", rest[:LINE_BYTES_MAX]))
            rest = rest[LINE_BYTES_MAX:]
        self._rests[stream] = rest
        self._append(b"".join(entries))

    def close(self) -> None:
        """Write incomplete lines and close the file."""
        for stream, rest in self._rests.items():
            if rest:
                self._append(_entry(_stamp(), stream, b"F", rest))
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._bytes_max:
            self._rotate()
        with suppress(OSError):  # the disk may be full: the container runs without a log
            self._size += os.write(self._file, data)

    def _rotate(self) -> None:
        for number in range(LOG_FILES_MAX - 1, 0, -1):
            older = f"{self._path}.{number - 1}" if number > 1 else self._path
            with suppress(FileNotFoundError):
                os.rename(older, f"{self._path}.{number}")
        os.close(self._file)
        self._file = _open(self._path)
        self._size = 0


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)


def _entry(stamp: bytes, stream: str, tag: bytes, text: bytes) -> bytes:
    return b"%s %s %s %s\n" % (stamp, stream.encode(), tag, text)


def _stamp() -> bytes:
    nanoseconds = time.time_ns()
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 1_000_000_000))
    return f"{whole}.{nanoseconds % 1_000_000_000:09d}Z".encode()
