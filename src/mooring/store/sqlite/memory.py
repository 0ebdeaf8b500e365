"""The durable contents of a store on disk, in memory, for reads and watches.

Inputs: the contents of the file at the start, then every change as soon as it is durable. Outputs: reads and watches,
which never wait for the disk; the rows that the file may drop.

1. Only durable changes are here: a reader never sees a write that a crash undoes.
2. When a change leaves the history, the row that it replaced is `obsolete`, and its own too if it was a deletion. The
   file may drop them later.
3. The history is limited by count, bytes and time. The file has no times: loaded changes count from the start of the
   process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.store.interface import Record, StoreChange
from mooring.store.memory import MemoryStore
from mooring.store.sqlite.errors import SqliteLimits

_PERIOD_S = 1.0  # changes within this time are forgotten together


@dataclass(slots=True)
class _Period:
    """Changes up to `revision`, which were there at `end_s`."""

    start_s: float
    end_s: float
    revision: int


class DurableMemory(MemoryStore):
    """A `MemoryStore` that gets durable changes instead of writes."""

    def __init__(self, limits: SqliteLimits) -> None:
        super().__init__(
            changes_max=limits.changes_max,
            replaced_bytes_max=limits.replaced_bytes_max,
            buffer_max=limits.buffer_max,
        )
        self.obsolete: list[int] = []
        self._history_s_max = limits.history_s_max
        self._periods: deque[_Period] = deque()

    def load(self, records: Iterable[Record], oldest: int, changes: Sequence[StoreChange], now_s: float) -> None:
        """Load the current records and the changes since `oldest`, once at the start."""
        for record in records:
            path = record.key[: record.key.rindex("/") + 1]
            folder = self._folders.get(path) or self._open_folder(path)
            folder.put(record, is_new=True)
        self._oldest = oldest
        self._revision = oldest + len(changes)
        self._history.extend(changes)
        self._replaced_bytes = sum(len(change.previous.value) for change in changes if change.previous is not None)
        self._keep_within_limits()
        self._note_time(now_s)

    def current(self, key: str) -> Record | None:
        return self._current(key)

    def apply(self, changes: Sequence[StoreChange], now_s: float) -> None:
        """Apply durable changes."""
        for change in changes:
            self._apply(change)
        self._note_time(now_s)

    def _apply(self, change: StoreChange) -> None:
        key = change.key
        path = key[: key.rindex("/") + 1]
        folder = self._folders.get(path) or self._open_folder(path)
        assert change.revision == self._revision + 1, f"revision {change.revision} after {self._revision}"
        self._revision = change.revision
        if change.value is not None:
            folder.put(Record(key, change.value, change.revision), is_new=change.previous is None)
        else:
            folder.remove(key)
            if not folder.records:
                del self._folders[path]
                self._paths_sorted = None
        self._notify(folder, change)

    # ---------------------------------------------------------------------------------------------- compaction

    def forget_before(self, revision: int) -> None:
        while self._oldest < revision:
            self._forget_oldest()

    def forget_expired(self, now_s: float) -> None:
        while self._periods and self._periods[0].end_s + self._history_s_max <= now_s:
            self.forget_before(self._periods.popleft().revision)

    def next_expiry_s(self) -> float | None:
        return self._periods[0].end_s + self._history_s_max if self._periods else None

    def _note_time(self, now_s: float) -> None:
        if self._revision == self._oldest:
            return
        if self._periods and now_s - self._periods[-1].start_s < _PERIOD_S:
            self._periods[-1].end_s, self._periods[-1].revision = now_s, self._revision
        else:
            self._periods.append(_Period(now_s, now_s, self._revision))

    def _keep_within_limits(self) -> None:
        while len(self._history) > self._changes_max or self._replaced_bytes > self._replaced_bytes_max:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        change = self._history[0]
        super()._forget_oldest()
        if change.previous is not None:
            self.obsolete.append(change.previous.revision)
        if change.value is None:
            self.obsolete.append(change.revision)
