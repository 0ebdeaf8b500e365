"""Profiles in the format of pprof, written by hand: `go tool pprof` and speedscope open them.

Comes in   stacks with values
Goes out   a gzipped protocol buffer

The format is small: samples point to locations, a location to a function and a line, and all texts stand in one table.
https://github.com/google/pprof/blob/main/proto/profile.proto has the numbers of the fields.

 1. The first text of the table is empty, as the format wants it.
 2. A stack is told from the leaf to the root.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_NANOS = 1_000_000_000


class Frame(NamedTuple):
    """One step of a stack."""

    function: str
    file: str
    first_line: int
    line: int


Stack = tuple[Frame, ...]
"""The leaf first."""


@dataclass(frozen=True, slots=True)
class ValueKind:
    """What a number of a sample means: `cpu` in `nanoseconds`."""

    kind: str
    unit: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found, before it is written."""

    kinds: Sequence[ValueKind]
    samples: Mapping[Stack, Sequence[int]]
    period_kind: ValueKind
    period: int
    started_wall_s: float
    duration_s: float = 0.0
    comments: Sequence[str] = ()


def encoded(profile: Profile) -> bytes:
    """The profile as a file."""
    return gzip.compress(_Writer().message(profile), compresslevel=5, mtime=0)


class _Writer:
    """Numbers texts, functions and locations as they come."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[Frame, int] = {}

    def message(self, profile: Profile) -> bytes:
        parts = [_nested(1, self._value_kind(kind)) for kind in profile.kinds]
        parts += [_nested(2, self._sample(stack, values)) for stack, values in profile.samples.items()]
        parts += [_nested(4, self._location(frame, number)) for frame, number in self._locations.items()]
        parts += [
            _nested(5, self._function(name, file, line, number))
            for (name, file, line), number in self._functions.items()
        ]
        tail = [
            _number(9, int(profile.started_wall_s * _NANOS)),
            _number(10, int(profile.duration_s * _NANOS)),
            _nested(11, self._value_kind(profile.period_kind)),
            _number(12, profile.period),
            *(_number(13, self._text(comment)) for comment in profile.comments),
        ]
        texts = [_nested(6, text.encode()) for text in self._texts]  # last: everything above has added to it
        return b"".join((*parts, *texts, *tail))

    def _value_kind(self, kind: ValueKind) -> bytes:
        return _number(1, self._text(kind.kind)) + _number(2, self._text(kind.unit))

    def _sample(self, stack: Stack, values: Sequence[int]) -> bytes:
        locations = [self._locations.setdefault(frame, len(self._locations) + 1) for frame in stack]
        return _packed(1, locations) + _packed(2, values)

    def _location(self, frame: Frame, number: int) -> bytes:
        key = (frame.function, frame.file, frame.first_line)
        function = self._functions.setdefault(key, len(self._functions) + 1)
        return _number(1, number) + _nested(4, _number(1, function) + _number(2, frame.line))

    def _function(self, name: str, file: str, first_line: int, number: int) -> bytes:
        text = self._text(name)
        return (
            _number(1, number)
            + _number(2, text)
            + _number(3, text)
            + _number(4, self._text(file))
            + _number(5, first_line)
        )

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _nested(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Sequence[int]) -> bytes:
    return _nested(field, b"".join(_varint(value) for value in values))
