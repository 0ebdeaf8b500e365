"""The informer: a copy of all objects of a kind, and handlers that hear of every change.

Comes in   from a reflector: everything, then change after change
Goes out   to handlers: added, updated, deleted; to listers: the copy, with indexes

    API server ── reflector ──> informer ──┬──> handlers, in the order of their registration
                                           └──> lister

 1. The copy is changed first, then the handlers are called, one after the other, before the next change is looked at.
    What a handler sees in the lister is never older than what it was told.
 2. Each handler hears a consistent history: an object is added, updated any number of times, deleted; `old` is always
    what the handler was told last. When everything is listed again, it hears only the differences, deletions first.
 3. An object that was deleted and made anew under its name is told as deleted and added, even if nobody saw it go: the
    uid says so. (client-go tells an update there, and every handler of Kubernetes has to think of it.)
 4. A handler that comes late hears of the present objects as added. An update is told only if the resourceVersion
    differs.
 5. A handler that fails is logged with its name; the others go on. Its own history then has a hole, which is its bug.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from mooring.client.cache.lister import AnyObject, IndexFunction, Lister
from mooring.client.interface import Change

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handler(Generic[AnyObject]):
    """Who wants to hear of what. The name is for the log."""

    name: str
    on_add: Callable[[AnyObject, bool], None] | None = None
    """With the object, and whether it was there before the handler began to listen."""
    on_update: Callable[[AnyObject, AnyObject], None] | None = None
    on_delete: Callable[[AnyObject], None] | None = None


class Informer(Generic[AnyObject]):
    """A sink of a reflector, with a memory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._views: dict[str, AnyObject] = {}
        self._index_functions: dict[str, IndexFunction[AnyObject]] = {}
        self._indexes: dict[str, dict[str, dict[str, AnyObject]]] = {}
        self._handlers: tuple[Handler[AnyObject], ...] = ()
        self._synced = asyncio.Event()
        self._revision = ""
        self._counts = dict.fromkeys(("added", "updated", "deleted", "replaced", "handler_failures"), 0)
        self.lister: Lister[AnyObject] = Lister(self._views, self._indexes)

    # ------------------------------------------------------------------------------------------ for the reader

    @property
    def has_synced(self) -> bool:
        """Whether every handler has heard of everything that the first list held."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def has_seen(self, revision: str) -> bool:
        """Whether the copy is as new as a write to this kind, whose answer told this resourceVersion."""
        if not (revision.isdecimal() and self._revision.isdecimal()):
            return True  # nobody can tell, with a server whose versions are no numbers
        return (len(self._revision), self._revision) >= (len(revision), revision)

    def add_handler(
        self,
        name: str,
        *,
        on_add: Callable[[AnyObject, bool], None] | None = None,
        on_update: Callable[[AnyObject, AnyObject], None] | None = None,
        on_delete: Callable[[AnyObject], None] | None = None,
    ) -> Handler[AnyObject]:
        """From now on, tell this one too; first of what is there."""
        handler = Handler(name, on_add, on_update, on_delete)
        self._handlers = (*self._handlers, handler)
        for view in list(self._views.values()):
            self._tell_added((handler,), view, is_initial=True)
        return handler

    def remove_handler(self, handler: Handler[AnyObject]) -> None:
        """Tell this one no more, beginning with the next change."""
        self._handlers = tuple(other for other in self._handlers if other is not handler)

    def add_index(self, name: str, function: IndexFunction[AnyObject]) -> None:
        """Keep an index. Registering the same function again does nothing."""
        known = self._index_functions.get(name)
        assert known is None or known == function, f"informer {self.name} has another index {name!r} already"
        if known is not None:
            return
        self._index_functions[name] = function
        index: dict[str, dict[str, AnyObject]] = {}
        self._indexes[name] = index
        for key, view in self._views.items():
            for value in function(view):
                index.setdefault(value, {})[key] = view

    def statistics(self) -> dict[str, int]:
        return {"objects": len(self._views), "handlers": len(self._handlers), **self._counts}

    # --------------------------------------------------------------------------------------- for the reflector

    def replace(self, views: Sequence[AnyObject], revision: str) -> None:
        is_initial = not self._synced.is_set()
        self._revision = revision
        self._counts["replaced"] += 1
        present = {view.key for view in views}
        for key in [key for key in self._views if key not in present]:
            self._delete(key)
        for view in views:
            self._put(view, is_initial)
        self._synced.set()

    def apply(self, change: Change, view: AnyObject) -> None:
        self._revision = view.metadata.resource_version
        if change is Change.DELETED:
            self._delete(view.key)
        else:
            self._put(view, is_initial=False)

    # --------------------------------------------------------------------------------------- one object's life

    def _put(self, view: AnyObject, is_initial: bool) -> None:
        key = view.key
        old = self._views.get(key)
        if old is not None:
            if old.metadata.resource_version == view.metadata.resource_version:
                return
            if old.metadata.uid != view.metadata.uid:
                self._delete(key)
                old = None
        handlers = self._handlers
        self._views[key] = view
        if self._indexes:
            self._index(key, old, view)
        if old is None:
            self._counts["added"] += 1
            self._tell_added(handlers, view, is_initial)
        else:
            self._counts["updated"] += 1
            self._tell_updated(handlers, old, view)

    def _delete(self, key: str) -> None:
        old = self._views.pop(key, None)
        if old is None:
            return
        if self._indexes:
            self._index(key, old, None)
        self._counts["deleted"] += 1
        for handler in self._handlers:
            if handler.on_delete is not None:
                try:
                    handler.on_delete(old)
                except Exception:
                    self._report(handler, "deleted", key)

    def _index(self, key: str, old: AnyObject | None, new: AnyObject | None) -> None:
        for name, function in self._index_functions.items():
            index = self._indexes[name]
            values_new = () if new is None else function(new)
            if old is not None:
                for value in function(old):
                    if value not in values_new:
                        _take_out(index, value, key)
            if new is not None:
                for value in values_new:
                    index.setdefault(value, {})[key] = new

    # ------------------------------------------------------------------------------------------ telling others

    def _tell_added(self, handlers: Sequence[Handler[AnyObject]], view: AnyObject, is_initial: bool) -> None:
        for handler in handlers:
            if handler.on_add is not None:
                try:
                    handler.on_add(view, is_initial)
                except Exception:
                    self._report(handler, "added", view.key)

    def _tell_updated(self, handlers: Sequence[Handler[AnyObject]], old: AnyObject, new: AnyObject) -> None:
        for handler in handlers:
            if handler.on_update is not None:
                try:
                    handler.on_update(old, new)
                except Exception:
                    self._report(handler, "updated", new.key)

    def _report(self, handler: Handler[AnyObject], what: str, key: str) -> None:
        self._counts["handler_failures"] += 1
        logger.exception("handler %s of informer %s failed when %s was %s", handler.name, self.name, key, what)


def _take_out(index: dict[str, dict[str, AnyObject]], value: str, key: str) -> None:
    objects = index.get(value)
    if objects is not None:
        objects.pop(key, None)
        if not objects:
            del index[value]
