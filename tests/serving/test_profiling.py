"""Profiles: one profile of each kind at a time; memory is traced only during a request; the pprof format."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import sys
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.serving.pages import PageRequest, PageResponse
from mooring.serving.profiling import CPU_S, HEAP_S, PROFILE_S_MAX, Frame, ProfileData, Profiler, ValueKind, encoded

MAIN = Frame("main", "app.py", 1, 3)
WORK = Frame("work", "app.py", 10, 12)
PROFILE = ProfileData(
    kinds=(ValueKind("samples", "count"), ValueKind("cpu", "nanoseconds")),
    samples={(WORK, MAIN): (2, 300), (MAIN,): (1, 1 << 40)},
    period_kind=ValueKind("cpu", "nanoseconds"),
    period=10_000_000,
    started_wall_s=1_767_225_600.5,
    duration_s=2.0,
    comments=("a test",),
)


def test_an_encoded_profile_can_be_decoded() -> None:
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


class RunningProfile:
    """A profiler on virtual time, and its pages."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.pages = Profiler(self.clock).pages()

    async def request(self, page: str, **query: str) -> PageResponse:
        page_request = PageRequest("GET", f"/debug/pprof/{page}", {name: [value] for name, value in query.items()})
        answer = self.pages[page_request.path](page_request)
        found = await answer if inspect.isawaitable(answer) else answer
        assert isinstance(found, PageResponse)
        return found


def run_scenario(scenario: Callable[[RunningProfile], Coroutine[Any, Any, None]]) -> None:
    profile = RunningProfile()
    run(scenario(profile), profile.clock)


@pytest.mark.parametrize(
    ("page", "query", "took_s"),
    [
        pytest.param("profile", {}, CPU_S, id="CPU, default of Go"),
        pytest.param("heap", {}, HEAP_S, id="memory"),
        pytest.param("allocs", {}, HEAP_S, id="memory by its alias"),
        pytest.param("profile", {"seconds": "2.5"}, 2.5, id="a requested time"),
        pytest.param("heap", {"seconds": "0"}, 0.0, id="zero"),
        pytest.param("profile", {"seconds": "-1"}, 0.0, id="a negative time"),
        pytest.param("profile", {"seconds": "1e9"}, PROFILE_S_MAX, id="the maximum"),
        pytest.param("profile", {"seconds": "banana"}, CPU_S, id="not a number"),
    ],
)
def test_duration_of_a_profile(page: str, query: dict[str, str], took_s: float) -> None:
    async def scenario(profile: RunningProfile) -> None:
        answer = await profile.request(page, **query)
        assert profile.clock.now_s() == pytest.approx(took_s)
        assert (answer.code, answer.content_type) == (200, "application/octet-stream")
        gzip.decompress(answer.body)

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("profile", b"Could not enable CPU profiling: cpu profiling already in use\n"),
        ("heap", b"Could not enable memory profiling: it is already in use\n"),
    ],
    ids=["CPU", "memory"],
)
def test_a_second_profile_of_the_same_kind_is_rejected(page: str, expected: bytes) -> None:
    async def scenario(profile: RunningProfile) -> None:
        async with TaskGroup("requests") as group:
            first = group.start(profile.request(page, seconds="5"), name="first")
            await profile.clock.wait(1)
            second = await profile.request(page, seconds="5")
            assert (second.code, second.body) == (500, expected)
            assert profile.clock.now_s() == 1, "the rejection must be immediate"
            other = await profile.request("heap" if page == "profile" else "profile", seconds="1")
            assert other.code == 200, "a profile of another kind must be possible"
            assert (await first).code == 200
        assert (await profile.request(page, seconds="1")).code == 200, "another profile must be possible afterwards"

    run_scenario(scenario)


@pytest.mark.parametrize("page", ["profile", "heap"])
def test_a_cancelled_profile_stops_tracing(page: str) -> None:
    async def scenario(profile: RunningProfile) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await profile.request(page, seconds="60")
        assert not tracemalloc.is_tracing()
        assert (await profile.request(page, seconds="1")).code == 200

    run_scenario(scenario)


def test_memory_is_traced_only_during_a_heap_profile() -> None:
    async def scenario(profile: RunningProfile) -> None:
        async with TaskGroup("requests") as group:
            heap_request = group.start(profile.request("heap", seconds="5"), name="heap_request")
            await profile.clock.wait(1)
            assert tracemalloc.is_tracing()
            kept = [bytearray(100_000)]
            heap = gzip.decompress((await heap_request).body)
        assert not tracemalloc.is_tracing()
        assert b"serving/test_profiling.py:" in heap, "an allocation during the profile is missing"
        assert kept

    run_scenario(scenario)


def test_a_process_with_tracemalloc_answers_immediately_and_keeps_tracing() -> None:
    async def scenario(profile: RunningProfile) -> None:
        tracemalloc.start()
        try:
            assert (await profile.request("heap")).code == 200
            assert profile.clock.now_s() == 0
            assert tracemalloc.is_tracing()
        finally:
            tracemalloc.stop()

    run_scenario(scenario)


def test_the_goroutine_page_lists_tasks_and_their_stacks() -> None:
    async def waits_for_spring(profile: RunningProfile) -> None:
        await profile.clock.wait(100)

    async def scenario(profile: RunningProfile) -> None:
        async with TaskGroup("tasks") as group:
            group.start(waits_for_spring(profile), name="a bear")
            await profile.clock.wait(1)
            page = (await profile.request("goroutine")).body.decode()
        assert "a bear:\n" in page
        assert "waits_for_spring" in page
        assert page.splitlines()[0].endswith(" tasks")

    run_scenario(scenario)


def test_the_index_lists_all_profiles() -> None:
    async def scenario(profile: RunningProfile) -> None:
        index = (await profile.request("")).body.decode()
        for name in ("allocs", "cmdline", "goroutine", "heap", "profile"):
            assert f'href="/debug/pprof/{name}"' in index
            assert (await profile.request(name, seconds="0")).code == 200
        unknown = profile.pages["/debug/pprof/"](PageRequest("GET", "/debug/pprof/mutex", {}))
        assert isinstance(unknown, PageResponse)
        assert (unknown.code, unknown.body) == (404, b"Unknown profile\n"), "an HTML page would be read as a profile"
        assert (await profile.request("cmdline")).body.decode() == "\0".join(sys.argv)

    run_scenario(scenario)
