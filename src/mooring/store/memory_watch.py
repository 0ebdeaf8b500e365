"""A watch of the memory store: a buffer between writers, who never wait, and one reader, who may.

Comes in   changes of one folder, from the store
Goes out   the same changes in batches; or `RevisionGone` when the reader was too slow

 1. Between `take` and `next_batch` nothing is copied: the reader gets the buffer and the watch starts another.
 2. The buffer holds at most `buffer_max` changes. Then it is dropped and the watch takes no more: the reader would have
    to list again, and may as well do it when it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mooring.store.interface import RevisionGone, StoreChange

if TYPE_CHECKING:
    from mooring.store.memory import MemoryStore

WATCH_BUFFER_MAX = 100_000


class MemoryWatch:
    """Keeps the promise of a watch on a `MemoryStore`."""

    __slots__ = ("_buffer", "_buffer_max", "_handed_out", "_is_cut_off", "_is_woken", "_store", "_waiter", "folder")

    def __init__(self, store: MemoryStore, folder: str, since: int, buffer_max: int) -> None:
        assert buffer_max > 0, f"a buffer of {buffer_max} changes"
        self.folder = folder
        self._store = store
        self._buffer_max = buffer_max
        self._buffer: list[StoreChange] = []
        self._handed_out = since
        self._is_cut_off = False
        self._is_woken = False
        self._waiter: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        missed = self._store.begin_watch(self, self._handed_out)
        self._buffer = [*missed]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.end_watch(self)

    async def next_batch(self) -> Sequence[StoreChange]:
        if not self._buffer and not self._is_woken and not self._is_cut_off:
            await self._wait()
        self._is_woken = False
        if self._is_cut_off:
            raise RevisionGone(self._handed_out, self._store.oldest_revision())
        batch, self._buffer = self._buffer, []
        if batch:
            self._handed_out = batch[-1].revision
        return batch

    async def _wait(self) -> None:
        assert self._waiter is None, f"the watch of {self.folder} has one reader, not two"
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def take(self, change: StoreChange) -> None:
        """One more change. Only for the store."""
        if len(self._buffer) >= self._buffer_max:
            self.cut_off()
            return
        self._buffer.append(change)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def cut_off(self) -> None:
        """Take no more, and say so to the reader. Only for the store."""
        self._is_cut_off = True
        self._buffer = []
        self._store.end_watch(self, is_cut_off=True)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def wake(self) -> None:
        self._is_woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def seen_revision(self) -> int:
        return self._handed_out if self._buffer or self._is_cut_off else self._store.current_revision()

    def when_advanced(self, callback: Callable[[], None]) -> None:
        self._store.call_when_advanced(callback)
