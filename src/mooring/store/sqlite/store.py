"""The store on disk, for clusters that outlive their process.

    async with await SqliteStore.open(Path("data"), SystemClock()) as store:
        revision = await store.put("/registry/minions/n1", b"{}")         # durable when it returns

1. A write is acknowledged after it is durable. No reader and no watch sees it earlier.
2. Reads and watches work in memory. They wait for the disk at most as long as a commit takes on a fast disk: on a slow
   disk, commits run on a thread (`CommitScheduler`).
3. After a crash at any moment, every acknowledged write is there, and no revision is used twice.
4. A write that cannot be stored fails with an error (`errors`). Reads still work.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from mooring.kit.clock import Clock
from mooring.store.interface import Page, Record, RevisionAhead
from mooring.store.memory import MemoryWatch
from mooring.store.sqlite.commit import GroupCommit
from mooring.store.sqlite.errors import SqliteLimits
from mooring.store.sqlite.file import StoreFile, open_file
from mooring.store.sqlite.memory import DurableMemory

_DEFAULT_LIMITS = SqliteLimits()


class SqliteStore:
    """Implements `Store` on a file."""

    def __init__(
        self, file: StoreFile, memory: DurableMemory, clock: Clock, limits: SqliteLimits, writer: Executor
    ) -> None:
        """Called by `open` only."""
        self._file = file
        self._memory = memory
        self._writer = writer
        self._commit = GroupCommit(file, memory, clock, limits, writer)
        self._is_closed = False

    @classmethod
    async def open(cls, directory: Path, clock: Clock, limits: SqliteLimits = _DEFAULT_LIMITS) -> Self:
        """Open a data directory, or create one. Raises `FileError`."""
        # One thread, which starts with its first work: on virtual time, never.
        writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            loop = asyncio.get_running_loop()
            file, memory = await loop.run_in_executor(writer, _open, directory, clock, limits)
        except BaseException:
            writer.shutdown(wait=False)
            raise
        return cls(file, memory, clock, limits, writer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the pending writes, and unlock the directory."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._commit.wait_closed()
        finally:
            # If this is cancelled, the thread still closes the file after its pending work.
            closed = asyncio.get_running_loop().run_in_executor(self._writer, self._file.close)
            self._writer.shutdown(wait=False)
            await closed

    # ------------------------------------------------------------------------------------------------ reading

    async def revision(self) -> int:
        return self._memory.current_revision()

    async def get(self, key: str, *, at: int | None = None) -> Record | None:
        return await self._memory.get(key, at=at)

    def peek(self, key: str) -> Record | None:
        return self._memory.peek(key)

    async def list(self, folder: str, *, start: str = "", limit: int = 0, at: int | None = None) -> Page:
        return await self._memory.list(folder, start=start, limit=limit, at=at)

    def watch(self, folder: str, *, since: int) -> MemoryWatch:
        return self._memory.watch(folder, since=since)

    # ------------------------------------------------------------------------------------------------ writing

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        return await self._commit.write(key, value, if_revision)

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        return await self._commit.write(key, None, if_revision)

    async def compact(self, revision: int) -> None:
        """Compact, and wait until the file has dropped the rows and freed their space."""
        current = self._memory.current_revision()
        if revision > current:
            raise RevisionAhead(revision, current)
        self._memory.forget_before(revision)
        await self._commit.wait_tended()

    def statistics(self) -> dict[str, int]:
        return self._memory.statistics() | self._commit.statistics()


def _open(directory: Path, clock: Clock, limits: SqliteLimits) -> tuple[StoreFile, DurableMemory]:
    file, contents = open_file(directory, limits)
    memory = DurableMemory(limits)
    memory.load(contents.records.values(), contents.state.oldest, contents.changes, clock.now_s())
    memory.obsolete = contents.obsolete + memory.obsolete
    return file, memory
