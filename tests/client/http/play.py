"""Run scenarios over HTTP: a server in the same event loop, a client, and a clock with short waits."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from mooring.apiserver.loopback import LoopbackClient
from mooring.client.http.client import HttpClient, HttpLimits
from mooring.client.http.connection import Connection, Credentials, StaticCredentials
from mooring.kit.clock import SystemClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run_real
from tests.api_servers import open_loopback_client
from tests.client.http.server import HttpServer
from tests.waiting import LIMIT_S

UNLIMITED = HttpLimits(requests_per_s=0)


class HurriedClock(SystemClock):
    """A clock that waits a five-hundredth of each delay and records the delays."""

    def __init__(self) -> None:
        self.waited_s: list[float] = []

    async def wait(self, delay_s: float) -> None:
        self.waited_s.append(delay_s)
        await super().wait(delay_s / 500)


class StandingClock(HurriedClock):
    """A clock whose time does not advance, so that the load of the machine has no effect."""

    def now_s(self) -> float:
        return 0.0


class HttpSetup:
    """A server, its storage by a loopback client, and an HTTP client."""

    def __init__(self, local: LoopbackClient, server: HttpServer, client: HttpClient, clock: HurriedClock) -> None:
        self.local = local
        self.server = server
        self.client = client
        self.clock = clock


def run_over_http(
    scenario: Callable[[HttpSetup], Awaitable[None]],
    *,
    limits: HttpLimits = UNLIMITED,
    can_watch_all: bool = False,
    security: ssl.SSLContext | None = None,
    authority: bytes = b"",
    credentials: Credentials | None = None,
    make_clock: Callable[[], HurriedClock] = HurriedClock,
) -> None:
    async def play() -> None:
        clock = make_clock()
        async with (
            open_loopback_client(clock) as local,
            HttpServer(local, security=security, can_watch_all=can_watch_all) as server,
        ):
            connection = Connection(
                server.url, authority=authority, credentials=credentials or StaticCredentials(), proxy=""
            )
            async with HttpClient(connection, clock, Entropy(2), limits=limits, environment={}) as client:
                async with asyncio.timeout(LIMIT_S):
                    await scenario(HttpSetup(local, server, client, clock))

    run_real(play())
