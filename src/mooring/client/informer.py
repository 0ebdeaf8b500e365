"""Informers: a cache of all objects of a kind, handlers for its changes, and listers to read it.

Inputs: the calls of a reflector: all objects, then one change after the other. Outputs: calls of handlers (added,
updated, deleted); a lister with indexes.

    API server ── reflector ──> informer ──┬──> handlers, in the order of their registration
                                           └──> lister

1. The cache changes first. Then the handlers run, one after the other, before the next change. The lister is never
   older than what a handler got.
2. Each handler gets a consistent history: an object is added, updated any number of times, deleted. `old` is always
   what the handler got last. After a relist it gets only the differences, deletions first.
3. An object that was deleted and created again with the same name is a deletion and an addition, even if the deletion
   was missed: the uid differs. (client-go reports an update.)
4. A late handler gets the present objects as added. An update is reported only if the resourceVersion differs.
5. An exception of a handler is logged with the handler's name. The other handlers run.
6. `SharedInformers` has one informer for each kind, selection and view: one list, one watch, one cache. `start` starts
   those that were requested since the last call, so that no handler misses the beginning.

A lister reads the cache: objects by name, namespace, labels or index. Only the informer changes them.

1. A result is the present state. It may change whenever the reader awaits something.
2. Objects come in the order in which the informer first saw them.
3. An index is read by its name. An unknown index is a bug.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar, cast

from mooring.api.kinds import Kind, kind_of_view
from mooring.api.labels import LabelMatcher
from mooring.api.views.meta import ApiObject
from mooring.client.interface import EVERYTHING, Change, Client, Selection
from mooring.client.reflector import PAGE_SIZE, Reflector
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup

AnyObject = TypeVar("AnyObject", bound=ApiObject)

IndexFunction: TypeAlias = Callable[[AnyObject], Iterable[str]]
"""The values of an object in an index."""

BY_NAMESPACE = "namespace"


def namespace_of(view: ApiObject) -> Iterable[str]:
    """Index function: the namespace."""
    return (view.metadata.namespace,)


class Lister(Generic[AnyObject]):
    """A read-only view of the objects of one informer."""

    __slots__ = ("_indexes", "_views")

    def __init__(
        self, views: Mapping[str, AnyObject], indexes: Mapping[str, Mapping[str, Mapping[str, AnyObject]]]
    ) -> None:
        self._views = views
        self._indexes = indexes

    def get(self, namespace: str, name: str) -> AnyObject | None:
        """One object. The namespace is empty for a cluster-scoped kind."""
        return self._views.get(f"{namespace}/{name}" if namespace else name)

    def by_key(self, key: str) -> AnyObject | None:
        """One object by `namespace/name`, or by its name if the kind is cluster-scoped."""
        return self._views.get(key)

    def list(self, namespace: str = "", labels: LabelMatcher | None = None) -> Sequence[AnyObject]:
        """All objects, filtered by namespace and labels if they are given."""
        found: Iterable[AnyObject] = self._views.values() if not namespace else self._in_namespace(namespace)
        if labels is None:
            return [*found]
        return [view for view in found if labels.matches(view.metadata.labels)]

    def by_index(self, index: str, value: str) -> Sequence[AnyObject]:
        """The objects with a value in an index."""
        assert index in self._indexes, f"no index {index!r} was registered; there are {sorted(self._indexes)}"
        return [*self._indexes[index].get(value, {}).values()]

    def keys(self) -> Sequence[str]:
        return [*self._views]

    def __len__(self) -> int:
        return len(self._views)

    def __contains__(self, key: object) -> bool:
        return key in self._views

    def __iter__(self) -> Iterator[AnyObject]:
        return iter([*self._views.values()])

    def _in_namespace(self, namespace: str) -> Iterable[AnyObject]:
        index = self._indexes.get(BY_NAMESPACE)
        if index is not None:
            return index.get(namespace, {}).values()
        return (view for view in self._views.values() if view.metadata.namespace == namespace)


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handler(Generic[AnyObject]):
    """Callbacks for changes. The name is for the log."""

    name: str
    on_add: Callable[[AnyObject], None] | None = None
    on_update: Callable[[AnyObject, AnyObject], None] | None = None
    on_delete: Callable[[AnyObject], None] | None = None


class Informer(Generic[AnyObject]):
    """A sink of a reflector that caches objects and calls handlers."""

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

    # ------------------------------------------------------------------------------------------ readers

    @property
    def has_synced(self) -> bool:
        """Whether every handler got all objects of the first list."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def has_seen(self, revision: str) -> bool:
        """Whether the cache includes a write that was answered with this resourceVersion."""
        if not (revision.isdecimal() and self._revision.isdecimal()):
            return True  # unknown, with a server whose versions are not numbers
        return (len(self._revision), self._revision) >= (len(revision), revision)

    def add_handler(
        self,
        name: str,
        *,
        on_add: Callable[[AnyObject], None] | None = None,
        on_update: Callable[[AnyObject, AnyObject], None] | None = None,
        on_delete: Callable[[AnyObject], None] | None = None,
    ) -> Handler[AnyObject]:
        """Register callbacks. They get the present objects first."""
        handler = Handler(name, on_add, on_update, on_delete)
        self._handlers = (*self._handlers, handler)
        for view in list(self._views.values()):
            self._notify_added((handler,), view)
        return handler

    def add_index(self, name: str, function: IndexFunction[AnyObject]) -> None:
        """Add an index. Adding the same function again has no effect."""
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

    # --------------------------------------------------------------------------------------- reflector

    def replace(self, views: Sequence[AnyObject], revision: str) -> None:
        self._revision = revision
        self._counts["replaced"] += 1
        present = {view.key for view in views}
        for key in [key for key in self._views if key not in present]:
            self._delete(key)
        for view in views:
            self._put(view)
        self._synced.set()

    def apply(self, change: Change, view: AnyObject) -> None:
        self._revision = view.metadata.resource_version
        if change is Change.DELETED:
            self._delete(view.key)
        else:
            self._put(view)

    # --------------------------------------------------------------------------------------- changes

    def _put(self, view: AnyObject) -> None:
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
            self._notify_added(handlers, view)
        else:
            self._counts["updated"] += 1
            self._notify_updated(handlers, old, view)

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
                        _remove(index, value, key)
            if new is not None:
                for value in values_new:
                    index.setdefault(value, {})[key] = new

    # ------------------------------------------------------------------------------------------ handlers

    def _notify_added(self, handlers: Sequence[Handler[AnyObject]], view: AnyObject) -> None:
        for handler in handlers:
            if handler.on_add is not None:
                try:
                    handler.on_add(view)
                except Exception:
                    self._report(handler, "added", view.key)

    def _notify_updated(self, handlers: Sequence[Handler[AnyObject]], old: AnyObject, new: AnyObject) -> None:
        for handler in handlers:
            if handler.on_update is not None:
                try:
                    handler.on_update(old, new)
                except Exception:
                    self._report(handler, "updated", new.key)

    def _report(self, handler: Handler[AnyObject], what: str, key: str) -> None:
        self._counts["handler_failures"] += 1
        logger.exception("handler %s of informer %s failed when %s was %s", handler.name, self.name, key, what)


