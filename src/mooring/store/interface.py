"""The store promise: a numbered history of keys and values.

Comes in   writes under a condition, reads at a revision, watches from a revision
Goes out   records and changes; or a `StoreError`

   StoreError
   ├── WriteConflict     the key is not at the revision that the writer thought; carries what is there instead
   ├── RevisionGone      the history that was asked for is compacted, or a watch fell too far behind: list again
   ├── RevisionAhead     a revision that is not reached yet
   ├── WriteRefused      the write was not carried out; reading goes on
   │   ├── ValueTooLarge   the limit has a name
   │   ├── StoreBusy       more writes wait than may: try again later
   │   └── StoreClosed     the store was told to stop
   ├── OutcomeUnknown    the store was lost during a write, which has happened or not: read, then decide
   └── StoreUnreachable  nobody answers, and nothing was done: try again later

 1. Every write has a revision of its own, one higher than the one before. The first record has a revision above 1, and
    1 is the revision of an empty store: 0 stays free to mean "there is none".
 2. A write is carried out in whole or not at all, and has happened when `put` or `delete` comes back.
 3. Reading at a revision gives the same answer every time, until the revision is compacted.
 4. A watch hands out every change of its folder after its start, in order, once; or it raises `RevisionGone`. A watch
    that nobody reads never makes a writer wait.
 5. Keys are paths. A folder is everything below a path that ends with a slash, and is listed in the order of the keys.

Memory, a file and etcd keep it; the contract suite in `tests/store` holds for all. Methods are `async` because the
others wait for a disk or a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

EMPTY_REVISION = 1
"""The revision of a store to which nothing was written yet."""

MUST_NOT_EXIST = 0
"""As `if_revision`: the key must have no record."""


class StoreError(Exception):
    """The store did not do what was asked."""


class WriteConflict(StoreError):
    """Somebody else wrote first: `current` is what is there now, None if nothing is."""

    def __init__(self, key: str, current: Record | None) -> None:
        found = f"is at revision {current.revision}" if current is not None else "has no record"
        super().__init__(f"{key} {found}")
        self.key = key
        self.current = current


class RevisionGone(StoreError):
    """The history before `oldest` is compacted."""

    def __init__(self, wanted: int, oldest: int) -> None:
        super().__init__(f"revision {wanted} is compacted; the oldest that is left is {oldest}")
        self.wanted = wanted
        self.oldest = oldest


class RevisionAhead(StoreError):
    """The store has not come so far yet."""

    def __init__(self, wanted: int, current: int) -> None:
        super().__init__(f"revision {wanted} is not reached yet; the store is at {current}")
        self.wanted = wanted
        self.current = current


class WriteRefused(StoreError):
    """This write was not carried out."""


class ValueTooLarge(WriteRefused):
    """The value has more bytes than one may have."""


class StoreBusy(WriteRefused):
    """Too many writes wait already."""


class StoreClosed(WriteRefused):
    """The store takes no more writes."""


class OutcomeUnknown(StoreError):
    """Nobody said whether the write was carried out."""


class StoreUnreachable(StoreError):
    """The store is elsewhere, and does not answer."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """What a key holds, and since which revision."""

    key: str
    value: bytes
    revision: int


class StoreChange(msgspec.Struct, gc=False):
    """One write: `value` is None if the record was deleted, `previous` is None if there was none before."""

    key: str
    revision: int
    value: bytes | None
    previous: Record | None


class Page(msgspec.Struct, frozen=True, gc=False):
    """A part of a folder as it was at `revision`; `next_start` is empty when there is no more."""

    records: Sequence[Record]
    revision: int
    next_start: str = ""
    remaining: int = 0


class StoreWatch(Protocol):
    """Changes of one folder, while inside of an `async with`. One reader."""

    async def __aenter__(self) -> Self:
        """Raises `RevisionGone` or `RevisionAhead` if it cannot start where it should."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def next_batch(self) -> Sequence[StoreChange]:
        """All changes that are there; waits for the first one, or for `wake`. Raises `RevisionGone`."""
        ...

    def wake(self) -> None:
        """Make a reader who waits in `next_batch` come back, empty-handed if nothing is there."""
        ...

    def seen_revision(self) -> int:
        """Every change of the folder up to this revision has been handed out."""
        ...

    def when_advanced(self, callback: Callable[[], None]) -> None:
        """Call once, as soon as the store has a revision above the present one, whichever key it is about."""
        ...


class Store(Protocol):
    """The numbered history."""

    async def revision(self) -> int:
        """The revision of the last write."""
        ...

    async def get(self, key: str, *, at: int | None = None) -> Record | None: ...

    def peek(self, key: str) -> Record | None:
        """What this process knows of a key, without waiting. It may lag behind a write of somebody else's."""
        ...

    async def list(self, folder: str, *, start: str = "", limit: int = 0, at: int | None = None) -> Page:
        """The records of a folder from the key `start` on, at most `limit` if it is not 0."""
        ...

    async def put(self, key: str, value: bytes, *, if_revision: int | None = None) -> int:
        """Write, if the record still has that revision (0: if there is none; None: whatever is there)."""
        ...

    async def delete(self, key: str, *, if_revision: int | None = None) -> int:
        """Delete, under the same condition. What does not exist cannot be deleted: a `WriteConflict`."""
        ...

    def watch(self, folder: str, *, since: int) -> StoreWatch:
        """The changes of a folder after the revision `since`."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget the history before `revision`. What is compacted already stays so."""
        ...

    def statistics(self) -> dict[str, int]: ...
