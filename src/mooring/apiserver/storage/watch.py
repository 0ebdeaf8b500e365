"""Watches on the store: changes of one folder as watch events of a selection, and bookmarks.

1. An object that a change moves into the selection is ADDED; one that a change moves out is DELETED, in its form
   before the change but with the resourceVersion of the change.
2. A view is decoded when a reader asks for it.
3. A bookmark follows `bookmark_s` after a change elsewhere in the store. An idle store sets no timer.
4. A watch ends when its reader closes it, or with `ExpiredError` when the reader is too slow for the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from msgspec.structs import force_setattr

from mooring.api.decode import decode_as
from mooring.api.kinds import Kind
from mooring.api.views.meta import ApiObject, ObjectWithRaw, View
from mooring.apiserver.errors import ahead, watch_gone
from mooring.apiserver.storage.selection import ObjectMatcher
from mooring.apiserver.storage.stored_form import is_stored_otherwise, translated, with_revision
from mooring.client.interface import AnyView, Change, WatchEvent
from mooring.store.interface import RevisionAhead, RevisionGone, StoreChange, StoreWatch


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


class TranslatedEvent:
    """A change of an object that is stored in the form of another kind."""

    __slots__ = ("change", "raw", "revision")

    def __init__(self, kind: Kind, event: WatchEvent) -> None:
        self.change = event.change
        self.revision = event.revision
        self.raw = translated(kind, event.raw)

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
        if is_stored_otherwise(self._kind):
            return [TranslatedEvent(self._kind, event) for event in self._selected_events(changes)]
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
