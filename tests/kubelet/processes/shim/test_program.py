"""The shim: its reports, records and log files, and that no process outlives it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kubelet.processes.shim.client import ShimConfig, ShimProcess, ShimReport
from mooring.kubelet.processes.shim.linux import boot_id, descendants_of, has_oom_kill, start_ticks
from mooring.kubelet.processes.shim.log import LINE_BYTES_MAX, LOG_FILES_MAX, LogFile
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
) -> AsyncIterator[tuple[ShimProcess, AsyncIterator[ShimReport]]]:
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


def test_the_log_is_complete_before_the_end_is_reported(tmp_path: Path) -> None:
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


def test_a_process_that_cannot_be_started_is_reported_in_words(tmp_path: Path) -> None:
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


def test_kill_ends_a_process_that_ignores_signals(tmp_path: Path) -> None:
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
def test_no_process_outlives_the_shim(tmp_path: Path, how: str) -> None:
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


# --- Log files: CRI format, rotation ---------------------------------------------------------------------------------


def entries(path: Path) -> list[str]:
    """Without their times."""
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("writes", "lines"),
    [
        pytest.param([b"a\nb\n"], ["stdout F a", "stdout F b"], id="two lines at once"),
        pytest.param([b"a", b"b\n"], ["stdout F ab"], id="a line in two parts"),
        pytest.param([b"a"], ["stdout F a"], id="a line without an end"),
        pytest.param([b"\n"], ["stdout F "], id="an empty line"),
        pytest.param(
            [b"x" * (LINE_BYTES_MAX + 2) + b"\n"], ["stdout P " + "x" * LINE_BYTES_MAX, "stdout F xx"], id="long"
        ),
        pytest.param(
            [b"x" * LINE_BYTES_MAX, b"y\n"], ["stdout P " + "x" * LINE_BYTES_MAX, "stdout F y"], id="long, in two parts"
        ),
    ],
)
def test_what_is_written_becomes_lines(tmp_path: Path, writes: list[bytes], lines: list[str]) -> None:
    log = LogFile(str(tmp_path / "0.log"), 1 << 20)
    for data in writes:
        log.write("stdout", data)
    log.close()
    assert entries(tmp_path / "0.log") == lines


def test_the_two_streams_do_not_mix_their_lines(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "0.log"), 1 << 20)
    log.write("stdout", b"to be ")
    log.write("stderr", b"oops\n")
    log.write("stdout", b"or not\n")
    log.close()
    assert entries(tmp_path / "0.log") == ["stderr F oops", "stdout F to be or not"]


def test_full_files_are_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "0.log"), 200)
    for number in range(100):
        log.write("stdout", b"line %d\n" % number)
    log.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["0.log", *(f"0.log.{number}" for number in range(1, LOG_FILES_MAX))]
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())
    kept = [line for number in range(LOG_FILES_MAX - 1, 0, -1) for line in entries(tmp_path / f"0.log.{number}")]
    kept += entries(tmp_path / "0.log")
    assert kept == [f"stdout F line {number}" for number in range(100 - len(kept), 100)]


# --- Processes of the shim -------------------------------------------------------------------------------------------


def test_descendants() -> None:
    script = "sleep 600 & echo $!; wait"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as shell:
        assert shell.stdout is not None
        process = int(shell.stdout.readline())
        assert descendants_of(shell.pid) == [process]
        assert {shell.pid, process} <= set(descendants_of(os.getpid()))
        os.killpg(shell.pid, 9)


def test_a_process_is_known_by_the_time_of_its_start() -> None:
    assert start_ticks(os.getpid()) > 0
    assert start_ticks(2**22 + 1) == 0
    assert boot_id() == boot_id() != ""


@pytest.mark.parametrize(
    ("text", "is_killed"),
    [
        pytest.param("low 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n", True, id="v2, killed"),
        pytest.param("low 0\nmax 3\noom 0\noom_kill 0\n", False, id="v2, not killed"),
        pytest.param("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True, id="v1, killed"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_whether_the_memory_was_too_small(tmp_path: Path, text: str, is_killed: bool) -> None:
    (tmp_path / "events").write_text(text)
    assert has_oom_kill(str(tmp_path / "events")) is is_killed
    assert has_oom_kill(str(tmp_path / "none")) is False
