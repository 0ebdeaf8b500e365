"""The simulated runtime: container states, logs, and the recorded statuses of the built-in stage sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Runtime, Waiting
from mooring.kubelet.simulated.runtime import LOG_LINES_MAX, LogBuffer, LogReader, SimulatedRuntime
from mooring.kubelet.simulated.stage_file import load_stage_sets
from mooring.kubelet.timers import Timers
from tests.kubelet.harness import pod, view

STAGES = """
stageSets:
  - name: plain
    match: {}
    stages:
      - {name: pulling, state: waiting, reason: Pulling, message: "{image} for {pod}", for: 2s}
      - {name: blink, state: waiting, for: 100ms}
      - {name: up, state: running, ready: false, started: false, for: 1s}
      - {name: serving, state: running}
    stop: {for: 5s, exitCode: 143}
"""
ONE = view(pod("web", annotations={}), uid="u")
MAIN = ONE.spec.containers[0]


@dataclass(frozen=True)
class Asked:
    follows: bool = False
    is_previous: bool = False
    since_s: int | None = None
    since_time: str | None = None
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


def three_lines(clock: VirtualClock) -> LogBuffer:
    log = LogBuffer()
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


def test_a_follower_gets_each_line_once_until_the_run_ends() -> None:
    clock = VirtualClock()
    observed: list[tuple[float, bytes]] = []

    async def main() -> None:
        log = three_lines(clock)

        async def follow() -> None:
            async for part in LogReader(log, Asked(follows=True, tail_lines=1), clock).read():
                observed.append((clock.now_s(), part))

        async with TaskGroup("readers") as group:
            group.start(follow(), name="follower")
            await clock.wait(5)
            log.write(clock.wall_s(), ["four", "five"])
            await clock.wait(5)
            log.close()

    run(main(), clock)
    assert observed == [(0.0, b"three\n"), (5.0, b"four\n"), (5.0, b"five\n")]
    assert clock.now_s() == 10.0


def test_the_oldest_lines_make_room() -> None:
    log = LogBuffer()
    log.write(0.0, [str(number) for number in range(LOG_LINES_MAX + 10)])
    assert len(log.lines) == LOG_LINES_MAX
    assert log.lines[0].text == "10"
    for number in range(LOG_LINES_MAX + 5):
        log.write(1.0, [f"later {number}"])
    assert [log.lines[0].text, log.lines[-1].text] == ["later 5", f"later {LOG_LINES_MAX + 4}"]
    assert [line.number for line in log.lines] == list(range(LOG_LINES_MAX + 16, 2 * LOG_LINES_MAX + 16))


def test_a_line_is_made_when_it_is_read() -> None:
    log, made = LogBuffer(), list[str]()

    def fill(text: str) -> str:
        made.append(text)
        return text.replace("{pod}", "web")

    log.write(0.0, ["{pod} serves"], fill)
    assert made == []
    assert [line.text for line in log.lines] == ["web serves"]


class RecordingHandler:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._began_s = clock.wall_s()
        self.observed: list[tuple[float, int, ContainerState]] = []

    def container_changed(self, pod_uid: str, container: str, attempt: int, state: ContainerState) -> None:
        assert (pod_uid, container) == ("u", "main")
        self.observed.append((round(self._clock.now_s(), 3), attempt, self._since_the_beginning(state)))

    def _since_the_beginning(self, state: ContainerState) -> ContainerState:
        match state:
            case Running(started_s, is_ready, is_started):
                return Running(round(started_s - self._began_s, 3), is_ready, is_started)
            case Exited(code, started_s, finished_s, reason, message, signal):
                began_s, ended_s = round(started_s - self._began_s, 3), round(finished_s - self._began_s, 3)
                return Exited(code, began_s, ended_s, reason, message, signal)
            case _:
                return state


def observed(
    do: Callable[[Runtime, VirtualClock, float], None], at_s: float, until_s: float = 60.0
) -> list[tuple[float, int, ContainerState]]:
    """The reported states of a container that is started at once, with an action later."""
    clock = VirtualClock()

    async def main() -> list[tuple[float, int, ContainerState]]:
        hearer = RecordingHandler(clock)
        runtime = SimulatedRuntime(load_stage_sets(STAGES), clock, Entropy(1), Timers(clock), hearer)
        runtime.start(ONE, MAIN, Role.CONTAINER, 0)
        await clock.wait(at_s)
        do(runtime, clock, at_s)
        await clock.wait(until_s - at_s)
        return hearer.observed

    return run(main(), clock)


PULLING = (0.0, 0, Waiting("Pulling", "example.com/web:1 for web"))
UP = (2.1, 0, Running(2.1, is_ready=False, is_started=False))
SERVING = (3.1, 0, Running(2.1))


def test_each_stage_is_reported_except_short_waits() -> None:
    assert observed(lambda runtime, clock, at_s: None, 1.0) == [PULLING, UP, SERVING]


def test_a_stopped_container_ends_as_its_stages_say() -> None:
    end = (15.0, 0, Exited(143, 2.1, 15.0, "Error"))
    assert observed(lambda runtime, clock, at_s: runtime.stop("u", "main", 30.0), 10.0) == [PULLING, UP, SERVING, end]


def test_or_is_killed_after_its_grace() -> None:
    end = (12.0, 0, Exited(137, 2.1, 12.0, "Error", signal=9))
    assert observed(lambda runtime, clock, at_s: runtime.stop("u", "main", 2.0), 10.0) == [PULLING, UP, SERVING, end]


def test_one_that_never_ran_stops_without_a_word() -> None:
    assert observed(lambda runtime, clock, at_s: runtime.stop("u", "main", 2.0), 1.0) == [PULLING]


def test_a_forgotten_pod_is_not_reported() -> None:
    assert observed(lambda runtime, clock, at_s: runtime.forget("u"), 2.5) == [PULLING, UP]


def test_one_that_an_earlier_kubelet_started_goes_on_where_it_may_have_been() -> None:
    clock = VirtualClock()

    async def main() -> list[tuple[float, int, ContainerState]]:
        hearer = RecordingHandler(clock)
        runtime = SimulatedRuntime(load_stage_sets(STAGES), clock, Entropy(1), Timers(clock), hearer)
        started = Running(clock.wall_s() - 100.0, is_ready=False, is_started=False)
        runtime.adopt(ONE, MAIN, Role.CONTAINER, 4, started)
        await clock.wait(60.0)
        return hearer.observed

    assert run(main(), clock) == [(1.0, 4, Running(-100.0))]
