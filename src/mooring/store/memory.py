"""The store in memory: for tests, simulations and ephemeral clusters.

Values are returned as they were written, never copied. Records live in folders (`/registry/pods/default/`), which sort
their keys only when they are listed. Each folder has its watches. The history is one list of the last changes, each
with the record that it replaced: a read at an old revision reads the present and undoes the changes since.

1. get, put and delete take constant time. A watch costs a writer one append.
2. A list takes time for its result, and for the keys that came and went since the folder's last list.
3. The history has at most `changes_max` changes, with at most `replaced_bytes_max` of replaced values. Older changes
   are compacted.
4. A watch with more than `buffer_max` pending changes is cut off. Its reader gets `RevisionGone`.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from types import TracebackType
from typing import Self

from mooring.store.interface import (
    EMPTY_REVISION,
    Page,
    Record,
    RevisionAhead,
    RevisionGone,
    StoreChange,
    WriteConflict,
)

WATCH_BUFFER_MAX = 100_000


class MemoryWatch:
    """Implements `StoreWatch` on a `MemoryStore`."""

    __slots__ = (
        "_buffer",
        "_buffer_max",
        "_handed_out",
        "_is_cut_off",
        "_is_interrupted",
        "_store",
        "_waiter",
        "folder",
    )

    def __init__(self, store: MemoryStore, folder: str, since: int, buffer_max: int) -> None:
        assert buffer_max > 0, f"a buffer of {buffer_max} changes"
        self.folder = folder
        self._store = store
        self._buffer_max = buffer_max
        self._buffer: list[StoreChange] = []
        self._handed_out = since
        self._is_cut_off = False
        self._is_interrupted = False
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
        if not self._buffer and not self._is_interrupted and not self._is_cut_off:
            await self._wait()
        self._is_interrupted = False
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
        """Add a change. Called by the store only."""
        if len(self._buffer) >= self._buffer_max:
            self.cut_off()
            return
        self._buffer.append(change)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def cut_off(self) -> None:
        """Accept no more changes, and notify the reader. Called by the store only."""
        self._is_cut_off = True
        self._buffer = []
        self._store.end_watch(self, is_cut_off=True)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def interrupt(self) -> None:
        self._is_interrupted = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def seen_revision(self) -> int:
        return self._handed_out if self._buffer or self._is_cut_off else self._store.current_revision()

    def when_advanced(self, callback: Callable[[], None]) -> None:
        self._store.call_when_advanced(callback)


_FEW = 32


class KeyFolder:
    """The records directly below one path."""

    __slots__ = ("_added", "_removed", "_sorted", "path", "records", "watches")

    def __init__(self, path: str) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        self.watches: list[MemoryWatch] = []
        self._sorted: list[str] = []
        self._added: dict[str, None] = {}
        self._removed: dict[str, None] = {}

    def put(self, record: Record, *, is_new: bool) -> None:
        self.records[record.key] = record
        if is_new:
            if record.key in self._removed:
                del self._removed[record.key]
            else:
                self._added[record.key] = None

    def remove(self, key: str) -> None:
        del self.records[key]
        if key in self._added:
            del self._added[key]
        else:
            self._removed[key] = None

    def in_order(self) -> list[Record]:
        records = self.records
        return [records[key] for key in self._keys_in_order()]

    def keys_from(self, start: str) -> Iterator[str]:
        """The keys from `start` on. The folder must not change during the iteration."""
        keys = self._keys_in_order()
        if not start or not keys or start <= keys[0]:
            return iter(keys)
        first = bisect_left(keys, start)
        return (keys[index] for index in range(first, len(keys)))

    def count_from(self, start: str) -> int:
        keys = self._keys_in_order()
        return len(keys) - bisect_left(keys, start)

    def _keys_in_order(self) -> list[str]:
        if self._removed:
            self._take_out_removed()
        if self._added:
            self._sort_in_added()
        return self._sorted

    def _take_out_removed(self) -> None:
        if len(self._removed) <= _FEW:
            for key in self._removed:
                del self._sorted[bisect_left(self._sorted, key)]
        else:
            self._sorted = [key for key in self._sorted if key not in self._removed]
        self._removed.clear()

    def _sort_in_added(self) -> None:
        if len(self._added) <= _FEW:
            for key in self._added:
                insort(self._sorted, key)
        else:
            # Python's sort merges two sorted runs in linear time.
            self._sorted.extend(sorted(self._added))
            self._sorted.sort()
        self._added.clear()


HISTORY_CHANGES_MAX = 100_000
HISTORY_REPLACED_BYTES_MAX = 64 * 1024 * 1024

# Greater than every character that can follow a folder's path in a key.
_AFTER_ALL = "\U0010ffff"


class MemoryStore:
    """Implements `Store` in memory."""

    def __init__(
        self,
        *,
        changes_max: int = HISTORY_CHANGES_MAX,
        replaced_bytes_max: int = HISTORY_REPLACED_BYTES_MAX,
        buffer_max: int = WATCH_BUFFER_MAX,
    ) -> None:
        assert changes_max > 0, f"a history of {changes_max} changes cannot be watched"
        self._changes_max = changes_max
        self._replaced_bytes_max = replaced_bytes_max
        self._buffer_max = buffer_max
        self._revision = EMPTY_REVISION
        self._oldest = EMPTY_REVISION
        self._folders: dict[str, KeyFolder] = {}
        self._paths_sorted: list[str] | None = []
        self._history: deque[StoreChange] = deque()
        self._replaced_bytes = 0
        self._watches: list[MemoryWatch] = []
        self._advance_callbacks: list[Callable[[], None]] = []
        self._watches_cut_off = 0

    # ------------------------------------------------------------------------------------------------ reading

    async def revision(self) -> int:
        return self._revision

    async def get(self, key: str, *, at: int | None = None) -> Record | None:
        if at is not None and at != self._revision:
            return self._changed_since(key, at).get(key, self._current(key))
        return self._current(key)

    def peek(self, key: str) -> Record | None:
        return self._current(key)

    async def list(self, folder: str, *, start: str = "", limit: int = 0, at: int | None = None) -> Page:
        assert folder.endswith("/"), f"a folder's path ends with a slash, not {folder!r}"
        assert limit >= 0, f"a list of at most {limit}"
        revision = self._revision if at is None else at
        # The records that were different then.
        then = self._changed_since(folder, revision) if revision != self._revision else {}
        if not limit and not start and not then:
            return Page(self._everything(folder), revision)
        keys = self._keys(folder, start, then)
        if not limit:
            return Page(self._records(keys, then), revision)
        records = self._records(islice(keys, limit), then)
        if (following := next(keys, "")) == "":
            return Page(records, revision)
        return Page(records, revision, following, self._count(folder, start, then) - limit)

    def _current(self, key: str) -> Record | None:
        folder = self._folders.get(key[: key.rindex("/") + 1])
        return folder.records.get(key) if folder is not None else None

    def _everything(self, path: str) -> Sequence[Record]:
        folders = self._folders_below(path)
        if _is_nested(folders):
            return self._records(self._keys_now(path, ""), {})
        return [record for folder in folders for record in folder.in_order()]

    def _records(self, keys: Iterator[str], then: dict[str, Record | None]) -> Sequence[Record]:
        found = [then.get(key) or self._current(key) for key in keys]
        return [record for record in found if record is not None]

    def _keys(self, path: str, start: str, then: dict[str, Record | None]) -> Iterator[str]:
        """The keys below a path from `start` on, in order, at that revision."""
        now = self._keys_now(path, start)
        if not then:
            return now
        existed = sorted(key for key, record in then.items() if record is not None and key >= start)
        return heapq.merge((key for key in now if key not in then), existed)

    def _keys_now(self, path: str, start: str) -> Iterator[str]:
        folders = self._folders_below(path)
        if _is_nested(folders):
            yield from heapq.merge(*(folder.keys_from(start) for folder in folders))
        else:
            for folder in folders:
                yield from folder.keys_from(start)

    def _count(self, path: str, start: str, then: dict[str, Record | None]) -> int:
        now = sum(folder.count_from(start) for folder in self._folders_below(path))
        gained = sum(
            (record is not None) - (self._current(key) is not None) for key, record in then.items() if key >= start
        )
        return now + gained

    def _folders_below(self, path: str) -> Sequence[KeyFolder]:
        if self._paths_sorted is None:
            self._paths_sorted = sorted(self._folders)
        first, end = bisect_left(self._paths_sorted, path), bisect_left(self._paths_sorted, path + _AFTER_ALL)
        return [self._folders[below] for below in self._paths_sorted[first:end]]

    def _changed_since(self, path: str, revision: int) -> dict[str, Record | None]:
        """The records at a revision, of the keys at or below a path that changed after it."""
        then: dict[str, Record | None] = {}
        for change in self._changes_after(revision):
            if change.key not in then and change.key.startswith(path):
                then[change.key] = change.previous
        return then

    def _changes_after(self, revision: int) -> Sequence[StoreChange]:
        if revision < self._oldest:
            raise RevisionGone(revision, self._oldest)
        if revision > self._revision:
            raise RevisionAhead(revision, self._revision)
        count = self._revision - revision
        latest = list(islice(reversed(self._history), count))
        latest.reverse()
        return latest

    # ------------------------------------------------------------------------------------------------ writing

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        folder = self._folders.get(path := key[: key.rindex("/") + 1])
        current = folder.records.get(key) if folder is not None else None
        if if_revision is not None and if_revision != (current.revision if current is not None else 0):
            raise WriteConflict(key, current)
        if folder is None:
            folder = self._open_folder(path)
        self._revision = revision = self._revision + 1
        folder.put(Record(key, value, revision), is_new=current is None)
        self._notify(folder, StoreChange(key, revision, value, current))
        return revision

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        folder = self._folders.get(path := key[: key.rindex("/") + 1])
        current = folder.records.get(key) if folder is not None else None
        if folder is None or current is None or if_revision not in (None, current.revision):
            raise WriteConflict(key, current)
        self._revision = revision = self._revision + 1
        folder.remove(key)
        if not folder.records:
            del self._folders[path]
            self._paths_sorted = None
        self._notify(folder, StoreChange(key, revision, None, current))
        return revision

    def _open_folder(self, path: str) -> KeyFolder:
        folder = self._folders[path] = KeyFolder(path)
        folder.watches = [watch for watch in self._watches if path.startswith(watch.folder)]
        self._paths_sorted = None
        return folder

    def _notify(self, folder: KeyFolder, change: StoreChange) -> None:
        self._history.append(change)
        if change.previous is not None:
            self._replaced_bytes += len(change.previous.value)
        while len(self._history) > self._changes_max or self._replaced_bytes > self._replaced_bytes_max:
            self._forget_oldest()
        for watch in folder.watches:
            watch.take(change)
        if self._advance_callbacks:
            callbacks, self._advance_callbacks = self._advance_callbacks, []
            for callback in callbacks:
                callback()

    # ------------------------------------------------------------------------------------------------ watching

    def watch(self, folder: str, *, since: int) -> MemoryWatch:
        assert folder.endswith("/"), f"a folder's path ends with a slash, not {folder!r}"
        return MemoryWatch(self, folder, since, self._buffer_max)

    def begin_watch(self, watch: MemoryWatch, since: int) -> Sequence[StoreChange]:
        """Register a watch. Returns the changes after `since`. Called by the watch only."""
        missed = [change for change in self._changes_after(since) if change.key.startswith(watch.folder)]
        self._watches.append(watch)
        for folder in self._folders_below(watch.folder):
            folder.watches = [*folder.watches, watch]
        return missed

    def end_watch(self, watch: MemoryWatch, *, is_cut_off: bool = False) -> None:
        """Unregister a watch. Called by the watch only."""
        if watch not in self._watches:
            return
        self._watches_cut_off += is_cut_off
        self._watches.remove(watch)
        for folder in self._folders_below(watch.folder):
            # A new list: a writer may be iterating over the old one.
            folder.watches = [other for other in folder.watches if other is not watch]

    def current_revision(self) -> int:
        """`revision` without waiting, for watches."""
        return self._revision

    def oldest_revision(self) -> int:
        """For watches."""
        return self._oldest

    def call_when_advanced(self, callback: Callable[[], None]) -> None:
        """For watches."""
        self._advance_callbacks.append(callback)

    # ---------------------------------------------------------------------------------------------- forgetting

    async def compact(self, revision: int) -> None:
        if revision > self._revision:
            raise RevisionAhead(revision, self._revision)
        while self._oldest < revision:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        change = self._history.popleft()
        self._oldest = change.revision
        if change.previous is not None:
            self._replaced_bytes -= len(change.previous.value)

    def statistics(self) -> dict[str, int]:
        return {
            "revision": self._revision,
            "revision_oldest": self._oldest,
            "records": sum(len(folder.records) for folder in self._folders.values()),
            "changes": len(self._history),
            "changes_max": self._changes_max,
            "replaced_bytes": self._replaced_bytes,
            "replaced_bytes_max": self._replaced_bytes_max,
            "watches": len(self._watches),
            "watches_cut_off": self._watches_cut_off,
        }


def _is_nested(folders: Sequence[KeyFolder]) -> bool:
    """Whether one folder contains another: then their records alternate in key order."""
    return len(folders) > 1 and any(later.path.startswith(earlier.path) for earlier, later in pairwise(folders))
