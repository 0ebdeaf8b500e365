"""The shim client: messages do not wait, reports come in order, and `close` kills the container."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from mooring.kit.clock import SystemClock
from mooring.kit.tasks import TaskGroup
from mooring.kubelet.processes.cgroups import Cgroup
from mooring.kubelet.processes.shim.client import Sandbox, ShimProcess, ShimReport, shim_config
from mooring.kubelet.processes.shim.log import LOG_BYTES_MAX
from tests.kubelet.processes.shim.test_program import is_alive, log_of, played, shim, wait_gone, wanted
from tests.waiting import LIMIT_S

FOREVER = "exec sleep 600"


def test_reports_come_in_order_until_it_has_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, "echo hello; exit 3") as (_, reports):
            running, exited = [report async for report in reports]
            assert running.running > 0
            assert (running.exited, running.failed, running.ran) == (None, "", None)
            assert (exited.running, exited.exited, exited.is_out_of_memory) == (0, 3, False)
            assert running.at <= exited.at
        assert [line[-1] for line in log_of(tmp_path)] == ["hello"]

    played(story)


def test_each_report_says_one_thing(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, "true", command=["/nowhere/at/all"]) as (_, reports):
            (failed,) = [report async for report in reports]
        assert failed.failed
        assert (failed.running, failed.exited, failed.ran) == (0, None, None)

    played(story)


def test_commands_are_reported_under_their_numbers(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, FOREVER) as (process, reports):
            await anext(reports)
            for number in (7, 8, 9):
                process.run(number, ["/bin/sh", "-c", f"echo I am {number}; exit {number}"], LIMIT_S)
            heard: dict[int | None, ShimReport] = {}
            while len(heard) < 3:
                report = await anext(reports)
                heard[report.ran] = report
        assert {number: (report.code, report.output) for number, report in heard.items()} == {
            number: (number, f"I am {number}\n") for number in (7, 8, 9)
        }

    played(story)


def test_words_to_one_that_is_gone_are_lost_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with shim(tmp_path, "exit 0") as (process, reports):
            assert [(await anext(reports)).exited for _ in range(2)] == [None, 0]
            with suppress(ChildProcessError):  # the loop has noticed already
                os.waitid(os.P_PID, process._process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it must not know
            process.signal(signal.SIGTERM)

    played(story)
    gc.collect()
    assert caplog.text == ""


def test_signals_and_kills_do_not_wait(tmp_path: Path) -> None:
    async def story() -> None:
        async with shim(tmp_path, FOREVER) as (process, reports):
            await anext(reports)
            process.signal(signal.SIGUSR1)
            assert (await anext(reports)).exited == 128 + signal.SIGUSR1
        (tmp_path / "other").mkdir()
        async with shim(tmp_path / "other", "trap '' TERM; echo ready; while :; do sleep 600; done") as (
            process,
            reports,
        ):
            await anext(reports)
            process.kill()
            assert (await anext(reports)).exited == 128 + signal.SIGKILL

    played(story)


def test_closing_the_shim_kills_the_container(tmp_path: Path) -> None:
    async def story() -> None:
        process = await ShimProcess.start(wanted(tmp_path, "trap '' TERM; while :; do sleep 600; done"))
        pid = (await anext(process.reports())).running
        assert is_alive(pid)
        await process.close()
        await wait_gone(pid)

    played(story)


def test_a_cancelled_close_waits_for_the_shim(tmp_path: Path) -> None:
    async def story() -> None:
        process = await ShimProcess.start(wanted(tmp_path, FOREVER))
        await anext(process.reports())
        process._process.send_signal(signal.SIGSTOP)
        async with TaskGroup("test") as group:
            closing = group.start(process.close(), name="closing")
            try:
                await SystemClock().wait(0)
                for _ in range(2):
                    closing.cancel()
                    await SystemClock().wait(0.01)
                assert not closing.done()
            finally:
                process._process.send_signal(signal.SIGCONT)
        assert closing.cancelled()
        assert process._process.returncode is not None

    played(story)


def test_messages_to_an_ended_shim_are_ignored(tmp_path: Path) -> None:
    async def story() -> None:
        process = await ShimProcess.start(wanted(tmp_path, "true"))
        assert [report.exited async for report in process.reports()] == [None, 0]
        process.signal(signal.SIGTERM)
        await process.close()
        process.kill()
        process.run(1, ["/bin/true"], 1.0)
        await process.close()
        assert [report async for report in process.reports()] == []

    played(story)


def test_the_configuration_of_a_shim(tmp_path: Path) -> None:
    cgroup = Cgroup(("/cg/a", "/cg/b"), ("/cg/a/cgroup.kill",), ("/cg/a/memory.events",))
    config = shim_config(["/bin/true"], {"A": "b"}, tmp_path / "0.log", tmp_path / "run.json", cgroup, Sandbox(user=7))
    assert (list(config.command), config.environment) == (["/bin/true"], {"A": "b"})
    assert (config.log, config.record) == (str(tmp_path / "0.log"), str(tmp_path / "run.json"))
    assert (config.cgroups, config.kill_files, config.oom_files) == (
        ("/cg/a", "/cg/b"),
        ("/cg/a/cgroup.kill",),
        ("/cg/a/memory.events",),
    )
    assert (config.sandbox.user, config.log_bytes_max) == (7, LOG_BYTES_MAX)
