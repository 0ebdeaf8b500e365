"""The mirror: what etcd holds, in memory, as far as its events have come.

Comes in   all records at one revision, then every change of every key
Goes out   answers to reads, and watches, as `MemoryStore` gives them; and word when a revision is reached

 1. The mirror is at all times what etcd was at `current_revision`: changes come in order and in whole revisions.
 2. The revision moves with every key, also with those that are not ours (which do not begin with a slash). Several
    changes may share one: etcd deletes everything that hangs on a lease at once.
 3. What somebody says in `compact_rev_key` to be compacted is forgotten here as well.
 4. When changes were missed that cannot be had any more, everything is loaded again and every watch is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mooring.store.etcd.limits import EtcdLimits
from mooring.store.interface import Record, RevisionAhead, RevisionGone, StoreChange
from mooring.store.memory import MemoryStore

_COMPACTION_KEY = "compact_rev_key"


class EtcdMirror(MemoryStore):
    """A `MemoryStore` that is not written to but told."""

    def __init__(self, limits: EtcdLimits) -> None:
        super().__init__(
            changes_max=limits.changes_max,
            replaced_bytes_max=limits.replaced_bytes_max,
            buffer_max=limits.buffer_max,
        )
        self._compacted = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._loads = 0

    # ------------------------------------------------------------------------------------------------- telling

    def load(self, records: Sequence[Record], revision: int) -> None:
        """Everything that there is at a revision; whatever was here before is forgotten."""
        for watch in [*self._watches]:
            watch.cut_off()
        self._folders.clear()
        self._history.clear()
        self._replaced_bytes = 0
        self._paths_sorted = None
        for record in records:
            path = record.key[: record.key.rindex("/") + 1]
            folder = self._folders.get(path) or self._open_folder(path)
            folder.put(record, is_new=True)
        self._loads += 1
        self._compacted = 0
        self._oldest = revision
        self._revision = revision
        self._tell_advanced()

    def tell(self, changes: Sequence[StoreChange]) -> None:
        """These happened after what is here."""
        for change in changes:
            assert change.revision >= self._revision, f"revision {change.revision} after {self._revision}"
            self._revision = change.revision
            if change.key.startswith("/"):
                self._take_over(change)
            elif change.key == _COMPACTION_KEY and change.value is not None and change.value.isdigit():
                self.forget_before(int(change.value))
        self._tell_advanced()

    def _take_over(self, change: StoreChange) -> None:
        key = change.key
        path = key[: key.rindex("/") + 1]
        folder = self._folders.get(path) or self._open_folder(path)
        # The record that is here, not a copy of it from etcd: both would stay in memory.
        change.previous = previous = folder.records.get(key)
        if change.value is not None:
            folder.put(Record(key, change.value, change.revision), is_new=previous is None)
        elif previous is not None:
            folder.remove(key)
        if not folder.records:
            del self._folders[path]
            self._paths_sorted = None
        self._tell(folder, change)

    def _tell_advanced(self) -> None:
        # Those of the changes are told already; but the revision moves without one of ours, too.
        callbacks, self._advance_callbacks = self._advance_callbacks, []
        for callback in callbacks:
            callback()
        waiters, self._waiters = self._waiters, []
        for revision, waiter in waiters:
            if revision > self._revision:
                self._waiters.append((revision, waiter))
            elif not waiter.done():
                waiter.set_result(None)

    # ------------------------------------------------------------------------------------------------- waiting

    async def wait_reached(self, revision: int) -> None:
        """Until everything up to a revision is here."""
        if revision <= self._revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((revision, waiter))
        try:
            await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                self._waiters = [each for each in self._waiters if each[1] is not waiter]

    # ------------------------------------------------------------------------------------------------- history

    def _changes_after(self, revision: int) -> Sequence[StoreChange]:
        """Counted by their revisions: there are gaps, and some share one."""
        if revision < self._oldest:
            raise RevisionGone(revision, self._oldest)
        if revision > self._revision:
            raise RevisionAhead(revision, self._revision)
        latest: list[StoreChange] = []
        for change in reversed(self._history):
            if change.revision <= revision:
                break
            latest.append(change)
        latest.reverse()
        return latest

    def forget_before(self, revision: int) -> None:
        """It is compacted."""
        self._compacted = max(self._compacted, revision)
        while self._history and self._history[0].revision <= revision:
            self._forget_oldest()
        self._oldest = max(self._oldest, min(revision, self._revision))

    def compacted_revision(self) -> int:
        """The highest revision of which we know that everything before it is compacted."""
        return self._compacted

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"revision_compacted": self._compacted, "loads": self._loads}
