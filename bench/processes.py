"""Processes of a benchmark: a program with its log, a `mooring up`, a scheduler that is ready, and their resources.

1. A program ends with its block, also if the block raises: terminated, and killed after `STOP_S_MAX`.
2. Programs run in sessions of their own: Ctrl-C reaches the benchmark only, which ends them in order.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec

from bench.client import Answer, Connection, connect, connected, request
from bench.machine import cpu_s_of, family_of, free_port, peak_bytes, resident_bytes

READY_S_MAX = 60.0
READY_CHECK_S = 0.02
STOP_S_MAX = 10.0
LOG_LINES_SHOWN = 15
QPS = 100_000
"""The rate limit of the client of every scheduler: none of them reaches it."""


class ProgramError(RuntimeError):
    """A program ended, or did not become ready."""


class Program:
    """A process, with the file of its log."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._log = log

    @property
    def cpu_s(self) -> float:
        return cpu_s_of(self.pid)

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(self.pid)

    @property
    def peak_bytes(self) -> int:
        return peak_bytes(self.pid)

    def check_runs(self) -> None:
        """Raises `ProgramError` with the last lines of the log."""
        if self._process.poll() is not None:
            raise ProgramError(f"{self.name} ended with code {self._process.returncode}:\n{self._last_lines()}")

    def is_late(self) -> ProgramError:
        return ProgramError(f"{self.name} is not ready after {READY_S_MAX:.0f} s:\n{self._last_lines()}")

    def _last_lines(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])


@contextmanager
def running(name: str, command: Sequence[str], folder: Path) -> Iterator[Program]:
    """A program, until the end of the block. Raises `ProgramError` if it cannot be started."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise ProgramError(f"cannot start {name} ({command[0]}): {error.strerror}") from error
    with process:
        try:
            yield Program(name, process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


class MooringUp:
    """A process of `mooring up`, with the processes that it started."""

    def __init__(self, pid: int, url: str) -> None:
        self._pid = pid
        found = re.match(r"https://([^:]+):(\d+)", url)
        assert found is not None, f"{url} is no address"
        self.host, self.port = found[1], int(found[2])

    @property
    def cpu_s(self) -> float:
        """CPU time so far."""
        return sum(map(cpu_s_of, family_of(self._pid)))

    @property
    def resident_bytes(self) -> int:
        return sum(map(resident_bytes, family_of(self._pid)))

    def connected(self, count: int) -> AbstractAsyncContextManager[list[Connection]]:
        return connected(self.host, self.port, count)


@contextmanager
def mooring_up(token: str, *options: str) -> Iterator[MooringUp]:
    """`mooring up` on a free port, as soon as it has printed its address."""
    command = [sys.executable, "-m", "mooring", "up", "--port", "0", "--token", token, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = next(found[0] for line in process.stdout if (found := re.search(r"https://\S+", line)))
            yield MooringUp(process.pid, url)
        finally:
            process.terminate()


def check_answers(answers: Sequence[Answer], status: int) -> None:
    wrong = [answer for answer in answers if answer.status != status]
    assert not wrong, f"{len(wrong)} answers with another status than {status}, e.g. {wrong[0]}"


async def wait_ready(program: Program, port: int, token: str = "") -> float:
    """Until `/readyz` answers 200; how many seconds that took. One connection is reused: handshakes cost CPU time."""
    started_s = perf_counter()
    asked = request(token, "GET", "/readyz")
    connection: Connection | None = None
    while perf_counter() < started_s + READY_S_MAX:
        program.check_runs()
        try:
            if connection is None:
                (connection,) = await connect("127.0.0.1", port, 1)
            if (await connection.ask(asked)).status == 200:
                connection.close()
                await connection.wait_closed()
                return perf_counter() - started_s
        except OSError:
            connection = None
        await asyncio.sleep(READY_CHECK_S)
    raise program.is_late()


class SchedulerProcess(NamedTuple):
    """A scheduler that is ready."""

    program: Program
    ready_s: float


Command = Callable[[Path, int], list[str]]
"""The command of a scheduler: from the file of its configuration and its port."""


def mooring_scheduler(configuration: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "mooring", "scheduler", *_scheduler_flags(configuration, port)]


def kube_scheduler(binary: str) -> Command:
    return lambda configuration, port: [binary, *_scheduler_flags(configuration, port)]


def _scheduler_flags(configuration: Path, port: int) -> list[str]:
    return [f"--config={configuration}", "--bind-address=127.0.0.1", f"--secure-port={port}"]


@contextmanager
def scheduling(name: str, command: Command, kubeconfig: Path, folder: Path) -> Iterator[SchedulerProcess]:
    """A scheduler with the default profile, when it is ready."""
    configuration, port = folder / "scheduler.yaml", free_port()
    configuration.write_bytes(msgspec.json.encode(scheduler_configuration(kubeconfig)))  # JSON is YAML
    with running(name, command(configuration, port), folder) as program:
        yield SchedulerProcess(program, asyncio.run(wait_ready(program, port)))


def scheduler_configuration(kubeconfig: Path) -> dict[str, object]:
    """What every scheduler is configured with."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": QPS, "burst": QPS},
        "leaderElection": {"leaderElect": False},
    }


def write_kubeconfig(path: Path, port: int, token: str) -> Path:
    """A kubeconfig for a server on loopback."""
    server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": server}],
        "users": [{"name": "bench", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    path.write_bytes(msgspec.json.encode(content))
    return path
