"""The store in memory: for tests, for the simulator, and for a cluster that need not outlive its process.

Comes in   everything that the store promise allows
Goes out   the same values that came in, never copies

Records live in folders (`/registry/pods/default/`), which keep them sorted only as far as somebody lists them; each
folder knows its watches. The history is one list of the last changes, each with the record that it replaced: reading
at an old revision is reading the present and taking back what changed since.

 1. get, put and delete take the same time however many records there are; a watch costs a writer one append.
 2. A list takes time for what it returns, and for what came and went since the last list of the folder.
 3. At most `changes_max` changes are remembered, holding at most `replaced_bytes_max` of replaced values; what is
    older is compacted.
 4. A watch that `buffer_max` changes wait for is cut off, and told `RevisionGone` when it is next read.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise

from mooring.store.interface import (
    EMPTY_REVISION,
    Page,
    Record,
    RevisionAhead,
    RevisionGone,
    StoreChange,
    WriteConflict,
)
from mooring.store.memory_folder import Folder
from mooring.store.memory_watch import WATCH_BUFFER_MAX, MemoryWatch

HISTORY_CHANGES_MAX = 100_000
HISTORY_REPLACED_BYTES_MAX = 64 * 1024 * 1024

# Greater than every character that can follow a folder's path in a key.
_AFTER_ALL = "\U0010ffff"


class MemoryStore:
    """Keeps the store promise until the process ends."""

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
        self._folders: dict[str, Folder] = {}
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
        # What the records were then, where they are not so now.
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
        """The keys below a path from `start` on, in order, as they were then."""
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

    def _folders_below(self, path: str) -> Sequence[Folder]:
        if self._paths_sorted is None:
            self._paths_sorted = sorted(self._folders)
        first, end = bisect_left(self._paths_sorted, path), bisect_left(self._paths_sorted, path + _AFTER_ALL)
        return [self._folders[below] for below in self._paths_sorted[first:end]]

    def _changed_since(self, path: str, revision: int) -> dict[str, Record | None]:
        """What the records below a path (or at it) were at a revision, of those that changed after it."""
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
        self._tell(folder, StoreChange(key, revision, value, current))
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
        self._tell(folder, StoreChange(key, revision, None, current))
        return revision

    def _open_folder(self, path: str) -> Folder:
        folder = self._folders[path] = Folder(path)
        folder.watches = [watch for watch in self._watches if path.startswith(watch.folder)]
        self._paths_sorted = None
        return folder

    def _tell(self, folder: Folder, change: StoreChange) -> None:
        self._history.append(change)
        if change.previous is not None:
            self._replaced_bytes += len(change.previous.value)
        while len(self._history) > self._changes_max or self._replaced_bytes > self._replaced_bytes_max:
            self._forget_oldest()
        if folder.watches:
            # Not the one that the history keeps: what readers make of a change should go when they are done with it.
            told = StoreChange(change.key, change.revision, change.value, change.previous)
            for watch in folder.watches:
                watch.take(told)
        if self._advance_callbacks:
            callbacks, self._advance_callbacks = self._advance_callbacks, []
            for callback in callbacks:
                callback()

    # ------------------------------------------------------------------------------------------------ watching

    def watch(self, folder: str, *, since: int) -> MemoryWatch:
        assert folder.endswith("/"), f"a folder's path ends with a slash, not {folder!r}"
        return MemoryWatch(self, folder, since, self._buffer_max)

    def begin_watch(self, watch: MemoryWatch, since: int) -> Sequence[StoreChange]:
        """Only for the watch itself. What it missed between `since` and now; from here on it is told."""
        missed = [
            StoreChange(change.key, change.revision, change.value, change.previous)
            for change in self._changes_after(since)
            if change.key.startswith(watch.folder)
        ]
        self._watches.append(watch)
        for folder in self._folders_below(watch.folder):
            folder.watches = [*folder.watches, watch]
        return missed

    def end_watch(self, watch: MemoryWatch, *, is_cut_off: bool = False) -> None:
        """Only for the watch itself."""
        if watch not in self._watches:
            return
        self._watches_cut_off += is_cut_off
        self._watches.remove(watch)
        for folder in self._folders_below(watch.folder):
            # A new list: a writer may be going through the old one.
            folder.watches = [other for other in folder.watches if other is not watch]

    def current_revision(self) -> int:
        """Only for watches, which may not wait."""
        return self._revision

    def oldest_revision(self) -> int:
        """Only for watches."""
        return self._oldest

    def call_when_advanced(self, callback: Callable[[], None]) -> None:
        """Only for watches."""
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


def _is_nested(folders: Sequence[Folder]) -> bool:
    """Whether a folder lies inside of another one: then records of both alternate in the order of the keys."""
    return len(folders) > 1 and any(later.path.startswith(earlier.path) for earlier, later in pairwise(folders))
