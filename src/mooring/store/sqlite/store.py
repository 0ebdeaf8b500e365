"""The store on disk: the store promise kept on an SQLite file, for a cluster that outlives its process.

Comes in   everything that the store promise allows; a data directory
Goes out   the same, and after a restart, however it came about, the same again

    async with await SqliteStore.open(Path("data"), SystemClock()) as store:
        revision = await store.put("/registry/minions/n1", b"{}")         # durable when it comes back

 1. A write is acknowledged after it is durable, and nobody sees it before: not a reader, not a watch.
 2. Reading and watching go on in memory. They wait for the disk no longer than a commit takes on a quick one: on a slow
    one, commits go to a thread (`place`).
 3. After a crash at any moment every acknowledged write is there, and no revision is given out twice.
 4. What cannot be kept is an error that says so (`errors`), at the start or for the write; reading goes on.

The rooms behind: `commit` groups the writes, `place` says who works on them (the loop, or a thread, the
only one), `file` makes them durable, `memory` holds what is durable, `load` checks the file at the
start, `directory` locks it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from mooring.kit.clock import Clock
from mooring.store.interface import Page, Record, RevisionAhead
from mooring.store.memory_watch import MemoryWatch
from mooring.store.sqlite.commit import GroupCommit
from mooring.store.sqlite.file import StoreFile, open_file
from mooring.store.sqlite.limits import SqliteLimits
from mooring.store.sqlite.memory import DurableMemory

_DEFAULT_LIMITS = SqliteLimits()


class SqliteStore:
    """Keeps the store promise on a file."""

    def __init__(
        self, file: StoreFile, memory: DurableMemory, clock: Clock, limits: SqliteLimits, writer: Executor
    ) -> None:
        """Only for `open`."""
        self._file = file
        self._memory = memory
        self._writer = writer
        self._commit = GroupCommit(file, memory, clock, limits, writer)
        self._is_closed = False

    @classmethod
    async def open(cls, directory: Path, clock: Clock, limits: SqliteLimits = _DEFAULT_LIMITS) -> Self:
        """Take over a data directory, or begin one. Raises a `FileError`."""
        # One thread, and it starts with the first work that it is given: with virtual time, never.
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
        """Answer the writes that wait, and give the directory back."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._commit.wait_closed()
        finally:
            # Not awaited when this is being cancelled: the thread does it all the same, after what it has.
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
        """Forget, and come back when the file has dropped it and given its room back."""
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
