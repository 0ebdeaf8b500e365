"""Logs are read as `kubectl logs` asks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.simulated.log import LOG_LINES_MAX, Log, LogReader


@dataclass(frozen=True)
class Asked:
    follows: bool = False
    is_previous: bool = False
    since_s: int | None = None
    since_time: str | None = None
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


def three_lines(clock: VirtualClock) -> Log:
    log = Log()
    for ago_s, text in ((60, "one"), (30, "two"), (1, "three")):
        log.write(clock.wall_s() - ago_s, [text])
    return log


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        pytest.param(Asked(), "one\ntwo\nthree\n", id="everything"),
        pytest.param(Asked(tail_lines=2), "two\nthree\n", id="the tail"),
        pytest.param(Asked(tail_lines=0), "", id="no tail"),
        pytest.param(Asked(since_s=45), "two\nthree\n", id="since a while ago"),
        pytest.param(Asked(since_time="2025-12-31T23:59:40Z"), "three\n", id="since a time"),
        pytest.param(Asked(since_s=45, tail_lines=1), "three\n", id="both"),
        pytest.param(Asked(limit_bytes=6), "one\ntw", id="so many bytes"),
        pytest.param(
            Asked(tail_lines=1, has_timestamps=True), "2025-12-31T23:59:59.000000Z three\n", id="with the time"
        ),
    ],
)
def test_the_part_that_is_asked_for(asked: Asked, text: str) -> None:
    clock = VirtualClock()

    async def main() -> str:
        return b"".join([part async for part in LogReader(three_lines(clock), asked, clock).read()]).decode()

    assert run(main(), clock) == text


def test_a_follower_hears_each_line_once_until_the_run_is_over() -> None:
    clock = VirtualClock()
    heard: list[tuple[float, bytes]] = []

    async def main() -> None:
        log = three_lines(clock)

        async def follow() -> None:
            async for part in LogReader(log, Asked(follows=True, tail_lines=1), clock).read():
                heard.append((clock.now_s(), part))

        async with TaskGroup("readers") as group:
            group.start(follow(), name="follower")
            await clock.wait(5)
            log.write(clock.wall_s(), ["four", "five"])
            await clock.wait(5)
            log.close()

    run(main(), clock)
    assert heard == [(0.0, b"three\n"), (5.0, b"four\n"), (5.0, b"five\n")]
    assert clock.now_s() == 10.0


def test_the_oldest_lines_make_room() -> None:
    log = Log()
    log.write(0.0, [str(number) for number in range(LOG_LINES_MAX + 10)])
    assert len(log.lines) == LOG_LINES_MAX
    assert log.lines[0].text == "10"
    for number in range(LOG_LINES_MAX + 5):
        log.write(1.0, [f"later {number}"])
    assert [log.lines[0].text, log.lines[-1].text] == ["later 5", f"later {LOG_LINES_MAX + 4}"]
    assert [line.number for line in log.lines] == list(range(LOG_LINES_MAX + 16, 2 * LOG_LINES_MAX + 16))


def test_a_line_is_made_when_it_is_read() -> None:
    log, made = Log(), list[str]()

    def fill(text: str) -> str:
        made.append(text)
        return text.replace("{pod}", "web")

    log.write(0.0, ["{pod} serves"], fill)
    assert made == []
    assert [line.text for line in log.lines] == ["web serves"]
