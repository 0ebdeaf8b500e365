"""Read the recording of a scheduler, line by line, in bounded memory and in time linear in its length.

1. A recording whose scheduler was killed has no end: it is read up to its last complete line.
2. Damaged data, a line that cannot be read, and times that decrease are errors with the number of the line.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.reporting.recording import (
    FORMAT_VERSION,
    GZIP_BITS,
    EndLine,
    RecordingHeader,
    RecordingLine,
)
from mooring.simulator.errors import ScenarioError
from mooring.simulator.scenario.reading import GZIP_MAGIC

READ_BYTES = 1 << 14
"""At most a thousand times as much is decompressed at once."""
LINE_BYTES_MAX = 32 << 20
"""A line that is longer is damage: it has one object, and API servers store objects of up to about 1.5 MiB."""
WANTED = "wanted a file that mooring scheduler --record has written"


class RecordingReader:
    """The lines of a file. The header is read at once."""

    def __init__(self, path: Path) -> None:
        """Raises `ScenarioError`."""
        self._path = path
        self.end = ""
        """Why the recording ended; empty if its scheduler was killed, or while lines are left."""
        self.share = 0.0
        """How much of the file has been read."""
        self._texts = self._read()
        first = next(self._texts, None)
        if first is None:
            raise ScenarioError(str(path), f"has no complete line; {WANTED}")
        try:
            self.header = msgspec.json.decode(first[1], type=RecordingHeader)
        except msgspec.DecodeError as error:
            raise ScenarioError(f"{path}:1", f"is no header of a recording: {error}; {WANTED}") from error
        if self.header.recording != FORMAT_VERSION:
            version = f"has version {self.header.recording} of the format; this mooring reads {FORMAT_VERSION}"
            hint = f"replay it with the one that recorded it, {self.header.mooring}"
            raise ScenarioError(f"{path}:1", f"{version}; {hint}")
        try:
            self.seed, self.started_s = int(self.header.seed), parse_rfc3339(self.header.started_at)
        except ValueError as error:
            raise ScenarioError(f"{path}:1", f"is no header of a recording: {error}") from error

    def __iter__(self) -> Iterator[tuple[int, RecordingLine]]:
        """The lines after the header with their numbers. Raises `ScenarioError`."""
        decoder = msgspec.json.Decoder(RecordingLine)
        last_s = 0.0
        for number, text in self._texts:
            try:
                line = decoder.decode(text)
            except msgspec.DecodeError as error:
                raise self.error(number, f"cannot be read: {error}") from error
            if line.at < last_s:
                raise self.error(number, f"time decreases from {last_s} to {line.at} s")
            last_s = line.at
            if isinstance(line, EndLine):
                self.end = line.reason
                return
            yield number, line

    def error(self, number: int, text: str) -> ScenarioError:
        return ScenarioError(f"{self._path}:{number}", text)

    def _read(self) -> Iterator[tuple[int, bytes]]:
        decompressor = zlib.decompressobj(GZIP_BITS)
        number, begun, begun_bytes = 0, list[bytes](), 0
        try:
            size = max(self._path.stat().st_size, 1)
            with self._path.open("rb") as file:
                if file.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
                    raise ScenarioError(str(self._path), f"is no recording; {WANTED}")
                file.seek(0)
                while data := file.read(READ_BYTES):
                    self.share = file.tell() / size
                    first, *others = decompressor.decompress(data).split(b"\n")
                    begun.append(first)
                    begun_bytes += len(first)
                    if begun_bytes > LINE_BYTES_MAX:
                        raise self.error(number + 1, f"is longer than {LINE_BYTES_MAX >> 20} MiB")
                    if not others:
                        continue
                    for line in (b"".join(begun), *others[:-1]):
                        number += 1
                        yield number, line
                    begun, begun_bytes = [others[-1]], len(others[-1])
        except zlib.error as error:
            raise ScenarioError(str(self._path), f"is damaged after line {number}: {error}") from error
        except OSError as error:
            raise ScenarioError(str(self._path), f"cannot be read: {error.strerror or error}") from error
