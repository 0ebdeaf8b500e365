"""Reading log files: selection, order, follow."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mooring.kit.clock import VIRTUAL_WALL_S, Clock, VirtualClock, format_rfc3339_micro
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.processes.log_files import LogFileReader, generations, tail_start
from tests.kubelet.simulated.test_runtime import Asked

STEP_S = 10.0


def line(number: int, text: str = "", tag: str = "F") -> str:
    """Written `number` steps after the beginning."""
    return f"{format_rfc3339_micro(VIRTUAL_WALL_S + number * STEP_S)} stdout {tag} {text or number}\n"


def lines(*numbers: int) -> str:
    return "".join(line(number) for number in numbers)


async def joined(parts: AsyncGenerator[bytes, None]) -> str:
    return b"".join([part async for part in parts]).decode()


def read(path: Path, asked: Asked, *, waited_s: float = 0.0) -> str:
    async def story() -> str:
        await clock.wait(waited_s)
        return await joined(LogFileReader(path, asked, clock, lambda: False).read())

    clock = VirtualClock()
    return run(story(), clock)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(Asked(), "0\n1\n2\n3\n", id="everything"),
        pytest.param(Asked(tail_lines=2), "2\n3\n", id="the tail"),
        pytest.param(Asked(tail_lines=0), "", id="no tail"),
        pytest.param(Asked(tail_lines=9), "0\n1\n2\n3\n", id="a tail longer than the log"),
        pytest.param(Asked(limit_bytes=3), "0\n1", id="so many bytes"),
        pytest.param(Asked(since_s=25), "2\n3\n", id="the last seconds"),
        pytest.param(Asked(since_time=format_rfc3339_micro(VIRTUAL_WALL_S + 30)), "3\n", id="since a time"),
        pytest.param(Asked(since_s=25, tail_lines=1), "3\n", id="the tail of the last seconds"),
        pytest.param(
            Asked(tail_lines=1, has_timestamps=True),
            f"{format_rfc3339_micro(VIRTUAL_WALL_S + 30)} 3\n",
            id="with times",
        ),
    ],
)
def test_what_is_read(tmp_path: Path, asked: Asked, said: str) -> None:
    (tmp_path / "0.log.1").write_text(lines(0, 1))
    (tmp_path / "0.log").write_text(lines(2, 3))
    assert read(tmp_path / "0.log", asked, waited_s=40.0) == said


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "0.log", Asked()) == ""


def test_parts_are_one_line_with_one_time(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_text(line(0, "to be ", "P") + line(1, "or not") + line(2, "is"))
    first, third = (format_rfc3339_micro(VIRTUAL_WALL_S + number * STEP_S) for number in (0, 2))
    assert read(tmp_path / "0.log", Asked(has_timestamps=True)) == f"{first} to be or not\n{third} is\n"


@pytest.mark.parametrize("count", [1, 7, 5000])
def test_a_tail_is_found_in_blocks_of_any_size(count: int) -> None:
    every = [line(number).encode() for number in range(6000)]
    file = io.BytesIO(b"".join(every))
    start, _ = tail_start(file, count)
    assert start is not None
    assert file.getvalue()[start:] == b"".join(every[-count:])


def test_the_oldest_file_comes_first() -> None:
    names = [path.name for path in generations(Path("/pods/0.log"))]
    assert names == ["0.log.4", "0.log.3", "0.log.2", "0.log.1", "0.log"]


class Writer:
    """Somebody who writes a log while it is followed."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.is_running = True
        self._clock = clock

    async def write(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)
        await self._clock.wait(1.0)

    async def put_aside(self) -> None:
        self.path.rename(self.path.with_name("0.log.1"))
        await self._clock.wait(1.0)


def test_a_follower_gets_everything_once_and_ends_with_the_run(tmp_path: Path) -> None:
    clock = VirtualClock()

    async def story() -> str:
        writer = Writer(tmp_path / "0.log", clock)
        await writer.write(lines(0))
        reader = LogFileReader(writer.path, Asked(follows=True), clock, lambda: writer.is_running)
        async with TaskGroup("log") as group:
            reading = group.start(joined(reader.read()), name="read")
            await writer.write(lines(1))
            await writer.put_aside()
            await writer.write(lines(2))
            await writer.write(line(3)[:20])
            await writer.write(line(3)[20:])
            writer.is_running = False
        return reading.result()

    assert run(story(), clock) == "0\n1\n2\n3\n"
