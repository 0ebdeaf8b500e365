"""API servers without the network, for tests: the whole write path on a store in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.users import User
from mooring.apiserver.assembly import Settings, open_api_server
from mooring.apiserver.loopback import LoopbackClient
from mooring.apiserver.server import ApiServer
from mooring.kit.clock import Clock, VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.store.memory import MemoryStore

TOKEN_KEY = new_key()
WITHOUT_CONTROLLERS = Settings(TOKEN_KEY, disabled_admission_plugins=frozenset(("ServiceAccount",)))
"""A server on which pods can be created although no controller creates service accounts."""


@asynccontextmanager
async def open_loopback_client(clock: Clock, entropy: Entropy | None = None) -> AsyncIterator[LoopbackClient]:
    """A client of a fresh API server, which runs while the block lasts."""
    entropy = entropy or Entropy(1)
    async with open_api_server(MemoryStore(), clock, entropy, WITHOUT_CONTROLLERS) as api_server:
        yield LoopbackClient(api_server, User("tester"), "tester")


def with_api_server(
    scenario: Callable[[ApiServer, LoopbackClient], Awaitable[None]], settings: Settings | None = None
) -> None:
    """Play a scenario on a fresh cluster."""
    clock = VirtualClock()

    async def play() -> None:
        async with open_api_server(MemoryStore(), clock, Entropy(1), settings or WITHOUT_CONTROLLERS) as api_server:
            await scenario(api_server, LoopbackClient(api_server, User("tester"), "tester"))

    run(play(), clock)
