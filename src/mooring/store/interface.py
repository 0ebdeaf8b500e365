"""The store interface: a numbered history of keys and values.

Inputs: conditional writes, reads at a revision, watches from a revision. Outputs: records and changes; or a
`StoreError`.

   StoreError
   ├── WriteConflict     the key is not at the expected revision; carries the current record
   ├── RevisionGone      the history is compacted, or a watch fell too far behind: list again
   ├── RevisionAhead     the store has not reached the revision yet
   ├── WriteRefused      the write was not carried out; reads still work
   │   ├── ValueTooLarge   the value is above a named limit
   │   ├── StoreBusy       too many writes are pending: try again later
   │   └── StoreClosed     the store is closed
   ├── OutcomeUnknown    the connection broke during a write, which may have happened: read again
   ├── StoreUnreachable  no answer, and nothing was done: try again later
   └── ValueUnreadable   a stored value has a form that cannot be read; names the key

1. Every write has its own revision, one higher than the last. The revision of an empty store is 1, and the first record
   has a higher one, so that 0 can mean "none".
2. A write is atomic, and has happened when `put` or `delete` returns.
3. A read at a revision always gives the same result, until the revision is compacted.
4. A watch delivers every change of its folder after its start, in order, once; or it raises `RevisionGone`. A watch
   that is not read never delays a writer.
5. Keys are paths. A folder is everything below a path that ends with a slash. It is listed in the order of the keys.

The stores in memory, on disk and on etcd implement it; the contract suite in `tests/store` tests all three. Methods are
`async` because some implementations wait for a disk or a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

EMPTY_REVISION = 1
"""The revision of an empty store."""

MUST_NOT_EXIST = 0
"""As `if_revision`: the key must not exist."""


class StoreError(Exception):
    """A store operation failed."""


class WriteConflict(StoreError):
    """The key has another revision. `current` is the current record; None: there is none."""

    def __init__(self, key: str, current: Record | None) -> None:
        found = f"is at revision {current.revision}" if current is not None else "has no record"
        super().__init__(f"{key} {found}")
        self.key = key
        self.current = current


class RevisionGone(StoreError):
    """The history before `oldest` is compacted."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"revision {requested} is compacted; the oldest that is left is {oldest}")
        self.requested = requested
        self.oldest = oldest


class RevisionAhead(StoreError):
    """The store has not reached the revision yet."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is not reached yet; the store is at {current}")
        self.requested = requested
        self.current = current


class WriteRefused(StoreError):
    """The write was not carried out."""


class ValueTooLarge(WriteRefused):
    """The value has too many bytes."""


class StoreBusy(WriteRefused):
    """Too many writes are pending."""


class StoreClosed(WriteRefused):
    """The store accepts no more writes."""


class OutcomeUnknown(StoreError):
    """It is unknown whether the write was carried out."""


class StoreUnreachable(StoreError):
    """A remote store does not answer."""


class ValueUnreadable(StoreError):
    """A stored value has a form that cannot be read."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"the value of {key} cannot be read: {why}")
        self.key = key


class Record(msgspec.Struct, frozen=True, gc=False):
    """The value of a key, and its revision."""

    key: str
    value: bytes
    revision: int


class StoreChange(msgspec.Struct, gc=False):
    """One write. `value` is None for a deletion, `previous` is None for a creation."""

    key: str
    revision: int
    value: bytes | None
    previous: Record | None


class Page(msgspec.Struct, frozen=True, gc=False):
    """A part of a folder at `revision`. `next_start` is empty on the last page."""

    records: Sequence[Record]
    revision: int
    next_start: str = ""
    remaining: int = 0


class StoreWatch(Protocol):
    """Changes of one folder, inside of an `async with`. For one reader."""

    async def __aenter__(self) -> Self:
        """Raises `RevisionGone` or `RevisionAhead` if the watch cannot start at its revision."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def next_batch(self) -> Sequence[StoreChange]:
        """All pending changes. Waits for the first one, or for `interrupt`. Raises `RevisionGone`."""
        ...

    def interrupt(self) -> None:
        """Make a waiting `next_batch` return, with an empty result if nothing is pending."""
        ...

    def seen_revision(self) -> int:
        """The revision up to which every change of the folder has been delivered."""
        ...

    def when_advanced(self, callback: Callable[[], None]) -> None:
        """Call back once, as soon as the store has a higher revision, for any key."""
        ...


class Store(Protocol):
    """The numbered history."""

    async def revision(self) -> int:
        """The revision of the last write."""
        ...

    async def get(self, key: str, *, at: int | None = None) -> Record | None: ...

    def peek(self, key: str) -> Record | None:
        """The record of a key, without waiting. It may lag behind a write of another process."""
        ...

    async def list(self, folder: str, *, start: str = "", limit: int = 0, at: int | None = None) -> Page:
        """The records of a folder from the key `start` on, at most `limit` (0: all)."""
        ...

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        """Write, if the record has that revision (0: if there is none; None: unconditionally)."""
        ...

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        """Delete, under the same condition. Deleting a missing key is a `WriteConflict`."""
        ...

    def watch(self, folder: str, *, since: int) -> StoreWatch:
        """The changes of a folder after the revision `since`."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget the history before `revision`."""
        ...

    def statistics(self) -> dict[str, int]: ...
