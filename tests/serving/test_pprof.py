"""Profiles: written, read back by a reader of this format that knows nothing of the writer."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from mooring.serving.pprof import Frame, Profile, ValueKind, encoded

MAIN = Frame("main", "app.py", 1, 3)
WORK = Frame("work", "app.py", 10, 12)
PROFILE = Profile(
    kinds=(ValueKind("samples", "count"), ValueKind("cpu", "nanoseconds")),
    samples={(WORK, MAIN): (2, 300), (MAIN,): (1, 1 << 40)},
    period_kind=ValueKind("cpu", "nanoseconds"),
    period=10_000_000,
    started_wall_s=1_767_225_600.5,
    duration_s=2.0,
    comments=("a test",),
)


def test_what_is_written_is_read_back() -> None:
    fields = list(parsed(gzip.decompress(encoded(PROFILE))))
    texts = [bytes_of(value).decode() for number, value in fields if number == 6]
    assert texts[0] == ""
    functions = {}
    for number, value in fields:
        if number == 5:
            function = dict(parsed(bytes_of(value)))
            functions[function[1]] = (texts[int_of(function[2])], texts[int_of(function[4])], function[5])
    locations = {}
    for number, value in fields:
        if number == 4:
            location = dict(parsed(bytes_of(value)))
            line = dict(parsed(bytes_of(location[4])))
            locations[location[1]] = (*functions[line[1]], line[2])
    samples = {}
    for number, value in fields:
        if number == 2:
            sample = dict(parsed(bytes_of(value)))
            stack = tuple(locations[each] for each in varints(bytes_of(sample[1])))
            samples[stack] = tuple(varints(bytes_of(sample[2])))
    main, work = ("main", "app.py", 1, 3), ("work", "app.py", 10, 12)
    assert samples == {(work, main): (2, 300), (main,): (1, 1 << 40)}
    kinds = [dict(parsed(bytes_of(value))) for number, value in fields if number == 1]
    assert [(texts[int_of(kind[1])], texts[int_of(kind[2])]) for kind in kinds] == [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
    ]
    numbers = dict(fields)
    assert (numbers[9], numbers[10], numbers[12]) == (1_767_225_600_500_000_000, 2_000_000_000, 10_000_000)
    assert texts[int_of(numbers[13])] == "a test"


Value = int | bytes


def parsed(message: bytes) -> Iterator[tuple[int, Value]]:
    position = 0
    while position < len(message):
        key, position = varint(message, position)
        if key & 7 == 0:
            value, position = varint(message, position)
            yield key >> 3, value
        else:
            length, position = varint(message, position)
            yield key >> 3, message[position : position + length]
            position += length


def varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def varints(message: bytes) -> Iterator[int]:
    position = 0
    while position < len(message):
        value, position = varint(message, position)
        yield value


def bytes_of(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value


def int_of(value: Value) -> int:
    assert isinstance(value, int)
    return value