def _remove(index: dict[str, dict[str, AnyObject]], value: str, key: str) -> None:
    objects = index.get(value)
    if objects is not None:
        objects.pop(key, None)
        if not objects:
            del index[value]


class SharedInformers:
    """The informers of a process."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy, *, page_size: int = PAGE_SIZE) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._page_size = page_size
        self._informers: dict[tuple[Kind, Selection, type[ApiObject]], Informer[ApiObject]] = {}
        self._reflectors: dict[str, Reflector[ApiObject]] = {}

    def informer(
        self, view: type[AnyObject], selection: Selection = EVERYTHING, *, kind: Kind | None = None
    ) -> Informer[AnyObject]:
        """The informer of a kind. `kind` is needed only if it does not follow from the view."""
        kind = kind if kind is not None else kind_of_view(view)
        key = (kind, selection, view)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = Informer(_name_of(kind, selection))
        return cast(Informer[AnyObject], informer)

    def start(self, group: TaskGroup) -> None:
        """Start every new informer as a background task of the group."""
        for (kind, selection, view), informer in self._informers.items():
            name = f"{informer.name} as {view.__name__}"
            if name in self._reflectors:
                continue
            reflector = Reflector(
                self._client,
                kind,
                view,
                informer,
                clock=self._clock,
                entropy=self._entropy.fork(f"reflector of {name}"),
                selection=selection,
                page_size=self._page_size,
            )
            self._reflectors[name] = reflector
            group.start_background(reflector.run(), name=f"reflector of {informer.name}")

    async def wait_all_synced(self) -> None:
        """Wait until every handler of every informer got all objects of the first list."""
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    def statistics(self) -> dict[str, dict[str, int]]:
        """Counts of each informer and its reflector."""
        found = {}
        for (_, _, view), informer in self._informers.items():
            name = f"{informer.name} as {view.__name__}"
            reflector = self._reflectors.get(name)
            found[name] = informer.statistics() | (reflector.statistics() if reflector is not None else {})
        return found


def _name_of(kind: Kind, selection: Selection) -> str:
    parts = (kind.resource, selection.namespace, selection.labels, selection.fields)
    return " ".join(part for part in parts if part)
