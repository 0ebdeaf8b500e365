"""Profiles of the running process, at the paths of Go programs, in pprof format.

   /debug/pprof/                 index
   /debug/pprof/profile          CPU: stacks of the main thread for `seconds` (30), weighted by CPU time
   /debug/pprof/heap, allocs     memory that was allocated within `seconds` (10) and is still in use, by stack
   /debug/pprof/goroutine        asyncio tasks and where they wait, as text
   /debug/pprof/cmdline          the command line

1. One profile of a kind at a time: a second request fails.
2. Memory is traced only during a request, because tracing makes allocations several times as slow. With
   PYTHONTRACEMALLOC=16 the process traces all the time, and the profile contains everything in use.
3. The pprof format: samples refer to locations, a location to a function and a line, texts are in one table whose
   first entry is empty. Stacks are listed leaf first. Field numbers are those of
   https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mooring.kit.clock import Clock
from mooring.kit.sampling import main_thread_sampler
from mooring.serving.pages import BINARY, PageRequest, PageResponse, text
from mooring.serving.server import Page

_NANOS = 1_000_000_000
CPU_S = 30.0
HEAP_S = 10.0
PROFILE_S_MAX = 300.0
SAMPLE_EACH_S = 0.01
TRACE_DEPTH = 16


class Frame(NamedTuple):
    """One frame of a stack."""

    function: str
    file: str
    first_line: int
    line: int


Stack = tuple[Frame, ...]
"""Leaf first."""


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The meaning of a value: `cpu` in `nanoseconds`."""

    kind: str
    unit: str


@dataclass(frozen=True, slots=True)
class ProfileData:
    """A profile before it is encoded."""

    kinds: Sequence[ValueKind]
    samples: Mapping[Stack, Sequence[int]]
    period_kind: ValueKind
    period: int
    started_wall_s: float
    duration_s: float = 0.0
    comments: Sequence[str] = ()


def encoded(profile: ProfileData) -> bytes:
    """The profile as a gzipped protocol buffer."""
    return gzip.compress(_ProfileWriter().message(profile), compresslevel=5, mtime=0)


class _ProfileWriter:
    """Numbers texts, functions and locations in order of use."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[Frame, int] = {}

    def message(self, profile: ProfileData) -> bytes:
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
        texts = [_nested(6, text.encode()) for text in self._texts]  # last, because the parts above add texts
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


class Profiler:
    """Creates profiles of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_sampling = False
        self._is_tracing = False

    def pages(self) -> dict[str, Page]:
        return {
            "/debug/pprof": _index,
            "/debug/pprof/": _index,
            "/debug/pprof/profile": self._cpu,
            "/debug/pprof/heap": self._heap,
            "/debug/pprof/allocs": self._heap,
            "/debug/pprof/goroutine": _tasks,
            "/debug/pprof/cmdline": _command_line,
        }

    async def _cpu(self, request: PageRequest) -> PageResponse:
        if self._is_sampling:
            return text("Could not enable CPU profiling: cpu profiling already in use\n", 500)
        self._is_sampling = True
        started_wall_s, started_s = self._clock.wall_s(), self._clock.now_s()
        sampler = main_thread_sampler(SAMPLE_EACH_S)
        sampler.start()
        try:
            await self._clock.wait(_duration_s(request, CPU_S))
        finally:
            sampler.stop()
            self._is_sampling = False
        samples: dict[Stack, list[int]] = {
            tuple(_frame(*step) for step in stack): counts for stack, counts in sampler.stacks.items()
        }
        profile = ProfileData(
            kinds=(ValueKind("samples", "count"), ValueKind("cpu", "nanoseconds")),
            samples=samples,
            period_kind=ValueKind("cpu", "nanoseconds"),
            period=int(SAMPLE_EACH_S * _NANOS),
            started_wall_s=started_wall_s,
            duration_s=self._clock.now_s() - started_s,
        )
        return PageResponse(encoded(profile), content_type=BINARY, file_name="profile")

    async def _heap(self, request: PageRequest) -> PageResponse:
        if self._is_tracing:
            return text("Could not enable memory profiling: it is already in use\n", 500)
        started_wall_s, started_s = self._clock.wall_s(), self._clock.now_s()
        was_tracing = tracemalloc.is_tracing()
        if not was_tracing:
            self._is_tracing = True
            tracemalloc.start(TRACE_DEPTH)
        try:
            await self._clock.wait(_duration_s(request, 0.0 if was_tracing else HEAP_S))
            snapshot = tracemalloc.take_snapshot()
        finally:
            if not was_tracing:
                tracemalloc.stop()
                self._is_tracing = False
        profile = ProfileData(
            kinds=(ValueKind("inuse_objects", "count"), ValueKind("inuse_space", "bytes")),
            samples=_allocations(snapshot),
            period_kind=ValueKind("space", "bytes"),
            period=1,
            started_wall_s=started_wall_s,
            duration_s=self._clock.now_s() - started_s,
        )
        return PageResponse(encoded(profile), content_type=BINARY, file_name="heap")


def _frame(function: str, file: str, first_line: int, line: int) -> Frame:
    # pprof treats angle brackets as C++ template parameters and removes them.
    return Frame(function.replace("<", "(").replace(">", ")"), file, first_line, line)


def _allocations(snapshot: tracemalloc.Snapshot) -> dict[Stack, list[int]]:
    samples: dict[Stack, list[int]] = {}
    for statistic in snapshot.statistics("traceback"):
        # tracemalloc records files and lines only, so each line counts as a function.
        stack = tuple(
            Frame(f"{_short(step.filename)}:{step.lineno}", step.filename, step.lineno, step.lineno)
            for step in reversed(statistic.traceback)
        )
        counts = samples.setdefault(stack, [0, 0])
        counts[0] += statistic.count
        counts[1] += statistic.size
    return samples


def _short(file: str) -> str:
    return "/".join(file.split("/")[-2:])


def _duration_s(request: PageRequest, default_s: float) -> float:
    return min(max(request.number("seconds", default_s), 0.0), PROFILE_S_MAX)


def _index(request: PageRequest) -> PageResponse:
    if request.path.rstrip("/") != "/debug/pprof":
        return text("Unknown profile\n", 404)
    names = ("allocs", "cmdline", "goroutine", "heap", "profile")
    rows = "".join(f'<li><a href="/debug/pprof/{name}">{name}</a></li>' for name in names)
    page = f"<html><head><title>/debug/pprof/</title></head><body><p>Profiles:</p><ul>{rows}</ul></body></html>\n"
    return PageResponse(page.encode(), content_type="text/html; charset=utf-8")


def _tasks(request: PageRequest) -> PageResponse:
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    lines = [f"{len(tasks)} tasks"]
    for task in tasks:
        lines.append(f"\n{task.get_name()}:")
        for frame in task.get_stack(limit=16):
            lines.append(f"  {frame.f_code.co_qualname} {frame.f_code.co_filename}:{frame.f_lineno}")
    return text("\n".join(lines) + "\n")


def _command_line(request: PageRequest) -> PageResponse:
    return text("\0".join(sys.argv))
