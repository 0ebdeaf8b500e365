"""A desk on virtual time, for tests: the whole API server without the network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.users import User
from mooring.apiserver.assembly import Settings, open_desk
from mooring.apiserver.desk import Desk
from mooring.apiserver.loopback import LoopbackClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.store.memory import MemoryStore

TOKEN_KEY = new_key()


def with_desk(scenario: Callable[[Desk, LoopbackClient], Awaitable[None]]) -> None:
    """Play a scenario on a fresh cluster."""
    clock = VirtualClock()

    async def play() -> None:
        async with open_desk(MemoryStore(), clock, Entropy(1), Settings(TOKEN_KEY)) as desk:
            await scenario(desk, LoopbackClient(desk, User("tester"), "tester"))

    run(play(), clock)
