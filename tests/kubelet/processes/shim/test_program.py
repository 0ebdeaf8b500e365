"""The shim program: its reports and records, and that no process outlives it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kubelet.processes.shim.client import Report, ShimConfig, ShimProcess
from tests.waiting import LIMIT_S

SHELL = "/bin/sh"


def wanted(folder: Path, script: str, **changes: object) -> ShimConfig:
    fields = {
        "command": [SHELL, "-c", script],
        "environment": {"PATH": "/usr/bin:/bin", "FOLDER": str(folder)},
        "log": str(folder / "0.log"),
        "record": str(folder / "run.json"),
    }
    return ShimConfig(**{**fields, **changes})  # type: ignore[arg-type]


@asynccontextmanager
async def shim(
    folder: Path, script: str, **changes: object
) -> AsyncIterator[tuple[ShimProcess, AsyncIterator[Report]]]:
    started = await ShimProcess.start(wanted(folder, script, **changes))
    try:
        yield started, started.reports()
    finally:
        await started.close()


def played(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(LIMIT_S):
            await story()

    run_real(bounded())


def log_of(folder: Path) -> list[tuple[str, ...]]:
    lines = (folder / "0.log").read_text().splitlines()
    return [tuple(line.split(" ", 3)[1:]) for line in lines]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def text_of(path: Path) -> str:
    return path.read_text()


async def wait_gone(pid: int) -> None:
    while is_alive(pid):
        await SystemClock().wait(0.02)


async def wait_written(path: Path) -> int:
    """The number in a file, once it is there."""
    while True:
        with suppress(OSError, ValueError):
            return int(text_of(path))
        await SystemClock().wait(0.02)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("true", 0, id="well"),
        pytest.param("exit 3", 3, id="with a code"),
        pytest.param("kill -TERM $$", 143, id="by a signal"),
        pytest.param("kill -KILL $$", 137, id="killed"),
    ],
)
def test_it_tells_how_a_process_ended(tmp_path: Path, script: str, code: int) -> None:
    async def story() -> None:
        async with shim(tmp_path, script) as (_, reports):
            running, exited = [report async for report in reports]
            assert running.running > 0
            assert exited.exited == code
            assert exited.at >= running.at
        assert not (tmp_path / "run.json").exists()

    played(story)


def test_the_log_is_complete_before_the_end_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        log: list[tuple[str, ...]] = []
        script = "i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; echo oops >&2; printf rest"
        async with shim(tmp_path, script) as (_, reports):
            async for report in reports:
                if report.exited is not None:
                    log = log_of(tmp_path)
        out = [text for stream, _, text in log if stream == "stdout"]
        assert out == [*(f"line {number}" for number in range(500)), "rest"]
        assert ("stderr", "F", "oops") in log

    played(story)


def test_a_process_that_cannot_be_started_is_told_in_words(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, "", command=["/no/such/program"]) as (_, reports):
            (failed,) = [report async for report in reports]
            assert "no such file" in failed.failed

    played(story)


def test_a_signal_goes_to_the_whole_group(tmp_path: Path) -> None:
    async def story() -> None:
        script = (
            "trap 'echo parent; wait; exit 7' TERM;"
            "(trap 'echo child; exit 0' TERM; echo 1 > $FOLDER/ready; while :; do sleep 0.05; done) & wait"
        )
        async with shim(tmp_path, script) as (started, reports):
            await anext(reports)
            await wait_written(tmp_path / "ready")
            started.signal(signal.SIGTERM)
            exited = await anext(reports)
            assert exited.exited == 7
        assert {text for _, _, text in log_of(tmp_path)} >= {"parent", "child"}

    played(story)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep 600 & echo $! > $FOLDER/pid", id="in its group"),
        pytest.param("setsid sh -c 'echo $$ > $FOLDER/pid; exec sleep 600' &", id="in a session of its own"),
        pytest.param("(setsid sh -c '(echo $$ > $FOLDER/pid; exec sleep 600) &' &)", id="a daemon"),
    ],
)
def test_what_a_process_leaves_running_is_killed_with_it(tmp_path: Path, script: str) -> None:
    async def story() -> None:
        async with shim(tmp_path, f"{script}\nwhile [ ! -s $FOLDER/pid ]; do sleep 0.01; done") as (_, reports):
            *_, exited = [report async for report in reports]
            assert exited.exited == 0
            await wait_gone(await wait_written(tmp_path / "pid"))

    played(story)


def test_kill_ends_who_does_not_want_to(tmp_path: Path) -> None:
    async def story() -> None:
        script = "trap '' TERM; setsid sleep 600 & echo $! > $FOLDER/pid; wait; wait"
        async with shim(tmp_path, script) as (started, reports):
            await anext(reports)
            left = await wait_written(tmp_path / "pid")
            started.signal(signal.SIGTERM)
            started.kill()
            exited = await anext(reports)
            assert exited.exited == 137
            await wait_gone(left)

    played(story)


@pytest.mark.parametrize("how", ["its pipe ends", "it is asked to end", "it is killed"])
def test_nobody_outlives_the_shim(tmp_path: Path, how: str) -> None:
    async def story() -> None:
        async with shim(tmp_path, "echo $PPID > $FOLDER/shim; exec sleep 600") as (started, reports):
            pid = (await anext(reports)).running
            own = await wait_written(tmp_path / "shim")
            if how == "its pipe ends":
                await started.close()
            else:
                os.kill(own, signal.SIGTERM if how == "it is asked to end" else signal.SIGKILL)
            await wait_gone(pid)

    played(story)


@pytest.mark.parametrize(
    ("script", "timeout_s", "code", "output", "is_timed_out"),
    [
        pytest.param("echo fine", LIMIT_S, 0, "fine\n", False, id="well"),
        pytest.param("echo bad >&2; exit 4", LIMIT_S, 4, "bad\n", False, id="with a code"),
        pytest.param("echo slow; exec sleep 600", 0.2, 137, "slow\n", True, id="too late"),
        pytest.param("echo slow; exec sleep 600", 0, 137, "slow\n", True, id="too late before it has its own group"),
        pytest.param("yes | head -c 100000", LIMIT_S, 0, "y\n" * 5120, False, id="with too much to say"),
    ],
)
def test_commands_run_beside_the_process(
    tmp_path: Path, script: str, timeout_s: float, code: int, output: str, is_timed_out: bool
) -> None:
    async def story() -> None:
        async with shim(tmp_path, "exec sleep 600") as (started, reports):
            await anext(reports)
            started.run(5, [SHELL, "-c", script], timeout_s)
            ran = await anext(reports)
            assert (ran.ran, ran.code, ran.is_timed_out, ran.error) == (5, code, is_timed_out, "")
            # On a busy machine a command may be too late before it has said anything.
            assert ran.output == output or (is_timed_out and ran.output == "")

    played(story)


def test_a_command_that_cannot_be_started_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, "exec sleep 600") as (started, reports):
            await anext(reports)
            started.run(1, ["/no/such/program"], LIMIT_S)
            assert "no such file" in (await anext(reports)).error

    played(story)


def test_the_process_is_written_down_while_it_runs(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, "exec sleep 600") as (_, reports):
            pid = (await anext(reports)).running
            assert f'"pid": {pid}' in (tmp_path / "run.json").read_text()

    played(story)


def test_a_process_has_its_environment_and_nothing_of_ours(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, "exec env", environment={"ONLY": "this"}) as (_, reports):
            assert [report async for report in reports][-1].exited == 0
        said = {text for _, _, text in log_of(tmp_path)}
        assert said - {"PWD=/", "SHLVL=0", "_=/usr/bin/env"} == {"ONLY=this"}

    played(story)
