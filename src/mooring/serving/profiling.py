"""Profiles of the running process, under the addresses that Go programs have them.

    /debug/pprof/                 what there is
    /debug/pprof/profile          CPU: for `seconds` (30) the stacks of the main thread, weighed by the CPU they took
    /debug/pprof/heap, allocs     memory: what was allocated within `seconds` (10) and is still there, by stack
    /debug/pprof/goroutine        the tasks that are alive, and where they wait; as text
    /debug/pprof/cmdline          how the process was started

Comes in   a question, the clock
Goes out   profiles that `go tool pprof` and speedscope open

 1. One profile of a kind at a time: a second one is refused.
 2. Memory is traced only while somebody asks: it makes every allocation several times as dear. Started with
    PYTHONTRACEMALLOC=16 a process traces all the time, and the profile is of everything that is there.
"""

from __future__ import annotations

import asyncio
import sys
import tracemalloc

from mooring.kit.clock import Clock
from mooring.kit.sampling import main_thread_sampler
from mooring.serving.pages import BINARY, Answer, Question, text
from mooring.serving.pprof import Frame, Profile, Stack, ValueKind, encoded
from mooring.serving.server import Page

CPU_S = 30.0
HEAP_S = 10.0
PROFILE_S_MAX = 300.0
SAMPLE_EACH_S = 0.01
TRACE_DEPTH = 16

_NANOS = 1_000_000_000


class Profiler:
    """Makes profiles of this process."""

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

    async def _cpu(self, question: Question) -> Answer:
        if self._is_sampling:
            return text("Could not enable CPU profiling: cpu profiling already in use\n", 500)
        self._is_sampling = True
        started_wall_s, started_s = self._clock.wall_s(), self._clock.now_s()
        sampler = main_thread_sampler(SAMPLE_EACH_S)
        sampler.start()
        try:
            await self._clock.wait(_duration_s(question, CPU_S))
        finally:
            sampler.stop()
            self._is_sampling = False
        samples: dict[Stack, list[int]] = {
            tuple(_frame(*step) for step in stack): counts for stack, counts in sampler.stacks.items()
        }
        profile = Profile(
            kinds=(ValueKind("samples", "count"), ValueKind("cpu", "nanoseconds")),
            samples=samples,
            period_kind=ValueKind("cpu", "nanoseconds"),
            period=int(SAMPLE_EACH_S * _NANOS),
            started_wall_s=started_wall_s,
            duration_s=self._clock.now_s() - started_s,
        )
        return Answer(encoded(profile), content_type=BINARY, file_name="profile")

    async def _heap(self, question: Question) -> Answer:
        if self._is_tracing:
            return text("Could not enable memory profiling: it is already in use\n", 500)
        started_wall_s, started_s = self._clock.wall_s(), self._clock.now_s()
        was_tracing = tracemalloc.is_tracing()
        if not was_tracing:
            self._is_tracing = True
            tracemalloc.start(TRACE_DEPTH)
        try:
            await self._clock.wait(_duration_s(question, 0.0 if was_tracing else HEAP_S))
            snapshot = tracemalloc.take_snapshot()
        finally:
            if not was_tracing:
                tracemalloc.stop()
                self._is_tracing = False
        profile = Profile(
            kinds=(ValueKind("inuse_objects", "count"), ValueKind("inuse_space", "bytes")),
            samples=_allocations(snapshot),
            period_kind=ValueKind("space", "bytes"),
            period=1,
            started_wall_s=started_wall_s,
            duration_s=self._clock.now_s() - started_s,
        )
        return Answer(encoded(profile), content_type=BINARY, file_name="heap")


def _frame(function: str, file: str, first_line: int, line: int) -> Frame:
    # pprof takes angle brackets for parameters of C++ templates, and drops them.
    return Frame(function.replace("<", "(").replace(">", ")"), file, first_line, line)


def _allocations(snapshot: tracemalloc.Snapshot) -> dict[Stack, list[int]]:
    samples: dict[Stack, list[int]] = {}
    for statistic in snapshot.statistics("traceback"):
        # Without the names of functions: the tracer keeps files and lines only. So a line stands for its function.
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


def _duration_s(question: Question, default_s: float) -> float:
    return min(max(question.number("seconds", default_s), 0.0), PROFILE_S_MAX)


def _index(question: Question) -> Answer:
    if question.path.rstrip("/") != "/debug/pprof":
        return text("Unknown profile\n", 404)
    names = ("allocs", "cmdline", "goroutine", "heap", "profile")
    rows = "".join(f'<li><a href="/debug/pprof/{name}">{name}</a></li>' for name in names)
    page = f"<html><head><title>/debug/pprof/</title></head><body><p>Profiles:</p><ul>{rows}</ul></body></html>\n"
    return Answer(page.encode(), content_type="text/html; charset=utf-8")


def _tasks(question: Question) -> Answer:
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    lines = [f"{len(tasks)} tasks"]
    for task in tasks:
        lines.append(f"\n{task.get_name()}:")
        for frame in task.get_stack(limit=16):
            lines.append(f"  {frame.f_code.co_qualname} {frame.f_code.co_filename}:{frame.f_lineno}")
    return text("\n".join(lines) + "\n")


def _command_line(question: Question) -> Answer:
    return text("\0".join(sys.argv))
