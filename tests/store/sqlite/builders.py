"""What the tests of the store on disk share: playing on a directory, and directories as a crash leaves them."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from mooring.kit.clock import SystemClock, VirtualClock
from mooring.kit.loop import run, run_real
from mooring.store.interface import Store
from mooring.store.sqlite.errors import SqliteLimits
from mooring.store.sqlite.store import SqliteStore

DATABASE = "store.db"
LOG = "store.db-wal"
ACKNOWLEDGED = "acknowledged"


ON_THE_THREAD = SqliteLimits(here_writes_max=0)


def play(
    directory: Path, scenario: Callable[[SqliteStore], Awaitable[None]], limits: SqliteLimits | None = None
) -> None:
    """On virtual time, from opening to closing."""
    clock = VirtualClock()

    async def started() -> None:
        async with await SqliteStore.open(directory, clock, limits or SqliteLimits()) as store:
            await scenario(store)

    run(started(), clock)


def play_real(
    directory: Path, scenario: Callable[[SqliteStore], Awaitable[None]], limits: SqliteLimits | None = None
) -> None:
    """On the system's time; unless limits say otherwise, with the writer on its thread."""

    async def started() -> None:
        async with await SqliteStore.open(directory, SystemClock(), limits or ON_THE_THREAD) as store:
            await scenario(store)

    run_real(started())


def crash_image(directory: Path, to: Path) -> Path:
    """The directory as it is now, while somebody writes to it: what `kill -9` would leave."""
    shutil.copytree(directory, to)
    return to


async def contents(store: Store) -> dict[str, tuple[int, bytes]]:
    return {record.key: (record.revision, record.value) for record in (await store.list("/")).records}


def contents_of(directory: Path) -> tuple[int, dict[str, tuple[int, bytes]]]:
    """The revision and the records that a directory comes back with."""
    found: list[tuple[int, dict[str, tuple[int, bytes]]]] = []

    async def look(store: SqliteStore) -> None:
        found.append((await store.revision(), await contents(store)))

    play(directory, look)
    return found[0]
