"""Builders for tests of the store on etcd: a real etcd on loopback, a proxy, and scenarios.

The fixtures are in `tests/store/conftest.py`. Where etcd is not installed, it deselects the tests that need one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from bench.machine import free_port
from mooring.kit.clock import SystemClock
from mooring.kit.loop import run_real
from mooring.kit.tasks import TaskGroup
from mooring.store.etcd.errors import EtcdUnreachable
from mooring.store.etcd.settings import EtcdLimits
from mooring.store.etcd.store import EtcdStore
from mooring.store.interface import Store
from tests.waiting import LIMIT_S, until, wait_until

Answer = TypeVar("Answer")

PROGRAM: Final = shutil.which("etcd")

QUICK = EtcdLimits(
    request_s_max=LIMIT_S, unreachable_s_max=LIMIT_S, retry_s=0.02, retry_s_max=0.1, compaction_interval_s=0
)
"""Limits for tests: an unreachable etcd is retried quickly, and a slow one is waited for. Compaction happens only when
a test requests it."""
HASTY = replace(QUICK, unreachable_s_max=0.3)
"""Limits for tests with an unreachable etcd: connections are given up soon, but a slow etcd is waited for."""


class Etcd:
    """An etcd process that can be killed and restarted with its data."""

    def __init__(self, program: str, directory: Path, *options: str, tls: ssl.SSLContext | None = None) -> None:
        self._program = program
        self._options = options
        self._tls = tls
        self._scheme = "https" if tls is not None else "http"
        self.directory = directory
        self._client_port, self._peer_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._client_port}"

    @property
    def url(self) -> str:
        return f"etcd://{self.endpoint}"

    def start(self) -> None:
        client, peer = f"{self._scheme}://{self.endpoint}", f"http://127.0.0.1:{self._peer_port}"
        self._process = subprocess.Popen(
            [
                *(self._program, "--data-dir", str(self.directory / "data"), "--name", "e"),
                *("--listen-client-urls", client, "--advertise-client-urls", client),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"e={peer}"),
                *("--heartbeat-interval", "20", "--election-timeout", "100"),  # one member elects itself quickly
                *self._options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_healthy()

    def kill(self) -> None:
        """Kill the process, as after a power failure."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # until all of its threads have stopped

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def call(self, path: str, body: object) -> None:
        """Call an API that the store does not use, over etcd's JSON gateway."""
        request = urllib.request.Request(f"{self._scheme}://{self.endpoint}{path}", json.dumps(body).encode())
        urllib.request.urlopen(request, timeout=LIMIT_S, context=self._tls).close()

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"{self._scheme}://{self.endpoint}/metrics", timeout=LIMIT_S) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def _wait_healthy(self) -> None:
        clock = SystemClock()
        began_s = clock.now_s()
        while clock.now_s() - began_s < LIMIT_S:
            if self._is_healthy():
                return
            # Not `clock.wait`: a test may start etcd inside of a running event loop.
            assert self._process is not None
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"etcd ended with {self._process.wait(timeout=0.02)}")
        raise AssertionError(f"etcd did not become healthy within {LIMIT_S} s")

    def _is_healthy(self) -> bool:
        url = f"{self._scheme}://{self.endpoint}/health"
        try:
            with urllib.request.urlopen(url, timeout=10.0, context=self._tls) as answer:
                return bool(json.load(answer)["health"] == "true")
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False


class Proxy:
    """A TCP proxy to an etcd; `cut` closes its connections, `mend` accepts new ones."""

    def __init__(self, endpoint: str) -> None:
        self._host, _, port = endpoint.rpartition(":")
        self._port = int(port)
        self._own_port = free_port()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._own_port}"

    @property
    def url(self) -> str:
        return f"etcd://{self.endpoint}"

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self._own_port)

    async def cut(self) -> None:
        """Close all connections and stop listening."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, there_writer]
        async with TaskGroup("proxy") as group:
            group.start(_pump(reader, there_writer), name="there")
            group.start(_pump(there_reader, writer), name="back")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


async def until_noticed(store: EtcdStore, endpoint: str) -> None:
    """Wait until a store knows that an endpoint is disconnected."""
    (wire,) = [each for each in store._endpoints._wires if each.endpoint == endpoint]
    await until(lambda: wire._channel.get_state().name != "READY")


def wait_watchers(etcd: Etcd, count: int) -> None:
    """Wait until etcd counts `count` watchers. It removes those of a closed store with a delay."""
    wait_until(lambda: etcd.metric("etcd_debugging_mvcc_watcher_total") == count)


async def once_reachable(request: Callable[[], Awaitable[Answer]]) -> Answer:
    """The result of a request after an etcd became reachable again, which may take longer than `HASTY` allows."""
    clock = SystemClock()
    began_s = clock.now_s()
    while True:
        try:
            return await request()
        except EtcdUnreachable:
            if clock.now_s() - began_s > LIMIT_S:
                raise
            await clock.wait(0.05)


def play(url: str, scenario: Callable[[EtcdStore], Awaitable[None]], limits: EtcdLimits = QUICK) -> None:
    """Run a scenario with an open store and the system clock."""

    async def started() -> None:
        async with await EtcdStore.open(url, SystemClock(), limits) as store:
            await scenario(store)

    run_real(started())


def play_two(url: str, scenario: Callable[[EtcdStore, EtcdStore], Awaitable[None]], limits: EtcdLimits = QUICK) -> None:
    """Run a scenario with two stores on one etcd."""

    async def started() -> None:
        async with (
            await EtcdStore.open(url, SystemClock(), limits) as one,
            await EtcdStore.open(url, SystemClock(), limits) as other,
        ):
            await scenario(one, other)

    run_real(started())


async def empty(store: Store) -> None:
    """Delete everything: the tests share an etcd, because starting one takes a second."""
    for record in (await store.list("/")).records:
        await store.delete(record.key)
