"""Storage: get, list and watch objects of a kind, straight from the store.

1. A call never suspends where the store does not: on the memory store each call is one step.
2. Objects are returned as bytes, with their resourceVersion, in the form of the requested kind.
3. All pages of a list have the same revision. Its continue token is that of kube-apiserver: the revision, and the
   next key relative to its folder, so that no token reads outside of the folder.

A watch turns the changes of one folder into watch events of a selection, and bookmarks:

4. An object that a change moves into the selection is ADDED; one that a change moves out is DELETED, in its form
   before the change but with the resourceVersion of the change.
5. A view is decoded when a reader asks for it.
6. A bookmark follows `bookmark_s` after a change elsewhere in the store. An idle store sets no timer.
7. A watch ends when its reader closes it, or with `ExpiredError` when the reader is too slow for the store.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import force_setattr

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.api.views.meta import ApiObject, ObjectWithRaw, View
from mooring.apiserver.errors import ahead, list_gone, not_found, watch_gone
from mooring.apiserver.storage.selection import ObjectMatcher, matcher_of_selection
from mooring.apiserver.storage.stored_form import (
    converted,
    needs_conversion,
    served_bytes,
    stored_selection,
    with_revision,
)
from mooring.apiserver.worker import WorkerThread
from mooring.client.errors import BadRequestError
from mooring.client.interface import EVERYTHING, AnyView, Change, Listing, Selection, WatchEvent
from mooring.store.interface import Page, Record, RevisionAhead, RevisionGone, Store, StoreChange, StoreWatch


class StoreEvent:
    """One change of one object."""

    __slots__ = ("_value", "_view", "change", "number", "revision")

    def __init__(self, change: Change, value: bytes, number: int) -> None:
        self.change = change
        self.number = number
        self.revision = str(number)
        self._value = value
        self._view: View | None = None

    @property
    def raw(self) -> bytes:
        return with_revision(self._value, self.number)

    def view(self, kind: type[AnyView]) -> AnyView:
        # Readers of one event nearly always use the same view, so that one is cached.
        if type(self._view) is not kind:
            self._view = self._decoded(kind)
        return self._view

    def _decoded(self, kind: type[AnyView]) -> AnyView:
        if not issubclass(kind, ApiObject) or issubclass(kind, ObjectWithRaw):
            return decode_as(kind, self.raw)
        # Setting the resourceVersion on the view is cheaper than a copy of the bytes with the resourceVersion in them.
        view = decode_as(kind, self._value)
        force_setattr(view.metadata, "resource_version", self.revision)
        return view


class MovedInEvent:
    """A modification that moves the object into the selection: ADDED for this watch."""

    __slots__ = ("_event",)
    change = Change.ADDED

    def __init__(self, event: StoreEvent) -> None:
        self._event = event

    @property
    def raw(self) -> bytes:
        return self._event.raw

    @property
    def revision(self) -> str:
        return self._event.revision

    def view(self, kind: type[AnyView]) -> AnyView:
        return self._event.view(kind)


class ConvertedEvent:
    """A change of an object that is stored in the form of another kind."""

    __slots__ = ("change", "raw", "revision")

    def __init__(self, kind: Kind, event: WatchEvent) -> None:
        self.change = event.change
        self.revision = event.revision
        self.raw = converted(kind, event.raw)

    def view(self, kind: type[AnyView]) -> AnyView:
        return decode_as(kind, self.raw)


class BookmarkEvent:
    """Nothing happened to the selection up to a revision."""

    __slots__ = ("raw", "revision")
    change = Change.BOOKMARK

    def __init__(self, kind: Kind, revision: int) -> None:
        self.revision = str(revision)
        self.raw = b'{"kind":"%b","apiVersion":"%b","metadata":{"resourceVersion":"%d","creationTimestamp":null}}' % (
            kind.kind.encode(),
            kind.api_version.encode(),
            revision,
        )

    def view(self, kind: type[AnyView]) -> AnyView:
        return decode_as(kind, self.raw)


class StorageWatch:
    """Implements `Watch` on a store."""

    def __init__(
        self,
        kind: Kind,
        watch: StoreWatch,
        matcher: ObjectMatcher | None,
        *,
        since: int,
        bookmark_s: float | None,
    ) -> None:
        self._kind = kind
        self._watch = watch
        self._matcher = matcher
        self._reported_revision = since
        self._bookmark_s = bookmark_s
        self._is_bookmark_due = False
        self._is_bookmark_arranged = bookmark_s is None
        self._alarm: asyncio.TimerHandle | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        try:
            await self._watch.__aenter__()
        except RevisionGone as error:
            raise watch_gone(error) from None
        except RevisionAhead as error:
            raise ahead(error) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if self._alarm is not None:
            self._alarm.cancel()
        await self._watch.__aexit__(kind, error, trace)

    async def next_batch(self) -> Sequence[WatchEvent]:
        while not self._is_over:
            if not self._is_bookmark_arranged:
                self._arrange_bookmark()
            if self._is_bookmark_due:
                self._watch.interrupt()  # changes came between the alarm and now, and used up the interrupt
            try:
                changes = await self._watch.next_batch()
            except RevisionGone as error:
                raise watch_gone(error) from None
            events = self._events(changes)
            if events:
                self._reported_revision = changes[-1].revision
                return events
            if self._is_bookmark_due:
                return [self._bookmark()]
        return []

    # ---------------------------------------------------------------------------------------------- events

    def _events(self, changes: Sequence[StoreChange]) -> Sequence[WatchEvent]:
        if needs_conversion(self._kind):
            return [ConvertedEvent(self._kind, event) for event in self._selected_events(changes)]
        return self._selected_events(changes)

    def _selected_events(self, changes: Sequence[StoreChange]) -> Sequence[WatchEvent]:
        if self._matcher is None:
            return [_event_of(change) for change in changes]
        selected = (self._selected(change, self._matcher) for change in changes)
        return [event for event in selected if event is not None]

    def _selected(self, change: StoreChange, matcher: ObjectMatcher) -> WatchEvent | None:
        was_selected = change.previous is not None and matcher.matches(change.previous.value)
        is_selected = change.value is not None and matcher.matches(change.value)
        if not is_selected:
            if not was_selected or change.previous is None:
                return None
            if change.value is not None:
                return StoreEvent(Change.DELETED, change.previous.value, change.revision)
        event = _event_of(change)
        return MovedInEvent(event) if event.change is Change.MODIFIED and not was_selected else event

    # ------------------------------------------------------------------------------------------- bookmarks

    def _arrange_bookmark(self) -> None:
        self._is_bookmark_arranged = True
        if self._watch.seen_revision() > self._reported_revision:
            self._set_alarm()
        else:
            self._watch.when_advanced(self._set_alarm)

    def _set_alarm(self) -> None:
        if not self._is_over:
            assert self._bookmark_s is not None
            self._alarm = asyncio.get_running_loop().call_later(self._bookmark_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._is_bookmark_due = True
        self._watch.interrupt()

    def _bookmark(self) -> BookmarkEvent:
        self._is_bookmark_due = self._is_bookmark_arranged = False
        self._reported_revision = self._watch.seen_revision()
        return BookmarkEvent(self._kind, self._reported_revision)


def _event_of(change: StoreChange) -> StoreEvent:
    if change.value is None:
        assert change.previous is not None, f"{change.key} was deleted without a record"
        return StoreEvent(Change.DELETED, change.previous.value, change.revision)
    kind = Change.ADDED if change.previous is None else Change.MODIFIED
    return StoreEvent(kind, change.value, change.revision)


BOOKMARK_S = 60.0
PAGE_RECORDS = 1_000
"""Records read at a time when a list with a selection and a limit searches for its objects."""


class Storage:
    """Reads objects from a store."""

    def __init__(self, store: Store, worker: WorkerThread, *, bookmark_s: float = BOOKMARK_S) -> None:
        self._store = store
        self._worker = worker
        self._bookmark_s = bookmark_s

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        record = await self._store.get(kind.key(namespace, name))
        if record is None:
            raise not_found(kind, name)
        return served_bytes(kind, record.value, record.revision)

    async def list(
        self,
        kind: Kind,
        selection: Selection = EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
        revision: str = "",
    ) -> Listing:
        """As kube-apiserver: `revision` alone means "not older than", together with a limit exactly that one."""
        at = _revision_number(revision) or None
        if at is not None and not limit and not continue_token:
            await self.check_reached(at)
            at = None
        return await self.list_at(kind, selection, limit=limit, continue_token=continue_token, at=at)

    async def list_at(
        self,
        kind: Kind,
        selection: Selection,
        *,
        limit: int = 0,
        continue_token: str = "",
        at: int | None = None,
    ) -> Listing:
        """A listing of exactly that revision; of the last one if it is None."""
        folder, matcher = kind.keys_prefix(selection.namespace), _matcher(kind, selection)
        start = ""
        if continue_token:
            start, at = read_continue_token(folder, continue_token)
            at = None if at == INCONSISTENT else at
        try:
            return await self._listing(kind, folder, matcher, start, limit, at)
        except RevisionGone as error:
            raise list_gone(error, is_continued=bool(continue_token)) from None
        except RevisionAhead as error:
            raise ahead(error, is_exact=True) from None

    def watch(
        self, kind: Kind, selection: Selection = EVERYTHING, *, since: str, bookmarks: bool = True
    ) -> StorageWatch:
        since_revision = _revision_number(since)
        if not since_revision:
            raise BadRequestError(f"a watch starts from the resourceVersion of a list or an event, not from {since!r}")
        return StorageWatch(
            kind,
            self._store.watch(kind.keys_prefix(selection.namespace), since=since_revision),
            _matcher(kind, selection),
            since=since_revision,
            bookmark_s=self._bookmark_s if bookmarks else None,
        )

    async def check_reached(self, revision: int) -> None:
        """Raises a `ServerError` if the store has not reached the revision."""
        current = await self._store.revision()
        if revision > current:
            raise ahead(RevisionAhead(revision, current))

    async def _listing(
        self, kind: Kind, folder: str, matcher: ObjectMatcher | None, start: str, limit: int, at: int | None
    ) -> Listing:
        if matcher is None or not limit:
            page = await self._store.list(folder, start=start, limit=limit, at=at)
            found, remaining = page.records, page.remaining if page.next_start else None
        else:
            page, found = await self._search(folder, matcher, start, limit, at)
            matcher = remaining = (
                None  # how many of the others match is not known, and Kubernetes does not count either
            )
        items = await self._worker.run(_size_bytes(found), _served_items, kind, found, matcher)
        if not page.next_start:
            return Listing(items, str(page.revision))
        token = continue_token(folder, page.next_start, page.revision)
        return Listing(items, str(page.revision), token, remaining)

    async def _search(
        self, folder: str, matcher: ObjectMatcher, start: str, limit: int, at: int | None
    ) -> tuple[Page, Sequence[Record]]:
        """The first `limit` objects that match, and the page on which the last of them was."""
        found: list[Record] = []
        while True:
            page = await self._store.list(folder, start=start, limit=PAGE_RECORDS, at=at)
            for index in await self._worker.run(_size_bytes(page.records), _matching, page.records, matcher):
                found.append(page.records[index])
                if len(found) == limit:
                    following = page.records[index + 1].key if index + 1 < len(page.records) else page.next_start
                    return Page((), page.revision, following), found
            if not page.next_start:
                return page, found
            start, at = page.next_start, page.revision


def _matcher(kind: Kind, selection: Selection) -> ObjectMatcher | None:
    return matcher_of_selection(stored_selection(kind, selection))


def _size_bytes(records: Sequence[Record]) -> int:
    return sum(len(record.value) for record in records)


def _matching(records: Sequence[Record], matcher: ObjectMatcher) -> Sequence[int]:
    """The positions of the records that match."""
    return [index for index, record in enumerate(records) if matcher.matches(record.value)]


def _served_items(kind: Kind, records: Sequence[Record], matcher: ObjectMatcher | None) -> list[bytes]:
    """The records that match, as clients get them."""
    if matcher is not None:
        records = [records[index] for index in _matching(records, matcher)]
    return [served_bytes(kind, record.value, record.revision) for record in records]


def _revision_number(text: str) -> int:
    """What a resourceVersion counts; 0 for none. Raises `BadRequestError`."""
    if text and not (text.isascii() and text.isdecimal()):
        raise BadRequestError(f'invalid resource version: strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text or 0)


# --- pages ----------------------------------------------------------------------------------------------------


_VERSION = "meta.k8s.io/v1"
INCONSISTENT = -1
"""As the revision of a token: continue at the current revision, although objects have changed since the list began."""


class _Token(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Token).decode


def continue_token(folder: str, next_key: str, revision: int) -> str:
    token = _Token(_VERSION, revision, next_key.removeprefix(folder))
    return urlsafe_b64encode(_encode(token)).rstrip(b"=").decode()


def read_continue_token(folder: str, text: str) -> tuple[str, int]:
    """The next key and the revision of the list. Raises `BadRequestError`."""
    try:
        token = _decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, msgspec.DecodeError):
        raise BadRequestError("continue key is not valid") from None
    if token.v != _VERSION:
        raise BadRequestError(f"continue key is not valid: server does not recognize this encoded version {token.v}")
    if token.rv <= 0 and token.rv != INCONSISTENT:
        raise BadRequestError(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})"
        )
    if not token.start:
        raise BadRequestError(f"continue key is not valid: encoded start key empty (version {_VERSION})")
    if ".." in token.start.split("/") or "//" in token.start:
        raise BadRequestError(f"continue key is not valid: {token.start}")
    return folder + token.start, token.rv
