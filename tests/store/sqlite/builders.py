"""Builders for tests of the SQLite store: scenarios on a directory, and copies of it as after a crash."""

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


ON_THE_THREAD = SqliteLimits(loop_writes_max=0)


def play(
    directory: Path, scenario: Callable[[SqliteStore], Awaitable[None]], limits: SqliteLimits | None = None
) -> None:
    """Run a scenario with an open store on virtual time."""
    clock = VirtualClock()

    async def started() -> None:
        async with await SqliteStore.open(directory, clock, limits or SqliteLimits()) as store:
            await scenario(store)

    run(started(), clock)


def play_real(
    directory: Path, scenario: Callable[[SqliteStore], Awaitable[None]], limits: SqliteLimits | None = None
) -> None:
    """Run a scenario with the system clock; by default the writer uses its thread."""

    async def started() -> None:
        async with await SqliteStore.open(directory, SystemClock(), limits or ON_THE_THREAD) as store:
            await scenario(store)

    run_real(started())


def crash_image(directory: Path, to: Path) -> Path:
    """A copy of the directory of an open store: its state after `kill -9`."""
    shutil.copytree(directory, to)
    return to


async def contents(store: Store) -> dict[str, tuple[int, bytes]]:
    return {record.key: (record.revision, record.value) for record in (await store.list("/")).records}


def contents_of(directory: Path) -> tuple[int, dict[str, tuple[int, bytes]]]:
    """The revision and the records of a store opened from a directory."""
    found: list[tuple[int, dict[str, tuple[int, bytes]]]] = []

    async def look(store: SqliteStore) -> None:
        found.append((await store.revision(), await contents(store)))

    play(directory, look)
    return found[0]
